"""What clients did is done again, and what is different then is found, and nothing else."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import amqp
import pika
import pytest

from compat_tests.trace.happenings import busy, calls, consume, pika_client
from fakeamqp import Broker
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.constants import PROTOCOL_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.frames import frame
from fakeamqp.protocols.amqp_0_9_1.codec.tables import encode_table
from fakeamqp.replay import NoBroker, NotTheSame, ReplayError, replay
from fakeamqp.trace import Trace, load


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(users={"guest": "guest", "ann": "swordfish"}, virtual_hosts=["orders"]) as broker:
        yield broker


@pytest.fixture
def recorded(broker: Broker, tmp_path: Path) -> Callable[[], Trace]:
    """The recording of what has happened once every client has gone, written and read back."""

    def end() -> Trace:
        broker.wait_for(lambda: not broker.connections)
        broker.wait_until_idle()
        broker.trace.jsonl(tmp_path / "trace.jsonl")
        return load(tmp_path / "trace.jsonl")

    return end


def test_replay_of_a_pika_client_gives_the_same_answers(broker, recorded):
    busy(broker)
    outcome = replay(recorded())
    outcome.expect_same()
    assert outcome.connections[0].replies > 20


def test_replay_at_a_url_gives_the_same_answers(broker, recorded):
    busy(broker)
    trace = recorded()
    with Broker(users={"bob": "other"}) as other:
        outcome = replay(trace, url=other.url)
        outcome.expect_same()
        assert {view.exchange for view in other.published} == {"", "events"}
        assert not other.admin.failures


def test_replay_of_aio_pika_clients_with_a_reply_queue_gives_the_same_answers(broker, recorded):
    calls(broker)
    outcome = replay(recorded())
    outcome.expect_same()
    assert len(outcome.connections) == 2


def test_replay_waits_for_the_message_ttl_as_recorded(broker, recorded):
    with pika_client(broker) as connection:
        channel = connection.channel()
        dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        channel.queue_declare("dead")
        channel.queue_declare("short", arguments={"x-message-ttl": 20, **dead})
        channel.basic_publish("", "short", b"late")
        consume(channel, "dead", 1)
    outcome = replay(recorded())
    outcome.expect_same()


def test_replay_uses_the_wall_time_of_the_recording():
    """A consumer reads a stream from an instant on."""
    began = datetime(2030, 1, 1, tzinfo=timezone.utc)
    with Broker(clock="virtual", now=began) as broker:
        with pika_client(broker) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.queue_declare("log", durable=True, arguments={"x-queue-type": "stream"})
            channel.basic_publish("", "log", b"early")
            broker.clock.advance(100)
            channel.basic_publish("", "log", b"late")
            channel.basic_qos(prefetch_count=1)
            since = {"x-stream-offset": began + timedelta(seconds=50)}
            for method, _, body in channel.consume("log", arguments=since, inactivity_timeout=10):
                assert body == b"late"
                channel.basic_ack(method.delivery_tag)
                break
            channel.cancel()
        broker.wait_for(lambda: not broker.connections)
        outcome = replay(broker.trace)
    outcome.expect_same()


@pytest.mark.parametrize("guess", ["guess", "as long!!", ""])
def test_replay_knows_users_and_virtual_hosts_and_refuses_the_wrong_password(broker, recorded, guess):
    wrong = pika.ConnectionParameters(
        broker.host, broker.port, "orders", pika.PlainCredentials("ann", guess), connection_attempts=1
    )
    with pytest.raises(pika.exceptions.AMQPError):
        pika.BlockingConnection(wrong)
    right = pika.ConnectionParameters(
        broker.host, broker.port, "orders", pika.PlainCredentials("ann", "swordfish")
    )
    with pika.BlockingConnection(right) as connection:
        connection.channel().queue_declare("q")
    outcome = replay(recorded())
    outcome.expect_same()
    assert [each.replies > 0 for each in outcome.connections] == [True, True]


def test_login_refused_without_a_close_is_refused_in_the_replay(broker, recorded):
    properties = {"product": "test", "capabilities": {"authentication_failure_close": False}}
    table = encode_table({"LOGIN": "ann", "PASSWORD": "as long!!"})[4:]
    wrong = m.ConnectionStartOk(client_properties=properties, mechanism="AMQPLAIN", response=table)
    with broker.connect() as client:
        client.settimeout(10)
        client.sendall(PROTOCOL_HEADER + frame(1, 0, wrong.encode()))
        while client.recv(4096):
            pass
    right = pika.ConnectionParameters(
        broker.host, broker.port, "/", pika.PlainCredentials("ann", "swordfish")
    )
    pika.BlockingConnection(right).close()
    outcome = replay(recorded())
    outcome.expect_same()


def test_refused_login_is_refused_in_a_replay_at_a_url(broker, recorded):
    wrong = pika.ConnectionParameters(
        broker.host, broker.port, "/", pika.PlainCredentials("guest", "gUest"), connection_attempts=1
    )
    with pytest.raises(pika.exceptions.AMQPError):
        pika.BlockingConnection(wrong)
    trace = recorded()
    with Broker() as other:
        outcome = replay(trace, url=other.url)
    outcome.expect_same()


def test_replay_reports_differences_by_connection(broker, recorded):
    with pika_client(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("q")
        channel.basic_publish("", "q", b"one")
        consume(channel, "q", 1)
    with pika_client(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("other", durable=True)
        channel.queue_declare("q")
    trace = recorded()
    with Broker() as other:
        with pika_client(other) as connection:
            channel = connection.channel()
            channel.queue_declare("q")
            channel.basic_publish("", "q", b"before")
            channel.queue_declare("other")
            connection.close()
        outcome = replay(trace, url=other.url, timeout=0.5)
    with pytest.raises(NotTheSame) as failure:
        outcome.expect_same()
    assert str(failure.value) == f"the replay differs from the recording:\n{outcome}"
    first, second = map(str, outcome.connections)
    assert "- channel 1: queue.declare-ok queue='q' message_count=0 consumer_count=0" in first
    assert "+ channel 1: queue.declare-ok queue='q' message_count=1 consumer_count=0" in first
    assert "content body" not in first and "the bodies differ" not in first
    assert "+ channel 1: channel.close reply_code=406" in second
    assert second.count("\n") == 3 and "later answers on channel 1 are not compared" in second


def test_replay_reports_different_bodies(broker, recorded):
    with pika_client(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("q")
        broker.publish(b"yes", routing_key="q")
        consume(channel, "q", 1)
    trace = recorded()
    with Broker() as other:
        other.load_definitions({"queues": [{"name": "q", "vhost": "/", "durable": False, "arguments": {}}]})
        other.publish(b"now", routing_key="q")
        outcome = replay(trace, url=other.url)
    assert "the bodies differ: b'yes' and b'now'" in str(outcome)


def test_replay_reports_missing_and_additional_deliveries(broker, recorded):
    """A replay does not publish what the test itself published through the broker."""
    with pika_client(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("q", durable=True)
        broker.publish(b"x", routing_key="q")
        consume(channel, "q", 1)
    trace = recorded()
    outcome = replay(trace)
    assert "- channel 1: basic.deliver" in str(outcome) and "+ (nothing)" in str(outcome)
    with Broker() as other:
        other.load_definitions({"queues": [{"name": "q", "vhost": "/", "durable": True, "arguments": {}}]})
        for body in (b"x", b"y"):
            other.publish(body, routing_key="q")
        outcome = replay(trace, url=other.url)
    assert "- (nothing)" in str(outcome) and "delivery_tag=2" in str(outcome)


def test_lost_connection_is_lost_in_the_replay(broker, recorded):
    connection = amqp.Connection(f"{broker.host}:{broker.port}")  # It logs in by AMQPLAIN.
    connection.connect()
    channel = connection.channel()
    channel.queue_declare("held", auto_delete=False)
    channel.basic_publish(amqp.Message("x"), routing_key="held")
    assert not channel.basic_get("held").delivery_info["redelivered"]
    connection.collect()
    broker.wait_for(lambda: not broker.connections)
    with pika_client(broker) as second:
        method, _, _ = second.channel().basic_get("held")
        assert method.redelivered
    outcome = replay(recorded())
    outcome.expect_same()


def test_a_connection_without_its_beginning_is_not_replayed(broker, recorded):
    busy(broker)
    trace = recorded()
    half = Trace.of(trace.events[10:], 10)
    with pytest.raises(ReplayError, match="no connection with its beginning"):
        replay(half)
    with pika_client(broker):
        pass
    both = Trace.of((*half.events, *recorded().events[len(trace) :]))
    outcome = replay(both)
    assert [bool(each.skipped) for each in outcome.connections] == [True, False]
    assert not outcome.same


def test_replay_leaves_out_a_client_without_a_protocol_header(broker, recorded):
    with socket.create_connection((broker.host, broker.port)) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert stranger.recv(8).startswith(b"AMQP")
    with pika_client(broker):
        pass
    outcome = replay(recorded())
    assert outcome.same and len(outcome.connections) == 1


def test_replay_without_a_broker_at_the_url_is_an_error(broker, recorded):
    busy(broker)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(NoBroker, match="no broker at"):
        replay(recorded(), url=f"amqp://127.0.0.1:{port}")
    for url in ("localhost:5672", "http://localhost/", "amqp://", "amqp://localhost:many", "amqp://[", ""):
        with pytest.raises(ReplayError, match="not a URL of a broker"):
            replay(recorded(), url=url)
