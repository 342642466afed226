"""What rules can be about: the methods there are, in which direction they go, and what they say."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from fakeamqp.errors import near_match
from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.units import HEARTBEAT
from fakeamqp.wire.amqp_0_9_1.methods import METHODS
from fakeamqp.wire.amqp_0_9_1.properties import BasicProperties

if TYPE_CHECKING:
    from fakeamqp.faults.line import Direction
    from fakeamqp.wire.amqp_0_9_x.method import Method

__all__ = ["CONFIRM", "PROPERTIES", "Subject", "subject_of"]

CONFIRM = "confirm"
"""A basic.ack or basic.nack by which the broker confirms one publish."""
CONFIRMS = frozenset(("basic.ack", "basic.nack"))

BY_NAME: dict[str, type[Method]] = {kind.NAME: kind for kind in METHODS.values()}
PROPERTIES = tuple(name for name, _ in BasicProperties.LAYOUT if name not in ("headers", "cluster_id"))


class Subject(NamedTuple):
    """What a rule is about.

    Args:
        said: as the test wrote it.
        names: the methods, or "heartbeat".
        direction: in which they go.
        confirms: only those that confirm a publish.
    """

    said: tuple[str, ...]
    names: frozenset[str]
    direction: Direction
    confirms: bool = False

    @property
    def fields(self) -> frozenset[str]:
        """The fields that at least one of the methods has, without the underscores Python asks for."""
        return frozenset(
            name.rstrip("_")
            for method in self.names & BY_NAME.keys()
            for name, _ in BY_NAME[method].LAYOUT
            if not name.startswith("reserved_")
        )

    @property
    def has_content(self) -> bool:
        """Whether every one of the methods has a content."""
        return all(name in BY_NAME and BY_NAME[name].HAS_CONTENT for name in self.names)

    def __str__(self) -> str:
        if self.confirms:
            return "a publisher confirm"
        names = ["anything" if name == "*" else name for name in self.said]
        article = "" if self.said[0] == "*" else "an " if names[0][0] in "aeiou" else "a "
        return article + " or ".join(names)


def subject_of(said: tuple[str, ...], direction: str | None) -> Subject:
    """What names, patterns, "heartbeat" and "confirm" stand for.

    Without a direction it is that in which the methods go; of those that go both ways, the ones received.

    Raises:
        FaultError: there is no such method, or it never goes in that direction.
    """
    if direction not in (None, "received", "sent"):
        hint = near_match(direction, ("received", "sent"))
        raise FaultError(f"a direction is 'received' (by the broker) or 'sent', not {direction!r}{hint}")
    if not said:
        raise FaultError("say what the rule is about: on('basic.publish'), on('queue.*'), on('*'), ...")
    if CONFIRM in said:
        if len(said) > 1 or direction == "received":
            raise FaultError(
                "'confirm' stands for itself, and is always sent; make another rule for the rest"
            )
        return Subject(said, CONFIRMS, "sent", confirms=True)
    names = [name for each in said for name in _named(each)]
    if direction is None:
        direction = "received" if any(_goes(name, "received") for name in names) else "sent"
    going = frozenset(name for name in names if _goes(name, direction))
    if not going:
        other = "sent" if direction == "received" else "received"
        raise FaultError(f"{' or '.join(said)} is never {direction} by a broker, only {other}")
    return Subject(said, going, "received" if direction == "received" else "sent")


def _named(pattern: str) -> Iterable[str]:
    """The methods that a name or a pattern stands for."""
    if not isinstance(pattern, str):
        raise FaultError(f"a method's name is a str such as 'basic.publish', not {pattern!r}")
    if pattern == HEARTBEAT or pattern in BY_NAME:
        return (pattern,)
    found = [name for name in BY_NAME if fnmatchcase(name, pattern)] if "*" in pattern else []
    if not found:
        classes = {f"{name.partition('.')[0]}.*" for name in BY_NAME} if "*" in pattern else ()
        hint = near_match(pattern, classes or (*BY_NAME, HEARTBEAT, CONFIRM))
        raise FaultError(f"there is no method {pattern!r}{hint}")
    return found


def _goes(name: str, direction: str) -> bool:
    """Whether a method goes in a direction."""
    if name == HEARTBEAT:
        return True
    return ("server" if direction == "received" else "client") in BY_NAME[name].RECEIVED_BY
