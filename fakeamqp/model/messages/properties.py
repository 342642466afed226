"""Properties of messages as plain values, for messages that the test or the broker makes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypedDict

from fakeamqp.errors import FakeAMQPError, nearest
from fakeamqp.model.arguments.values import LONGEST_TTL
from fakeamqp.model.erlang import Atom, pretty
from fakeamqp.model.errors import PreconditionFailed

if TYPE_CHECKING:
    from typing_extensions import Self

    from fakeamqp.model.erlang import Plain

__all__ = [
    "Int64",
    "MessageProperties",
    "PlainProperties",
    "UnknownProperty",
    "plain_properties",
    "time_to_live",
]


class Int64(int):
    """An integer that field tables encode as a 64-bit integer, however small it is: see `encode_table`."""

    field_tag = "l"


_INTEGER = re.compile("[+-]?[0-9]+")


def time_to_live(expiration: str) -> float:
    """The time to live in seconds from an `expiration` property in milliseconds.

    Raises:
        PreconditionFailed: it is not a number, negative or beyond ten years; with RabbitMQ's text.
    """
    number = _INTEGER.match(expiration)
    if number is None:
        problem: Atom | tuple[Plain, ...] = Atom("no_integer")
    elif number.end() < len(expiration):
        problem = Atom("leftover_string"), expiration[number.end() :]
    elif int(expiration) < 0:
        problem = Atom("value_negative"), int(expiration)
    elif int(expiration) > LONGEST_TTL:
        problem = Atom("value_too_large"), int(expiration)
    else:
        return int(expiration) / 1000
    text = f"invalid expiration '{expiration}': "
    raise PreconditionFailed(text + pretty(problem, text))


class MessageProperties(TypedDict, total=False):
    """The properties of a message besides its headers. A property that is missing or None is absent.

    `timestamp` is in seconds since the epoch; `expiration` is in milliseconds, as text.
    """

    content_type: str | None
    content_encoding: str | None
    delivery_mode: int | None
    priority: int | None
    correlation_id: str | None
    reply_to: str | None
    expiration: str | None
    message_id: str | None
    timestamp: int | None
    type: str | None
    user_id: str | None
    app_id: str | None


class UnknownProperty(FakeAMQPError):
    """No message property has this name."""


@dataclass(frozen=True)
class PlainProperties:
    """Message properties as plain values (see `ReadableProperties`); None means absent."""

    content_type: str | None = None
    content_encoding: str | None = None
    headers: dict[str, Any] | None = None
    delivery_mode: int | None = None
    priority: int | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    expiration: str | None = None
    message_id: str | None = None
    timestamp: int | None = None
    type: str | None = None
    user_id: str | None = None
    app_id: str | None = None

    def exact_headers(self) -> tuple[tuple[str, Any, bytes], ...] | None:
        """Not known."""
        return None

    def last_headers(self) -> Mapping[str, Any]:
        return self.headers or {}

    def header_tag(self, name: str) -> str | None:
        return None

    def with_headers(
        self, changes: Mapping[str, Any], remove: Iterable[str] = (), *, ordered: bool = False
    ) -> Self:
        headers = {**(self.headers or {}), **changes}
        for name in remove:
            headers.pop(name, None)
        if ordered:
            headers = {name: headers[name] for name in sorted(headers, key=_octets)}
        return replace(self, headers=headers)

    def replace(self, **changes: Any) -> Self:
        return replace(self, **changes)


def _octets(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


_NAMES = tuple(field.name for field in fields(PlainProperties))


def plain_properties(**values: Any) -> PlainProperties:
    """Properties from keyword arguments.

    Raises:
        UnknownProperty: a name is not a property; the text names the nearest match.
    """
    for name in values:
        if name not in _NAMES:
            near = nearest(name, _NAMES)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(_NAMES)}"
            raise UnknownProperty(f"messages have no property {name!r}{hint}")
    if values.get("headers") is not None:
        values["headers"] = dict(values["headers"])
    return PlainProperties(**values)
