"""Actions that pass on a changed frame group: a duplicate, other values, malformed; and `CallFunction`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from fakeamqp.errors import near_match
from fakeamqp.faults.actions.action import DELIVERIES, PUBLISHES, Action, Drawn, one_of
from fakeamqp.faults.errors import FaultError, check_channel, check_count
from fakeamqp.faults.malformed import malformations, usual_malformations

if TYPE_CHECKING:
    from random import Random

    from fakeamqp.dialects import Malformation
    from fakeamqp.faults.executor import Interception
    from fakeamqp.faults.frame_group import FrameGroup
    from fakeamqp.faults.subjects import Subject

__all__ = ["CallFunction", "Duplicate", "Malform", "Replace"]


class Duplicate(Action):
    """Passes a frame group on more than once."""

    label = "Duplicate it"
    drawn: ClassVar[Mapping[str, Drawn]] = {
        "duplicate-publish": Drawn(PUBLISHES, lambda draw: Duplicate(1), "received"),
        "duplicate-delivery": Drawn(DELIVERIES, lambda draw: Duplicate(1), "sent"),
    }

    def __init__(self, times: int) -> None:
        check_count("duplicate", times)
        self._times = times
        self.words: str = "duplicate it" if times == 1 else f"let it pass {times + 1} times"

    def apply(self, interception: Interception) -> None:
        """Add duplicates behind each."""
        copies = []
        for group in interception.groups:
            copies.append(group)
            copies.extend(group.duplicate() for _ in range(self._times))
        interception.groups = copies


class Replace(Action):
    """Passes a frame group on with other values."""

    def __init__(self, subject: Subject, changes: Mapping[str, Any]) -> None:
        changes = dict(changes)
        if not changes:
            raise FaultError("say what to replace: replace(body=b'...'), for example")
        if not isinstance(changes.get("properties") or {}, Mapping):
            raise FaultError(f"replace() takes properties as a dict, not {changes['properties']!r}")
        self._body = changes.pop("body", None)
        self._channel = changes.pop("channel", None)
        self._properties = dict(changes.pop("properties", None) or {})
        self._fields = {}
        if isinstance(self._body, str):
            self._body = self._body.encode()
        if self._body is not None and not isinstance(self._body, bytes) and not callable(self._body):
            raise FaultError(f"replace() takes body as bytes, a str or a function, not {self._body!r}")
        if self._channel is not None and not callable(self._channel):
            check_channel(self._channel)
        properties = (*subject.properties, "headers")
        known = (*subject.fields, *properties, "body", "channel", "properties")
        for name, value in changes.items():
            is_field, is_property = name in subject.fields, name in properties
            if is_field:
                self._fields[name] = value
            # A field in one protocol may be a property in another; each method has only one of them.
            if is_property and (subject.has_content or not is_field):
                self._properties[name] = value
            if not is_field and not is_property:
                raise FaultError(f"{subject} has no {name!r} to replace{near_match(name, known)}")
        for name in self._properties:
            if name not in properties:
                raise FaultError(f"there is no property {name!r}{near_match(name, properties)}")
        if (self._body is not None or self._properties) and not subject.has_content:
            raise FaultError(f"{subject} has no content: replace() can change its fields only")
        self._check_values(subject)
        said = {**self._fields, **self._properties}
        said.update({} if self._body is None else {"body": self._body})
        said.update({} if self._channel is None else {"channel": self._channel})
        self.words: str = "replace " + ", ".join(f"{name}={_in_words(value)}" for name, value in said.items())

    def _check_values(self, subject: Subject) -> None:
        """Check that the values can be encoded. Values from functions are checked when they are made.

        Raises:
            FaultError: a value cannot be encoded.
        """
        for protocol in subject.protocols:
            for kind in subject.kinds(protocol):
                for name, value in self._fields.items():
                    if name in kind.fields and not callable(value):
                        _check_value(subject, name, value, partial(kind.make, **{name: value}))
            for name, value in self._properties.items():
                if name in (*protocol.property_names, "headers") and not callable(value):
                    carrier = partial(protocol.make_properties, **{name: value})
                    _check_value("no content", name, value, carrier)

    def apply(self, interception: Interception) -> None:
        """Replace each by a changed copy. If a function's value cannot be encoded, all pass unchanged."""
        interception.groups = [self._changed(group) for group in interception.groups]

    def _changed(self, group: FrameGroup) -> FrameGroup:
        body = self._body(group.body) if callable(self._body) else self._body
        octets = body.encode() if isinstance(body, str) else body
        channel = self._channel(group.channel) if callable(self._channel) else self._channel
        if channel is not None:
            check_channel(channel)
        return group.replace(fields=self._fields, properties=self._properties, body=octets, channel=channel)


def _check_value(subject: object, name: str, value: Any, make: Callable[[], Any]) -> None:
    try:
        make().encode()
    except Exception as problem:  # Encoders raise errors of many types.
        can = f"{subject} can have" if subject == "no content" else f"{subject} cannot have"
        raise FaultError(f"{can} {name}={value!r}: {problem}") from problem


def _in_words(value: Any) -> str:
    return f"by {getattr(value, '__name__', 'a function')}" if callable(value) else repr(value)


def _malformed(draw: Random) -> Malform:
    return Malform(draw.choice(("bad-frame-end", "unknown-type", "unknown-method")))


def _malformed_transfer(draw: Random) -> Malform:
    return Malform(draw.choice(("bad-flags", "unknown-type", "unknown-method")))


class Malform(Action):
    """Sends a frame group malformed."""

    drawn: ClassVar[Mapping[str, Drawn]] = {
        "malformed": Drawn(("basic.deliver", "basic.get-ok"), _malformed),
        "malformed-transfer": Drawn(("message.transfer",), _malformed_transfer, "sent", needs="sessions"),
    }

    def __init__(self, how: str) -> None:
        self._how = how
        known = usual_malformations().get(how)
        self.words: str = f"malform it: {how if known is None else known.words}"

    def check(self, subject: Subject, part: str | None) -> None:
        super().check(subject, part)
        if subject.direction != "sent":
            raise FaultError(f"malform() is for methods that the broker sends; {subject} is received")
        known = malformations(subject.among)
        ways: Mapping[str, Malformation] = known[one_of(self._how, known, "malform")]
        if all(way.content_only for way in ways.values()) and not subject.has_content:
            raise FaultError(f"malform({self._how!r}) is for methods with a content, such as basic.deliver")
        self.protocols: frozenset[str] = frozenset(ways)
        self.words = f"malform it: {next(iter(ways.values())).words}"

    def apply(self, interception: Interception) -> None:
        """Send the malformed bytes of each."""
        for group in interception.groups:
            octets = group.protocol.malformations[self._how].malform(group)
            interception.executor.note(group.port, f"sent malformed ({self._how}): {octets[:32].hex()}")
            group.port.send(octets)
        interception.consume()


class CallFunction(Action):
    """Calls a function of the test."""

    fits_half = True

    def __init__(self, function: Callable[[FrameGroup], object]) -> None:
        if not callable(function):
            raise FaultError(f"call() takes a function, not {function!r}")
        self._function = function
        self.words: str = f"call {getattr(function, '__name__', 'a function')}"

    def apply(self, interception: Interception) -> None:
        """Call it with each frame group."""
        for group in interception.groups:
            self._function(group)
