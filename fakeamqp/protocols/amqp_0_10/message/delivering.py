"""Messages to the client: the header segment of a transfer.

A message that was received by 0-10 is forwarded unchanged, except for the delivery-properties: they have its
exchange, its remaining time to live and its redelivered flag, and come first. A header segment is made once,
when a message is received or first sent; each delivery overwrites the parts that differ, which have a fixed
size.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from fakeamqp.protocols.amqp_0_10.codec.packed import encode_header
from fakeamqp.protocols.amqp_0_10.codec.structs import DeliveryProperties
from fakeamqp.protocols.amqp_0_10.properties import ENCODING, TransferProperties

if TYPE_CHECKING:
    from fakeamqp.model.messages.message import Message

__all__ = ["NO_BODY", "forwarded", "header", "resumable", "resumable_size"]


class _NoBody(bytes):
    """No bytes, and no segment for them."""


NO_BODY: Final = _NoBody()
"""The body of a message that came without a body segment, and leaves without one (assembly/empty-body)."""

_FLAGS: Final = 6
"""Where the flags of a struct of four bytes size and two bytes code begin."""
_FIELDS: Final = 8
_REDELIVERED: Final = 0x04
_PRIORITY: Final = 0x08
_DELIVERY_MODE: Final = 0x10
_TTL: Final = 0x20
_pack_ttl = Struct(">Q").pack
_LONGEST_TTL = (1 << 64) - 1


def forwarded(properties: TransferProperties, exchange: str) -> bytes:
    """The header segment for subscribers of a message with these properties, as far as it is known.

    The name of the exchange is added (message.delivery-properties/exchange). A resume-id names the transfer
    to the broker and not those from it, and what has come in fragments is whole now.
    """
    came = properties.delivery or DeliveryProperties()
    delivery = DeliveryProperties(
        came.discard_unroutable,
        came.immediate,
        came.redelivered,  # message.delivery-properties/redelivered-sticky
        came.priority,
        came.delivery_mode,
        came.ttl,
        came.timestamp,
        came.expiration,
        exchange,
        came.routing_key,
    )
    return delivery.encode() + _rest(properties)


def _rest(properties: TransferProperties) -> bytes:
    if properties.fragment is None:
        return properties.rest_bytes
    message = () if properties.message is None else (properties.message,)
    return encode_header((*message, *properties.others))


def header(message: Message, *, redelivered: bool, time: float, stamps: bool) -> bytes:
    """The header segment of a transfer of this message.

    Args:
        message: the message.
        redelivered: True for a redelivery.
        time: seconds since 1970; matters for messages with a time to live.
        stamps: True where the broker adds the time at which it received the message.
    """
    octets = message.properties_bytes if message.encoding is ENCODING else _encode(message, stamps)
    flags = octets[_FLAGS]
    if redelivered and not flags & _REDELIVERED:
        octets = b"".join((octets[:_FLAGS], bytes((flags | _REDELIVERED,)), octets[_FLAGS + 1 :]))
    if flags & _TTL and message.expiry is not None:
        at = _FIELDS + bool(flags & _PRIORITY) + bool(flags & _DELIVERY_MODE)
        octets = b"".join((octets[:at], _pack_ttl(_time_left(message, time)), octets[at + 8 :]))
    return octets


def _time_left(message: Message, time: float) -> int:
    """Milliseconds left of the message's own time to live (message.delivery-properties/ttl)."""
    assert message.expiry is not None
    gone = time - message.published_at if message.published_at else 0.0
    return min(max(0, round((message.expiry - gone) * 1000)), _LONGEST_TTL)


def _encode(message: Message, stamps: bool) -> bytes:
    """Make the header segment of a message that has none, and keep it."""
    properties = TransferProperties.of(message.properties)
    came = properties.delivery or DeliveryProperties()
    timestamp, expiration = came.timestamp, came.expiration
    if stamps and message.published_at and properties is message.properties:
        # message.delivery-properties/timestamp, message.delivery-properties/expiration; what came by another
        # version of AMQP says itself when that was.
        timestamp = int(message.published_at)
        if message.expiry is not None:
            expiration = int(message.published_at + message.expiry)
    delivery = DeliveryProperties(
        came.discard_unroutable,
        came.immediate,
        came.redelivered,
        came.priority,
        came.delivery_mode,
        None if message.expiry is None else 0,
        timestamp,
        expiration,
        message.exchange,
        message.routing_key if message.routing_key else came.routing_key,
    )
    octets = delivery.encode() + _rest(properties)
    message.properties_bytes, message.encoding = octets, ENCODING
    return octets


def resumable(header: bytes, resume_id: str, resume_ttl: int | None) -> bytes:
    """The header segment with the resume fields that a subscription asks for.

    Source: message.subscribe/resume-fields.
    """
    size = 4 + int.from_bytes(header[:4], "big")
    delivery = DeliveryProperties.decode(header[:size])
    delivery.resume_id, delivery.resume_ttl = resume_id, resume_ttl
    return delivery.encode() + header[size:]


def resumable_size(resume_id: str, resume_ttl: int | None) -> int:
    """The bytes that these fields add."""
    empty = DeliveryProperties()
    asked = DeliveryProperties(resume_id=resume_id, resume_ttl=resume_ttl)
    return len(asked.encode()) - len(empty.encode())
