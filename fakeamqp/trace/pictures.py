"""What a recording that was read back knows of messages and outcomes. `value_of` undoes `plain_value`."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from fakeamqp.protocols.framed.codec.basic import BasicProperties
from fakeamqp.protocols.framed.codec.tables import Timestamp
from fakeamqp.trace.parts import Cut, full_size

__all__ = ["DelayPicture", "MessagePicture", "Named", "Other", "OutcomePicture", "value_of"]


@dataclass(frozen=True)
class Named:
    """Something of which the name is known."""

    name: str


@dataclass(frozen=True)
class MessagePicture:
    """A message; of a long body only the beginning."""

    exchange: str
    routing_key: str
    body: bytes
    publisher: Named | None
    properties: BasicProperties
    number: int = 0

    def __eq__(self, other: object) -> bool:
        """Beginnings of bodies of different sizes differ."""
        if not isinstance(other, MessagePicture):
            return NotImplemented
        return self._values() == other._values()

    __hash__ = None  # type: ignore[assignment]

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
class DelayPicture:
    """An exchange keeps a message for so many seconds."""

    exchange: str
    seconds: float


@dataclass(frozen=True)
class OutcomePicture:
    """What became of a message: the names of the queues it went to and of those that refused it."""

    text: str
    queues: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    unconsumed: bool = False
    delays: tuple[DelayPicture, ...] = ()

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Other:
    """Something of which is known what it called itself."""

    text: str

    def __str__(self) -> str:
        return self.text


def value_of(said: Any) -> Any:
    """The value that `plain_value` has written as `said`.

    Raises:
        KeyError, TypeError, ValueError: it has not written this.
    """
    if isinstance(said, list):
        return [value_of(item) for item in said]
    if not isinstance(said, dict):
        return said
    if len(said) == 1:
        ((mark, value),) = said.items()
        read = _READERS.get(mark)
        if read is not None:
            return read(value)
    return {name: value_of(item) for name, item in said.items()}


def _octets(said: Any) -> bytes:
    return said.encode() if isinstance(said, str) else base64.b64decode(said["base64"])


def _table(said: Any) -> dict[str, Any]:
    return {name: value_of(item) for name, item in said.items()}


def _message(said: Any) -> MessagePicture:
    body = _octets(said["body"])
    size = said["size"]
    publisher = said["publisher"]
    return MessagePicture(
        exchange=value_of(said["exchange"]),
        routing_key=value_of(said["routing_key"]),
        body=body if size == len(body) else Cut.of(body, size),
        publisher=None if publisher is None else Named(publisher),
        properties=BasicProperties(**_table(said["properties"])),
        number=said.get("number", 0),
    )


def _outcome(said: Any) -> OutcomePicture:
    return OutcomePicture(
        text=value_of(said["text"]),
        queues=tuple(map(value_of, said["queues"])),
        refused=tuple(map(value_of, said["refused"])),
        unconsumed=said["unconsumed"],
        delays=tuple(
            DelayPicture(value_of(each["exchange"]), value_of(each["seconds"])) for each in said["delays"]
        ),
    )


_READERS: dict[str, Callable[[Any], Any]] = {
    "base64": base64.b64decode,
    "decimal": Decimal,
    "float": float,
    "message": _message,
    "object": lambda said: Other(value_of(said)),
    "octets": lambda said: base64.b64decode(said).decode("utf-8", "surrogateescape"),
    "outcome": _outcome,
    "table": _table,
    "timestamp": Timestamp,
    "uuid": UUID,
}
