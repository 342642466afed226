"""Encode contents for the client: basic.deliver, basic.get-ok, basic.return.

A message published over 0-9-1 or 0-9 is delivered with the property bytes that were received. Only its frames
are encoded anew, because the channel can differ.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from fakeamqp.model.errors import ChannelCrash
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import (
    FRAME_BODY,
    FRAME_END,
    FRAME_HEADER,
    SHARED_BODY,
    content_pieces,
    method_frame,
)
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.codec.tables import encode_short_string
from fakeamqp.protocols.base.codec import FieldError

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.deliveries.subscription import Subscription
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.queues import Queue, QueuedMessage
    from fakeamqp.protocols.amqp_0_9_1.base_channel import BaseChannel
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

ENCODING = "0-9-x basic"
"""Marks messages whose property bytes 0-9-1 and 0-9 can forward unchanged."""

_SHARED_PROPERTIES = [name for name, _ in BasicProperties.LAYOUT if name != "cluster_id"]
"""The properties that messages of every protocol have."""
_BASIC = 60
_DELIVER = 60
_MAX_PREFIXES = 1000
_pack_tag = Struct(">QB").pack
_pack_content = Struct(">BBHIHHQ").pack
_pack_body = Struct(">BBHI").pack
_END = b"\xce"


def deliver(
    channel: BaseChannel,
    subscription: Subscription,
    message: Message,
    redelivered: bool,
    delivery: Delivery | None,
) -> None:
    """Send one message to a consumer."""
    ledger = channel.ledger
    if delivery is None:
        ledger.last_tag = tag = ledger.last_tag + 1
    else:
        tag = ledger.add(delivery)
    # For one consumer, exchange and key, only delivery tag and redelivered flag of basic.deliver differ.
    key = (subscription.tag, message.exchange, message.routing_key)
    parts = channel.deliver_prefixes.get(key)
    try:
        if parts is None:
            parts = _deliver_parts(channel, *key)
        octets = message.properties_bytes if message.encoding is ENCODING else properties_bytes(message)
    except (ChannelCrash, FieldError) as problem:
        # The publisher, or another consumer, may have the turn.
        channel.crash(ChannelCrash(str(problem)))
        return
    body = message.body
    number = channel.number
    size = len(body)
    connection = channel.connection
    tap = connection.broker.tap
    if tap is not None:
        tap.event(
            "delivered",
            connection,
            message,
            subscription.queue.name,
            subscription.tag,
            number,
            tag,
            redelivered,
        )
    if 0 < size <= SHARED_BODY and size <= connection.body_limit:
        connection.outbox.deliveries += 1
        channel.outbox.write(
            b"".join(
                (
                    parts[0],
                    _pack_tag(tag, redelivered),
                    parts[1],
                    _pack_content(FRAME_END, 2, number, 12 + len(octets), _BASIC, 0, size),
                    octets,
                    _pack_body(FRAME_END, FRAME_BODY, number, size),
                    body,
                    _END,
                )
            )
        )
    else:
        method = b"".join((parts[0], _pack_tag(tag, redelivered), parts[1], _END))
        _write(channel, method, content_pieces(number, _BASIC, octets, body, connection.body_limit), message)
    if channel.virtual_host.firehose is not None:
        channel.virtual_host.firehose.delivered(channel.source, subscription.queue.name, message, redelivered)


def _deliver_parts(
    channel: BaseChannel, consumer_tag: str, exchange: str, routing_key: str
) -> tuple[bytes, bytes]:
    """Return the bytes of a basic.deliver frame before and after tag and flag, without the frame-end byte."""
    tag = encode_short_string(consumer_tag)
    names = encode_short_string(exchange) + encode_short_string(routing_key)
    ids = bytes((0, _BASIC, 0, _DELIVER))
    header = FRAME_HEADER.pack(1, channel.number, len(ids) + len(tag) + 9 + len(names))
    if len(channel.deliver_prefixes) >= _MAX_PREFIXES:
        channel.deliver_prefixes.clear()
    parts = channel.deliver_prefixes[consumer_tag, exchange, routing_key] = (header + ids + tag, names)
    return parts


def get_ok(channel: BaseChannel, queue: Queue, queued: QueuedMessage, delivery: Delivery | None) -> None:
    """Send the message that basic.get asked for."""
    message = queue.as_delivered(queued, asked=True)
    tag = channel.ledger.next_tag() if delivery is None else channel.ledger.add(delivery)
    tap = channel.connection.broker.tap
    if tap is not None:
        tap.event(
            "delivered",
            channel.connection,
            message,
            queue.name,
            None,
            channel.number,
            tag,
            queued.redelivered,
        )
    channel.send_message(
        m.BasicGetOk(
            delivery_tag=tag,
            redelivered=queued.redelivered,
            exchange=message.exchange,
            routing_key=message.routing_key,
            message_count=len(queue.ready),
        ),
        message,
    )
    if channel.virtual_host.firehose is not None:
        channel.virtual_host.firehose.delivered(channel.source, queue.name, message, queued.redelivered)


def return_message(channel: BaseChannel, message: Message, code: int, text: str) -> None:
    """Return a message to its publisher, unchanged (basic.return/content)."""
    channel.virtual_host.message_outcomes.returned(message, code, text, channel.number)
    channel.send_message(
        m.BasicReturn(
            reply_code=code,
            reply_text=text,
            exchange=message.exchange,
            routing_key=message.routing_key,
        ),
        message,
    )


def send_message(channel: BaseChannel, method: Method, message: Message) -> None:
    """Send a method that carries a message."""
    octets = encoded_properties(message)
    pieces = content_pieces(channel.number, _BASIC, octets, message.body, channel.connection.body_limit)
    _write(channel, method_frame(channel.number, method.encode()), pieces, message)


def _write(channel: BaseChannel, method: bytes, content: list[bytes | memoryview], message: Message) -> None:
    """Write a method frame and its content: in one piece, unless it refers to a large body."""
    if len(content) <= 2:
        channel.outbox.write(b"".join((method, *content)))
    else:
        channel.outbox.write_pieces([method, *content], message)


def check_message(message: Message) -> None:
    """Check that a message that no client sent can be encoded.

    Raises:
        FieldError: a name or a property does not fit its field; the text names it and the reason.
    """
    for name in (message.exchange, message.routing_key):
        encode_short_string(name)
    properties_bytes(message)


def encoded_properties(message: Message) -> bytes:
    """Return the properties as they are sent: as they were received, or encoded once."""
    return message.properties_bytes if message.encoding is ENCODING else properties_bytes(message)


def properties_bytes(message: Message) -> bytes:
    """Return the properties in the encoding of 0-9-1 and 0-9, encoded once per message.

    Raises:
        ChannelCrash: RabbitMQ crashes at the conversion from another protocol.
        FieldError: a property does not fit its field.
    """
    properties = message.properties
    if isinstance(properties, BasicProperties):
        encoded = properties.encode()
    else:
        check = getattr(properties, "check_convertible", None)
        try:
            if check is not None:
                check()
            shared = {name: getattr(properties, name) for name in _SHARED_PROPERTIES}
            encoded = BasicProperties(**shared).encode()
        except FieldError as problem:
            raise ChannelCrash(str(problem)) from None
    message.properties_bytes = encoded
    message.encoding = ENCODING
    return message.properties_bytes
