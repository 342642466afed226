"""The subject of a rule: the methods it concerns, their direction and their fields."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from fakeamqp.dialects import UnknownProtocol, dialect_named, protocol_named, protocol_names, protocols_with
from fakeamqp.errors import near_match, nearest
from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.frame_group import HEARTBEAT

if TYPE_CHECKING:
    from fakeamqp.dialects import Dialect, Direction, MethodInfo

__all__ = ["CONFIRM", "Subject", "subject_of"]

CONFIRM = "confirm"
"""The name for a basic.ack or basic.nack by which the broker confirms one publish."""
_INSTEAD = {
    "sessions": ": publishers learn of completion instead: on('session.completed', direction='sent')",
}
"""By protocol: what a publisher gets in place of confirms."""
_HEARTBEAT_CONTROL = "connection.heartbeat"
"""The name of a heartbeat in 0-10."""


class Subject(NamedTuple):
    """The methods that a rule concerns.

    Args:
        said: the names and patterns as the test wrote them.
        names: the names of the methods, or "heartbeat".
        direction: their direction.
        among: the names of the protocols that have any of them.
        confirms: True for publisher confirms only.
        only: the protocol that the test has named, if any.
    """

    said: tuple[str, ...]
    names: frozenset[str]
    direction: Direction
    among: frozenset[str]
    confirms: bool = False
    only: str | None = None

    @property
    def protocols(self) -> tuple[Dialect, ...]:
        """The protocols that have any of the methods, the most common first."""
        return tuple(dialect_named(name) for name in protocol_names() if name in self.among)

    def kinds(self, protocol: Dialect) -> tuple[MethodInfo, ...]:
        """The methods in one protocol, without heartbeats."""
        return tuple(protocol.kinds[name] for name in sorted(self.names & protocol.kinds.keys()))

    @property
    def properties(self) -> tuple[str, ...]:
        """The names of the properties of contents in these protocols."""
        return tuple(dict.fromkeys(name for each in self.protocols for name in each.property_names))

    @property
    def fields(self) -> frozenset[str]:
        """The fields of any of the methods, without trailing underscores."""
        return frozenset(
            name for protocol in self.protocols for kind in self.kinds(protocol) for name in kind.fields
        )

    @property
    def has_content(self) -> bool:
        """True if every one of the methods has a content."""
        kinds = [kind for protocol in self.protocols for kind in self.kinds(protocol)]
        return HEARTBEAT not in self.names and all(kind.has_content for kind in kinds)

    def __str__(self) -> str:
        if self.confirms:
            return "a publisher confirm"
        names = ["anything" if name == "*" else name for name in self.said]
        article = "" if self.said[0] == "*" else "an " if names[0][0] in "aeiou" else "a "
        return article + " or ".join(names)


def subject_of(said: tuple[str, ...], direction: str | None, protocol: str | None = None) -> Subject:
    """The subject that names, patterns, "heartbeat" or "confirm" stand for.

    Without a direction it is the direction of the methods, and "received" for methods that go both ways.
    Without a protocol the methods of all protocols are meant: each has a queue.declare, for example.

    Raises:
        FaultError: there is no such method, or it never goes in that direction.
    """
    if direction not in (None, "received", "sent"):
        hint = near_match(direction, ("received", "sent"))
        raise FaultError(f"a direction is 'received' (by the broker) or 'sent', not {direction!r}{hint}")
    if protocol is not None:
        _check_protocol(protocol)
    if not said:
        raise FaultError("name the methods of the rule: on('basic.publish'), on('queue.*'), on('*'), ...")
    known = protocol_names() if protocol is None else (protocol,)
    if CONFIRM in said:
        if len(said) > 1 or direction == "received":
            raise FaultError(
                "'confirm' cannot be combined with other names and is always sent; make another rule for them"
            )
        confirming = [each for each in known if each in protocols_with("confirms")]
        if not confirming:
            raise FaultError(f"there are no publisher confirms in {protocol}{_instead(known)}")
        names = frozenset().union(*(dialect_named(each).confirms for each in confirming))
        return Subject(said, names, "sent", frozenset(confirming), True, protocol)
    named = [name for each in said for name in _named(each, known)]
    if direction is None:
        direction = "received" if any(_goes(name, "received", known) for name in named) else "sent"
    going = frozenset(name for name in named if _goes(name, direction, known))
    if not going:
        other = "sent" if direction == "received" else "received"
        raise FaultError(f"{' or '.join(said)} is never {direction} by a broker, only {other}")
    among = frozenset(
        each
        for each in known
        if HEARTBEAT in going or not going.isdisjoint(protocol_named(each).method_names)
    )
    return Subject(said, going, "received" if direction == "received" else "sent", among, only=protocol)


def _check_protocol(name: str) -> None:
    try:
        protocol_named(name)
    except UnknownProtocol as problem:
        raise FaultError(str(problem)) from None


def _instead(known: tuple[str, ...]) -> str:
    """The hint on what publishers see in protocols without confirms."""
    hints = (_INSTEAD.get(each, "") for name in known for each in protocol_named(name).capabilities)
    return "".join(hints)


def _named(pattern: str, known: tuple[str, ...]) -> Iterable[str]:
    """The names that a name or a pattern stands for."""
    if not isinstance(pattern, str):
        raise FaultError(f"a method's name is a str such as 'basic.publish', not {pattern!r}")
    if pattern in (HEARTBEAT, _HEARTBEAT_CONTROL):
        return (HEARTBEAT,)
    names = tuple(dict.fromkeys(name for each in known for name in protocol_named(each).method_names))
    if pattern in names:
        return (pattern,)
    found = [name for name in names if fnmatchcase(name, pattern)] if "*" in pattern else []
    if not found:
        classes = dict.fromkeys(f"{name.partition('.')[0]}.*" for name in names) if "*" in pattern else ()
        hint = _without_class(pattern, known) or near_match(pattern, classes or (*names, HEARTBEAT, CONFIRM))
        raise FaultError(f"there is no method {pattern!r}{hint}")
    return found


def _without_class(pattern: str, known: tuple[str, ...]) -> str:
    """The hint for a name without its class, such as "publish": the methods of the most common protocol."""
    if "." in pattern or "*" in pattern or nearest(pattern, (HEARTBEAT, CONFIRM)):
        return ""
    for each in known:
        by_method: dict[str, list[str]] = {}
        for name in protocol_named(each).method_names:
            by_method.setdefault(name.partition(".")[2], []).append(name)
        near = [pattern] if pattern in by_method else nearest(pattern, by_method)
        if near:
            return f"; did you mean {' or '.join(map(repr, by_method[near[0]]))}?"
    return ""


def _goes(name: str, direction: str, known: tuple[str, ...]) -> bool:
    """True if a method goes in a direction, in any protocol that has it."""
    if name == HEARTBEAT:
        return True
    having = (dialect_named(each) for each in known if name in protocol_named(each).method_names)
    return any(direction in each.kinds[name].directions for each in having)
