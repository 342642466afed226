"""What ends: a channel, a connection, the stream under it, the broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from fakeamqp.errors import near_match
from fakeamqp.faults.actions.action import Action, one_of
from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.units import HEARTBEAT

if TYPE_CHECKING:
    from fakeamqp.faults.flight import Flight
    from fakeamqp.faults.subjects import Subject
    from fakeamqp.faults.units import Unit

__all__ = ["CloseChannel", "CloseConnection", "Crash", "Cut", "Disconnect", "How", "RefuseLogin", "When"]

When: TypeAlias = Literal["instead", "before", "after"]
How: TypeAlias = Literal["fin", "reset", "silence"]

_PARTS = ("method", "header")
_HOW_WORDS = {
    "fin": "end its connection",
    "reset": "reset its connection",
    "silence": "let its connection fall silent",
}


class Ending(Action):
    """Something ends: before, after or instead of what the unit asks for.

    What is received is dealt with between two frames, so the end can come at once. What is sent is sent in
    the midst of something, so the end comes when that is through, and nothing more is said until then.
    """

    fits_half = True
    channel_only = False
    says_why = False
    """Whether the client is told: then that may be said, and nothing else."""
    crashes = False
    """Whether the broker crashes: it comes later, and until then the connection is mute and deaf."""

    def __init__(self, when: When, done: str) -> None:
        self._when = one_of(when, get_args(When), "when")
        self.words = {
            "instead": done,
            "before": f"{done} before its answer",
            "after": f"pass it on, then {done}",
        }[when]

    def perform(self, flight: Flight) -> None:
        """Have it end."""
        raise NotImplementedError

    def _exempt(self, unit: Unit, channel: int | None) -> frozenset[str]:
        """What may be said all the same."""
        if not self.says_why:
            return frozenset()
        return frozenset(("connection.close",)) if channel is None else unit.protocol.last_words

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
        channel = unit.channel if self.channel_only and not unit.on_connection else None
        if self._when == "after":
            flight.pass_on()
            if wire.ending:
                return  # What came of it has had another end.
        if unit.direction == "received":
            # What was to be confirmed before is none of the fault's.
            unit.line.confirm_now()
        wire.mute(channel, but=self._exempt(unit, channel))
        if unit.direction == "received":
            if self._when == "before":
                flight.pass_on(secured=not self.crashes)
            for each in flight.units:
                # Silence may end: the confirms that come then are those of others.
                each.lose(wire)
            flight.consume()
            self.perform(flight)
            if not self.crashes:
                wire.unmute(channel)
        else:
            for each in flight.units:
                each.lose(wire)
            flight.consume()

            def end() -> None:
                self.perform(flight)
                if not self.crashes:
                    wire.unmute(channel)

            tap.soon(flight, end, f"fault: {unit.name} ends something")


class CloseChannel(Ending):
    """channel.close."""

    channel_only = True
    says_why = True

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
        if unit.name == unit.protocol.opener and not unit.line.channel_open(unit.channel):
            # There is no channel before it: let it be opened, unheard, so that it can be closed.
            unit.line.take(unit.octets)
        if unit.on_connection:
            unit.line.close_connection(self._code, self._text, unit.index)
        else:
            unit.line.close_channel(unit.channel, self._code, self._text, unit.index)


class CloseConnection(Ending):
    """connection.close."""

    says_why = True

    def __init__(self, code: int, text: str, when: When) -> None:
        self._code = code
        self._text = text
        super().__init__(when, f"close its connection with {code}")

    def perform(self, flight: Flight) -> None:
        """Close the connection."""
        flight.unit.line.close_connection(self._code, self._text, flight.unit.index)


class Disconnect(Ending):
    """The end of the stream, or of the talking."""

    def __init__(self, how: How, when: When) -> None:
        self._how = one_of(how, get_args(How), "how")
        super().__init__(when, _HOW_WORDS[how])

    def perform(self, flight: Flight) -> None:
        """End the transport, or cut it off from the world."""
        _disconnect(flight, self._how)


class Crash(Ending):
    """The broker crashes."""

    crashes = True

    def __init__(self, when: When, durable: bool) -> None:
        if not isinstance(durable, bool):
            raise FaultError(f"durable is True or False, not {durable!r}")
        self._durable = durable
        super().__init__(when, "crash the broker" if durable else "crash the broker, which forgets all")

    def perform(self, flight: Flight) -> None:
        """Have the broker restart, when nobody is in the midst of anything."""
        tap = flight.tap
        flight.wire.deaf = True
        tap.soon(
            flight, lambda: tap.host.restart(crash=True, durable=self._durable), "fault: the broker crashes"
        )


class RefuseLogin(Ending):
    """The password is wrong."""

    says_why = True

    def __init__(self, text: str | None) -> None:
        if text is not None and not isinstance(text, str):
            raise FaultError(f"a reply text is a str, not {text!r}")
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


class Cut(Ending):
    """Part of it is sent, then the stream ends."""

    def __init__(self, after: int | str, how: How) -> None:
        octets = isinstance(after, int) and not isinstance(after, bool) and after >= 0
        if not octets and after not in _PARTS:
            hint = near_match(after, _PARTS, most=0)
            raise FaultError(
                f"after is 'method', 'header' or a number of bytes from 0 on, not {after!r}{hint}"
            )
        self._after = after
        self._how = one_of(how, get_args(How), "how")
        part = f"{after} bytes of it" if isinstance(after, int) else f"it as far as its {after}"
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
            if isinstance(self._after, int):
                octets = self._after
            else:
                frames = unit.frames[: unit.frames_through(str(self._after))]
                overhead = unit.protocol.framing.overhead
                octets = sum(overhead + len(payload) for _, payload in frames)
            flight.tap.send_part(flight.wire, unit, octets)
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
