"""Invariants of a broker and its clients: checks that read a trace event by event, whatever the protocol.

`Invariants` may be given the events of a whole trace, or those of each step as they come.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from fakeamqp.dialects import dialect_named
from fakeamqp.trace.checks.answers import Answers
from fakeamqp.trace.checks.finding import Finding
from fakeamqp.trace.checks.messages import Moment, TrackedMessages
from fakeamqp.trace.events import ConnectionEvent, FrameEvent, ModelEvent

if TYPE_CHECKING:
    from fakeamqp.trace.checks.messages import Moment
    from fakeamqp.trace.dialogue import Dialogue
    from fakeamqp.trace.events import Event

__all__ = ["AT_END", "INVARIANTS", "INVARIANT_RULES", "Invariants"]

AT_END = ("unacked", "unanswered")
"""Checks of what must hold once all is done, and not before."""
INVARIANTS = ("lost", "duplicates", "answers", *AT_END)
INVARIANT_RULES = {
    "message-lost": "lost",
    "delivered-twice": "duplicates",
    "sent-twice": "duplicates",
    "left-unacked": "unacked",
    "answers-nothing": "answers",
    "answered-twice": "answers",
    "unanswered": "unanswered",
}
"""The rules, and the checks that they belong to."""
_OF_MESSAGES = frozenset(("lost", "duplicates", "unacked"))

_ENDS = frozenset(("closed", "aborted", "lost", "refused"))


class Invariants:
    """Follows the events of one broker.

    Args:
        checks: the names of the checks; those in `INVARIANTS` count.
    """

    def __init__(self, checks: Collection[str] = INVARIANTS) -> None:
        self._checks = frozenset(checks).intersection(INVARIANTS)
        self._number = 0
        self._dialogues: dict[str, Dialogue] = {}
        self._sessions: dict[tuple[object, object], tuple[str, int]] = {}
        """Where sessions were attached: one that is attached again may go on from there."""
        self._found: list[Finding] = []
        self._messages = TrackedMessages(self._report)
        self._answers = Answers(self._report)

    @property
    def active(self) -> bool:
        """Whether any of the checks is one of these."""
        return bool(self._checks)

    @property
    def found(self) -> Sequence[Finding]:
        """What was found so far. Ask between turns of the broker: its latest turn is taken to be over."""
        self._messages.decide()
        return self._found

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be checked, a sentence each."""
        if "duplicates" not in self._checks:
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
        return tuple(self._messages.unknown_places) if self._checks & _OF_MESSAGES else ()

    def see(self, events: Iterable[Event]) -> None:
        """Follow further events, in order."""
        for event in events:
            at = Moment(self._number, event)
            if isinstance(event, FrameEvent):
                self._frame(at, event)
            elif isinstance(event, ModelEvent):
                self._model(at, event)
            elif isinstance(event, ConnectionEvent):
                if event.event == "connected":
                    self._answers.opened(event.alias)
                elif event.event in _ENDS:
                    self._messages.ended(event.alias)
                    self._answers.gone(event.alias)
            self._number += 1

    def at_end(self) -> tuple[Finding, ...]:
        """What violates the invariants if nothing more happens, without what was found before."""
        before, self._found = [*self.found], []
        self._messages.at_end()
        self._answers.at_end()
        found, self._found = self._found, before
        return tuple(found)

    def _frame(self, at: Moment, event: FrameEvent) -> None:
        self._messages.frame(event)
        dialogue = self._dialogues.get(event.alias)
        if dialogue is None:
            dialogue = self._dialogues[event.alias] = dialect_named(event.protocol).dialogue()
        for step in dialogue.read(event):
            self._messages.step(at, event, step)
            self._answers.step(at, event, step)

    def _model(self, at: Moment, event: ModelEvent) -> None:
        self._messages.model(at, event)
        self._answers.model(at, event)
        if event.event == "session attached" and event.channel is not None:
            session = event.facts.get("session"), event.facts.get("virtual_host")
            earlier = self._sessions.get(session)
            self._sessions[session] = event.alias, event.channel
            self._messages.attached(event.alias, event.channel, earlier)
            if earlier is not None:
                self._answers.resumed(event.alias, event.channel)

    def _report(
        self,
        rule: str,
        text: str,
        story: Iterable[Moment | None],
        *,
        queue: str | None = None,
        reason: str | None = None,
    ) -> None:
        """Add a finding at the last moment of its story."""
        check = INVARIANT_RULES[rule]
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
