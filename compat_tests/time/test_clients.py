"""Unmodified clients on a broker whose time is virtual. Hours pass; nobody waits."""

from __future__ import annotations

import socket
import threading
from typing import Any

import aio_pika
import amqp
import pika
import pytest
from freezegun import freeze_time

from compat_tests.time.conftest import SECONDS, Connect, deaths, retry_queues
from fakeamqp import Broker, BrokerError
from fakeamqp.errors import NothingPending


@pytest.mark.parametrize("turn", range(20))
def test_messages_published_just_before_an_advance_expire_by_it(
    broker: Broker, connect: Connect, turn: int
) -> None:
    channel = connect(broker).channel()
    retry_queues(channel, ("minute", 60), back_to="dead")
    channel.queue_declare("dead")
    for number in range(20):
        channel.basic_publish("", "minute", b"%d" % number)  # Nobody confirms it.
    broker.clock.advance(60)
    assert (broker.queue("minute").ready, broker.queue("dead").ready) == (0, 20)


def test_dead_letters_caused_by_an_advance_are_delivered_when_it_returns(
    broker: Broker, connect: Connect
) -> None:
    connection = connect(broker)
    channel = connection.channel()
    retry_queues(channel, ("minute", 60), back_to="dead")
    channel.queue_declare("dead")
    came: list[bytes] = []
    channel.basic_consume("dead", lambda *delivery: came.append(delivery[-1]), auto_ack=True)
    for number in range(100):
        channel.basic_publish("", "minute", b"%d" % number)
        broker.clock.advance(61)
        connection.process_data_events(0)  # It takes what has arrived and does not wait.
        assert came == [b"%d" % each for each in range(number + 1)]


def test_large_input_and_large_output_are_dealt_with_too(broker: Broker, connect: Connect) -> None:
    connection = connect(broker)
    channel = connection.channel()
    retry_queues(channel, ("minute", 60), back_to="dead")
    channel.queue_declare("dead")
    came: list[int] = []
    channel.basic_consume("dead", lambda *delivery: came.append(len(delivery[-1])), auto_ack=True)
    for _ in range(40):
        channel.basic_publish("", "minute", bytes(1_000_000))
    broker.clock.advance(60)
    assert broker.queue("minute").ready == 0
    while len(came) < 40:
        connection.process_data_events(SECONDS)
    assert came == [1_000_000] * 40


def test_newcomers_are_let_in_before_time_moves(broker: Broker) -> None:
    with socket.create_connection((broker.host, broker.port), timeout=SECONDS) as client:
        client.sendall(b"AMQP\0\0\x09\x01")
        broker.clock.advance(1)
        client.setblocking(False)
        assert client.recv(1) == b"\x01", "connection.start has been sent"


def test_a_three_hop_retry_ladder(broker: Broker, connect: Connect) -> None:
    """5 s, 1 min, 10 min, each hop chosen by a consumer that fails."""
    connection = connect(broker)
    channel = connection.channel()
    ladder = [("retry.5s", 5), ("retry.1min", 60), ("retry.10min", 600)]
    channel.queue_declare("work")
    retry_queues(channel, *ladder, back_to="work")
    attempts: list[tuple[float, Any]] = []

    def work(channel: Any, method: Any, properties: Any, body: bytes) -> None:
        attempts.append((broker.clock.elapsed, properties))
        if len(attempts) <= len(ladder):
            channel.basic_publish("", ladder[len(attempts) - 1][0], body, properties)
        channel.basic_ack(method.delivery_tag)

    channel.basic_consume("work", work)
    channel.basic_publish("", "work", b"order 7")
    broker.wait_until_idle()
    connection.process_data_events(0)
    moves = []
    for _ in ladder:
        moves.append(broker.clock.advance_to_next())
        connection.process_data_events(0)

    assert moves == [5, 60, 600]
    assert [elapsed for elapsed, _properties in attempts] == [0, 5, 65, 665]
    # What a client publishes begins anew, whatever deaths it says it has had.
    hops = [deaths(properties) for _elapsed, properties in attempts[1:]]
    assert hops == [{"retry.5s": 5}, {"retry.1min": 65}, {"retry.10min": 665}]


def test_an_idle_broker_walks_a_ladder_by_itself(broker: Broker, connect: Connect) -> None:
    connection = connect(broker)
    channel = connection.channel()
    channel.queue_declare("work")
    retry_queues(channel, ("hour", 3600), back_to="work")
    attempts: list[float] = []

    def work(channel: Any, _method: Any, _properties: Any, body: bytes) -> None:
        attempts.append(broker.clock.elapsed)
        if len(attempts) < 24:
            channel.basic_publish("", "hour", body)

    channel.basic_consume("work", work, auto_ack=True)
    broker.clock.autojump = 0.001
    channel.basic_publish("", "work", b"x")
    while len(attempts) < 24:
        connection.process_data_events(SECONDS)
    assert attempts == [3600 * number for number in range(24)]


def test_half_an_hour_without_an_ack_closes_the_channel(connect: Connect) -> None:
    with Broker(clock="virtual", personality="rabbitmq-4.2") as broker:
        connection = connect(broker)
        channel = connection.channel()
        channel.queue_declare("q")
        channel.basic_publish("", "q", b"x")
        channel.basic_consume("q", lambda *delivery: None)
        connection.process_data_events(SECONDS)
        broker.clock.advance(1799)
        assert connection.channel().is_open and channel.is_open
        broker.clock.advance(61)
        with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="delivery acknowledgement"):
            channel.basic_qos(prefetch_count=1)
        assert broker.queue("q").ready == 1


def test_since_4_3_a_delivery_of_a_classic_queue_may_stay_unacked(broker: Broker, connect: Connect) -> None:
    connection = connect(broker)
    channel = connection.channel()
    channel.queue_declare("q")
    channel.basic_publish("", "q", b"x")
    channel.basic_consume("q", lambda *delivery: None)
    connection.process_data_events(SECONDS)
    broker.clock.advance(86_400)
    channel.basic_qos(prefetch_count=1)
    assert broker.queue("q").unacked == 1


def test_threads_may_publish_while_time_moves(broker: Broker) -> None:
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        retry_queues(channel, ("second", 1), back_to="dead")
        channel.queue_declare("dead")

    def publish() -> None:
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            for _ in range(50):
                channel.basic_publish("", "second", b"x")

    threads = [threading.Thread(target=publish) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        broker.clock.advance(0.1)
    broker.clock.advance(1)
    assert broker.queue("dead").ready == 200
    moments = [deaths(message)["second"] for message in broker.queue("dead").messages]
    assert moments == sorted(moments)


def test_expiry_timer_is_removed_with_the_last_message_of_its_queue(broker: Broker, connect: Connect) -> None:
    connection = connect(broker, heartbeat=0)
    channel = connection.channel()
    channel.confirm_delivery()
    retry_queues(channel, ("minute", 60), back_to="dead")

    def publish() -> None:
        channel.basic_publish("", "minute", b"x")
        assert len(broker.clock.timers) == 1

    publish()
    channel.basic_get("minute", auto_ack=True)
    assert broker.clock.timers == ()
    publish()
    channel.queue_purge("minute")
    assert broker.clock.timers == ()
    publish()
    tag = channel.basic_consume("minute", lambda *delivery: None, auto_ack=True)
    channel.basic_cancel(tag)
    assert broker.clock.timers == ()
    publish()
    broker.clock.advance(1)
    channel.basic_publish("", "minute", b"y")
    channel.basic_get("minute", auto_ack=True)
    assert [timer.due_in for timer in broker.clock.timers] == [60]
    channel.queue_delete("minute")
    assert broker.clock.timers == ()


@pytest.mark.parametrize("turn", range(5))
def test_over_tls_too(turn: int) -> None:
    with Broker(clock="virtual", tls=True) as broker:
        parameters = pika.URLParameters(broker.url)
        parameters.ssl_options = pika.SSLOptions(broker.tls.client_context, broker.host)
        with pika.BlockingConnection(parameters) as connection:
            channel = connection.channel()
            retry_queues(channel, ("minute", 60), back_to="dead")
            channel.queue_declare("dead")
            came: list[bytes] = []
            channel.basic_consume("dead", lambda *delivery: came.append(delivery[-1]), auto_ack=True)
            for number in range(20):
                channel.basic_publish("", "minute", b"%d" % number)
                broker.clock.advance(60)
                assert broker.queue("minute").ready == 0
            while len(came) < 20:
                connection.process_data_events(SECONDS)
            assert came == [b"%d" % number for number in range(20)]
        assert broker.admin.failures == ()


@pytest.mark.asyncio
async def test_aio_pika(broker: Broker) -> None:
    async with await aio_pika.connect(broker.url) as connection:
        channel = await connection.channel()
        dead = await channel.declare_queue("dead")
        arguments = {
            "x-message-ttl": 3_600_000,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": "dead",
        }
        await channel.declare_queue("hour", arguments=arguments)
        await channel.default_exchange.publish(aio_pika.Message(b"x"), routing_key="hour")
        assert await dead.get(fail=False) is None
        broker.clock.advance(3600)
        message = await dead.get(timeout=SECONDS)
        assert message.body == b"x"
        await message.ack()


# --- heartbeats --------------------------------------------------------------------------------------------


def test_a_day_passes_and_clients_do_not_notice(broker: Broker, connect: Connect) -> None:
    connection = connect(broker, heartbeat=60)
    broker.clock.advance(86_400)
    connection.process_data_events(0)
    connection.channel().queue_declare("still-served")


def test_a_client_that_falls_silent_is_cut_off_by_a_strict_advance(broker: Broker, connect: Connect) -> None:
    connection = connect(broker, heartbeat=60)
    connection.channel().queue_declare("q", exclusive=True)
    broker.clock.advance(180, heartbeats="strict")
    assert broker.connections == ()
    assert not broker.queue("q").exists
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        connection.process_data_events(0)
        connection.channel()


def test_a_client_that_speaks_outlives_strict_advances(broker: Broker, connect: Connect) -> None:
    connection = connect(broker, heartbeat=60)
    broker.clock.heartbeats = "strict"
    channel = connection.channel()
    for _ in range(20):
        broker.clock.advance(60)
        channel.queue_declare("q")
    broker.clock.heartbeats = "lenient"
    broker.clock.advance(3600)
    channel.queue_declare("q")


def test_strictness_of_one_advance_ends_with_it(broker: Broker, connect: Connect) -> None:
    connection = connect(broker, heartbeat=60)
    broker.clock.advance(60, heartbeats="strict")
    assert broker.clock.heartbeats == "lenient"
    broker.clock.advance(3600)
    connection.channel().queue_declare("q")
    broker.clock.heartbeats = "strict"
    broker.clock.advance(3600, heartbeats="lenient")
    assert broker.clock.heartbeats == "strict"
    connection.channel().queue_declare("q")


def test_chores_of_connections_are_no_timers_to_advance_to(broker: Broker, connect: Connect) -> None:
    connection = connect(broker, heartbeat=60)
    with pytest.raises(
        NothingPending, match=r"Only housekeeping timers are left .*connection 127.0.0.1.*heartbeats='strict'"
    ):
        broker.clock.advance_to_next()
    assert all(timer.housekeeping for timer in broker.clock.timers)
    connection.channel().queue_declare("q", arguments={"x-expires": 100_000})
    assert broker.clock.advance_to_next(heartbeats="strict") == 30
    assert broker.clock.advance_to_next() == 70


@pytest.mark.threads_only
def test_pika_times_out_when_only_its_own_clock_advances(broker: Broker, connect: Connect) -> None:
    with freeze_time("2024-02-29") as freezer:
        connection = connect(broker, heartbeat=60)
        with pytest.raises(pika.exceptions.AMQPHeartbeatTimeout):
            for _ in range(12):
                freezer.tick(30)
                connection.process_data_events(0)
    broker.wait_until_idle()
    assert broker.connections == ()


def test_pika_stays_connected_when_its_clock_and_the_broker_clock_advance_together(
    broker: Broker, connect: Connect
) -> None:
    with freeze_time("2024-02-29") as freezer:
        connection = connect(broker, heartbeat=60)
        for _ in range(60):
            freezer.tick(30)
            broker.clock.advance(30, heartbeats="strict")
            connection.process_data_events(0)
        connection.channel().queue_declare("still-served")


def test_py_amqp_times_out_when_only_its_own_clock_advances(broker: Broker) -> None:
    with freeze_time("2024-02-29") as freezer:
        connection = amqp.Connection(f"{broker.host}:{broker.port}", heartbeat=60)
        connection.connect()
        with pytest.raises(amqp.ConnectionForced, match="Too many heartbeats missed"):
            for _ in range(12):
                freezer.tick(30)
                connection.heartbeat_tick()
        connection.collect()


def test_a_blocked_connection_times_out(broker: Broker, connect: Connect) -> None:
    with freeze_time("2024-02-29") as freezer:
        connection = connect(broker, heartbeat=0, blocked_connection_timeout=300)
        channel = connection.channel()
        broker.faults.memory_alarm()
        channel.basic_publish("", "q", b"x")
        broker.wait_until_idle()
        connection.process_data_events(0)
        freezer.tick(299)
        connection.process_data_events(0)
        freezer.tick(2)
        with pytest.raises(pika.exceptions.ConnectionBlockedTimeout):
            for _ in range(10):
                connection.process_data_events(0)


def test_client_that_sends_only_the_protocol_header_is_disconnected_after_10_seconds(broker: Broker) -> None:
    with socket.create_connection((broker.host, broker.port), timeout=SECONDS) as client:
        client.sendall(b"AMQP\0\0\x09\x01")
        broker.clock.advance(10)
        assert broker.connections == ()
        assert client.recv(4096).startswith(b"\x01")
        assert client.recv(4096) == b""


# --- waiting in vain ---------------------------------------------------------------------------------------


class TestWaitingInVain:
    STILL = r"Time is virtual and stands still until the test moves it; it has been moved by 0.8 s so far\. "
    NEXT = STILL + r"Next, q 'retry\.5s' .* in 4\.2 s: broker\.clock\.advance\(4\.2\)"

    @pytest.fixture
    def channel(self, broker: Broker, connect: Connect) -> Any:
        channel = connect(broker).channel()
        retry_queues(channel, ("retry.5s", 5), back_to="work")
        channel.queue_declare("work")
        channel.basic_publish("", "retry.5s", b"x")
        broker.clock.advance(0.8)
        return channel

    def test_for_a_queue(self, broker: Broker, channel: Any) -> None:
        with pytest.raises(AssertionError, match=self.NEXT):
            broker.queue("work").wait_for(ready=1, timeout=0.001)
        broker.clock.advance(4.2)
        broker.queue("work").wait_for(ready=1)

    def test_for_a_queue_that_does_not_exist(self, broker: Broker, channel: Any) -> None:
        with pytest.raises(AssertionError, match=self.NEXT):
            broker.queue("nowhere").wait_for(ready=1, timeout=0.001)

    def test_for_a_publish(self, broker: Broker, channel: Any) -> None:
        with pytest.raises(AssertionError, match=self.NEXT):
            broker.expect_published(body="y", timeout=0.001)

    def test_for_peace(self, broker: Broker, channel: Any) -> None:
        channel.basic_consume("work", lambda *delivery: None)
        broker.publish(
            bytes(30_000_000), routing_key="work"
        )  # More than its socket takes, and it does not read.
        with pytest.raises(BrokerError, match=self.NEXT):
            broker.wait_until_idle(timeout=0.001)

    def test_wait_timeout_says_that_no_timer_is_pending(self, broker: Broker, channel: Any) -> None:
        channel.queue_delete("retry.5s")
        with pytest.raises(AssertionError, match=self.STILL + "No timer is pending"):
            broker.queue("work").wait_for(ready=1, timeout=0.001)

    def test_time_that_runs_is_described(self, broker: Broker, channel: Any) -> None:
        broker.clock.rate = 1e-6
        with pytest.raises(AssertionError, match="Time is virtual and runs 1e-06 times as fast as real time"):
            broker.queue("work").wait_for(ready=1, timeout=0.001)
        broker.clock.rate = 0
        broker.clock.autojump = 1000
        with pytest.raises(AssertionError, match="jumps when the broker has been idle for 1000 s"):
            broker.queue("work").wait_for(ready=1, timeout=0.001)

    def test_wait_timeout_on_real_time_does_not_mention_time(self, connect: Connect) -> None:
        with Broker() as broker:
            connect(broker).channel().queue_declare("q")
            with pytest.raises(AssertionError) as caught:
                broker.queue("q").wait_for(ready=1, timeout=0.001)
            first, *others = str(caught.value).splitlines()
            assert first.endswith("<queue 'q' ready=0 unacked=0 consumers=0>")
            assert not any("Time is" in each for each in others)
