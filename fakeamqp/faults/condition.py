"""Conditions of a rule: values that fields of a method must have, and the connections that it concerns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from fakeamqp.errors import near_match
from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.frame_group import ABSENT, HEARTBEAT

if TYPE_CHECKING:
    from fakeamqp.faults.frame_group import FrameGroup
    from fakeamqp.faults.port import FaultPort
    from fakeamqp.faults.subjects import Subject

__all__ = ["Condition", "ConnectionSelector", "conditions", "topic_matches"]


class Condition(NamedTuple):
    """One condition.

    Args:
        name: the field that it compares.
        wanted: the wanted value, as the test wrote it.
        fits: returns whether a value fits.
        early: True if the method alone decides, without its content, and always in the same way. A function
            of the test is not called early, because it may count its calls.
    """

    name: str
    wanted: Any
    fits: Callable[[Any], bool]
    early: bool

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
    """Selects connections by one of their names.

    Args:
        said: a connection's name, its short name in the trace, the name the client gave itself, or one of
            `Broker.connections`.
        alias: returns the short name of a connection.

    Raises:
        FaultError: `said` cannot name a connection.
    """

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
    """The conditions for keyword arguments; None is no condition.

    Raises:
        FaultError: the methods have no such field, there is no such exchange type, or a value can never be
            equal to the field.
    """
    made = []
    for name, value in wanted.items():
        if value is None:
            continue
        if subject.names == {HEARTBEAT}:
            raise FaultError(
                f"a heartbeat has no {name}: only its direction and its connection can be compared"
            )
        if name not in _FIELDS_OF_ALL and name not in subject.fields and name not in subject.properties:
            known = (*_FIELDS_OF_ALL, *subject.fields, *subject.properties, *_OTHER_KEYWORDS)
            raise FaultError(f"{subject} has no field {name!r}{near_match(name, known)}")
        if (name == "exchange_type" or (name == "type" and name in subject.fields)) and isinstance(
            value, str
        ):
            _check_exchange_type(value, exchange_types)
        early = name in _EARLY or (name not in _FIELDS_OF_ALL and name in subject.fields)
        made.append(Condition(name, value, _comparison(name, value), early and not callable(value)))
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


_FIELDS_OF_ALL = (
    "exchange",
    "routing_key",
    "queue",
    "exchange_type",
    "body",
    "headers",
    "channel",
    "session",
)
"""The fields that any method has for conditions, besides its own."""
_OTHER_KEYWORDS = ("connection", "protocol", "direction", "optional", "part")
"""The other keywords of `Faults.on`."""
_STRINGS = frozenset(("exchange", "routing_key", "queue", "session"))
_NO_STRINGS = (bytes, int, float, list, tuple, set, dict)
_NO_NUMBERS = (str, bytes, bool, float)
"""Types that are never equal to the field. Other types may define an equality of their own."""
_EARLY = frozenset(("exchange", "routing_key", "channel"))
"""Those of these fields that the method of a publish decides alone."""
