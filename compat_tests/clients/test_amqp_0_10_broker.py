"""The shortest ways through the broker, and those of the suite's example and its tests of persistence."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.clients.amqp_0_10.checks import drained, fails, inbox
from compat_tests.clients.amqp_0_10.client import UNLIMITED, Connection, Session, connect
from fakeamqp import Broker
from fakeamqp.protocols.amqp_0_10.codec import commands as x
from fakeamqp.protocols.amqp_0_10.codec.constants import (
    AcceptMode,
    AcquireMode,
    CreditUnit,
    DeliveryMode,
    RejectCode,
)
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet


@pytest.mark.suite("broker.BrokerTests.test_ack_and_no_ack")
def test_unaccepted_message_is_requeued_only_in_accept_mode_explicit(
    connection: Connection, session: Session
) -> None:
    for queue, mode in (("none", AcceptMode.NONE), ("explicit", AcceptMode.EXPLICIT)):
        session.declare(queue)
        session.publish(b"kept?", key=queue)
        session.publish(b"accepted", key=queue)
        session.subscribe(queue, queue, accept_mode=mode)
        first, second = session.drain(queue)
        assert (first.body, second.body) == (b"kept?", b"accepted")
        session.accept(second)  # Of what is settled already it is no error.
    session.close()
    other = connection.session(b"other")
    assert (other.depth("none"), other.depth("explicit")) == (0, 1)


@pytest.mark.suite("broker.BrokerTests.test_simple_delivery_immediate")
def test_message_is_delivered_to_an_existing_subscription(session: Session) -> None:
    session.declare("q", exclusive=True, auto_delete=True)
    session.bind("q", "amq.fanout")
    inbox(session, "q")
    session.publish(b"at once", exchange="amq.fanout")
    assert session.get("q").body == b"at once"


@pytest.mark.suite("broker.BrokerTests.test_simple_delivery_queued")
def test_message_is_queued_until_a_later_subscription(session: Session) -> None:
    session.declare("q", exclusive=True, auto_delete=True)
    session.bind("q", "amq.fanout")
    session.publish(b"later", exchange="amq.fanout")
    inbox(session, "q")
    assert session.get("q").body == b"later"


@pytest.mark.suite("example.ExampleTest.test_example")
def test_declare_bind_publish_subscribe_accept(session: Session) -> None:
    session.declare_exchange("orders", "direct")
    session.declare("q", exclusive=True, auto_delete=True)
    session.bind("q", "orders", "key")
    inbox(session, "q")
    session.publish(b"hello", exchange="orders", key="key")
    message = session.get("q")
    assert (message.body, message.delivery.exchange, message.delivery.routing_key) == (
        b"hello",
        "orders",
        "key",
    )
    session.accept(message)
    session.cancel("q")
    assert session.depth("q") == 0


# --- what publishers are told by the text ----------------------------------------------------------------


@pytest.fixture
def told(nothing_is_left: None) -> Iterator[tuple[Broker, Session]]:
    """A broker that goes by the documents, and a session on it."""
    with Broker(personality="spec") as broker:
        with connect(broker) as connection:
            yield broker, connection.session(b"session")
        assert broker.failures == ()


def test_publisher_gets_accept_or_reject_for_each_of_its_messages(told: tuple[Broker, Session]) -> None:
    _, session = told
    session.declare("q")
    accepted = session.publish(b"accepted", key="q")
    rejected = session.publish(b"rejected", key="nowhere")
    discarded = session.publish(b"discarded", key="nowhere", discard_unroutable=True)
    session.sync()
    accept, reject, accept_too = session.other
    assert accept == x.MessageAccept(transfers=SequenceSet.of(accepted))
    assert accept_too == x.MessageAccept(transfers=SequenceSet.of(discarded))
    assert isinstance(reject, x.MessageReject)
    assert (reject.transfers, reject.code) == (SequenceSet.of(rejected), RejectCode.UNROUTABLE)


def test_publishers_are_stopped_while_the_broker_is_short_of_memory(told: tuple[Broker, Session]) -> None:
    broker, session = told
    session.declare("q")
    session.publish(b"before", key="q")
    with broker.faults.memory_alarm():
        session.publish(b"the first", key="q")  # It is taken, and shows that somebody publishes.
        assert x.MessageStop(destination="") in session.other
        held = session.publish(b"the second", key="q", wait=False)
        broker.wait_until_idle()
        assert broker.queue("q").ready == 2
    session.result(held)
    assert broker.queue("q").ready == 3
    flows = [each for each in session.other if isinstance(each, x.MessageFlow)]
    assert [(flow.destination, flow.unit, flow.value) for flow in flows] == [
        ("", CreditUnit.MESSAGE, UNLIMITED),
        ("", CreditUnit.BYTE, UNLIMITED),
    ]


# --- persistence -----------------------------------------------------------------------------------------


def publish_persistently(session: Session, count: int) -> None:
    """Without waiting for any of them."""
    for _ in range(count):
        session.publish(b"kept", key="q", delivery_mode=DeliveryMode.PERSISTENT, wait=False)


def test_a_durable_queue_with_persistent_messages_can_be_deleted(session: Session) -> None:
    session.declare("q", auto_delete=True, durable=True)
    publish_persistently(session, 9)
    session.delete("q")
    with fails(404):
        session.declare("q", passive=True)


def test_a_message_of_a_deleted_queue_can_be_accepted(session: Session) -> None:
    session.declare("q", auto_delete=True, durable=True)
    publish_persistently(session, 1)
    session.subscribe("q", "d", accept_mode=AcceptMode.NONE, acquire_mode=AcquireMode.PRE_ACQUIRED)
    message = session.get("d")
    session.cancel("d")
    session.accept(message)
    with fails(404):
        session.declare("q", passive=True)


def test_durable_exclusive_queue_with_a_persistent_message_can_be_deleted(session: Session) -> None:
    session.declare("q", exclusive=True, durable=True)
    session.bind("q", "amq.topic", "xyz")
    session.publish(b"kept", exchange="amq.topic", key="xyz", delivery_mode=DeliveryMode.PERSISTENT)
    assert session.depth("q") == 1
    session.delete("q")
    with fails(404):
        session.declare("q", passive=True)


@pytest.mark.parametrize("crash", [False, True], ids=["restart", "crash"])
def test_persistent_messages_outlive_the_broker(
    broker: Broker, connection: Connection, session: Session, crash: bool
) -> None:
    session.declare("q", durable=True)
    session.declare("gone")
    for mode in (DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT):
        session.publish(mode.name.encode(), key="q", delivery_mode=mode)
    connection.drop()
    broker.restart(crash=crash)

    with connect(broker) as again:
        other = again.session(b"session")
        inbox(other, "q")
        assert drained(other, "q") == [b"PERSISTENT"]
        with fails(404):
            other.declare("gone", passive=True)
