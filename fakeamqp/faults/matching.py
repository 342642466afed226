"""Conditions of a rule: what is asked of a method, and how it is said in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from fakeamqp.errors import near_match
from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.subjects import PROPERTIES
from fakeamqp.faults.units import HEARTBEAT, Unit

if TYPE_CHECKING:
    from fakeamqp.faults.subjects import Subject

__all__ = ["Condition", "conditions", "topic_matches"]

ABSENT = object()
"""What is read where there is nothing to be read."""


class Condition(NamedTuple):
    """One thing that is asked.

    Args:
        name: what is looked at.
        wanted: as the test wrote it.
        read: everything that a unit has of it; one that fits will do.
        fits: whether a value does.
        early: whether the octets of the method alone say so, always in the same way. A function of the
            test's is not asked before it has to be: it may count.
    """

    name: str
    wanted: Any
    read: Callable[[Unit], tuple[Any, ...]]
    fits: Callable[[Any], bool]
    early: bool

    def holds(self, unit: Unit) -> bool:
        """Whether a unit is as wanted."""
        return any(self.fits(value) for value in self.read(unit))

    def miss(self, unit: Unit) -> str:
        """What there was instead."""
        values = [value for value in self.read(unit) if value is not ABSENT]
        said = " and ".join(map(repr, values)) if values else "nothing"
        return f"{self.name} is {said}, not {self.words}"

    @property
    def words(self) -> str:
        """What is wanted, in short."""
        if isinstance(self.wanted, re.Pattern):
            return f"/{self.wanted.pattern}/"
        if callable(self.wanted):
            return f"as {getattr(self.wanted, '__name__', 'a function')} wants it"
        return repr(self.wanted)

    def __str__(self) -> str:
        return f"{self.name.replace('_', ' ')} {self.words}"


def conditions(
    subject: Subject, wanted: Mapping[str, Any], exchange_types: frozenset[str]
) -> list[Condition]:
    """The conditions that keywords stand for; None asks nothing.

    Raises:
        FaultError: the methods have no such field, there is no such exchange type, or a value cannot be
            compared with.
    """
    made = []
    for name, value in wanted.items():
        if value is None:
            continue
        if subject.names == {HEARTBEAT}:
            raise FaultError(
                f"a heartbeat has no {name}; all that can be asked of it is its direction and its connection"
            )
        read = _READERS.get(name)
        if name in PROPERTIES and name not in subject.fields:
            read = _reads_property(name)
        elif read is None:
            if name not in subject.fields:
                known = (*_READERS, *subject.fields, *PROPERTIES, *_ASKED_ELSEWHERE)
                raise FaultError(f"{subject} has no field {name!r}{near_match(name, known)}")
            read = _reads_field(name)
        if (name == "exchange_type" or (name == "type" and name in subject.fields)) and isinstance(
            value, str
        ):
            _check_exchange_type(value, exchange_types)
        early = name in _EARLY or (name in subject.fields and name not in _READERS)
        made.append(Condition(name, value, read, _comparison(name, value), early and not callable(value)))
    return made


def _check_exchange_type(name: str, known: frozenset[str]) -> None:
    if known and name not in known:
        raise FaultError(f"there is no exchange type {name!r}{near_match(name, known)}")


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
    """A value is found by a pattern, or liked by a function, or equal."""
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
        raise FaultError(f"headers are compared with a dict of those that must be there, not {wanted!r}")
    fitting = {key: _fits(value) for key, value in wanted.items()}
    return lambda value: (
        isinstance(value, Mapping) and all(key in value and fits(value[key]) for key, fits in fitting.items())
    )


def _as(value: Any, octets: bool) -> Any:
    """A value as a pattern can be searched for in it."""
    if octets:
        return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def topic_matches(pattern: str, routing_key: str) -> bool:
    """Whether a routing key fits a topic pattern: `*` is one word, `#` any number, none included."""
    words = routing_key.split(".") if routing_key else []
    # How many of the words may have been used up by now.
    used = {0}
    for each in pattern.split(".") if pattern else []:
        if each == "#":
            used = set(range(min(used), len(words) + 1)) if used else used
        else:
            used = {count + 1 for count in used if count < len(words) and each in ("*", words[count])}
    return len(words) in used


# --- what can be looked at ----------------------------------------------------------------------------


def _messages(unit: Unit) -> tuple[Any, ...]:
    """The messages that a settlement is about, as the broker has them."""
    method = unit.method
    if unit.direction == "received" and hasattr(method, "delivery_tag"):
        multiple = getattr(method, "multiple", False)
        return unit.line.held_messages(unit.channel, method.delivery_tag, multiple)
    return ()


def _reads_address(field: str) -> Callable[[Unit], tuple[Any, ...]]:
    """Of what exchange or routing key a method speaks, be it by the message that it settles."""

    def read(unit: Unit) -> tuple[Any, ...]:
        value = getattr(unit.method, field, ABSENT)
        if value is not ABSENT:
            return (value,)
        if unit.settles:
            return tuple(getattr(publish.method, field) for publish in unit.settles)
        return tuple(getattr(message, field) for _, message in _messages(unit))

    return read


def _read_queue(unit: Unit) -> tuple[Any, ...]:
    method = unit.method
    line = unit.line
    if unit.queues is not None:
        return unit.queues
    if unit.name == "basic.publish":
        return line.destinations(unit.channel, method, unit.properties)
    if unit.settles:
        return tuple(name for publish in unit.settles for name in _read_queue(publish))
    if hasattr(method, "queue"):
        return (method.queue,)
    if hasattr(method, "consumer_tag"):
        queue = line.consumed_queue(unit.channel, method.consumer_tag)
        return () if queue is None else (queue,)
    return tuple(name for name, _ in _messages(unit))


def _read_exchange_type(unit: Unit) -> tuple[Any, ...]:
    if unit.name == "exchange.declare":
        return (unit.method.type,)
    return tuple(
        kind for name in _READERS["exchange"](unit) if (kind := unit.line.exchange_type(name)) is not None
    )


def _read_body(unit: Unit) -> tuple[Any, ...]:
    if unit.has_content:
        return (unit.body,)
    if unit.settles:
        return tuple(publish.body for publish in unit.settles)
    return tuple(message.body for _, message in _messages(unit))


def _read_channel(unit: Unit) -> tuple[Any, ...]:
    return (unit.channel,)


def _reads_property(name: str) -> Callable[[Unit], tuple[Any, ...]]:
    def read(unit: Unit) -> tuple[Any, ...]:
        if unit.has_content:
            return (getattr(unit.properties, name, ABSENT),)
        if unit.settles:
            return tuple(getattr(publish.properties, name, ABSENT) for publish in unit.settles)
        return tuple(getattr(message.properties, name, ABSENT) for _, message in _messages(unit))

    return read


def _reads_field(name: str) -> Callable[[Unit], tuple[Any, ...]]:
    def read(unit: Unit) -> tuple[Any, ...]:
        method = unit.method
        return (getattr(method, name, getattr(method, f"{name}_", ABSENT)),)

    return read


_READERS: dict[str, Callable[[Unit], tuple[Any, ...]]] = {
    "exchange": _reads_address("exchange"),
    "routing_key": _reads_address("routing_key"),
    "queue": _read_queue,
    "exchange_type": _read_exchange_type,
    "body": _read_body,
    "headers": _reads_property("headers"),
    "channel": _read_channel,
}
"""What can be asked of any method, beside its own fields."""
_ASKED_ELSEWHERE = ("connection", "direction", "optional", "part")
"""What else `Faults.on` takes."""
_STRINGS = frozenset(("exchange", "routing_key", "queue"))
_NO_STRINGS = (bytes, int, float, list, tuple, set, dict)
_NO_NUMBERS = (str, bytes, bool, float)
"""What nothing can ever be equal to; anything else may have an equality of its own."""
_EARLY = frozenset(("exchange", "routing_key", "channel"))
"""Those of them that a publish answers by its method alone, always in the same way."""
