"""What happened to messages, for inspection: bounded histories of publishes and of outcomes.

A published message stays in a queue until a client settles it, or until one of these happens: it is
dead-lettered, and is then in other queues, or it is dropped, which always has a reason. A publish that
reaches no queue is dropped as well, unless it is returned. So every message is accounted for: it is
delivered, in a queue (or kept by an exchange for later), returned, dead-lettered, or dropped.

`MessageOutcomes` is the only place that records these outcomes: it reports each to the tap, and adds it to a
history.
"""

from __future__ import annotations

from collections import deque, namedtuple
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from fakeamqp.model.events import EVENTS
from fakeamqp.model.limits import Bounds
from fakeamqp.model.operations import carry_out, in_steps

if TYPE_CHECKING:
    from fakeamqp.model.memory import Memory
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.queues.queue import DeathReason
    from fakeamqp.model.routing import Outcome
    from fakeamqp.model.virtual_host import VirtualHost

DropReason: TypeAlias = Literal[
    "rejected",
    "expired",
    "maxlen",
    "delivery_limit",
    "deleted",
    "unroutable",
    "cycle",
    "purged",
    "restart",
    "crash",
    "retention",
    "unstorable",
    "local",
    "replaced",
]
"""Why a message was dropped. The first five are also reasons for dead-lettering. The others, in order: it
was routed to no queue; it came back to a queue that it had been dead-lettered from; the queue was purged; a
restart or a crash does not keep it; the retention of its stream removed it; its stream cannot store it. With
arguments of Apache's brokers: it was published over the connection that the queue is exclusive to; a newer
message with the same value replaced it."""


class Publication(NamedTuple):
    """One publish: its virtual host, its message and its outcome."""

    virtual_host: str
    message: Message
    outcome: Outcome


class HistoryRecord(Protocol):
    """An entry of a history: an event of one message."""

    @property
    def message(self) -> Message:
        """The message."""


R = TypeVar("R", bound=HistoryRecord)


class History(Generic[R]):
    """Keeps the latest records; the oldest are removed when there are too many or their messages too large.

    `count` is the number of all records so far, including removed ones.

    Args:
        capacity: the most records that are kept.
        memory: is charged with the messages.
        most_octets: the most bytes of messages, headers included, that are kept beside the latest record.
    """

    def __init__(
        self, capacity: int, memory: Memory | None = None, most_octets: int = Bounds.history_octets
    ) -> None:
        self.capacity: int = capacity
        self.count: int = 0
        self._memory = memory
        self._most_octets = most_octets
        self._kept: deque[R] = deque()
        self._octets = 0

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[R]:
        return iter(self._kept)

    def __reversed__(self) -> Iterator[R]:
        return reversed(self._kept)

    def append(self, record: R) -> None:
        self.count += 1
        self._kept.append(record)
        message = record.message
        if message.charge is None and self._memory is not None:
            self._memory.hold(message)
        self._octets += len(message.body) + len(message.properties_bytes)
        if len(self._kept) > self.capacity or self._octets > self._most_octets:
            while len(self._kept) > self.capacity:
                self._remove_oldest()
            while self._octets > self._most_octets and len(self._kept) > 1:
                self._remove_oldest()

    def latest(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Of messages that all need a record, those whose records can be kept; the others only count."""
        latest = messages[-self.capacity :]
        self.count += len(messages) - len(latest)
        return latest

    def shrink(self, octets: int) -> None:
        """Remove the oldest records, until the messages of the rest have at most this many bytes."""
        while self._octets > octets and self._kept:
            self._remove_oldest()

    def _remove_oldest(self) -> None:
        message = self._kept.popleft().message
        self._octets -= len(message.body) + len(message.properties_bytes)

    def clear(self) -> None:
        self._kept.clear()
        self.count = self._octets = 0


def _record_of(event: str) -> Any:
    """The class of the records of an event: the time of the broker's clock, and its fields."""
    declared = EVENTS[event]
    return namedtuple(event.replace("-", "_"), ("when", *declared.fields, *declared.kept))


_RECORDS = {event: _record_of(event) for event in ("returned", "dead-lettered", "dropped")}


class OutcomeHistories:
    """The latest outcomes in all virtual hosts, at most `capacity` of each kind.

    A record has the time `when` it happened and the fields of its event in `fakeamqp.model.events`.
    """

    def __init__(
        self, capacity: int, memory: Memory | None = None, most_octets: int = Bounds.history_octets
    ) -> None:
        self.returned: History[Any] = History(capacity, memory, most_octets)
        self.dead_lettered: History[Any] = History(capacity, memory, most_octets)
        self.dropped: History[Any] = History(capacity, memory, most_octets)

    def of(self, event: str) -> History[Any]:
        """The history of "returned", "dead-lettered" or "dropped"."""
        history: History[Any] = getattr(self, event.replace("-", "_"))
        return history

    def clear(self) -> None:
        self.returned.clear()
        self.dead_lettered.clear()
        self.dropped.clear()


class MessageOutcomes:
    """Records the outcomes of messages in one virtual host, where a history or a tap is installed."""

    def __init__(self, virtual_host: VirtualHost) -> None:
        self._virtual_host = virtual_host

    def returned(self, message: Message, code: int, text: str, channel: int | None = None) -> None:
        self._record("returned", message, code, text, self._virtual_host.name, channel)

    def expired(self, message: Message, queue: str) -> None:
        """Its time to live is over. Its outcome (dead-lettered or dropped) is recorded separately."""
        state = self._virtual_host.state
        if state.tap is not None:
            state.tap.event("expired", None, message, queue, self._virtual_host.name)

    def dead_lettered(
        self,
        message: Message,
        queue: str,
        reason: DeathReason,
        dead: Message,
        outcome: Outcome,
        exchange: str | None = None,
    ) -> None:
        """The message has left `queue` and is in others now, as `dead`, or an exchange keeps it for later.

        `exchange` is the one that routed it, where that is not the one that `dead` names.
        """
        exchange = dead.exchange if exchange is None else exchange
        vhost = self._virtual_host.name
        self._record("dead-lettered", message, queue, reason, exchange, outcome, vhost, dead.routing_key)

    def _record(self, event: str, message: Message, *values: object) -> None:
        state = self._virtual_host.state
        if state.outcome_histories is not None:
            record = _RECORDS[event](state.clock.time(), message, *values)
            state.outcome_histories.of(event).append(record)
        if state.tap is not None:
            state.tap.event(event, None, (message,) if event == "dropped" else message, *values)

    def dropped(self, message: Message, queue: str | None, reason: DropReason, detail: str) -> None:
        """The message is dropped; `detail` explains why."""
        self._record("dropped", message, queue, reason, detail, self._virtual_host.name)

    def dropped_all(
        self, messages: Sequence[Message], queue: str | None, reason: DropReason, detail: str
    ) -> None:
        carry_out(self.dropping(messages, queue, reason, detail))

    def dropping(
        self, messages: Sequence[Message], queue: str | None, reason: DropReason, detail: str
    ) -> Iterator[None]:
        """The steps of `dropped_all`. Of a large number of messages only the latest are recorded."""
        vhost, state = self._virtual_host.name, self._virtual_host.state
        histories, tap = state.outcome_histories, state.tap
        if tap is not None and messages:
            tap.event("dropped", None, messages, queue, reason, detail, vhost)
        if histories is None:
            return
        history, when, record_of = histories.dropped, state.clock.time(), _RECORDS["dropped"]

        def record(part: Sequence[Message]) -> None:
            for message in part:
                history.append(record_of(when, message, queue, reason, detail, vhost))

        yield from in_steps(history.latest(messages), record)
