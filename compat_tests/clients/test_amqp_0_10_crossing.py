"""Clients of 0-10 and 0-9-1 on one broker: what one sends the other gets, with all that can be carried."""

from __future__ import annotations

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
from compat_tests.clients.amqp_0_10.client import Session, connect
from fakeamqp import Broker
from fakeamqp.protocols.amqp_0_10.codec import commands as x
from fakeamqp.protocols.amqp_0_10.codec.structs import DeliveryProperties, MessageProperties, ReplyTo

ID = UUID("12345678-1234-5678-1234-567812345678")


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


# --- topology -----------------------------------------------------------------------------------------------


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
        assert broker.admin.failures == ()


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
