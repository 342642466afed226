"""Clients of 0-10 and 0-9-1 on one broker: what one sends the other gets, with all that can be carried."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import aio_pika
import pika
import pika.exceptions
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from compat_tests.clients.amqp_0_10.checks import drained, fails, inbox
from compat_tests.clients.amqp_0_10.client import Connection, Session, connect
from fakeamqp import Broker
from fakeamqp.protocols.amqp_0_10.codec import commands as x
from fakeamqp.protocols.amqp_0_10.codec.structs import DeliveryProperties, MessageProperties, ReplyTo

ID = UUID("12345678-1234-5678-1234-567812345678")


@pytest.fixture
def channel(broker: Broker) -> Iterator[BlockingChannel]:
    """A channel of pika's, with confirms."""
    parameters = pika.URLParameters(broker.url)
    parameters.socket_timeout = parameters.stack_timeout = parameters.blocked_connection_timeout = 20
    with pika.BlockingConnection(parameters) as connection:
        opened = connection.channel()
        opened.confirm_delivery()
        yield opened


def get(channel: BlockingChannel, queue: str) -> tuple[pika.BasicProperties, bytes]:
    """The next message of a queue, which must have one."""
    method, properties, body = channel.basic_get(queue, auto_ack=True)
    assert method is not None
    return properties, body


# --- messages -----------------------------------------------------------------------------------------------

HEADERS: dict[str, Any] = {
    "text": "Käse",
    "number": -3,
    "large": 1 << 40,
    "yes": True,
    "nothing": None,
    "octets": b"\x00\xff",
    "table": {"inner": [1, "two", {"three": 3}]},
    "list": [1, "x"],
}
"""What pika can carry; it writes no floats and reads them as whole numbers."""


def test_properties_go_from_0_9_1_to_0_10(session: Session, channel: BlockingChannel) -> None:
    channel.queue_declare("q")
    sent = pika.BasicProperties(
        content_type="text/plain",
        content_encoding="utf-8",
        headers={**HEADERS, "decimal": Decimal("1.25")},
        delivery_mode=2,
        priority=7,
        correlation_id="request 1",
        reply_to="answers",
        expiration="60000",
        message_id=str(ID),
        timestamp=1_700_000_000,
        type="order",
        user_id="guest",
        app_id="shop",
    )
    channel.basic_publish("", "q", b"from pika", sent)
    inbox(session, "q")
    message = session.get("q")
    assert message.body == b"from pika"
    delivery, properties = message.delivery, message.properties
    assert (delivery.delivery_mode, delivery.priority, delivery.timestamp) == (2, 7, 1_700_000_000)
    assert delivery.routing_key == "q"
    assert 0 < (delivery.ttl or 0) <= 60000
    assert (properties.content_type, properties.content_encoding) == ("text/plain", "utf-8")
    assert (properties.correlation_id, properties.user_id, properties.app_id) == (
        b"request 1",
        b"guest",
        b"shop",
    )
    assert properties.reply_to == ReplyTo(routing_key="answers")
    assert properties.message_id == ID
    assert message.headers == {**HEADERS, "decimal": Decimal("1.25"), "x-jms-type": "order"}


def test_properties_go_from_0_10_to_0_9_1(session: Session, channel: BlockingChannel) -> None:
    session.declare("q")
    session.publish(
        b"from 0-10",
        key="q",
        headers={**HEADERS, "x-jms-type": "order", "uuid": ID},
        properties=MessageProperties(
            content_type="text/plain",
            content_encoding="utf-8",
            correlation_id=b"request 1",
            reply_to=ReplyTo(exchange="amq.direct", routing_key="answers"),
            message_id=ID,
            user_id=b"guest",
            app_id=b"shop",
        ),
        delivery_mode=2,
        priority=7,
        ttl=60000,
        timestamp=1_700_000_000,
    )
    properties, body = get(channel, "q")
    assert body == b"from 0-10"
    headers = dict(properties.headers)
    assert headers.pop("uuid") == str(ID)
    assert headers == HEADERS
    assert (properties.content_type, properties.content_encoding) == ("text/plain", "utf-8")
    assert (properties.delivery_mode, properties.priority) == (2, 7)
    assert (properties.correlation_id, properties.reply_to) == ("request 1", "amq.direct/answers")
    assert (properties.message_id, properties.type) == (str(ID), "order")
    assert (properties.user_id, properties.app_id) == ("guest", "shop")
    assert (properties.timestamp, properties.expiration) == (1_700_000_000, "60000")


def test_bodies_of_all_sizes_go_both_ways(session: Session, channel: BlockingChannel) -> None:
    channel.queue_declare("to 0-10")
    channel.queue_declare("to 0-9-1")
    inbox(session, "to 0-10")
    for size in (0, 1, 65_519, 65_520, 131_072, 1_000_000):
        body = bytes(number % 251 for number in range(size))
        channel.basic_publish("", "to 0-10", body)
        message = session.get("to 0-10")
        assert message.body == body
        session.publish(message.body, key="to 0-9-1")
        assert get(channel, "to 0-9-1")[1] == body


def test_a_question_is_answered_across_protocols(session: Session, channel: BlockingChannel) -> None:
    session.declare("questions")
    answers = channel.queue_declare("", exclusive=True).method.queue
    sent = pika.BasicProperties(reply_to=answers, correlation_id="7")
    channel.basic_publish("", "questions", b"2+2", sent)
    inbox(session, "questions")
    question = session.get("questions")
    address = question.properties.reply_to
    assert address is not None
    session.publish(
        b"4",
        exchange=address.exchange,
        key=address.routing_key,
        properties=MessageProperties(correlation_id=question.properties.correlation_id),
    )
    session.accept(question)
    properties, body = get(channel, answers)
    assert (body, properties.correlation_id) == (b"4", "7")


def test_a_message_that_comes_again_is_marked_in_both(session: Session, channel: BlockingChannel) -> None:
    channel.queue_declare("q")
    channel.basic_publish("", "q", b"again")
    method, _, _ = channel.basic_get("q")
    assert method is not None and not method.redelivered
    channel.basic_nack(method.delivery_tag, requeue=True)
    inbox(session, "q")
    message = session.get("q")
    assert message.delivery.redelivered
    session.cancel("q")
    session.release(message)
    method, _, _ = channel.basic_get("q")
    assert method is not None and method.redelivered


@pytest.mark.asyncio
async def test_aio_pika_and_0_10_exchange_messages(broker: Broker) -> None:
    async with await aio_pika.connect(broker.url) as connection:
        channel = await connection.channel()
        exchange = await channel.declare_exchange("events", aio_pika.ExchangeType.HEADERS)
        queue = await channel.declare_queue("q")
        await queue.bind(exchange, arguments={"x-match": "all", "kind": "order"})
        with connect(broker) as other:
            session = other.session(b"session")
            session.declare("mine", exclusive=True, auto_delete=True)
            session.bind("mine", "events", None, **{"x-match": "any", "kind": "order", "from": "aio-pika"})
            inbox(session, "mine")
            session.publish(b"from 0-10", exchange="events", headers={"kind": "order", "half": 0.5})
            incoming = await queue.get(timeout=20)
            await incoming.ack()
            assert (incoming.body, incoming.headers) == (b"from 0-10", {"kind": "order", "half": 0.5})
            when = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
            message = aio_pika.Message(
                b"back", headers={"from": "aio-pika", "half": 0.5}, timestamp=when, message_id=str(ID)
            )
            await exchange.publish(message, "")
            assert session.get("mine").body == b"from 0-10"
            back = session.get("mine")
            assert (back.body, back.headers) == (b"back", {"from": "aio-pika", "half": 0.5})
            assert back.properties.message_id == ID
            assert back.delivery.timestamp == when.timestamp()


# --- confirms and refusals ----------------------------------------------------------------------------------


def test_pika_publish_to_a_0_10_queue_is_confirmed_and_unroutable_publish_raises(
    session: Session, channel: BlockingChannel
) -> None:
    session.declare("q", exclusive=True, auto_delete=True)
    inbox(session, "q")
    channel.basic_publish("", "q", b"confirmed", mandatory=True)  # Raises unless it is confirmed.
    assert session.get("q").body == b"confirmed"
    with pytest.raises(pika.exceptions.UnroutableError):
        channel.basic_publish("", "nowhere", b"lost", mandatory=True)


def test_a_full_queue_refuses_in_the_words_of_each_protocol(
    connection: Connection, session: Session, channel: BlockingChannel
) -> None:
    channel.queue_declare("q", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    session.publish(b"fits", key="q")
    with pytest.raises(pika.exceptions.NackError):
        channel.basic_publish("", "q", b"too many")
    with fails(506):
        session.publish(b"too many", key="q")
    assert connection.session(b"other").depth("q") == 1


def test_an_exclusive_queue_is_exclusive_across_protocols(
    connection: Connection, session: Session, channel: BlockingChannel
) -> None:
    session.declare("mine", exclusive=True, auto_delete=True)
    yours = channel.queue_declare("", exclusive=True).method.queue
    with fails(405):
        connection.session(b"other").subscribe(yours, "d")
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as refused:
        channel.basic_get("mine")
    assert refused.value.reply_code == 405


# --- topology -----------------------------------------------------------------------------------------------


def test_dead_letters_and_times_to_live(nothing_is_left: None) -> None:
    with Broker(clock="virtual") as broker, connect(broker) as connection:
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as other:
            channel = other.channel()
            channel.exchange_declare("dead", "fanout")
            channel.queue_declare("buried")
            channel.queue_bind("buried", "dead")
            channel.queue_declare("q", arguments={"x-message-ttl": 5000, "x-dead-letter-exchange": "dead"})
        session = connection.session(b"session")
        session.publish(b"by the queue", key="q", headers={"mine": 1})
        session.publish(b"by itself", key="q", ttl=1000)
        inbox(session, "buried")
        broker.clock.advance(4.9)
        assert drained(session, "buried") == []
        broker.clock.advance(0.1)
        first, second = session.drain("buried")
        assert (first.body, second.body) == (b"by the queue", b"by itself")
        for message in (first, second):
            (death,) = message.headers["x-death"]
            assert (death["queue"], death["reason"], death["count"]) == ("q", "expired", 1)
        assert first.headers["mine"] == 1
        assert second.delivery.ttl is None, "or it would expire once more"
        assert broker.failures == ()


def test_message_rejected_over_0_10_is_dead_lettered_with_reason_rejected(
    session: Session, channel: BlockingChannel
) -> None:
    channel.exchange_declare("dead", "fanout")
    channel.queue_declare("buried")
    channel.queue_bind("buried", "dead")
    channel.queue_declare("q", arguments={"x-dead-letter-exchange": "dead"})
    channel.basic_publish("", "q", b"not wanted")
    inbox(session, "q")
    session.reject(session.get("q"))
    properties, body = get(channel, "buried")
    assert body == b"not wanted"
    assert properties.headers["x-death"][0]["reason"] == "rejected"


DEFINITIONS: dict[str, Any] = {
    "users": [{"name": "shop", "password": "secret", "tags": []}],
    "vhosts": [{"name": "trade"}],
    "permissions": [
        {"user": "shop", "vhost": "trade", "configure": "^$", "write": "^orders$", "read": "^(europe|asia)$"}
    ],
    "exchanges": [{"name": "orders", "vhost": "trade", "type": "topic", "durable": True}],
    "queues": [
        {"name": "europe", "vhost": "trade", "durable": True, "arguments": {"x-max-length": 2}},
        {"name": "asia", "vhost": "trade", "durable": True, "arguments": {"x-queue-type": "quorum"}},
    ],
    "bindings": [
        {
            "source": "orders",
            "vhost": "trade",
            "destination": name,
            "destination_type": "queue",
            "routing_key": f"{name}.#",
            "arguments": {},
        }
        for name in ("europe", "asia")
    ],
}


def test_a_topology_of_definitions_is_there_for_0_10(nothing_is_left: None) -> None:
    with Broker(definitions=DEFINITIONS) as broker:
        login = {"user": "shop", "password": "secret", "virtual_host": "trade"}
        with connect(broker, **login) as connection:
            session = connection.session(b"session")
            for number in range(3):
                session.publish(b"%d" % number, exchange="orders", key="europe.north")
            session.publish(b"3", exchange="orders", key="asia")
            for queue in ("europe", "asia"):
                inbox(session, queue)
            assert drained(session, "europe") == [b"1", b"2"]
            assert drained(session, "asia") == [b"3"]
            for command in (
                x.QueueDeclare(queue="another"),
                x.QueuePurge(queue="nothing of ours"),
                x.ExchangeDelete(exchange="orders"),
                x.MessageTransfer(destination="amq.topic"),
            ):
                with fails(403):
                    connection.session(b"refused").call(command)
        assert broker.failures == ()


def test_one_header_segment_is_enough_for_0_9_1(session: Session, channel: BlockingChannel) -> None:
    """A transfer may have neither header nor body; for 0-9-1 that is a message without properties."""
    channel.queue_declare("q")
    channel.queue_bind("q", "amq.fanout")
    session.call(x.MessageTransfer(destination="amq.fanout"))
    session.call(x.MessageTransfer(destination="amq.fanout"), header=[DeliveryProperties()])
    for _ in range(2):
        properties, body = get(channel, "q")
        assert body == b""
        assert not properties.headers and properties.content_type is None
