"""Close actions: they end a channel, a connection, its transport, or the broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, get_args

from fakeamqp.errors import near_match
from fakeamqp.faults.actions import (
    DELIVERIES,
    PUBLISHES,
    WORK,
    WORK_0_9_X,
    WORK_0_10,
    Action,
    Drawn,
    one_of,
    reply_text,
)
from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.frame_group import HEARTBEAT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

    from fakeamqp.faults.executor import Interception
    from fakeamqp.faults.frame_group import FrameGroup
    from fakeamqp.faults.matching import Subject

__all__ = [
    "CloseChannel",
    "CloseConnection",
    "CrashBroker",
    "CutConnection",
    "Disconnect",
    "How",
    "RefuseLogin",
    "When",
]

When: TypeAlias = Literal["instead", "before", "after"]
How: TypeAlias = Literal["fin", "reset", "silence"]

_PARTS = ("method", "header")
_HOW_WORDS = {
    "fin": "end its connection",
    "reset": "reset its connection",
    "silence": "silence its connection",
}


def _when(draw: Random) -> When:
    return draw.choice(("instead", "before", "after"))


def _how(draw: Random) -> How:
    return draw.choice(("fin", "reset"))


class CloseAction(Action):
    """Closes something before, after or instead of the execution of a method.

    A received method is handled between two frames, so the close comes at once. A sent method is handled
    inside a call of the connection, so the close is deferred until the current dispatch returns; until then
    nothing more is sent.
    """

    fits_half = True
    channel_only = False
    says_why = False
    """True if the client is told why: then only the close method may be sent."""
    crashes = False
    """True if the broker crashes: that is deferred, and the connection neither sends nor reads until then."""

    def __init__(self, when: When, done: str) -> None:
        self._when = one_of(when, get_args(When), "when")
        self.words: str = {
            "instead": done,
            "before": f"{done} before its answer",
            "after": f"pass it on, then {done}",
        }[when]

    def close(self, interception: Interception) -> None:
        """Close it now."""
        raise NotImplementedError

    def _exempt(self, group: FrameGroup, channel: int | None) -> frozenset[str]:
        """The methods that may still be sent."""
        if not self.says_why:
            return frozenset()
        return frozenset(("connection.close",)) if channel is None else group.protocol.allowed_while_closing

    def apply(self, interception: Interception) -> None:
        """Close at the right moment."""
        group = interception.group
        state = interception.state
        if state.ended:
            interception.consume()
            return
        if state.ending:
            return  # Another fault ends the connection already.
        if interception.rule.removed:
            return  # A frame group that was held when its rule was removed passes on unchanged.
        if self._when == "after":
            interception.pass_on()
            if state.ending:
                return  # Passing it on has ended the connection in another way.
        channel = group.channel if self.channel_only and not group.on_connection else None
        if group.direction == "received":
            self._close_received(interception, channel)
        else:
            self._close_sent(interception, channel)

    def _close_received(self, interception: Interception, channel: int | None) -> None:
        group, state = interception.group, interception.state
        group.port.flush_confirms()  # Confirms that are due already are sent before the close.
        state.mute(channel, but=self._exempt(group, channel))
        if self._when == "before":
            interception.pass_on(secured=not self.crashes)
        self._drop(interception)
        self._close_and_unmute(interception, channel)

    def _close_sent(self, interception: Interception, channel: int | None) -> None:
        group, state = interception.group, interception.state
        state.mute(channel, but=self._exempt(group, channel))
        self._drop(interception)
        interception.executor.defer(
            interception,
            lambda: self._close_and_unmute(interception, channel),
            f"fault: {group.name} closes something",
        )

    @staticmethod
    def _drop(interception: Interception) -> None:
        """Drop what is left: silence may end, and a later confirm must not cover it."""
        for each in interception.groups:
            each.drop(interception.state)
        interception.consume()

    def _close_and_unmute(self, interception: Interception, channel: int | None) -> None:
        self.close(interception)
        if not self.crashes:
            interception.state.unmute(channel)


class CloseChannel(CloseAction):
    """Closes the channel."""

    label = "Close the channel"
    drawn: ClassVar[Mapping[str, Drawn]] = {
        "close-channel": Drawn(
            WORK_0_9_X,
            lambda draw: CloseChannel(draw.choice((404, 405, 406)), None, _when(draw)),
            "received",
            needs="channels",
        ),
    }
    channel_only = True
    says_why = True

    def __init__(self, code: int, text: str | None, when: When) -> None:
        self._code = code
        self._text = reply_text(code, text)
        super().__init__(when, f"close its channel with {code}")

    def check(self, subject: Subject, part: str | None) -> None:
        super().check(subject, part)
        if all(name == HEARTBEAT or name.startswith("connection.") for name in subject.names):
            raise FaultError(f"{subject} belongs to no channel; use close_connection()")

    def close(self, interception: Interception) -> None:
        """Close the channel; a method of the connection closes the connection."""
        group = interception.group
        if group.name == group.protocol.channel_opener and not group.port.channel_open(group.channel):
            # The channel does not exist yet: open it while it is muted, so that it can be closed.
            group.port.receive(group.data)
        if group.on_connection:
            group.port.close_connection(self._code, self._text, group.index)
        else:
            group.port.close_channel(group.channel, self._code, self._text, group.index)


class CloseConnection(CloseAction):
    """Closes the connection."""

    label = "Close the connection"
    drawn: ClassVar[Mapping[str, Drawn]] = {
        "close-connection": Drawn(
            WORK_0_9_X,
            lambda draw: CloseConnection(draw.choice((320, 501, 541)), None, _when(draw)),
            "received",
            needs="channels",
        ),
        "forced-close": Drawn(
            WORK_0_10,
            lambda draw: CloseConnection(draw.choice((320, 501)), None, _when(draw)),
            "received",
            needs="sessions",
        ),
    }
    says_why = True

    def __init__(self, code: int, text: str | None, when: When) -> None:
        self._code = code
        self._text = reply_text(code, text)
        super().__init__(when, f"close its connection with {code}")

    def close(self, interception: Interception) -> None:
        """Send connection.close."""
        interception.group.port.close_connection(self._code, self._text, interception.group.index)


class Disconnect(CloseAction):
    """Ends the transport without a close method, or silences the connection."""

    label = "End the connection without a close"
    drawn: ClassVar[Mapping[str, Drawn]] = {
        "disconnect": Drawn(WORK, lambda draw: Disconnect(_how(draw), _when(draw)), "received"),
        "broken-handshake": Drawn(
            ("connection.start-ok", "connection.open", "channel.open", "session.attach"),
            lambda draw: Disconnect(_how(draw), "instead"),
        ),
    }

    def __init__(self, how: How, when: When) -> None:
        self._how = one_of(how, get_args(How), "how")
        super().__init__(when, _HOW_WORDS[how])

    def close(self, interception: Interception) -> None:
        """End or silence it."""
        _disconnect(interception, self._how)


class CrashBroker(CloseAction):
    """Crashes the broker."""

    label = "Crash and restart the broker"
    drawn: ClassVar[Mapping[str, Drawn]] = {
        "crash": Drawn(PUBLISHES, lambda draw: CrashBroker(_when(draw), True), "received"),
    }

    crashes = True

    def __init__(self, when: When, durable: bool) -> None:
        if not isinstance(durable, bool):
            raise FaultError(f"durable is True or False, not {durable!r}")
        self._durable = durable
        super().__init__(when, "crash the broker" if durable else "crash the broker, without its disk")

    def close(self, interception: Interception) -> None:
        """Stop reading, and restart the broker once the current dispatch has returned."""
        executor = interception.executor
        interception.state.deaf = True
        executor.defer(
            interception,
            lambda: executor.context.restart(crash=True, durable=self._durable),
            "fault: the broker crashes",
        )


class RefuseLogin(CloseAction):
    """Refuses the login."""

    label = "Refuse the login"
    drawn: ClassVar[Mapping[str, Drawn]] = {
        "refused-login": Drawn(("connection.start-ok",), lambda draw: RefuseLogin(None)),
    }

    says_why = True

    def __init__(self, text: str | None) -> None:
        if text is not None and not isinstance(text, str):
            raise FaultError(f"a reply text is a str, not {text!r}")
        self._text = text or "Login was refused: a fault that the test asked for"
        super().__init__("instead", "refuse the login")

    def check(self, subject: Subject, part: str | None) -> None:
        super().check(subject, part)
        self._only(subject, ("connection.start-ok", "connection.secure-ok"), "refuse_login()")

    def close(self, interception: Interception) -> None:
        """Refuse it; start-ok has the capabilities of the client."""
        properties = getattr(interception.group.method, "client_properties", None)
        interception.group.port.refuse_login(self._text, properties)


def _cut(draw: Random) -> CutConnection:
    return CutConnection(draw.choice(("method", "header", draw.randrange(60))), _how(draw))


class CutConnection(CloseAction):
    """Sends part of a frame group, then ends the transport."""

    drawn: ClassVar[Mapping[str, Drawn]] = {"cut-delivery": Drawn(DELIVERIES, _cut, "sent")}

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
        super().check(subject, part)
        if subject.direction != "sent":
            raise FaultError(
                f"cut() is for methods that the broker sends; {subject} is received: use disconnect()"
            )
        if self._after == "header" and not subject.has_content:
            raise FaultError(f"{subject} has no content header to cut after")

    def apply(self, interception: Interception) -> None:
        """Send the part, then close."""
        for group in interception.groups:
            if isinstance(self._after, int):
                octets = self._after
            else:
                frames = group.frames[: group.frames_through(str(self._after))]
                overhead = group.protocol.overhead
                octets = sum(overhead + len(payload) for _, payload in frames)
            interception.executor.cut(interception.state, group, octets)
        super().apply(interception)

    def close(self, interception: Interception) -> None:
        """End or silence the connection."""
        _disconnect(interception, self._how)


def _disconnect(interception: Interception, how: str) -> None:
    port = interception.group.port
    if how == "silence":
        if not interception.rule.removed:  # A removed rule could not end the silence.
            interception.executor.silence(port)
    else:
        port.disconnect(reset=how == "reset")
