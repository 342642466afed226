"""Messages of any protocol as the sections that a client of 1.0 gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fakeamqp.protocols.amqp_1_0.addresses import queue_address
from fakeamqp.protocols.amqp_1_0.codec.composites import Header, Properties
from fakeamqp.protocols.amqp_1_0.codec.types import Described, Symbol, UByte, UInt, ULong, encode_value
from fakeamqp.protocols.amqp_1_0.messages import (
    BASIC_TYPE,
    DATA,
    DEATHS,
    ENCODED_BODY,
    ENCODING,
    FIELDS,
    SectionProperties,
    annotation_key,
    body_section,
    head_of,
)
from fakeamqp.protocols.amqp_1_0.values import annotation_of, application_property_of, deaths_of
from fakeamqp.protocols.base.codec import ttl as ttl_of

if TYPE_CHECKING:
    from fakeamqp.model.messages.message import Message, ReadableProperties

_ADDED: Final = ("x-delivery-count", "x-acquired-count", "x-stream-offset")
"""What the broker adds for each delivery."""


def converted(properties: ReadableProperties, *, names_queues: bool) -> SectionProperties:
    """The properties of a message of another protocol; its body becomes one section of data."""
    if isinstance(properties, SectionProperties):
        return properties
    fields = Properties()
    for name, (field, write) in FIELDS.items():
        value = getattr(properties, name)
        if value is not None:
            setattr(fields, field, write(value))
    if names_queues and properties.reply_to is not None:
        fields.reply_to = queue_address(properties.reply_to)
    annotations: dict[Any, Any] = {}
    application: dict[Any, Any] = {}
    for name, value in (properties.headers or {}).items():
        key = annotation_key(name)
        tag = properties.header_tag(name)
        if key == DEATHS:
            annotations[key] = deaths_of(value)
        elif key is not None:
            annotations[key] = annotation_of(value, tag)
        else:
            kept, value = application_property_of(value, tag)
            if kept:
                application[name] = value
    encoded = properties.type == ENCODED_BODY
    if properties.type is not None and not encoded:
        annotations[BASIC_TYPE] = properties.type
    made = SectionProperties(
        durable=properties.delivery_mode == 2,
        priority=properties.priority,
        ttl=None if properties.expiration is None else ttl_of(properties.expiration),
        annotations=annotations,
        head=head_of(fields, application),
        prefix=b"" if encoded else DATA,
        names_queues=names_queues,
    )
    return made


def encoded_message(
    message: Message, *, redelivered: bool, failures: int, broker_first: bool, names_queues: bool
) -> bytes:
    """The sections of a message for a client of 1.0.

    `failures` are the failed deliveries; `broker_first` puts the broker's annotations before the publisher's.
    """
    properties = converted(message.properties, names_queues=names_queues)
    header = Header(
        durable=properties.durable,
        priority=None if properties.priority is None else UByte(min(properties.priority, 255)),
        ttl=None if properties.ttl is None else UInt(min(properties.ttl, 0xFFFFFFFF)),
        first_acquirer=not redelivered and not failures and message.history is None,
        delivery_count=UInt(failures),
    ).encode()
    if message.encoding is not ENCODING:
        own = {Symbol("x-routing-key"): message.routing_key, Symbol("x-exchange"): message.exchange}
        theirs = properties.annotations
        added = {Symbol(name): theirs[Symbol(name)] for name in _ADDED if name in theirs}
        kept = {name: value for name, value in theirs.items() if name not in added}
        annotations = {**kept, **dict(reversed(own.items())), **dict(reversed(added.items()))}
        if broker_first:
            annotations = {**added, **own, **theirs, **own}
        message.properties_bytes = encode_value(Described(ULong(0x72), annotations)) + properties.head
        message.encoding = ENCODING
    body = body_section(properties, message.body)
    return b"".join((header, message.properties_bytes, body, properties.footer))
