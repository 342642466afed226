"""Values as filters compare them: RabbitMQ does not look at most of their types (measured on 4.3.6).

Text, symbols, binary and uuids are bytes, characters and timestamps are numbers. Decimals, lists and maps,
and floats that are not finite, equal nothing and stand for no value.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, Final
from uuid import UUID

from fakeamqp.protocols.amqp_1_0.codec.types import (
    Blank,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Symbol,
    symbol_octets,
)
from fakeamqp.protocols.amqp_1_0.messages import SectionProperties

_UNREAD: Final = (Blank, Decimal32, Decimal64, Decimal128)
FIELDS: Final = (
    "message_id",
    "user_id",
    "to",
    "subject",
    "reply_to",
    "correlation_id",
    "content_type",
    "content_encoding",
    "absolute_expiry_time",
    "creation_time",
    "group_id",
    "group_sequence",
    "reply_to_group_id",
)
"""The fields of the section properties."""


class Opaque:
    """A value that equals nothing."""


def plain(value: Any) -> Any:
    """A value of a message or a filter as it is compared; None if there is none."""
    if isinstance(value, Char):
        return ord(value)
    if isinstance(value, Symbol):
        return symbol_octets(value)
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, UUID):
        return value.bytes
    if isinstance(value, _UNREAD) or (isinstance(value, float) and not isfinite(value)):
        return Opaque()
    if value is None or isinstance(value, (bool, int, float, bytes)):
        return value
    return Opaque()


def equal(one: Any, other: Any) -> bool:
    """Whether two values are equal; numbers of different types may be."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)


def field_of(properties: SectionProperties, name: str) -> Any:
    """A field of the section properties of a message."""
    return plain(getattr(properties.fields, name))


def application_property(properties: SectionProperties, name: str) -> Any:
    """An application property of a message; KeyError if there is none, or none that is compared."""
    value = plain(properties.application_properties[name])
    if isinstance(value, Opaque):
        raise KeyError(name)
    return value
