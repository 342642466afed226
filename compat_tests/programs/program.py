"""What a client may do, one record per operation. A program is a list of them.

Every record shows as the call that makes it, so that a program can be pasted from a report. Times of
arguments and expirations are milliseconds, as in the protocol; `Advance` counts seconds.

Queues, bindings and plain publishes go over the channel `ADMIN`, publishes with `confirm` over `CONFIRMS`;
what is received, and its settlement, over the channel that is said. A channel that is closed by the broker,
or by `CloseChannel`, is opened again at once. Bodies are made when a program runs: the third publish
carries `m3`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, TypeAlias

__all__ = [
    "ADMIN",
    "CONFIRMS",
    "UNKNOWN_TAG",
    "Ack",
    "Advance",
    "Bind",
    "Cancel",
    "CloseChannel",
    "Consume",
    "Count",
    "Declare",
    "DeclareExchange",
    "Delete",
    "Get",
    "Nack",
    "Operation",
    "Program",
    "Publish",
    "Purge",
    "Recover",
    "Reject",
    "body_of",
    "listing",
    "scaled",
]

ADMIN = 8
CONFIRMS = 9
UNKNOWN_TAG = 999
"""A delivery tag that no program comes to."""


@dataclass(frozen=True, repr=False)
class Operation:
    """One thing that a client does."""

    def __repr__(self) -> str:
        parts = []
        named = False
        for each in fields(self):
            value = getattr(self, each.name)
            default = each.default_factory() if each.default_factory is not MISSING else each.default
            if value == default:
                named = True
            else:
                parts.append(f"{each.name}={value!r}" if named else repr(value))
        return f"{type(self).__name__}({', '.join(parts)})"


Program: TypeAlias = list[Operation]


@dataclass(frozen=True, repr=False)
class Declare(Operation):
    """Declare a durable queue."""

    queue: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class DeclareExchange(Operation):
    exchange: str
    type: str = "fanout"


@dataclass(frozen=True, repr=False)
class Bind(Operation):
    queue: str
    exchange: str
    routing_key: str = ""


@dataclass(frozen=True, repr=False)
class Publish(Operation):
    """Publish a message of at least `size` bytes; `expiration` is in milliseconds."""

    routing_key: str
    exchange: str = ""
    expiration: int | None = None
    priority: int | None = None
    confirm: bool = False
    mandatory: bool = False
    size: int = 0


@dataclass(frozen=True, repr=False)
class Get(Operation):
    queue: str
    no_ack: bool = False
    channel: int = 1


@dataclass(frozen=True, repr=False)
class Consume(Operation):
    """Start a consumer; nothing happens where the tag is in use."""

    queue: str
    tag: str
    prefetch: int = 0
    no_ack: bool = False
    priority: int = 0
    channel: int = 1


@dataclass(frozen=True, repr=False)
class Cancel(Operation):
    """Cancel a consumer, on whatever channel it is; nothing happens where there is none."""

    tag: str


@dataclass(frozen=True, repr=False)
class Settlement(Operation):
    """Settle what the channel holds: the one at place `pick` (counted around), or all up to it.

    Nothing happens where it holds nothing; without a pick it is a tag that there is not.
    """

    pick: int | None = 0
    multiple: bool = False
    channel: int = 1


class Ack(Settlement):
    pass


@dataclass(frozen=True, repr=False)
class Nack(Settlement):
    requeue: bool = True


@dataclass(frozen=True, repr=False)
class Reject(Operation):
    pick: int | None = 0
    requeue: bool = False
    channel: int = 1
    multiple = False


@dataclass(frozen=True, repr=False)
class Recover(Operation):
    channel: int = 1


@dataclass(frozen=True, repr=False)
class CloseChannel(Operation):
    channel: int = 1


@dataclass(frozen=True, repr=False)
class Purge(Operation):
    queue: str


@dataclass(frozen=True, repr=False)
class Delete(Operation):
    queue: str
    if_unused: bool = False
    if_empty: bool = False


@dataclass(frozen=True, repr=False)
class Count(Operation):
    """Declare the queue passively."""

    queue: str


@dataclass(frozen=True, repr=False)
class Advance(Operation):
    """Let time pass."""

    seconds: float


def body_of(number: int, size: int) -> bytes:
    """The body of the publish of this number, counted from 1."""
    return f"m{number}".ljust(size, ".").encode()


def listing(program: Iterable[Operation]) -> str:
    """A program as a call that runs it again."""
    return "run_program([\n" + "".join(f"    {operation!r},\n" for operation in program) + "])"


_TIMES = ("x-message-ttl", "x-expires")


def scaled(operation: Operation, factor: float) -> Operation:
    """The same operation where time passes `factor` times as fast."""
    if isinstance(operation, Declare):
        arguments = {
            name: max(1, round(value * factor)) if name in _TIMES and value else value
            for name, value in operation.arguments.items()
        }
        return replace(operation, arguments=arguments)
    if isinstance(operation, Publish) and operation.expiration:
        return replace(operation, expiration=max(1, round(operation.expiration * factor)))
    if isinstance(operation, Advance):
        return replace(operation, seconds=operation.seconds * factor)
    return operation
