"""Invariants of a broker and its clients: checks that read a trace event by event, whatever the protocol.

`Invariants` may be given the events of a whole trace, or those of each step as they come.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fakeamqp.dialects import dialect_named
from fakeamqp.trace.checks.finding import Finding
from fakeamqp.trace.checks.messages import Moment, TrackedMessages, message_text, serial_of
from fakeamqp.trace.dialogue import Answered, Asked, Ended, Opened
from fakeamqp.trace.events import ConnectionEvent, FrameEvent, ModelEvent
from fakeamqp.trace.truncation import short

if TYPE_CHECKING:
    from fakeamqp.trace.checks.messages import Report
    from fakeamqp.trace.dialogue import Dialogue, Key, Step
    from fakeamqp.trace.events import Event

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
    """Follows the events of one broker, for those of the checks that are in `INVARIANTS`."""

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
        """Channels in use whose opening is not among the events, so that they are not checked."""
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


# --- requests and their answers: the checks "answers" and "unanswered" ----------------------------------
#
# A request is a method that the protocol has answered, a publish that is confirmed, or a message with a reply
# address and a correlation id. The answer to a message is a message to that address with that id.

_DIRECT = "amq.rabbitmq.reply-to."
"""How the addresses begin that RabbitMQ's direct reply-to gives; no queue has them."""

Place: TypeAlias = "tuple[str, int | None]"


@dataclass(slots=True)
class _Request:
    """A method of a peer that needs an answer."""

    at: Moment
    name: str
    excused: bool
    """Whether it may stay without an answer: a client that the broker closes may be gone or busy."""
    answered: Moment | None = None


@dataclass(slots=True)
class _Call:
    """Messages with one reply address and one correlation id."""

    address: str
    asked: list[tuple[Moment, str]] = field(default_factory=list)
    answered: list[Moment] = field(default_factory=list)
    undelivered: list[Moment] = field(default_factory=list)
    """Answers that came into no queue."""


class Answers:
    """Follows requests. Only channels whose opening it has seen are checked."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._places: dict[Place, dict[Key, _Request]] = {}
        self._resumed: set[Place] = set()
        self._calls: dict[tuple[str, Any], _Call] = {}
        self._answers: dict[int, tuple[_Call, Moment]] = {}
        """By the number of the message: answers that were published, and have not come into a queue yet."""
        self._queues: set[str] = set()
        """Queues that the trace knows of."""

    def step(self, at: Moment, event: FrameEvent, step: Step) -> None:
        place = (event.alias, step.channel)
        if isinstance(step, Opened):
            self._places[place] = {}
            self._resumed.discard(place)
        elif isinstance(step, Ended):
            self.ended(event.alias, step.channel)
        elif isinstance(step, Asked):
            requests = self._places.get(place)
            if requests is not None:
                requests[step.key] = _Request(at, step.name, step.leaves and event.direction == "sent")
        elif isinstance(step, Answered):
            requests = self._places.get(place)
            if requests is not None:
                self._answered(at, requests.get(step.key), step)

    def opened(self, alias: str) -> None:
        self._places[alias, None] = {}

    def ended(self, alias: str, channel: int | None) -> None:
        """Nothing open on this channel, or on all of the connection, is answered any more."""
        for place, requests in self._places.items():
            if place[0] == alias and channel in (None, place[1]):
                for key in [key for key, request in requests.items() if request.answered is None]:
                    del requests[key]

    def gone(self, alias: str) -> None:
        for place in [place for place in self._places if place[0] == alias]:
            del self._places[place]

    def _answered(self, at: Moment, request: _Request | None, step: Answered) -> None:
        if request is None:
            if (at.event.alias, step.channel) in self._resumed:
                return  # Its request may have come over an earlier connection.
            text = f"{step.name} answers nothing: no request for it is open"
            self._report("answers-nothing", text, (at,))
        elif request.answered is None:
            request.answered = at
        else:
            text = f"{step.name} answers {request.name} for the second time"
            self._report("answered-twice", text, (request.at, request.answered, at))

    def resumed(self, alias: str, channel: int) -> None:
        """The session on this channel goes on from an earlier connection."""
        self._resumed.add((alias, channel))

    def model(self, at: Moment, event: ModelEvent) -> None:
        if event.event == "published":
            self._published(at, event)
            return
        if event.queue is not None:
            self._queues.add(event.queue)
        if event.event == "enqueued" and self._answers:
            answer = self._answers.pop(serial_of(event), None)
            if answer is not None:
                self._reply(*answer)

    def _published(self, at: Moment, event: ModelEvent) -> None:
        message = event.facts.get("message")
        properties = getattr(message, "properties", None)
        correlation = getattr(properties, "correlation_id", None)
        if correlation is None:
            return
        exchange, key = getattr(message, "exchange", ""), getattr(message, "routing_key", "")
        call = self._calls.get((f"{exchange}/{key}" if exchange else key, correlation))
        if call is not None:
            call.undelivered.append(at)
            self._answers[serial_of(event)] = call, at
        address = getattr(properties, "reply_to", None)
        if address:
            asked = self._calls.setdefault((address, correlation), _Call(address))
            asked.asked.append((at, message_text(message)))

    def _reply(self, call: _Call, at: Moment) -> None:
        """An answer came into a queue, or to the client that waits for it."""
        call.undelivered.remove(at)
        call.answered.append(at)
        if len(call.answered) > len(call.asked):
            asked, text = call.asked[-1]
            times = "twice" if len(call.asked) == 1 else f"{len(call.answered)} times, and asked less often"
            self._report(
                "answered-twice",
                f"{text} was answered {times} at {short(call.address)}",
                (asked, *call.answered),
                queue=call.address,
            )

    def at_end(self) -> None:
        """Report what has no answer now that all is done."""
        for requests in self._places.values():
            for request in requests.values():
                if request.answered is None and not request.excused:
                    self._report("unanswered", f"{request.name} has no answer", (request.at,))
        for call in self._calls.values():
            for at, text in call.asked[len(call.answered) :]:
                # Libraries set a reply address for tasks whose results nobody asks for.
                known = call.address in self._queues or call.address.startswith(_DIRECT)
                if not known and not call.undelivered:
                    continue
                why = "; an answer came into no queue" if call.undelivered else ""
                said = f"{text} has no answer at {short(call.address)}{why}"
                self._report("unanswered", said, (at, *call.undelivered), queue=call.address)
