"""What a rule concerns: its methods, the values that their fields must have, and its connections."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

from fakeamqp.dialects import UnknownProtocol, dialect_named, protocol_named, protocol_names, protocols_with
from fakeamqp.errors import near_match, nearest
from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.frame_group import ABSENT, HEARTBEAT, READERS

if TYPE_CHECKING:
    from fakeamqp.dialects import Dialect, Direction, MethodInfo
    from fakeamqp.faults.frame_group import FrameGroup
    from fakeamqp.faults.port import FaultPort

CONFIRM = "confirm"
"""The name for a basic.ack or basic.nack by which the broker confirms one publish."""
_INSTEAD = {
    "sessions": ": publishers learn of completion instead: on('session.completed', direction='sent')",
    "links": ": publishers learn of outcomes instead: on('disposition', direction='sent')",
}
"""By capability of a protocol, what stands there for publisher confirms."""
_HEARTBEAT_CONTROL = "connection.heartbeat"
"""The name of a heartbeat in 0-10."""


class Subject(NamedTuple):
    """The methods that a rule concerns."""

    said: tuple[str, ...]
    """The names and patterns as the test wrote them."""
    names: frozenset[str]
    direction: Direction
    among: frozenset[str]
    """The names of the protocols that have any of the methods."""
    confirms: bool = False
    """True for publisher confirms only."""

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
    """
    if direction not in (None, "received", "sent"):
        hint = near_match(direction, ("received", "sent"))
        raise FaultError(f"a direction is 'received' (by the broker) or 'sent', not {direction!r}{hint}")
    try:
        known = protocol_names() if protocol is None else (protocol_named(protocol).name,)
    except UnknownProtocol as problem:
        raise FaultError(str(problem)) from None
    if not said:
        raise FaultError("name the methods of the rule: on('basic.publish'), on('queue.*'), on('*'), ...")
    if CONFIRM in said:
        if len(said) > 1 or direction == "received":
            raise FaultError(
                "'confirm' cannot be combined with other names and is always sent; make another rule for them"
            )
        confirming = [each for each in known if each in protocols_with("confirms")]
        if not confirming:
            hint = next((words for each, words in _INSTEAD.items() if protocol in protocols_with(each)), "")
            raise FaultError(f"there are no publisher confirms in {protocol}{hint}")
        names = frozenset().union(*(dialect_named(each).confirms for each in confirming))
        return Subject(said, names, "sent", frozenset(confirming), True)
    named = [name for each in said for name in _named(each, known)]
    if direction is None:
        direction = "received" if any(_goes(name, "received", known) for name in named) else "sent"
    going = frozenset(name for name in named if _goes(name, direction, known))
    if not going:
        other = "sent" if direction == "received" else "received"
        raise FaultError(f"{' or '.join(said)} is never {direction} by a broker, only {other}")
    among = (each for each in known if not going.isdisjoint((HEARTBEAT, *protocol_named(each).method_names)))
    towards: Direction = "received" if direction == "received" else "sent"
    return Subject(said, going, towards, frozenset(among))


def _named(pattern: str, known: tuple[str, ...]) -> Iterable[str]:
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
    """The hint for a name without its class, such as "publish": the methods of the most common protocol.

    A performative of 1.0 has no class, so the hint for "attch" has "attach" as well.
    """
    if "." in pattern or "*" in pattern or nearest(pattern, (HEARTBEAT, CONFIRM)):
        return ""
    plain = [name for each in known for name in protocol_named(each).method_names if "." not in name]
    for each in known:
        by_method: dict[str, list[str]] = {}
        for name in protocol_named(each).method_names:
            by_method.setdefault(name.rpartition(".")[2], []).append(name)
        near = [pattern] if pattern in by_method else nearest(pattern, by_method)
        if near:
            meant = dict.fromkeys((*by_method[near[0]], *(name for name in plain if name == near[0])))
            return f"; did you mean {' or '.join(map(repr, meant))}?"
    return ""


def _goes(name: str, direction: str, known: tuple[str, ...]) -> bool:
    """True if a method goes in a direction, in any protocol that has it."""
    if name == HEARTBEAT:
        return True
    having = (dialect_named(each) for each in known if name in protocol_named(each).method_names)
    return any(direction in each.kinds[name].directions for each in having)


class Condition(NamedTuple):
    """One condition: the value that the test wants a field to have."""

    name: str
    wanted: Any
    fits: Callable[[Any], bool]
    early: bool
    """True if the method alone decides, without its content, and always in the same way. A function of the
    test is not called early, because it may count its calls."""

    def holds(self, group: FrameGroup) -> bool:
        """True if a frame group fits."""
        return any(self.fits(value) for value in group.values_of(self.name))

    def miss(self, group: FrameGroup) -> str:
        """In words: the value that did not fit."""
        values = [value for value in group.values_of(self.name) if value is not ABSENT]
        said = " and ".join(map(repr, values)) if values else "nothing"
        return f"{self.name} is {said}, not {self.words}"

    @property
    def words(self) -> str:
        """The wanted value in words."""
        if isinstance(self.wanted, re.Pattern):
            return f"/{self.wanted.pattern}/"
        if callable(self.wanted):
            return f"accepted by {getattr(self.wanted, '__name__', 'a function')}"
        return repr(self.wanted)

    def __str__(self) -> str:
        return f"{self.name.replace('_', ' ')} {self.words}"


class ConnectionSelector:
    """Selects connections by their name, their short name in the trace, or the client's name for itself."""

    def __init__(self, said: Any, alias: Callable[[str], str | None]) -> None:
        self.said: str | Any = said if isinstance(said, str) else getattr(said, "name", said)
        if not isinstance(self.said, str) or not self.said:
            raise FaultError(f"a connection is named by a str, or is one of broker.connections, not {said!r}")
        self._alias = alias

    def names(self, port: FaultPort) -> str:
        """All names of a connection, for people."""
        others = [repr(name) for name in (port.client_name, self._alias(port.name)) if name]
        return repr(port.name) + (f" ({', '.join(others)})" if others else "")

    def selects(self, port: FaultPort) -> bool:
        """True if it selects this connection."""
        return self.said in (port.name, port.client_name) or self.said == self._alias(port.name)


def conditions(
    subject: Subject, wanted: Mapping[str, Any], exchange_types: frozenset[str]
) -> list[Condition]:
    """The conditions for keyword arguments; None is no condition."""
    made = []
    for name, value in wanted.items():
        if value is None:
            continue
        if subject.names == {HEARTBEAT}:
            raise FaultError(
                f"a heartbeat has no {name}: only its direction and its connection can be compared"
            )
        if name not in READERS and name not in subject.fields and name not in subject.properties:
            known = (*READERS, *subject.fields, *subject.properties, *_OTHER_KEYWORDS)
            raise FaultError(f"{subject} has no field {name!r}{near_match(name, known)}")
        is_type = name == "exchange_type" or (name == "type" and name in subject.fields)
        if is_type and isinstance(value, str) and exchange_types and value not in exchange_types:
            raise FaultError(f"there is no exchange type {value!r}{near_match(value, exchange_types)}")
        early = name in _EARLY or (name not in READERS and name in subject.fields)
        made.append(Condition(name, value, _comparison(name, value), early and not callable(value)))
    return made


def _comparison(name: str, wanted: Any) -> Callable[[Any], bool]:
    if not isinstance(wanted, re.Pattern) and not callable(wanted):
        if name == "channel" and (isinstance(wanted, _NO_NUMBERS) or wanted not in range(0x10000)):
            raise FaultError(
                "a channel is compared with a number from 0 to 65535, a pattern or a function, "
                f"not {wanted!r}"
            )
        if name in _STRINGS and isinstance(wanted, _NO_STRINGS):
            raise FaultError(f"{name} is compared with a str, a pattern or a function, not {wanted!r}")
        if name == "routing_key" and isinstance(wanted, str):
            return lambda value: isinstance(value, str) and topic_matches(wanted, value)
        if name == "body":
            if isinstance(wanted, str):
                wanted = wanted.encode()
            elif not isinstance(wanted, bytes):
                raise FaultError(
                    f"a body is compared with bytes, str, a pattern or a function, not {wanted!r}"
                )
        if name == "headers":
            return _headers(wanted)
    return _fits(wanted)


def _fits(wanted: Any) -> Callable[[Any], bool]:
    """A pattern has to match somewhere, a function has to return true, another value has to be equal."""
    if isinstance(wanted, re.Pattern):
        octets = isinstance(wanted.pattern, bytes)
        return lambda value: (
            value is not ABSENT and value is not None and wanted.search(_as(value, octets)) is not None
        )
    if callable(wanted):
        return lambda value: value is not ABSENT and bool(wanted(value))
    return lambda value: value is not ABSENT and bool(value == wanted)


def _headers(wanted: Any) -> Callable[[Any], bool]:
    if not isinstance(wanted, Mapping):
        raise FaultError(
            f"headers are compared with a dict of the headers that must be there, not {wanted!r}"
        )
    fitting = {key: _fits(value) for key, value in wanted.items()}
    return lambda value: (
        isinstance(value, Mapping) and all(key in value and fits(value[key]) for key, fits in fitting.items())
    )


def _as(value: Any, octets: bool) -> Any:
    """The value as the type that the pattern searches."""
    if octets:
        return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def topic_matches(pattern: str, routing_key: str) -> bool:
    """True if a routing key matches a topic pattern: `*` is one word, `#` any number of words."""
    words = routing_key.split(".") if routing_key else []
    # The possible numbers of words matched so far.
    used = {0}
    for each in pattern.split(".") if pattern else []:
        if each == "#":
            used = set(range(min(used), len(words) + 1)) if used else used
        else:
            used = {count + 1 for count in used if count < len(words) and each in ("*", words[count])}
    return len(words) in used


_OTHER_KEYWORDS = ("connection", "protocol", "direction", "optional", "part")
"""The other keywords of `Faults.on`."""
_STRINGS = frozenset(("exchange", "routing_key", "queue", "session"))
_NO_STRINGS = (bytes, int, float, list, tuple, set, dict)
_NO_NUMBERS = (str, bytes, bool, float)
"""Types that are never equal to the field. Other types may define an equality of their own."""
_EARLY = frozenset(("exchange", "routing_key", "channel"))
"""Those of these fields that the method of a publish decides alone."""
