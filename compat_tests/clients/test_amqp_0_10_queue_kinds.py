"""Queues of all kinds that RabbitMQ has, used by AMQP 0-10, whoever declared them."""

from __future__ import annotations

from pika.adapters.blocking_connection import BlockingChannel

from compat_tests.clients.amqp_0_10.checks import bodies, drained, inbox
from compat_tests.clients.amqp_0_10.client import Connection, Session, connect
from fakeamqp import Broker
from fakeamqp.protocols.amqp_0_10.codec.constants import AcquireMode

FIVE = [b"0", b"1", b"2", b"3", b"4"]


def test_stream_is_read_from_a_given_offset_and_keeps_its_messages(
    session: Session, channel: BlockingChannel
) -> None:
    channel.queue_declare("s", durable=True, arguments={"x-queue-type": "stream"})
    for body in FIVE[:4]:
        channel.basic_publish("", "s", body)
    session.publish(FIVE[4], key="s")
    session.subscribe("s", "all", arguments={"x-stream-offset": "first"})
    messages = session.drain("all")
    assert bodies(messages) == FIVE
    assert [message.headers["x-stream-offset"] for message in messages] == [0, 1, 2, 3, 4]
    session.accept(*messages)
    session.subscribe("s", "some", arguments={"x-stream-offset": 3}, acquire_mode=AcquireMode.NOT_ACQUIRED)
    assert drained(session, "some") == FIVE[3:]
    assert session.depth("s") == 5


def test_a_quorum_queue_gives_a_message_up_that_comes_back_too_often() -> None:
    # RabbitMQ 4.3 counts failures, and a release is none.
    with Broker(personality="rabbitmq-4.2") as broker, connect(broker) as connection:
        session = connection.session(b"test")
        session.declare("buried")
        arguments = {
            "x-queue-type": "quorum",
            "x-delivery-limit": 2,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": "buried",
        }
        session.declare("q", durable=True, arguments=arguments)
        session.publish(b"poison", key="q")
        inbox(session, "buried")
        inbox(session, "q")
        for _ in range(3):
            assert drained(session, "buried") == []
            (message,) = session.drain("q")
            session.release(message, set_redelivered=True)
        assert drained(session, "q") == []
        assert drained(session, "buried") == [b"poison"]


def test_single_active_consumer_is_replaced_by_the_next_session_when_it_closes(
    broker: Broker, connection: Connection
) -> None:
    first = connection.session(b"first")
    first.declare("q", arguments={"x-single-active-consumer": True})
    with connect(broker) as other:
        second = other.session(b"second")
        inbox(first, "q")
        inbox(second, "q")
        for body in FIVE:
            first.publish(body, key="q")
        assert (drained(first, "q"), drained(second, "q")) == (FIVE, [])
        first.close()
        assert drained(second, "q") == FIVE


def test_priorities_decide_the_order(session: Session) -> None:
    session.declare("q", arguments={"x-max-priority": 9})
    for priority, body in enumerate(FIVE):
        session.publish(body, key="q", priority=priority)
    inbox(session, "q")
    assert drained(session, "q") == FIVE[::-1]


def test_bindings_between_exchanges_lead_on(session: Session, channel: BlockingChannel) -> None:
    channel.exchange_declare("from", "topic")
    channel.exchange_declare("to", "fanout")
    channel.exchange_bind("to", "from", "orders.#")
    channel.queue_declare("q")
    channel.queue_bind("q", "to")
    session.publish(b"yes", exchange="from", key="orders.new")
    session.publish(b"no", exchange="from", key="others")
    inbox(session, "q")
    assert drained(session, "q") == [b"yes"]
    assert session.bound("from", queue="q").queue_not_matched, "not by itself"
