"""What a client sees, one record per thing. The reference foretells them, the player reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = [
    "Cancelled",
    "Closed",
    "Confirmed",
    "Content",
    "Death",
    "Delivered",
    "Event",
    "Got",
    "Ok",
    "Place",
    "Returned",
    "Seen",
    "shown",
]


@dataclass(frozen=True)
class Death:
    """An entry of x-death. `time` is in seconds since 1970."""

    queue: str
    reason: str
    exchange: str
    routing_keys: tuple[str, ...]
    count: int
    time: int
    original_expiration: str | None = None


@dataclass(frozen=True)
class Place:
    """What x-first-death-* and x-last-death-* say."""

    queue: str
    reason: str
    exchange: str


@dataclass(frozen=True)
class Content:
    """A message as it comes."""

    body: bytes
    redelivered: bool
    exchange: str
    routing_key: str
    priority: int | None = None
    expiration: str | None = None
    deaths: tuple[Death, ...] = ()
    first_death: Place | None = None
    last_death: Place | None = None
    delivery_count: int | None = None


@dataclass(frozen=True)
class Ok:
    """A reply; `messages` and `consumers` are those of the replies that count them."""

    method: str
    messages: int | None = None
    consumers: int | None = None


@dataclass(frozen=True)
class Delivered:
    consumer: str
    tag: int
    content: Content


@dataclass(frozen=True)
class Got:
    tag: int
    remaining: int
    content: Content


@dataclass(frozen=True)
class Returned:
    code: int
    body: bytes


@dataclass(frozen=True)
class Confirmed:
    number: int
    accepted: bool


@dataclass(frozen=True)
class Cancelled:
    """The broker has cancelled a consumer."""

    consumer: str


@dataclass(frozen=True)
class Closed:
    """The broker has closed the channel."""

    code: int


Event: TypeAlias = Ok | Delivered | Got | Returned | Confirmed | Cancelled | Closed
Seen: TypeAlias = dict[int, list[Event]]
"""What comes of one operation, in order, by channel."""


def shown(seen: Seen) -> str:
    """What came, one event a line."""
    lines = [f"    channel {channel}: {event!r}" for channel in sorted(seen) for event in seen[channel]]
    return "\n".join(lines) or "    nothing"
