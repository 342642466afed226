"""Values as filters compare them: RabbitMQ does not look at most of their types (measured on 4.3.6).

Text, symbols, binary and uuids are bytes, characters and timestamps are numbers. Decimals, lists and maps,
and floats that are not finite, equal nothing and stand for no value.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, Final
from uuid import UUID

from fakeamqp.protocols.amqp_1_0.codec import types as t
from fakeamqp.protocols.amqp_1_0.codec.composites import Properties
from fakeamqp.protocols.amqp_1_0.messages import SectionProperties
from fakeamqp.protocols.base.codec import encoded

_UNREAD: Final = (t.Blank, t.Decimal32, t.Decimal64, t.Decimal128)
FIELDS: Final = tuple(field.attribute for field in Properties.FIELDS)
"""The fields of the section properties."""


class Opaque:
    """A value that equals nothing."""


def plain(value: Any) -> Any:
    """A value of a message or a filter as it is compared; None if there is none."""
    if isinstance(value, t.Char):
        return ord(value)
    if isinstance(value, str):
        return t.symbol_octets(value) if isinstance(value, t.Symbol) else encoded(value)
    if isinstance(value, UUID):
        return value.bytes
    if isinstance(value, _UNREAD) or (isinstance(value, float) and not isfinite(value)):
        return Opaque()
    known = value is None or isinstance(value, (bool, int, float, bytes))
    return value if known else Opaque()


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
