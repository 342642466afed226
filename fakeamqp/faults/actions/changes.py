"""What passes in another shape: twice, with other values, broken; or only looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from fakeamqp.errors import near_match
from fakeamqp.faults.actions.action import Action, one_of
from fakeamqp.faults.errors import FaultError, check_channel
from fakeamqp.faults.malformed import MALFORMATIONS, malformations

if TYPE_CHECKING:
    from fakeamqp.faults.adapter import Way
    from fakeamqp.faults.flight import Flight
    from fakeamqp.faults.subjects import Subject
    from fakeamqp.faults.units import Unit

__all__ = ["Call", "Duplicate", "Malform", "Replace"]


class Duplicate(Action):
    """It passes more than once."""

    def __init__(self, times: int) -> None:
        self._times = times
        self.words = "duplicate it" if times == 1 else f"let it pass {times + 1} times"

    def act(self, flight: Flight) -> None:
        """Add copies: of a delivery with tags of their own, of a publish without a place among confirms."""
        copies = []
        for unit in flight.units:
            copies.append(unit)
            copies.extend(unit.again() for _ in range(self._times))
        flight.units = copies


class Replace(Action):
    """Something else passes."""

    def __init__(self, subject: Subject, changes: Mapping[str, Any]) -> None:
        changes = dict(changes)
        if not changes:
            raise FaultError("say what is to be replaced: replace(body=b'...'), ...")
        if not isinstance(changes.get("properties") or {}, Mapping):
            raise FaultError(f"properties are replaced by those of a dict, not {changes['properties']!r}")
        self._body = changes.pop("body", None)
        self._channel = changes.pop("channel", None)
        self._properties = dict(changes.pop("properties", None) or {})
        self._fields = {}
        if isinstance(self._body, str):
            self._body = self._body.encode()
        if self._body is not None and not isinstance(self._body, bytes) and not callable(self._body):
            raise FaultError(f"a body is replaced by bytes, a str or a function, not {self._body!r}")
        if self._channel is not None and not callable(self._channel):
            check_channel(self._channel)
        properties = (*subject.properties, "headers")
        known = (*subject.fields, *properties, "body", "channel", "properties")
        for name, value in changes.items():
            is_field, is_property = name in subject.fields, name in properties
            if is_field:
                self._fields[name] = value
            # What is a field in one protocol may be a property in another; each method has but one of them.
            if is_property and (subject.has_content or not is_field):
                self._properties[name] = value
            if not is_field and not is_property:
                raise FaultError(f"{subject} has no {name!r} to be replaced{near_match(name, known)}")
        for name in self._properties:
            if name not in properties:
                raise FaultError(f"there is no property {name!r}{near_match(name, properties)}")
        if (self._body is not None or self._properties) and not subject.has_content:
            raise FaultError(f"{subject} has no content in which something could be replaced")
        self._check_values(subject)
        said = {**self._fields, **self._properties}
        said.update({} if self._body is None else {"body": self._body})
        said.update({} if self._channel is None else {"channel": self._channel})
        self.words = "replace " + ", ".join(f"{name}={_in_words(value)}" for name, value in said.items())

    def _check_values(self, subject: Subject) -> None:
        """Whether frames can carry them, as far as that is known before they are made.

        Raises:
            FaultError: no.
        """
        for protocol in subject.protocols:
            for kind in subject.kinds(protocol):
                for name, value in self._fields.items():
                    if name in kind.fields and not callable(value):
                        _check_value(subject, name, value, partial(kind.make, **{name: value}))
            for name, value in self._properties.items():
                if name in (*protocol.properties, "headers") and not callable(value):
                    carrier = partial(protocol.make_properties, **{name: value})
                    _check_value("no content", name, value, carrier)

    def act(self, flight: Flight) -> None:
        """Make changed copies. Where no frame can carry what a function says, all passes as it was."""
        flight.units = [self._changed(unit) for unit in flight.units]

    def _changed(self, unit: Unit) -> Unit:
        body = self._body(unit.body) if callable(self._body) else self._body
        octets = body.encode() if isinstance(body, str) else body
        channel = self._channel(unit.channel) if callable(self._channel) else self._channel
        if channel is not None:
            check_channel(channel)
        return unit.changed(fields=self._fields, properties=self._properties, body=octets, channel=channel)


def _check_value(subject: object, name: str, value: Any, make: Callable[[], Any]) -> None:
    try:
        make().encode()
    except Exception as problem:  # by whatever it is made of
        can = f"{subject} can have" if subject == "no content" else f"{subject} cannot have"
        raise FaultError(f"{can} {name}={value!r}: {problem}") from problem


def _in_words(value: Any) -> str:
    return f"by {getattr(value, '__name__', 'a function')}" if callable(value) else repr(value)


class Malform(Action):
    """It is sent in a way that breaks the protocol."""

    def __init__(self, how: str) -> None:
        self._how = how
        known = MALFORMATIONS.get(how)
        self.words = f"malform it: {how if known is None else known.words}"

    def check(self, subject: Subject, part: str | None) -> None:
        """See `Action`."""
        super().check(subject, part)
        if subject.direction != "sent":
            raise FaultError(f"malform() is for what the broker sends, and {subject} is received")
        known = malformations(subject.among)
        ways: Mapping[str, Way] = known[one_of(self._how, known, "malform")]
        if all(way.content_only for way in ways.values()) and not subject.has_content:
            raise FaultError(f"malform({self._how!r}) is for methods with a content, such as basic.deliver")
        self.protocols = frozenset(ways)
        self.words = f"malform it: {next(iter(ways.values())).words}"

    def act(self, flight: Flight) -> None:
        """Send the broken bytes."""
        for unit in flight.units:
            octets = unit.protocol.malformations[self._how].make(unit)
            flight.tap.note(unit.line, f"sent malformed ({self._how}): {octets[:32].hex()}")
            unit.line.put(octets)
        flight.consume()


class Call(Action):
    """The test's own function is called."""

    fits_half = True

    def __init__(self, function: Callable[[Unit], object]) -> None:
        if not callable(function):
            raise FaultError(f"a function is to be called, not {function!r}")
        self._function = function
        self.words = f"call {getattr(function, '__name__', 'a function')}"

    def act(self, flight: Flight) -> None:
        """Call it."""
        for unit in flight.units:
            self._function(unit)
