"""Close actions: they end a channel, a connection, its transport, or the broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, get_args

from fakeamqp.dialects import protocols_with
from fakeamqp.errors import near_match
from fakeamqp.faults.actions import Action, checked_condition, one_of, only, reply_text
from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.frame_group import HEARTBEAT
from fakeamqp.faults.shapers import How

if TYPE_CHECKING:
    from fakeamqp.faults.executor import Interception
    from fakeamqp.faults.matching import Subject

When: TypeAlias = Literal["instead", "before", "after"]

_PARTS = ("method", "header")
_HOW_WORDS = {
    "fin": "end its connection",
    "reset": "reset its connection",
    "silence": "silence its connection",
}


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

    def is_over(self, interception: Interception) -> bool:
        """Pass it on if the close comes after it; returns whether there is nothing left to close."""
        state = interception.state
        if state.ended:
            interception.groups = []
            return True
        if state.ending or interception.rule.removed:
            return True  # Another fault ends the connection; or the rule held the group when it was removed.
        if self._when == "after":
            interception.pass_on()
        return state.ending  # Passing it on may have ended the connection in another way.

    def apply(self, interception: Interception) -> None:
        """Close at the right moment."""
        if self.is_over(interception):
            return
        group, state = interception.group, interception.state
        channel = group.channel if self.channel_only and not group.on_connection else None
        allowed: frozenset[str] = frozenset()
        if self.says_why:
            allowed = (
                group.protocol.connection_closers if channel is None else group.protocol.allowed_while_closing
            )

        def close() -> None:
            self.close(interception)
            if not self.crashes:
                state.muted.pop(channel, None)

        if group.direction == "sent":
            state.muted[channel] = allowed
            interception.drop()
            interception.executor.defer(interception, close, f"fault: {group.name} closes something")
            return
        group.port.flush_confirms()  # Confirms that are due already are sent before the close.
        state.muted[channel] = allowed
        if self._when == "before":
            interception.pass_on(secured=not self.crashes)
        interception.drop()
        close()


class CloseConnection(CloseAction):
    """Closes the connection with a code, or in 1.0 with a condition, and a text."""

    label = "Close the connection"
    says_why = True
    what: ClassVar[str] = "connection"

    def __init__(self, code: int | str, text: str | None, when: When) -> None:
        self._code = code
        self._condition = ""
        self._text = reply_text(0 if isinstance(code, str) else code, text)
        if isinstance(code, str):
            self._condition = checked_condition(code)
            self.protocols: frozenset[str] | None = frozenset(protocols_with("links"))
        super().__init__(when, f"close its {self.what} with {code}")

    def check(self, subject: Subject) -> None:
        if self.protocols is not None and self.protocols.isdisjoint(subject.among):
            raise FaultError(f"{self._condition!r} is a condition of AMQP 1.0; {subject} needs a reply code")

    def close(self, interception: Interception) -> None:
        group = interception.group
        if self._condition:
            group.port.close_with(self._condition, self._text, None)
        else:
            assert isinstance(self._code, int)
            group.port.close_connection(self._code, self._text, group.index)


class CloseChannel(CloseConnection):
    """Closes the channel; for a method of the connection, the connection."""

    label = "Close the channel"
    channel_only = True
    what: ClassVar[str] = "channel"

    def check(self, subject: Subject) -> None:
        super().check(subject)
        if all(name == HEARTBEAT or name.startswith("connection.") for name in subject.names):
            raise FaultError(f"{subject} belongs to no channel; use close_connection()")

    def close(self, interception: Interception) -> None:
        group = interception.group
        if group.name == group.protocol.channel_opener and not group.port.channel_open(group.channel):
            # The channel does not exist yet: open it while it is muted, so that it can be closed.
            group.port.receive(group.data)
        if group.on_connection:
            super().close(interception)
        elif self._condition:
            group.port.close_with(self._condition, self._text, group.channel)
        else:
            assert isinstance(self._code, int)
            group.port.close_channel(group.channel, self._code, self._text, group.index)


class DetachLink(CloseAction):
    """Detaches a link of 1.0; the rest of its session goes on."""

    label = "Detach the link (AMQP 1.0)"
    protocols: frozenset[str] = frozenset(protocols_with("links"))

    def __init__(self, condition: str, text: str | None, when: When) -> None:
        if not isinstance(condition, str):
            raise FaultError(f"a condition is a str such as 'amqp:not-found', not {condition!r}")
        self._condition = checked_condition(condition)
        self._text = reply_text(0, text)
        super().__init__(when, f"detach its link with {condition}")

    def check(self, subject: Subject) -> None:
        only(subject, ("attach", "flow", "transfer", "detach"), "detach()")

    def apply(self, interception: Interception) -> None:
        if self.is_over(interception):
            return
        group, state = interception.group, interception.state
        group.port.flush_confirms()
        if self._when == "before" and group.direction == "received":
            state.muted[group.channel] = frozenset()
            interception.pass_on()
            group.port.flush_confirms()
            del state.muted[group.channel]
        interception.drop()
        if group.direction == "sent":
            executor = interception.executor
            executor.defer(interception, lambda: self.close(interception), "fault: it detaches a link")
        else:
            self.close(interception)

    def close(self, interception: Interception) -> None:
        group = interception.group
        group.port.detach(group.channel, group.method, self._condition, self._text)


class Disconnect(CloseAction):
    """Ends the transport without a close method, or silences the connection."""

    label = "End the connection without a close"

    def __init__(self, how: How, when: When, but_first: str = "") -> None:
        self._how = one_of(how, get_args(How), "how")
        super().__init__(when, but_first + _HOW_WORDS[how])

    def close(self, interception: Interception) -> None:
        port = interception.group.port
        if self._how != "silence":
            port.disconnect(reset=self._how == "reset")
        elif not interception.rule.removed:  # A removed rule could not end the silence.
            interception.executor.network.on(port.name).silence().optional()


class CrashBroker(CloseAction):
    """Crashes the broker."""

    label = "Crash and restart the broker"
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
    says_why = True

    def __init__(self, text: str | None) -> None:
        if text is not None and not isinstance(text, str):
            raise FaultError(f"a reply text is a str, not {text!r}")
        self._text = text or "Login was refused: a fault that the test asked for"
        super().__init__("instead", "refuse the login")

    def check(self, subject: Subject) -> None:
        names = ("connection.start-ok", "connection.secure-ok", "sasl-init", "sasl-response")
        only(subject, names, "refuse_login()")

    def close(self, interception: Interception) -> None:
        """Refuse it; start-ok has the capabilities of the client."""
        properties = getattr(interception.group.method, "client_properties", None)
        interception.group.port.refuse_login(self._text, properties)


class CutConnection(Disconnect):
    """Sends part of a frame group, then ends the transport."""

    label = ""

    def __init__(self, after: int | str, how: How) -> None:
        octets = isinstance(after, int) and not isinstance(after, bool) and after >= 0
        if not octets and after not in _PARTS:
            hint = near_match(after, _PARTS, most=0)
            raise FaultError(
                f"after is 'method', 'header' or a number of bytes from 0 on, not {after!r}{hint}"
            )
        self._after = after
        part = f"{after} bytes of it" if isinstance(after, int) else f"it as far as its {after}"
        super().__init__(how, "instead", f"send {part}, then ")

    def check(self, subject: Subject) -> None:
        if subject.direction != "sent":
            raise FaultError(
                f"cut() is for methods that the broker sends; {subject} is received: use disconnect()"
            )
        if self._after == "header" and not subject.has_content:
            raise FaultError(f"{subject} has no content header to cut after")

    def apply(self, interception: Interception) -> None:
        for group in interception.groups:
            if isinstance(self._after, int):
                octets = self._after
            else:
                frames = group.frames[: group.frames_through(str(self._after))]
                overhead = group.protocol.overhead
                octets = sum(overhead + len(payload) for _, payload in frames)
            interception.executor.cut(interception.state, group, octets)
        super().apply(interception)
