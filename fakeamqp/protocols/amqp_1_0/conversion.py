"""Messages of any protocol as the sections that a client of 1.0 gets."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from fakeamqp.protocols.amqp_1_0 import messages as m, values as v
from fakeamqp.protocols.amqp_1_0.addresses import queue_address
from fakeamqp.protocols.amqp_1_0.codec import types as t
from fakeamqp.protocols.amqp_1_0.codec.composites import Header, Properties
from fakeamqp.protocols.amqp_1_0.codec.errors import DecodeError
from fakeamqp.protocols.amqp_1_0.messages import SectionProperties
from fakeamqp.protocols.amqp_1_0.values import Unconvertible
from fakeamqp.protocols.base.codec import ttl as ttl_of

if TYPE_CHECKING:
    from fakeamqp.model.dead_letters import Deaths
    from fakeamqp.model.messages.message import Message, ReadableProperties
    from fakeamqp.protocols.amqp_1_0.choices import Amqp10Choices

_COUNTS: Final = ("x-acquired-count", "x-delivery-count", "x-stream-offset")
"""What the broker adds for each delivery."""
_APPLICATION: Final = 0x74
_DEATHS: Final = ("x-first-death-", "x-last-death-", "x-opt-deaths")
_OFFSET = t.Symbol("x-stream-offset")
_EXCHANGE, _ROUTING_KEY = t.Symbol("x-exchange"), t.Symbol("x-routing-key")


def converted(
    properties: ReadableProperties, choices: Amqp10Choices, *, body: bytes = b"", died: bool = False
) -> SectionProperties:
    """The properties of a message of another protocol; its body becomes one section of data.

    The body of one whose type says so is sections, which take the place of those made of the properties.
    `died` says that the message is a dead letter, so that the headers about deaths are the broker's.

    Raises:
        Unconvertible: RabbitMQ crashes.
    """
    if isinstance(properties, SectionProperties):
        return properties
    fields = Properties()
    for name, (field, write) in m.FIELDS.items():
        value = getattr(properties, name)
        if value is not None:
            setattr(fields, field, write(value))
    if choices.replies_name_queues and properties.reply_to is not None:
        if not isinstance(v.text_or_binary(properties.reply_to.replace("\0", "")), str):
            raise Unconvertible("the reply-to is no UTF-8")
        fields.reply_to = queue_address(properties.reply_to)
    annotations: dict[Any, Any] = {}
    added: dict[Any, Any] = {}
    application: dict[Any, Any] = {}
    exact = {name: octets for name, _, octets in reversed(properties.exact_headers() or ())}
    headers = properties.headers or {}
    for name in properties.last_headers():
        value = headers[name]
        key = m.annotation_key(name) if died or name != "x-death" else t.Symbol(name)
        if key is None:
            if not isinstance(value, (Mapping, list, tuple)):
                application[name] = _value(name, value, exact)
        elif key.startswith(_DEATHS) and died:
            added[key] = v.deaths_of(value) if key == m.DEATHS else _value(name, value, exact)
        else:
            (added if key in _COUNTS else annotations)[key] = _value(name, value, exact)
    if _OFFSET in added:
        # Out of a stream, they are encoded anew (RabbitMQ: measured on 4.3.6).
        annotations, _ = t.read_value(t.encode_value(annotations))
        if None in annotations.values():
            raise Unconvertible("an annotation is null")
    encoded = properties.type == m.ENCODED_BODY
    if properties.type is not None:
        annotations[m.BASIC_TYPE] = properties.type
    made = SectionProperties(
        durable=properties.delivery_mode == 2,
        priority=properties.priority,
        ttl=None if properties.expiration is None else ttl_of(properties.expiration),
        annotations=annotations,
        added=added,
        head=m.head_of(fields, application, nulls=choices.writes_trailing_nulls),
        prefix=b"" if encoded else m.DATA,
        choices=choices,
    )
    if encoded:
        _embed(made, body)
    return made


def _embed(made: SectionProperties, body: bytes) -> None:
    """Take the sections out of a body that is encoded, and encode them again.

    Raises:
        Unconvertible: they cannot be read.
    """
    properties, application = made.head_sections()
    whole = b""
    try:
        for code, _, start, _ in m.sections_of(body, strict=False):
            if code == m.BROKEN:
                raise Unconvertible("the body is no section")
            value, _ = t.read_value(body, start)
            encoded = t.encode_section(code, value)
            if code == m.ANNOTATIONS:
                made.annotations = m.checked_annotations(value)
            elif code == Properties.CODE:
                nulls = made.choices.writes_trailing_nulls
                properties = Properties.unchecked(value).encode(nulls=nulls)
            elif code == _APPLICATION:
                application = encoded
            elif code > _APPLICATION:
                whole += encoded
    except DecodeError as problem:
        raise Unconvertible(str(problem)) from None
    made.head = properties + application
    made.whole = whole


def _deaths_of_history(history: Deaths) -> Any:
    """The value of x-opt-deaths for a dead letter."""
    deaths = [
        v.death_of(each.table(), t.Milliseconds(each.began * 1000), t.Milliseconds(each.latest * 1000))
        for each in history.deaths
    ]
    return t.Array(deaths, dict)


def _first_ttl(history: Deaths) -> int | None:
    """The time to live of a dead letter of 0-9-1 that has not expired (RabbitMQ: measured on 4.3.6)."""
    if any(each.reason == "expired" for each in history.deaths):
        return None
    return next((ttl_of(each.expiration) for each in history.deaths if each.expiration), None)


def _value(name: str, value: Any, exact: Mapping[str, bytes]) -> Any:
    """The value of 1.0 for a header, by its encoding if that is known."""
    if isinstance(value, Decimal):
        raise Unconvertible(f"header {name!r} is a decimal")
    octets = exact.get(name)
    return v.annotation_of(value) if octets is None else v.field_value(octets)[0]


def encoded_message(message: Message, choices: Amqp10Choices, *, redelivered: bool, failures: int) -> bytes:
    """The sections of a message for a client of 1.0; `failures` are the failed deliveries.

    Raises:
        Unconvertible: RabbitMQ crashes.
    """
    died = message.history is not None
    properties = converted(message.properties, choices, body=message.body, died=died)
    if properties.unwritable:
        raise Unconvertible("an annotation that RabbitMQ cannot write")
    ttl = properties.ttl
    if message.history is not None and not isinstance(message.properties, SectionProperties):
        ttl = _first_ttl(message.history)
    first = not redelivered and not failures and not died
    header = _encoded_header(properties.shown_durable, properties.priority, ttl, first, failures)
    if message.encoding is not m.ENCODING:
        _encode_properties(message, properties, choices)
    body = m.body_section(properties, message.body)
    return b"".join((header, message.properties_bytes, body, properties.footer))


@lru_cache(
    maxsize=256
)  # Measured with the benchmarks of conversations: 0.8 times the instructions of a delivery.
def _encoded_header(
    durable: bool | None, priority: int | None, ttl: int | None, first: bool, failures: int
) -> bytes:
    return Header(
        durable=durable,
        priority=None if priority is None else t.UByte(priority & 0xFF),
        ttl=None if ttl is None else t.UInt(ttl & 0xFFFFFFFF),
        first_acquirer=first,
        delivery_count=t.UInt(failures),
    ).encode()


def _encode_properties(message: Message, properties: SectionProperties, choices: Amqp10Choices) -> None:
    """Keep the sections of a message between its header and its body with the message, encoded."""
    if properties.annotations or properties.added or message.history is not None:
        own = {_EXCHANGE: message.exchange, _ROUTING_KEY: message.routing_key}
        if message.history is not None:
            own[m.DEATHS] = _deaths_of_history(message.history)
        own = {**own, **{key: properties.added[key] for key in sorted(properties.added)}, **own}
        annotations = {**properties.annotations, **own}
        if choices.broker_annotations_first:
            annotations = {**dict(reversed(own.items())), **properties.annotations, **own}
        octets = _encoded_annotations(annotations)
    else:
        octets = _encoded_origin(message.exchange, message.routing_key, choices.broker_annotations_first)
    message.properties_bytes = octets + properties.head
    message.encoding = m.ENCODING


@lru_cache(maxsize=256)
def _encoded_origin(exchange: str, routing_key: str, key_first: bool) -> bytes:
    """The annotations of a message that has no others."""
    own = [(_EXCHANGE, exchange), (_ROUTING_KEY, routing_key)]
    return _encoded_annotations(dict(reversed(own) if key_first else own))


def _encoded_annotations(annotations: Mapping[Any, Any]) -> bytes:
    return t.encode_section(m.ANNOTATIONS, annotations)
