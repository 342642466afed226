"""Invariants of a broker and its clients: checks that read a trace event by event, whatever the protocol.

`Invariants` may be given the events of a whole trace, or those of each step as they come.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from fakeamqp.dialects import dialect_named
from fakeamqp.trace.checks.answers import Answers
from fakeamqp.trace.checks.finding import Finding
from fakeamqp.trace.checks.messages import TrackedMessages
from fakeamqp.trace.events import ConnectionEvent, FrameEvent, ModelEvent

if TYPE_CHECKING:
    from fakeamqp.trace.checks.messages import Moment
    from fakeamqp.trace.dialogue import Dialogue
    from fakeamqp.trace.events import Event

__all__ = ["AT_END", "INVARIANTS", "Invariants"]

AT_END = ("unacked", "unanswered")
"""Checks of what must hold once all is done, and not before."""
INVARIANTS = ("lost", "duplicates", "answers", *AT_END)

_ENDS = frozenset(("closed", "aborted", "lost", "refused"))


class Invariants:
    """Follows the events of one broker.

    Args:
        checks: the names of the checks; those in `INVARIANTS` count.
        first: the number of the first event.
    """

    def __init__(self, checks: Collection[str] = INVARIANTS, first: int = 0) -> None:
        self._checks = frozenset(checks)
        self._number = first
        self._dialogues: dict[str, Dialogue] = {}
        self._sessions: dict[tuple[object, object], tuple[str, int]] = {}
        """Where sessions were attached: one that is attached again may go on from there."""
        self._found: list[Finding] = []
        self._messages = (
            TrackedMessages(self._report) if self._checks & {"lost", "duplicates", "unacked"} else None
        )
        self._answers = Answers(self._report) if self._checks & {"answers", "unanswered"} else None

    @property
    def active(self) -> bool:
        """Whether any of the checks is one of these."""
        return self._messages is not None or self._answers is not None

    @property
    def found(self) -> Sequence[Finding]:
        """What was found so far. Ask between turns of the broker: its latest turn is taken to be over."""
        if self._messages is not None:
            self._messages.decide()
        return self._found

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be checked, a sentence each."""
        if self._messages is None or "duplicates" not in self._checks:
            return ()
        return tuple(
            f"duplicates of queue {queue!r} are not checked: it was declared before the first event, "
            "and may be a stream"
            for queue in sorted(self._messages.unknown_kinds)
        )

    @property
    def unknown_channels(self) -> tuple[tuple[str, int | None], ...]:
        """Channels in use whose opening is not among the events, by the short names of their connections.

        What is published and received on them is not checked.
        """
        return () if self._messages is None else tuple(self._messages.unknown_places)

    def see(self, events: Iterable[Event]) -> None:
        """Follow further events, in order."""
        for event in events:
            if isinstance(event, FrameEvent):
                self._frame(event)
            elif isinstance(event, ModelEvent):
                self._model(event)
            elif isinstance(event, ConnectionEvent):
                self._connection(event)
            self._number += 1

    def at_end(self) -> tuple[Finding, ...]:
        """What violates the invariants if nothing more happens, without what was found before."""
        before, self._found = [*self.found], []
        if self._messages is not None:
            self._messages.at_end()
        if self._answers is not None:
            self._answers.at_end()
        found, self._found = self._found, before
        return tuple(found)

    def _frame(self, event: FrameEvent) -> None:
        if self._messages is not None:
            self._messages.frame(event)
        dialogue = self._dialogues.get(event.alias)
        if dialogue is None:
            dialogue = self._dialogues[event.alias] = dialect_named(event.protocol).dialogue()
        for step in dialogue.read(event):
            if self._messages is not None:
                self._messages.step(self._number, event, step)
            if self._answers is not None:
                self._answers.step(self._number, event, step)

    def _model(self, event: ModelEvent) -> None:
        if self._messages is not None:
            self._messages.model(self._number, event)
        if self._answers is not None:
            self._answers.model(self._number, event)
        if event.event == "session attached" and event.channel is not None:
            self._attached(event, event.channel)

    def _attached(self, event: ModelEvent, channel: int) -> None:
        session = event.facts.get("session"), event.facts.get("virtual_host")
        earlier = self._sessions.get(session)
        self._sessions[session] = event.alias, channel
        if self._messages is not None:
            self._messages.attached(event.alias, channel, earlier)
        if self._answers is not None and earlier is not None:
            self._answers.resumed(event.alias, channel)

    def _connection(self, event: ConnectionEvent) -> None:
        if event.event == "connected" and self._answers is not None:
            self._answers.opened(event.alias)
        elif event.event in _ENDS:
            self._ended(event.alias)

    def _ended(self, alias: str) -> None:
        if self._messages is not None:
            self._messages.ended(alias)
        if self._answers is not None:
            self._answers.gone(alias)

    def _report(
        self,
        check: str,
        rule: str,
        text: str,
        story: Iterable[Moment | None],
        *,
        queue: str | None = None,
        reason: str | None = None,
    ) -> None:
        """Add a finding at the last moment of its story."""
        if check not in self._checks:
            return
        moments = sorted({moment.number: moment for moment in story if moment is not None}.values())
        number, event = moments[-1]
        self._found.append(
            Finding(
                check=check,
                rule=rule,
                text=text,
                number=number,
                time=event.time,
                alias=event.alias,
                channel=getattr(event, "channel", None),
                broken_by=_broken_by(rule, event),
                queue=queue,
                reason=reason,
                story=tuple(moments),
            )
        )


def _broken_by(rule: str, event: Event) -> Literal["client", "broker", ""]:
    """The peer that has violated the protocol; "" if the rule is not one about peers."""
    if rule in ("delivered-twice", "sent-twice"):
        return "broker"
    if rule == "left-unacked":
        return "client"
    if not isinstance(event, FrameEvent) or rule == "message-lost":
        return ""
    # It is the broker that sends a wrong answer, or that does not answer what it has received.
    asked = event.direction == "received"
    return "broker" if asked == (rule == "unanswered") else "client"
