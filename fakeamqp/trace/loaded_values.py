"""Values of a loaded recording: messages, outcomes and others. `value_from_json` reverses `value_to_json`."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from fakeamqp.dialects import default_protocol
from fakeamqp.timestamps import Timestamp
from fakeamqp.trace.truncation import Truncated, full_size

__all__ = [
    "LoadedDelay",
    "LoadedMessage",
    "LoadedObject",
    "LoadedOutcome",
    "LoadedPublisher",
    "value_from_json",
]


@dataclass(frozen=True)
class LoadedPublisher:
    """The connection that published a message."""

    name: str


@dataclass(frozen=True)
class LoadedMessage:
    """A message. A long body is `Truncated`."""

    exchange: str
    routing_key: str
    body: bytes
    publisher: LoadedPublisher | None
    properties: Any
    number: int = 0

    def __eq__(self, other: object) -> bool:
        """Truncated bodies are equal only if their full sizes are."""
        if not isinstance(other, LoadedMessage):
            return NotImplemented
        return self._values() == other._values()

    def _values(self) -> tuple[object, ...]:
        size = full_size(self.body)
        return (
            self.exchange,
            self.routing_key,
            self.body,
            size,
            self.publisher,
            self.properties,
            self.number,
        )


@dataclass(frozen=True)
class LoadedDelay:
    """An exchange delays a message by this number of seconds."""

    exchange: str
    seconds: float


@dataclass(frozen=True)
class LoadedOutcome:
    """The outcome of a publish: the names of the queues it was routed to, and of those that refused it."""

    text: str
    queues: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    unconsumed: bool = False
    delays: tuple[LoadedDelay, ...] = ()

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class LoadedObject:
    """Any other object; `text` was its `str`."""

    text: str

    def __str__(self) -> str:
        return self.text


def value_from_json(said: Any) -> Any:
    """The value that `value_to_json` wrote as `said`.

    Raises:
        KeyError, TypeError, ValueError: `value_to_json` does not write this.
    """
    if isinstance(said, list):
        return [value_from_json(item) for item in said]
    if not isinstance(said, dict):
        return said
    if len(said) == 1:
        ((mark, value),) = said.items()
        read = _READERS.get(mark)
        if read is not None:
            return read(value)
    return {name: value_from_json(item) for name, item in said.items()}


def _octets(said: Any) -> bytes:
    return said.encode() if isinstance(said, str) else base64.b64decode(said["base64"])


def _table(said: Any) -> dict[str, Any]:
    return {name: value_from_json(item) for name, item in said.items()}


def _check(said: Any, **kinds: type) -> None:
    """Refuse values of other types than these.

    Raises:
        KeyError, TypeError: a value is missing, or of another type; the text says which.
    """
    for name, kind in kinds.items():
        if type(said[name]) is not kind:
            raise TypeError(f"{name!r} must be of type {kind.__name__}, got {said[name]!r:.100}")


def _message(said: Any) -> LoadedMessage:
    _check(said, size=int)
    body = _octets(said["body"])
    size = said["size"]
    publisher = said["publisher"]
    return LoadedMessage(
        exchange=value_from_json(said["exchange"]),
        routing_key=value_from_json(said["routing_key"]),
        body=body if size == len(body) else Truncated.of(body, size),
        publisher=None if publisher is None else LoadedPublisher(publisher),
        properties=default_protocol().dialect.make_properties(**_table(said["properties"])),
        number=said.get("number", 0),
    )


def _outcome(said: Any) -> LoadedOutcome:
    _check(said, queues=list, refused=list, unconsumed=bool, delays=list)
    if not isinstance(value_from_json(said["text"]), str):
        raise TypeError(f"'text' must be a string, got {said['text']!r:.100}")
    return LoadedOutcome(
        text=value_from_json(said["text"]),
        queues=tuple(map(value_from_json, said["queues"])),
        refused=tuple(map(value_from_json, said["refused"])),
        unconsumed=said["unconsumed"],
        delays=tuple(
            LoadedDelay(value_from_json(each["exchange"]), value_from_json(each["seconds"]))
            for each in said["delays"]
        ),
    )


_READERS: dict[str, Callable[[Any], Any]] = {
    "base64": base64.b64decode,
    "decimal": Decimal,
    "float": float,
    "message": _message,
    "object": lambda said: LoadedObject(value_from_json(said)),
    "octets": lambda said: base64.b64decode(said).decode("utf-8", "surrogateescape"),
    "outcome": _outcome,
    "table": _table,
    "timestamp": Timestamp,
    "uuid": UUID,
}
