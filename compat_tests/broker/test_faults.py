"""Faults in a broker that runs: with sockets, threads and TLS, through restarts, and in its personalities."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pika
import pika.exceptions
import pytest

from fakeamqp import Broker
from fakeamqp.faults import FaultError, FaultNotSeen, Faults, UnusedFault
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import method_frame
from fakeamqp.trace import FrameEvent

_OPEN: list[pika.BlockingConnection] = []


@pytest.fixture(autouse=True)
def close_all() -> Iterator[None]:
    """Close what tests have opened, where it has not been closed for them."""
    yield
    while _OPEN:
        with suppress(pika.exceptions.AMQPError):
            _OPEN.pop().close()


@pytest.fixture
def faults(broker: Broker) -> Faults:
    return broker.faults


def channel_of(broker: Broker, *, confirms: bool = True, **options: Any) -> Any:
    """A channel of a connection of its own, with a queue "q"; closed with the broker."""
    if broker.url.startswith("amqps"):
        options["ssl_options"] = pika.SSLOptions(broker.tls.client_context, "localhost")
    connection = pika.BlockingConnection(pika.ConnectionParameters(broker.host, broker.port, **options))
    _OPEN.append(connection)
    channel = connection.channel()
    channel.queue_declare("q", durable=True)
    if confirms:
        channel.confirm_delivery()
    return channel


def publish(channel: Any, body: bytes = b"1") -> None:
    channel.basic_publish("", "q", body)


def test_each_broker_has_its_own_faults(broker: Broker) -> None:
    assert broker.faults is broker.faults
    with Broker() as other:
        assert other.faults is not broker.faults
        other.faults.on("basic.publish", optional=True).nack()
        publish(channel_of(broker))


def test_wait_for_a_fault_rule_returns_or_reports_missing_hits(broker: Broker, faults: Faults) -> None:
    rule = faults.on("basic.publish").nack().times(2)
    channel = channel_of(broker, confirms=False)
    publish(channel)
    publish(channel)
    rule.wait(2)
    with pytest.raises(FaultNotSeen, match="only 2 times instead of 3 times"):
        rule.wait(3, timeout=0.01)


def test_exception_of_a_fault_function_is_raised_by_wait(broker: Broker, faults: Faults) -> None:
    """The client goes on, who waits is told at once, and the broker has no bug."""

    def look(group: Any) -> None:
        assert group.body == b"2"

    rule = faults.on("basic.publish").call(look)
    publish(channel_of(broker))
    with pytest.raises(AssertionError):
        rule.wait(5)
    assert broker.admin.failures == ()


def test_fault_functions_may_use_the_broker(broker: Broker, faults: Faults) -> None:
    faults.on("basic.publish", body=b"1").call(lambda group: broker.publish(b"0", routing_key="q"))
    faults.on("basic.publish", body=b"2").call(lambda group: broker.queue("q").purge())
    channel = channel_of(broker)
    publish(channel, b"1")
    assert [message.body for message in broker.queue("q").messages] == [b"0", b"1"]
    publish(channel, b"2")
    assert [message.body for message in broker.queue("q").messages] == [b"2"]


def test_reset_ends_all_faults(broker: Broker, faults: Faults) -> None:
    faults.on("basic.publish").nack()
    faults.memory_alarm()
    broker.reset()
    assert faults.rules == ()
    faults.verify()
    publish(channel_of(broker))


def test_reset_discards_a_publish_held_by_a_fault(broker: Broker, faults: Faults) -> None:
    """What was held is gone with its connection, and comes up nowhere afterwards."""
    faults.on("basic.publish").hold()
    channel = channel_of(broker, confirms=False)
    publish(channel)
    channel.connection.process_data_events(0)
    rule = faults.rules[0]
    rule.wait()
    assert rule.held == 1
    broker.reset()
    assert not broker.queue("q").exists
    assert (rule.held, rule.release()) == (0, 0)
    channel_of(broker)
    assert (broker.queue("q").ready, len(broker.published)) == (0, 0)


@pytest.mark.parametrize("crash", [False, True])
def test_fault_rules_and_alarms_survive_a_restart(broker: Broker, faults: Faults, crash: bool) -> None:
    rule = faults.on("basic.publish").nack()
    alarm = faults.disk_alarm().optional()
    channel_of(broker)
    broker.restart(crash=crash)
    connection = channel_of(broker, blocked_connection_timeout=None).connection
    assert broker._reader.read(lambda state: state.blocked_reason) == "low on disk"
    alarm.remove()
    assert broker._reader.read(lambda state: state.blocked_reason) is None
    with pytest.raises(pika.exceptions.NackError):
        channel = connection.channel()
        channel.confirm_delivery()
        publish(channel)
    assert rule.hits == 1


def test_stop_discards_held_confirms_and_the_broker_starts_again(broker: Broker, faults: Faults) -> None:
    faults.on("confirm").hold()
    faults.on("basic.get").delay(0.01).optional()
    channel = channel_of(broker, confirms=False)
    channel._impl.confirm_delivery(lambda frame: None)
    channel.connection.process_data_events(0.01)
    channel._impl.basic_publish("", "q", b"1")
    channel.connection.process_data_events(0.01)
    faults.rules[0].wait()
    broker.stop()
    assert faults.rules[0].held == 0
    broker.start()
    faults.clear()
    publish(channel_of(broker))


def test_broker_is_back_on_the_same_port_after_a_crash_fault(broker: Broker, faults: Faults) -> None:
    port = broker.port
    faults.on("basic.publish").crash().once()
    channel = channel_of(broker)
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        publish(channel)
    assert broker.port == port
    publish(channel_of(broker))


@pytest.mark.parametrize("crash", [False, True])
def test_client_can_connect_as_soon_as_a_restart_ends_its_connection(broker: Broker, crash: bool) -> None:
    """There is no moment in which the old connection is known to be gone, and the port is not open again."""
    began = threading.Event()

    def restart() -> None:
        began.wait(10)
        broker.restart(crash=crash)

    for _ in range(30):
        began.clear()
        thread = threading.Thread(target=restart)
        thread.start()
        with socket.create_connection((broker.host, broker.port), timeout=10) as client:
            client.sendall(b"AMQP\x00\x00\x09\x01")
            assert client.recv(1)
            began.set()
            with suppress(ConnectionResetError):
                while client.recv(65_536):
                    pass
        socket.create_connection((broker.host, broker.port), timeout=10).close()
        thread.join()


@pytest.mark.threads_only
def test_crash_fault_of_a_broker_stopped_meanwhile_is_no_failure(broker: Broker, faults: Faults) -> None:
    rule = faults.on("basic.publish").call(lambda group: threading.Thread(target=broker.stop).start()).crash()
    channel = channel_of(broker)
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        publish(channel)
    rule.wait()
    broker.stop()
    assert broker.admin.failures == ()
    broker.start()


def test_faults_work_without_a_trace() -> None:
    with Broker(trace=0) as broker:
        rule = broker.faults.on("basic.publish", queue="q").nack().once()
        channel = channel_of(broker)
        with pytest.raises(pika.exceptions.NackError):
            publish(channel)
        publish(channel)
        rule.remove()
        publish(channel)
        assert broker.admin.failures == ()


@pytest.mark.parametrize(
    ("after", "frames", "rest"),
    [("method", ["basic.get-ok"], 0), ("header", ["basic.get-ok", "content header"], 0), (3, [], 3)],
)
def test_trace_shows_the_frames_and_bytes_sent_before_a_cut(after: Any, frames: list[str], rest: int) -> None:
    with Broker() as broker:
        rule = broker.faults.on("basic.get-ok").cut(after=after)
        channel = channel_of(broker)
        publish(channel)
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            channel.basic_get("q")
        rule.wait()
        events = broker.trace.events
        sent = [each.name for each in events if isinstance(each, FrameEvent) and each.direction == "sent"]
        assert sent[sent.index("basic.ack") + 1 :] == frames
        told = [each.detail for each in events if each.name == "fault" and "bytes of a frame" in each.detail]
        assert len(told) == bool(rest)
        assert all(f"sent {rest} bytes" in each for each in told)


@pytest.mark.parametrize("how", ["fin", "reset"])
def test_faults_work_over_tls(how: Any) -> None:
    with Broker(tls=True) as broker:
        broker.faults.on("basic.publish").nack().once()
        broker.faults.on("basic.publish").disconnect(how).once()
        channel = channel_of(broker)
        with pytest.raises(pika.exceptions.NackError):
            publish(channel)
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            publish(channel)
        publish(channel_of(broker))
        assert broker.admin.failures == ()


@pytest.mark.parametrize("personality", ["spec", "rabbitmq-3.13", "rabbitmq-4.3"])
def test_faults_work_in_several_personalities(personality: str) -> None:
    with Broker(personality=personality) as broker:
        lost = broker.faults.on("basic.publish", queue="q", body=b"1").drop()
        closed = broker.faults.on("basic.publish", body=b"3").close_channel(311)
        twice = broker.faults.on("basic.get-ok", queue="q").replace(redelivered=True)
        channel = channel_of(broker, confirms=False)
        for body in (b"1", b"2", b"3"):
            publish(channel, body)
        with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="311"):
            channel.queue_declare("p")
        method, _, body = channel_of(broker, confirms=False).basic_get("q")
        assert (method.redelivered, body) == (True, b"2")
        assert [lost.hits, closed.hits, twice.hits] == [1, 1, 1]
        assert broker.admin.failures == ()


@pytest.mark.parametrize("personality", ["rabbitmq-4.2", "spec"])
def test_delayed_close_ok_is_sent_before_the_transport_ends(personality: str) -> None:
    with Broker(personality=personality) as broker:
        late = broker.faults.on("connection.close-ok", direction="sent").delay(0.02)
        with socket.create_connection((broker.host, broker.port), timeout=10) as client:
            client.sendall(
                b"AMQP\x00\x00\x09\x01"
                + method_frame(0, m.ConnectionStartOk({}, "PLAIN", b"\0guest\0guest", "en_US").encode())
                + method_frame(0, m.ConnectionTuneOk(channel_max=9, frame_max=131_072).encode())
                + method_frame(0, m.ConnectionOpen(virtual_host="/").encode())
            )
            octets = b""
            welcome = method_frame(0, m.ConnectionOpenOk().encode())
            goodbye = method_frame(0, m.ConnectionCloseOk().encode())
            while not octets.endswith(welcome) and (piece := client.recv(65_536)):
                octets += piece
            client.sendall(method_frame(0, m.ConnectionClose(reply_code=200).encode()))
            assert client.recv(65_536) == goodbye
        assert late.hits == 1


def test_heartbeats_expire_on_a_virtual_clock_only_with_a_heartbeat_rule() -> None:
    """Clients live by another clock, so that their silence means nothing there, unless a test says so."""
    with Broker(clock="virtual") as broker:
        broker.faults.on("heartbeat").drop().optional()
        channel = channel_of(broker, heartbeat=60)
        broker.clock.advance(200)
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            publish(channel)
        broker.faults.clear()
        channel = channel_of(broker, heartbeat=60)
        broker.clock.advance(2000)
        publish(channel)


def test_delay_faults_use_the_clock_of_the_broker() -> None:
    with Broker(clock="virtual") as broker:
        rule = broker.faults.on("queue.declare-ok", queue="slow").delay(3600)
        channel = channel_of(broker)
        threading.Thread(target=lambda: (rule.wait(), broker.clock.advance(3600))).start()
        channel.queue_declare("slow")
        assert broker.clock.elapsed == 3600


def test_unused_fault_rule_fails_verify_with_a_near_miss(broker: Broker, faults: Faults) -> None:
    faults.on("basic.publish", routing_key="orders.#").nack()
    publish(channel_of(broker))
    with pytest.raises(UnusedFault, match=r"near miss: .* routing_key='q'"):
        faults.verify()


def test_fault_rule_applies_only_to_the_given_connection(broker: Broker, faults: Faults) -> None:
    one, two = channel_of(broker), channel_of(broker)
    faults.on("basic.publish", connection=broker.connections[0]).nack()
    with pytest.raises(pika.exceptions.NackError):
        publish(one)
    publish(two)


def test_misspelled_method_in_a_fault_rule_is_an_error(faults: Faults) -> None:
    with pytest.raises(FaultError, match=r"did you mean 'basic\.publish'"):
        faults.on("basic.pulbish")
