"""What a client was seen to do, and how that is said in a cell of the table."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from dataclasses import dataclass, field

from compat_tests.faults.scenario import BODIES, LATE

__all__ = ["InVain", "Observation", "Trouble", "name_of", "trouble"]


ORDER = (*BODIES, LATE)


class InVain(Exception):
    """The driver's patience is over: the client would have waited on."""


@dataclass(frozen=True)
class Trouble:
    """Something that the client raised, or handed to a call-back that says why something ended."""

    step: str
    name: str
    code: int | None = None

    def __str__(self) -> str:
        if self.name == InVain.__name__:
            return f"waits in vain while {self.step}"
        return f"`{self.name}`{'' if self.code is None else f' {self.code}'} while {self.step}"


def trouble(step: str, error: BaseException) -> Trouble:
    """What is told of `error`: its class, and AMQP's code where it carries one."""
    # With read_timeout a blocking socket says that it would block; to the reader it is all one.
    if isinstance(error, (asyncio.TimeoutError, socket.timeout, BlockingIOError)):
        return Trouble(step, "TimeoutError")
    return Trouble(step, type(error).__name__, _code(error))


def _code(error: BaseException) -> int | None:
    for name in ("reply_code", "code"):
        found = getattr(error, name, None)
        if isinstance(found, int) and 200 <= found < 600:
            return int(found)
    first = error.args[0] if error.args else None
    if isinstance(first, int) and not isinstance(error, OSError) and 200 <= first < 600:
        return first
    return None


@dataclass
class Observation:
    """A client's way through the scenario. Messages are named by their bodies."""

    troubles: list[Trouble] = field(default_factory=list)
    confirmed: list[str] = field(default_factory=list)
    """As far as the client knows the broker has these: confirmed or, without confirms, sent."""
    returned: list[str] = field(default_factory=list)
    delivered: list[str] = field(default_factory=list)
    redelivered: list[str] = field(default_factory=list)
    """Those of `delivered` that were marked so."""
    told: list[str] = field(default_factory=list)
    """What call-backs told: "blocked", "cancelled", ..."""

    # What the broker knows of it:
    connections: int = 0
    """How many the client opened, the handshake included."""
    left: list[str] = field(default_factory=list)
    """What is in the queue in the end."""

    def tell(self, what: str) -> None:
        """Note once what a call-back told."""
        if what not in self.told:
            self.told.append(what)

    def take(self, body: bytes | str, redelivered: bool | None) -> None:
        """Note a delivery."""
        name = name_of(body)
        if len(body) != len(name):
            self.tell("another body than was published")
        self.delivered.append(name)
        if redelivered:
            self.redelivered.append(name)

    def came_back(self, body: bytes | str) -> None:
        """Note a message that was returned."""
        self.returned.append(name_of(body))
        self.tell("returned")

    @property
    def gave_up(self) -> bool:
        """Whether the driver's patience is over: what came after would only take as long."""
        return any(each.name in (InVain.__name__, TimeoutError.__name__) for each in self.troubles)

    @property
    def lost(self) -> list[str]:
        """Confirmed, and neither delivered nor there, nor returned."""
        known = {*self.delivered, *self.left, *self.returned}
        return [each for each in self.confirmed if each not in known]

    @property
    def doubled(self) -> list[str]:
        """Delivered more than once, or delivered and still there."""
        return [each for each, count in Counter([*self.delivered, *self.left]).items() if count > 1]

    @property
    def unexpected(self) -> list[str]:
        """There although the app has no word of it, or thinks that it is not."""
        there = dict.fromkeys([*self.delivered, *self.left])
        return [each for each in there if each not in self.confirmed and each != LATE]

    @property
    def disordered(self) -> bool:
        """Whether messages first came in another order than that in which they were published."""
        first = [ORDER.index(each) for each in dict.fromkeys(self.delivered) if each in ORDER]
        return first != sorted(first)

    def words(self) -> str:
        """The cell. Nothing is said of what went as if there were no fault."""
        parts = [str(each) for each in list(dict.fromkeys(self.troubles))[:3]]
        parts += [f"told: {', '.join(self.told)}"] if self.told else []
        if self.connections > 1:
            parts.append("reconnects")
        if LATE in self.delivered and self.connections > 1:
            parts.append("goes on consuming")
        parts += [
            f"{len(messages)} {what}"
            for messages, what in (
                (self.lost, "lost"),
                (self.doubled, "twice"),
                (self.unexpected, "there unconfirmed"),
                (self.redelivered, "marked redelivered"),
            )
            if messages
        ]
        if self.disordered:
            parts.append("out of order")
        return "; ".join(parts) or "carries on"


def name_of(body: bytes | str) -> str:
    """Which message has this body; Celery's are more than a word."""
    text = body if isinstance(body, str) else bytes(body).decode("ascii", "replace")
    text = text.removeprefix('[["')
    return next((each for each in ORDER if text.startswith(each)), text[:20])
