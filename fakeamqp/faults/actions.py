"""What a rule can do to a frame group: one class per action. Those that close something are in `closing`.

The rows are the methods of `Rule`; see `fakeamqp.faults.rule.ACTIONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from fakeamqp.dialects import Malformation, default_protocol, dialect_named, protocols_with
from fakeamqp.errors import near_match
from fakeamqp.faults.errors import FaultError, check_channel, check_count, check_number

if TYPE_CHECKING:
    from fakeamqp.faults.executor import Interception
    from fakeamqp.faults.frame_group import FrameGroup
    from fakeamqp.faults.matching import Subject

DELIVERIES = ("basic.deliver", "message.transfer", "transfer")


class Action:
    """One action of a rule. `words` says in a sentence fragment what it does.

    An action is offered by the method of `Rule` that is its row: see `fakeamqp.faults.rule.ACTIONS`.
    """

    words = ""
    label: ClassVar[str] = ""
    """What a form calls it; empty if forms do not offer it."""
    prefilled: ClassVar[Mapping[str, Any]] = {}
    """By argument: what a form proposes where the method of `Rule` has no default."""
    drops = False
    """True if nothing of the frame group passes on."""
    fits_half = False
    """True if it can act on a method whose body has not arrived yet."""
    protocols: frozenset[str] | None = None
    """The protocols that have this action; None for all."""

    def check(self, subject: Subject) -> None:
        """Raise `FaultError` unless the action fits the methods of a rule."""

    def apply(self, interception: Interception) -> None:
        """Apply the action to the frame groups of an interception."""
        raise NotImplementedError


def only(subject: Subject, names: Iterable[str], verb: str) -> None:
    """Raise `FaultError` unless the rule is about these methods only."""
    allowed = frozenset(names)
    if subject.confirms or not subject.names <= allowed:
        here = sorted(name for name in allowed if any(name in each.kinds for each in subject.protocols))
        raise FaultError(f"{verb} is for {' and '.join(here or sorted(allowed))}, not for {subject}")


def one_of(value: Any, known: Iterable[str], name: str) -> Any:
    """Return `value` if it is one of the known values, or raise `FaultError` with the nearest one."""
    names = tuple(known)
    if value not in names:
        raise FaultError(f"{name} cannot be {value!r}{near_match(value, names, len(names))}")
    return value


def reply_text(code: int, text: str | None, name: str | None = None) -> str:
    """The reply text: `text`, or by default the name of the code and that a test asked for the fault."""
    if isinstance(code, bool) or not isinstance(code, int) or not 0 <= code <= 0xFFFF:
        raise FaultError(f"a reply code is a number from 0 to 65535, such as 404, not {code!r}")
    if text is not None:
        if not isinstance(text, str):
            raise FaultError(f"a reply text is a str, not {text!r}")
        return text
    name = name or default_protocol().dialect.reply_names.get(code)
    return f"{name} - a fault that the test asked for" if name else "a fault that the test asked for"


def _error_code(code: int | str) -> tuple[int, str | None]:
    """An error code of a protocol with sessions and its name; unknown numbers have no name."""
    names = {
        name: number
        for protocol in protocols_with("sessions")
        for number, name in dialect_named(protocol).reply_names.items()
    }
    if isinstance(code, str):
        if code not in names:
            raise FaultError(f"there is no error code {code!r}{near_match(code, names)}")
        return names[code], code
    return code, next((name for name, number in names.items() if number == code), None)


def checked_condition(condition: str) -> str:
    """A condition of AMQP 1.0: a symbol. One that looks as if the standard had it must be one of these."""
    known = frozenset().union(*(dialect_named(each).conditions for each in protocols_with("links")))
    if not condition.isascii() or not condition or (condition.startswith("amqp:") and condition not in known):
        raise FaultError(f"there is no condition {condition!r}{near_match(condition, known)}")
    return condition


class Drop(Action):
    """Drops a frame group."""

    label = "Drop it"
    words = "drop it"
    drops = True

    def apply(self, interception: Interception) -> None:
        interception.drop()


class Nack(Action):
    """Refuses a publish, or replaces the ack of a confirm by a nack."""

    label = "Refuse it with a nack"
    words = "nack it"

    def check(self, subject: Subject) -> None:
        if not subject.confirms:
            publishes = frozenset().union(*(each.publishes for each in subject.protocols))
            only(subject, publishes or ("basic.publish", "message.transfer"), "nack()")
            if subject.direction != "received":
                raise FaultError(
                    f"nack() is for received publishes and for confirms; {subject} is sent by the broker"
                )

    def apply(self, interception: Interception) -> None:
        answers = [group.nack(interception.state) for group in interception.groups]
        interception.groups = [group for group in answers if group is not None]


class CommandException(Action):
    """Answers a command of 0-10 with execution.exception."""

    label = "Answer with an exception (AMQP 0-10)"
    protocols: frozenset[str] = frozenset(protocols_with("sessions"))

    def __init__(self, code: int | str, text: str | None, field_index: int | None) -> None:
        self._code, name = _error_code(code)
        self._text = reply_text(self._code, text, name)
        self._field_index = field_index
        if field_index is not None and (isinstance(field_index, bool) or field_index not in range(256)):
            raise FaultError(f"field_index is a number from 0 to 255, not {field_index!r}")
        self.words: str = f"answer it with the exception {name or self._code}"

    def check(self, subject: Subject) -> None:
        if self.protocols.isdisjoint(subject.among):
            raise FaultError(
                f"exception() is for commands of AMQP 0-10, not for {subject}: use close_channel()"
            )
        if subject.direction != "received":
            raise FaultError(f"exception() is for received commands; {subject} is sent by the broker")
        if all(name.startswith(("connection.", "session.", "heartbeat")) for name in subject.names):
            raise FaultError(f"{subject} is a control; exceptions are for commands: use close_connection()")

    def apply(self, interception: Interception) -> None:
        for group in interception.groups:
            group.exception(self._code, self._text, self._field_index)
        interception.groups = []


class ReturnMessage(Action):
    """Returns a publish to its publisher."""

    label = "Return it as unroutable"

    def __init__(self, code: int, text: str) -> None:
        self._code = code
        self._text = reply_text(code, text)
        if len(text.encode("utf-8", "surrogateescape")) > 255:
            raise FaultError(f"a reply text has at most 255 bytes, not {len(text)}")
        self.words: str = f"return it with {code} {text}"

    def check(self, subject: Subject) -> None:
        only(subject, ("basic.publish", "transfer"), "return_message()")
        if subject.direction != "received":
            raise FaultError(f"return_message() is for received publishes; {subject} is sent by the broker")

    def apply(self, interception: Interception) -> None:
        for group in interception.groups:
            group.return_message(interception.state, self._code, self._text)
        interception.groups = []


class Duplicate(Action):
    """Passes a frame group on more than once."""

    label = "Duplicate it"

    def __init__(self, times: int) -> None:
        check_count("duplicate takes", times)
        self._times = times
        self.words: str = "duplicate it" if times == 1 else f"let it pass {times + 1} times"

    def apply(self, interception: Interception) -> None:
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
        others = {"body": self._body, "channel": self._channel}
        said = {name: value for name, value in others.items() if value is not None}
        said = {**self._fields, **self._properties, **said}
        self.words: str = "replace " + ", ".join(f"{name}={_in_words(value)}" for name, value in said.items())

    def _check_values(self, subject: Subject) -> None:
        """Check that the values can be encoded. Values from functions are checked when they are made."""
        for protocol in subject.protocols:
            for kind in subject.kinds(protocol):
                for name, value in self._fields.items():
                    if name in kind.fields and not callable(value):
                        made = partial(kind.make, **{name: value})
                        _check_value(f"{subject} cannot have {name}={value!r}", made)
            for name, value in self._properties.items():
                if name in (*protocol.property_names, "headers") and not callable(value):
                    made = partial(protocol.make_properties, **{name: value})
                    _check_value(f"no content can have {name}={value!r}", made)

    def apply(self, interception: Interception) -> None:
        """If a value from a function cannot be encoded, all pass unchanged."""
        interception.groups = [self._changed(group) for group in interception.groups]

    def _changed(self, group: FrameGroup) -> FrameGroup:
        body = self._body(group.body) if callable(self._body) else self._body
        octets = body.encode() if isinstance(body, str) else body
        channel = self._channel(group.channel) if callable(self._channel) else self._channel
        if channel is not None:
            check_channel(channel)
        return group.replace(fields=self._fields, properties=self._properties, body=octets, channel=channel)


def _check_value(refusal: str, make: Callable[[], Any]) -> None:
    try:
        make().encode()
    except Exception as problem:  # Encoders raise errors of many types.
        raise FaultError(f"{refusal}: {problem}") from problem


def _in_words(value: Any) -> str:
    return f"by {getattr(value, '__name__', 'a function')}" if callable(value) else repr(value)


class Malform(Action):
    """Sends a frame group malformed."""

    def __init__(self, how: str) -> None:
        self._how = how
        known = default_protocol().dialect.malformations.get(how)
        self.words: str = f"malform it: {how if known is None else known.words}"

    def check(self, subject: Subject) -> None:
        if subject.direction != "sent":
            raise FaultError(f"malform() is for methods that the broker sends; {subject} is received")
        known = malformations(subject.among)
        ways: dict[str, Malformation] = known[one_of(self._how, known, "malform")]
        if all(way.content_only for way in ways.values()) and not subject.has_content:
            raise FaultError(f"malform({self._how!r}) is for methods with a content, such as basic.deliver")
        self.protocols: frozenset[str] = frozenset(ways)
        self.words = f"malform it: {next(iter(ways.values())).words}"

    def apply(self, interception: Interception) -> None:
        for group in interception.groups:
            octets = group.protocol.malformations[self._how].malform(group)
            interception.executor.note(group.port, f"sent malformed ({self._how}): {octets[:32].hex()}")
            group.port.send(octets)
        interception.groups = []


class CallFunction(Action):
    """Calls a function of the test."""

    fits_half = True

    def __init__(self, function: Callable[[FrameGroup], object]) -> None:
        if not callable(function):
            raise FaultError(f"call() takes a function, not {function!r}")
        self._function = function
        self.words: str = f"call {getattr(function, '__name__', 'a function')}"

    def apply(self, interception: Interception) -> None:
        for group in interception.groups:
            self._function(group)


def malformations(protocols: Iterable[str]) -> dict[str, dict[str, Malformation]]:
    """By name and then by protocol: the malformations of these protocols."""
    found: dict[str, dict[str, Malformation]] = {}
    for protocol in protocols:
        for name, malformation in dialect_named(protocol).malformations.items():
            found.setdefault(name, {})[protocol] = malformation
    return found


class Delay(Action):
    """Delays a frame group."""

    label = "Delay it"
    prefilled: ClassVar[Mapping[str, Any]] = {"seconds": 1}
    fits_half = True

    def __init__(self, seconds: float, jitter: float) -> None:
        for name, value in (("delay", seconds), ("jitter", jitter)):
            check_number(f"a {name} is a number of seconds", value)
        self._seconds = seconds
        self._jitter = jitter
        self.words: str = f"delay it by {seconds:g} s" + (f" and up to {jitter:g} s more" if jitter else "")

    def apply(self, interception: Interception) -> None:
        jitter = interception.rule._random.uniform(0, self._jitter) if self._jitter else 0.0
        if self._seconds + jitter:
            interception.delay(self._seconds + jitter)


class HoldBack(Action):
    """Holds a frame group until the test releases it: see `Rule.release`."""

    label = "Hold it until released"
    words = "hold it"
    fits_half = True

    def apply(self, interception: Interception) -> None:
        interception.hold()


class Reorder(Action):
    """Sends a delivery behind the next one of its channel.

    Delivery tags stay ascending on the wire: the messages change places, and the broker's record of what is
    unsettled with them. So an ack settles the message that came with its tag, and one with `multiple` settles
    what the client has received up to there. In 0-10 a transfer keeps its command id; in 1.0 the delivery ids
    are those of the order of sending.
    """

    label = "Let the next delivery overtake it"
    words = "let the next one overtake it"

    def check(self, subject: Subject) -> None:
        only(subject, DELIVERIES, "reorder()")
        if subject.direction != "sent":
            raise FaultError(f"reorder() is for deliveries: on({subject.said[0]!r}, direction='sent')")
        if subject.names != {"basic.deliver"}:
            self.protocols: frozenset[str] = frozenset(
                (*protocols_with("sessions"), *protocols_with("links"))
            )
            if len(subject.names) > 1 or self.protocols.isdisjoint(subject.among):
                raise FaultError(
                    "reorder() is for basic.deliver, for message.transfer of AMQP 0-10, or for transfer of "
                    "1.0: in 0-9 a transfer is a request with a number of its own; make a rule for each"
                )

    def apply(self, interception: Interception) -> None:
        interception.hold(self._swap)

    @staticmethod
    def _swap(successor: FrameGroup, groups: list[FrameGroup]) -> list[FrameGroup]:
        """The successor and the groups that it overtakes, with the tags in the order of sending."""
        ordered = [successor, *groups]
        if not isinstance(getattr(successor.method, "delivery_tag", None), int):
            return ordered
        before = [group.method.delivery_tag for group in ordered]
        tags = dict(zip(before, sorted(before), strict=True))
        successor.port.renumber(successor.original_channel, tags)
        return [
            group.replace(fields={"delivery_tag": tag})
            for group, tag in zip(ordered, tags.values(), strict=True)
        ]
