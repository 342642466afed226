"""What a rule can do to a unit. Each action knows its words, what it fits, and how it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from fakeamqp.faults.errors import FaultError, near_match
from fakeamqp.faults.malformed import CONTENT_ONLY, MALFORMATIONS, malformed
from fakeamqp.faults.subjects import BY_NAME, CONFIRMS, PROPERTIES
from fakeamqp.faults.units import HEARTBEAT
from fakeamqp.wire.amqp_0_9_1 import methods as m
from fakeamqp.wire.amqp_0_9_1.properties import BasicProperties
from fakeamqp.wire.amqp_0_9_x.frames import frame

if TYPE_CHECKING:
    from random import Random

    from fakeamqp.faults.flight import Flight
    from fakeamqp.faults.malformed import Malformation
    from fakeamqp.faults.subjects import Subject
    from fakeamqp.faults.tap import Wire
    from fakeamqp.faults.units import Unit

__all__ = [
    "Action",
    "Call",
    "CloseChannel",
    "CloseConnection",
    "Crash",
    "Cut",
    "Delay",
    "Disconnect",
    "Drop",
    "Duplicate",
    "Hold",
    "How",
    "Malform",
    "Nack",
    "RefuseLogin",
    "Replace",
    "Return",
    "When",
    "put_together",
]

When: TypeAlias = Literal["instead", "before", "after"]
How: TypeAlias = Literal["fin", "reset", "silence"]

_PUBLISH = "basic.publish"
_DELIVERIES = frozenset(("basic.deliver", "basic.get-ok"))
_HOW_WORDS = {"fin": "end its connection", "reset": "reset its connection", "silence": "fall silent on it"}


class Action:
    """One thing to do."""

    words = ""

    def check(self, subject: Subject, part: str | None) -> None:
        """Whether it fits the rule.

        Raises:
            FaultError: no.
        """
        if part is not None and not isinstance(self, (_Ending, Delay, Hold, Call)):
            raise FaultError(f"half of {subject} can only be followed by an end, not: {self.words}")

    def act(self, flight: Flight) -> None:
        """Do it."""
        raise NotImplementedError

    def _only(self, subject: Subject, names: Iterable[str], verb: str) -> None:
        """Raise FaultError unless the rule is about one of these methods and nothing else."""
        allowed = frozenset(names)
        if subject.confirms or not subject.names <= allowed:
            raise FaultError(f"{verb} is for {' and '.join(sorted(allowed))}, not for {subject}")


class Drop(Action):
    """It is lost."""

    words = "drop it"

    def act(self, flight: Flight) -> None:
        """Consume it; a publish keeps its place in the count of confirms."""
        for unit in flight.units:
            if unit.direction == "received":
                if unit.name == _PUBLISH:
                    _count_lost(flight, unit)
                elif unit.name == HEARTBEAT:
                    unit.line.unhear()
            elif unit.name in CONFIRMS and unit.line.channel_open(unit.channel):
                flight.wire.never_confirmed(unit.channel, unit.method.delivery_tag)
        flight.consume()


class Nack(Action):
    """A publish is refused; or a confirm says so."""

    words = "nack it"

    def check(self, subject: Subject, part: str | None) -> None:
        """See `Action`."""
        super().check(subject, part)
        if not subject.confirms:
            self._only(subject, (_PUBLISH,), "nack()")

    def act(self, flight: Flight) -> None:
        """Refuse it, or put nack in the place of ack."""
        if flight.unit.name == _PUBLISH:
            for unit in flight.units:
                if unit.line.next_publish(unit.channel) is None:
                    flight.tap.note(unit.line, "no confirms on this channel: the message is lost, untold")
                if not unit.copy:
                    unit.line.skip_publish(unit.channel, False)
            flight.consume()
            return
        nacks = []
        for unit in flight.units:
            nack = m.BasicNack(delivery_tag=unit.method.delivery_tag, multiple=unit.method.multiple)
            nacks.append(unit.with_method(nack))
        flight.units = nacks


class Return(Action):
    """A publish comes back."""

    def __init__(self, code: int, text: str) -> None:
        self._code = code
        self._text = text
        self.words = f"return it with {code} {text}"

    def check(self, subject: Subject, part: str | None) -> None:
        """See `Action`."""
        super().check(subject, part)
        self._only(subject, (_PUBLISH,), "return_message()")

    def act(self, flight: Flight) -> None:
        """Send basic.return with the content, and confirm."""
        for unit in flight.units:
            method = m.BasicReturn(self._code, self._text, unit.method.exchange, unit.method.routing_key)
            answer = unit.answered(method)
            answer.life = flight.wire.lives.get(unit.channel, 0)
            flight.tap.go_on(flight.wire, answer)
            if not unit.copy:
                unit.line.skip_publish(unit.channel, True)
        flight.consume()


class _Ending(Action):
    """Something ends: before, after or instead of what the unit asks for.

    What is received is dealt with between two frames, so the end can come at once. What is sent is sent in
    the midst of something, so the end comes when that is through, and nothing more is said until then.
    """

    channel_only = False
    exempt = ""
    crashes = False
    """Whether the broker crashes: it comes later, and until then the connection is mute and deaf."""

    def __init__(self, when: When, done: str) -> None:
        self._when = _one_of(when, get_args(When), "when")
        self.words = {
            "instead": done,
            "before": f"{done} before its answer",
            "after": f"pass it on, then {done}",
        }[when]

    def perform(self, flight: Flight) -> None:
        """Have it end."""
        raise NotImplementedError

    def act(self, flight: Flight) -> None:
        """Have it end at the right moment."""
        tap = flight.tap
        unit = flight.unit
        wire = flight.wire
        if wire.ended:
            flight.consume()
            return
        if wire.ending:
            return  # It ends already, in another way.
        if flight.rule.removed:
            return  # What a rule has held when it is removed goes on, and nothing ends any more.
        channel = unit.channel if self.channel_only and unit.channel else None
        if self._when == "after":
            flight.pass_on()
            if wire.ending:
                return  # What came of it has had another end.
        if unit.direction == "received":
            # What was to be confirmed before is none of the fault's.
            unit.line.confirm_now()
        wire.mute(channel, but=self.exempt if channel or not self.channel_only else "connection.close")
        if unit.direction == "received":
            if self._when == "before":
                flight.pass_on(secured=not self.crashes)
            for each in flight.units:
                if each.name == _PUBLISH:
                    # Silence may end: the confirms that come then are those of others.
                    _count_lost(flight, each)
            flight.consume()
            self.perform(flight)
            if not self.crashes:
                wire.unmute(channel)
        else:
            for each in flight.units:
                if each.name in CONFIRMS:
                    wire.never_confirmed(each.channel, each.method.delivery_tag)
            flight.consume()

            def end() -> None:
                self.perform(flight)
                if not self.crashes:
                    wire.unmute(channel)

            tap.soon(flight, end, f"fault: {unit.name} ends something")


class CloseChannel(_Ending):
    """channel.close."""

    channel_only = True
    exempt = "channel.close"

    def __init__(self, code: int, text: str, when: When) -> None:
        self._code = code
        self._text = text
        super().__init__(when, f"close its channel with {code}")

    def check(self, subject: Subject, part: str | None) -> None:
        """See `Action`."""
        super().check(subject, part)
        if all(name == HEARTBEAT or name.startswith("connection.") for name in subject.names):
            raise FaultError(f"{subject} is on no channel that could be closed; use close_connection()")

    def perform(self, flight: Flight) -> None:
        """Close the channel; on channel 0 there is only the connection to be closed."""
        unit = flight.unit
        if unit.name == "channel.open" and not unit.line.channel_open(unit.channel):
            # There is no channel before it: let it be opened, unheard, so that it can be closed.
            unit.line.take(unit.octets)
        if unit.channel == 0:
            unit.line.close_connection(self._code, self._text, unit.index)
        else:
            unit.line.close_channel(unit.channel, self._code, self._text, unit.index)


class CloseConnection(_Ending):
    """connection.close."""

    exempt = "connection.close"

    def __init__(self, code: int, text: str, when: When) -> None:
        self._code = code
        self._text = text
        super().__init__(when, f"close its connection with {code}")

    def perform(self, flight: Flight) -> None:
        """Close the connection."""
        flight.unit.line.close_connection(self._code, self._text, flight.unit.index)


class Disconnect(_Ending):
    """The end of the stream, or of the talking."""

    def __init__(self, how: How, when: When) -> None:
        self._how = _one_of(how, get_args(How), "how")
        super().__init__(when, _HOW_WORDS[how])

    def perform(self, flight: Flight) -> None:
        """End the transport, or cut it off from the world."""
        _disconnect(flight, self._how)


class Crash(_Ending):
    """The broker crashes."""

    crashes = True

    def __init__(self, when: When, durable: bool) -> None:
        self._durable = durable
        super().__init__(when, "crash the broker" if durable else "crash the broker, which forgets all")

    def perform(self, flight: Flight) -> None:
        """Have the broker restart, when nobody is in the midst of anything."""
        tap = flight.tap
        flight.wire.deaf = True
        tap.soon(
            flight, lambda: tap.host.restart(crash=True, durable=self._durable), "fault: the broker crashes"
        )


class RefuseLogin(_Ending):
    """The password is wrong."""

    exempt = "connection.close"

    def __init__(self, text: str | None) -> None:
        self._text = text or "Login was refused: a fault that the test asked for"
        super().__init__("instead", "refuse the login")

    def check(self, subject: Subject, part: str | None) -> None:
        """See `Action`."""
        super().check(subject, part)
        self._only(subject, ("connection.start-ok", "connection.secure-ok"), "refuse_login()")

    def perform(self, flight: Flight) -> None:
        """Refuse it; what the client can do is learnt from its start-ok first."""
        properties = getattr(flight.unit.method, "client_properties", None)
        flight.unit.line.refuse_login(self._text, properties)


class Cut(_Ending):
    """Part of it is sent, then the stream ends."""

    def __init__(self, after: int | str, how: How) -> None:
        if not (isinstance(after, int) and not isinstance(after, bool) and after >= 0):
            _one_of(after, ("method", "header"), "after")
        self._after = after
        self._how = _one_of(how, get_args(How), "how")
        part = f"{after} octets of it" if isinstance(after, int) else f"it as far as its {after}"
        super().__init__("instead", f"send {part}, then {_HOW_WORDS[how]}")

    def check(self, subject: Subject, part: str | None) -> None:
        """See `Action`."""
        super().check(subject, part)
        if subject.direction != "sent":
            raise FaultError(f"cut() is for what the broker sends; {subject} is received: use disconnect()")
        if self._after == "header" and not subject.has_content:
            raise FaultError(f"{subject} has no content header after which it could be cut")

    def act(self, flight: Flight) -> None:
        """Send the part, then end."""
        for unit in flight.units:
            octets = unit.octets
            if isinstance(self._after, int):
                octets = octets[: self._after]
            else:
                count = 1 if self._after == "method" else 2
                octets = b"".join(frame(kind, unit.channel, each) for kind, each in unit.frames[:count])
            unit.line.put(octets)
        super().act(flight)

    def perform(self, flight: Flight) -> None:
        """End the transport."""
        _disconnect(flight, self._how)


def _disconnect(flight: Flight, how: str) -> None:
    line = flight.unit.line
    if how == "silence":
        if not flight.rule.removed:  # Nobody would know whose silence that is, nor end it.
            flight.tap.silence(line)
    else:
        line.end(reset=how == "reset")


class Delay(Action):
    """It waits."""

    def __init__(self, seconds: float, jitter: float, random: Random) -> None:
        if seconds < 0 or jitter < 0:
            raise FaultError(f"a delay is no less than 0 s, not {min(seconds, jitter)!r} s")
        self._seconds = seconds
        self._jitter = jitter
        self._random = random
        self.words = f"delay it by {seconds:g} s" + (f" and up to {jitter:g} s more" if jitter else "")

    def act(self, flight: Flight) -> None:
        """Wait on the broker's clock."""
        seconds = self._seconds + (self._random.uniform(0, self._jitter) if self._jitter else 0.0)
        if seconds:
            flight.wait(seconds)


class Hold(Action):
    """It waits until the test lets it go."""

    words = "hold it"

    def __init__(self, held: list[Flight]) -> None:
        self._held = held

    def act(self, flight: Flight) -> None:
        """Wait."""
        if flight.wait():
            self._held.append(flight)


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
            for _ in range(self._times):
                if unit.name in _DELIVERIES:
                    tag = unit.line.spare_tag(unit.channel)
                    copies.append(unit.changed(fields={"delivery_tag": tag}))
                else:
                    copies.append(unit.changed())
                copies[-1].copy = True
        flight.units = copies


class Replace(Action):
    """Something else passes."""

    def __init__(self, subject: Subject, changes: Mapping[str, Any]) -> None:
        changes = dict(changes)
        self._body = changes.pop("body", None)
        self._channel = changes.pop("channel", None)
        self._properties = dict(changes.pop("properties", None) or {})
        self._fields = {}
        if isinstance(self._body, str):
            self._body = self._body.encode()
        known = (*subject.fields, *PROPERTIES, "headers", "body", "channel", "properties")
        for name, value in changes.items():
            if name in subject.fields:
                self._fields[name] = value
            elif name in (*PROPERTIES, "headers"):
                self._properties[name] = value
            else:
                raise FaultError(f"{subject} has no {name!r} to be replaced{near_match(name, known)}")
        for name in self._properties:
            if name not in (*PROPERTIES, "headers"):
                raise FaultError(f"there is no property {name!r}{near_match(name, (*PROPERTIES, 'headers'))}")
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
        kinds = [BY_NAME[name] for name in subject.names & BY_NAME.keys()]
        for name, value in self._fields.items():
            for kind in kinds:
                field = _field(kind, name)
                if field is not None and not callable(value):
                    _check_value(subject, name, value, kind(**{field: value}))
        for name, value in self._properties.items():
            if not callable(value):
                _check_value("no content", name, value, BasicProperties(**{name: value}))

    def act(self, flight: Flight) -> None:
        """Make changed copies. Where no frame can carry what a function says, all passes as it was."""
        flight.units = [self._changed(unit) for unit in flight.units]

    def _changed(self, unit: Unit) -> Unit:
        body = self._body(unit.body) if callable(self._body) else self._body
        known = unit.properties or BasicProperties()
        properties = {
            name: value(getattr(known, name)) if callable(value) else value
            for name, value in self._properties.items()
        }
        fields = {
            field: value
            for name, value in self._fields.items()
            if (field := _field(unit.method, name)) is not None
        }
        octets = body.encode() if isinstance(body, str) else body
        return unit.changed(fields=fields, properties=properties, body=octets, channel=self._channel)


def _field(method: Any, name: str) -> str | None:
    """What a field is called in Python, where a method or a kind of method has it."""
    return next((field for field, _ in getattr(method, "LAYOUT", ()) if field.rstrip("_") == name), None)


def _check_value(subject: object, name: str, value: Any, carrier: Any) -> None:
    try:
        carrier.encode()
    except Exception as problem:  # by whatever it is made of
        can = f"{subject} can have" if subject == "no content" else f"{subject} cannot have"
        raise FaultError(f"{can} {name}={value!r}: {problem}") from problem


def _in_words(value: Any) -> str:
    return f"by {getattr(value, '__name__', 'a function')}" if callable(value) else repr(value)


class Malform(Action):
    """It is sent in a way that breaks the protocol."""

    def __init__(self, how: Malformation) -> None:
        self._how = _one_of(how, MALFORMATIONS, "malform")
        self.words = f"malform it: {MALFORMATIONS[how].words}"

    def check(self, subject: Subject, part: str | None) -> None:
        """See `Action`."""
        super().check(subject, part)
        if subject.direction != "sent":
            raise FaultError(f"malform() is for what the broker sends, and {subject} is received")
        if self._how in CONTENT_ONLY and not subject.has_content:
            raise FaultError(f"malform({self._how!r}) is for methods with a content, such as basic.deliver")

    def act(self, flight: Flight) -> None:
        """Send the broken octets."""
        for unit in flight.units:
            octets = malformed(self._how, unit)
            flight.tap.note(unit.line, f"sent malformed ({self._how}): {octets[:32].hex()}")
            unit.line.put(octets)
        flight.consume()


class Call(Action):
    """The test's own function is called."""

    def __init__(self, function: Callable[[Unit], object]) -> None:
        self._function = function
        self.words = f"call {getattr(function, '__name__', 'a function')}"

    def act(self, flight: Flight) -> None:
        """Call it."""
        for unit in flight.units:
            self._function(unit)


def put_together(flights: Iterable[Flight]) -> Iterator[Flight]:
    """Confirms that are to go, in the order of their tags, one in the place of all that follow each other.

    A confirm that is `multiple` covers everything below it that the client still waits for, so one must not
    go over anything that is still open, or says something else.
    """
    by_channel: dict[tuple[Wire, int], list[Flight]] = {}
    for flight in flights:
        by_channel.setdefault((flight.wire, flight.unit.channel), []).append(flight)
    for (wire, channel), group in by_channel.items():
        group.sort(key=_tag)
        tags = {_tag(flight) for flight in group}
        foreign = [tag for tag in group[0].tap.outstanding(wire, channel) if tag not in tags]
        run: list[Flight] = []
        for flight in group:
            if run and (flight.unit.name != run[-1].unit.name or (foreign and foreign[0] < _tag(flight))):
                yield _run(run)
                run = []
            run.append(flight)
        if run:
            yield _run(run)


def _run(flights: list[Flight]) -> Flight:
    *covered, last = flights
    for flight in covered:
        flight.abandon()
    if covered:
        last.units = [unit.changed(fields={"multiple": True}) for unit in last.units]
    return last


def _tag(flight: Flight) -> int:
    tag: int = flight.unit.method.delivery_tag
    return tag


def _count_lost(flight: Flight, unit: Unit) -> None:
    """A publish that never comes keeps its place in the count of confirms, and is never confirmed."""
    tag = unit.line.next_publish(unit.channel)
    if tag is not None and not unit.copy:
        unit.line.skip_publish(unit.channel, None)
        flight.wire.never_confirmed(unit.channel, tag)


def _one_of(value: Any, known: Iterable[str], name: str) -> Any:
    names = tuple(known)
    if value not in names:
        raise FaultError(f"{name} cannot be {value!r}{near_match(value, names)}")
    return value
