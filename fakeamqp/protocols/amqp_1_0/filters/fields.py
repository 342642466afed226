"""Property filters: reference values for fields of a message (AMQP Filter Expressions 1.0, section 4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias
from uuid import UUID

from fakeamqp.protocols.amqp_1_0.codec.types import Milliseconds, Symbol, UInt, ULong
from fakeamqp.protocols.amqp_1_0.filters.values import FIELDS, application_property, equal, field_of, plain
from fakeamqp.protocols.amqp_1_0.messages import SectionProperties

Test: TypeAlias = "Callable[[SectionProperties], bool]"
_Matcher: TypeAlias = "Callable[[Any], bool]"

_MOST_FIELDS: Final = 16
_TEXT = (str,)
_TYPES: Final[dict[str, tuple[type[Any], ...]]] = {
    **dict.fromkeys(FIELDS, _TEXT),
    **dict.fromkeys(("message_id", "correlation_id"), (str, ULong, UUID, bytes)),
    **dict.fromkeys(("content_type", "content_encoding"), (Symbol,)),
    **dict.fromkeys(("absolute_expiry_time", "creation_time"), (Milliseconds,)),
    "user_id": (bytes,),
    "group_sequence": (UInt,),
}
"""Field -> the types that a reference value may have."""
_BY_NAME: Final = {name.replace("_", "-"): name for name in FIELDS}


class IllFormed(Exception):
    """A filter that RabbitMQ cannot read; it is left out of the answer."""


def properties_test(entries: Any) -> Test:
    """Whether the section properties of a message matches. IllFormed."""
    tests = []
    for key, value in _entries(entries).items():
        name = _BY_NAME.get(key) if isinstance(key, Symbol) else None
        if name is None or type(value) not in _TYPES[name]:
            raise IllFormed(f"{key!r}: {value!r}")
        tests.append((name, _matcher(value)))
    return lambda properties: all(matches(field_of(properties, name)) for name, matches in tests)


def application_test(entries: Any) -> Test:
    """Whether the application properties of a message match. IllFormed."""
    tests = []
    for key, value in _entries(entries).items():
        if type(key) is not str:
            raise IllFormed(f"{key!r} is no string")
        tests.append((key, _matcher(value)))

    def test(properties: SectionProperties) -> bool:
        try:
            return all(matches(application_property(properties, name)) for name, matches in tests)
        except KeyError:
            return False

    return test


def _entries(entries: Any) -> dict[Any, Any]:
    if not isinstance(entries, dict) or not 0 < len(entries) <= _MOST_FIELDS:
        raise IllFormed(f"no map of 1 to {_MOST_FIELDS} fields")
    return entries


def _matcher(reference: Any) -> _Matcher:
    """How one value is matched: null matches all, text may be a prefix or a suffix."""
    if reference is None:
        return lambda value: True
    expected = plain(reference)
    if type(reference) is str and reference.startswith("&"):
        if reference.startswith("&s:"):
            return lambda value: isinstance(value, bytes) and value.endswith(expected[3:])
        if reference.startswith("&p:"):
            return lambda value: isinstance(value, bytes) and value.startswith(expected[3:])
        if not reference.startswith("&&"):
            raise IllFormed(f"{reference!r} begins with an unknown modifier")
        expected = expected[1:]
    return lambda value: equal(value, expected)
