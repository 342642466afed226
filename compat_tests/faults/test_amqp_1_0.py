"""Fault rules on the performatives of AMQP 1.0, and what the trace shows of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from fakeamqp import Broker

proton = pytest.importorskip("proton")
utils = pytest.importorskip("proton.utils")


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(clock="virtual") as broker:
        yield broker


@pytest.fixture
def connection(broker: Broker) -> Iterator[Any]:
    broker.load_definitions({"queues": [{"name": "q", "vhost": "/", "durable": True}]})
    connection = utils.BlockingConnection(f"amqp://guest:guest@127.0.0.1:{broker.port}", timeout=10)
    yield connection
    with suppress(proton.ProtonException):
        connection.close()


def test_trace_shows_performatives_with_their_fields(broker: Broker, connection: Any) -> None:
    connection.create_sender("/queues/q").send(proton.Message(body=b"hello", inferred=True))
    timeline = broker.trace.timeline()
    for text in (
        "sasl-mechanisms",
        "protocol-header AMQP 1-0-0",
        "open container_id=",
        "begin",
        "target=target(address='/queues/q'",
        "transfer handle=0 delivery_id=0",
        "b'hello'",
        "state=accepted",
    ):
        assert text in timeline


def test_password_is_not_in_the_trace(broker: Broker) -> None:
    from fakeamqp.protocols.amqp_1_0.codec import composites as c
    from fakeamqp.protocols.amqp_1_0.codec.types import Symbol
    from fakeamqp.protocols.amqp_1_0.dialect import DIALECT

    init = c.SaslInit(mechanism=Symbol("PLAIN"), initial_response=b"\0guest\0secret")
    octets = init.encode()
    assert b"secret" not in DIALECT.redacted(1, octets, 0)
    assert len(DIALECT.redacted(1, octets, 0)) == len(octets)
    assert "secret" not in DIALECT.describe(1, octets)


def test_dropped_transfer_gets_no_outcome(broker: Broker, connection: Any) -> None:
    rule = broker.faults.on("transfer", queue="q").drop().once()
    sender = connection.create_sender("/queues/q")
    with pytest.raises(proton.Timeout):
        sender.send(proton.Message(body=b"lost"), timeout=0.3)
    assert rule.hits == 1
    sender.send(proton.Message(body=b"there", inferred=True))
    assert [message.body for message in broker.queue("q").messages] == [b"there"]


def test_nacked_transfer_is_rejected(broker: Broker, connection: Any) -> None:
    broker.faults.on("transfer", queue="q").nack().once()
    sender = connection.create_sender("/queues/q")
    with pytest.raises(utils.SendException):
        sender.send(proton.Message(body=b"x"))
    assert broker.queue("q").ready == 0


def test_delayed_transfer_comes_when_the_clock_says_so(broker: Broker, connection: Any) -> None:
    connection.create_sender("/queues/q").send(proton.Message(body=b"x", inferred=True))
    rule = broker.faults.on("transfer", direction="sent").delay(5).once()
    receiver = connection.create_receiver("/queues/q", credit=1)
    rule.wait(1)
    broker.clock.advance(5)
    message = receiver.receive(timeout=10)
    assert bytes(message.body) == b"x"


def test_withheld_delivery_leaves_no_gap_in_the_delivery_ids(broker: Broker, connection: Any) -> None:
    sender = connection.create_sender("/queues/q")
    broker.faults.on("transfer", direction="sent").drop().once()
    receiver = connection.create_receiver("/queues/q", credit=5)
    for number in range(3):
        sender.send(proton.Message(body=b"%d" % number, inferred=True))
    messages = [receiver.receive(timeout=10) for _ in range(2)]
    assert [bytes(message.body) for message in messages] == [b"1", b"2"]


def test_attach_with_an_address_of_version_1_is_matched_by_its_queue() -> None:
    with Broker(personality="rabbitmq-4.0") as broker:
        connection = utils.BlockingConnection(f"amqp://guest:guest@127.0.0.1:{broker.port}", timeout=10)
        rule = broker.faults.on("attach", queue="orders").close_connection().once()
        with pytest.raises(proton.ProtonException):
            connection.create_sender("/queue/orders")
        assert rule.hits == 1


def test_attach_to_a_queue_is_matched_by_its_name(broker: Broker, connection: Any) -> None:
    rule = broker.faults.on("attach", queue="q").close_connection().once()
    with pytest.raises(proton.ConnectionException):
        connection.create_sender("/queues/q")
    assert rule.hits == 1


def test_silenced_connection_is_closed_after_the_idle_time_out(broker: Broker, connection: Any) -> None:
    connection.create_sender("/queues/q")
    [view] = broker.connections
    silence = broker.faults.silence(view)
    broker.clock.advance(59)
    assert broker.connections
    broker.clock.advance(2)
    broker.wait_for(lambda: not broker.connections or "idle timeout" in broker.trace.timeline())
    silence.remove()
    with pytest.raises(proton.ProtonException, match="idle timeout threshold"):
        connection.create_sender("/queues/q", name="other")


def test_starved_receiver_gets_its_messages_when_the_fault_ends(broker: Broker, connection: Any) -> None:
    broker.publish(b"x", routing_key="q")
    starvation = broker.faults.starve("q")
    receiver = connection.create_receiver("/queues/q", credit=1)
    with pytest.raises(proton.Timeout):
        receiver.receive(timeout=0.2)
    assert starvation.hits == 1
    starvation.remove()
    received = receiver.receive(timeout=10)
    assert bytes(received.body) == b"x"


def test_alarm_closes_the_window_for_publishers_and_consumers_go_on(broker: Broker, connection: Any) -> None:
    broker.publish(b"x", routing_key="q")
    alarm = broker.faults.memory_alarm()
    receiver = connection.create_receiver("/queues/q", credit=1)
    received = receiver.receive(timeout=10)
    assert bytes(received.body) == b"x"
    assert "incoming_window=0" in broker.trace.timeline()
    alarm.remove()
    connection.create_sender("/queues/q").send(proton.Message(body=b"y"))


def test_link_ends_with_the_condition_of_the_fault(broker: Broker, connection: Any) -> None:
    sender = connection.create_sender("/queues/q")
    broker.faults.on("transfer", queue="q").detach("amqp:resource-deleted", "the queue has gone").once()
    with pytest.raises(utils.LinkDetached, match="the queue has gone"):
        sender.send(proton.Message(body=b"x"))
    connection.create_sender("/queues/q", name="again").send(proton.Message(body=b"y"))


def test_large_message_is_one_for_a_rule(broker: Broker, connection: Any) -> None:
    large = b"x" * 300_000
    rule = broker.faults.on("transfer", queue="q", body=large).nack().once()
    sender = connection.create_sender("/queues/q")
    with pytest.raises(utils.SendException):
        sender.send(proton.Message(body=large, inferred=True))
    sender.send(proton.Message(body=large, inferred=True))
    assert rule.calls == 2
    seen = broker.faults.on("transfer", direction="sent", queue="q", body=large).call(lambda group: None)
    receiver = connection.create_receiver("/queues/q", credit=1)
    received = receiver.receive(timeout=10)
    assert bytes(received.body) == large and seen.hits == 1
