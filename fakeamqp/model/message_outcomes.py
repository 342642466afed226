"""How messages end other than by a client's acknowledgement. This module is the only place that records it.

A published message stays in a queue until a client settles it, or until one of these happens: it is
dead-lettered, and is then in other queues, or it is dropped, which always has a reason. A publish that
reaches no queue is dropped as well, unless it is returned. So every message is accounted for: it is
delivered, in a queue (or kept by an exchange for later), returned, dead-lettered, or dropped.

Each record goes to the tap, and into a history for later inspection.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from fakeamqp.model.history import History
from fakeamqp.model.limits.limits import Bounds
from fakeamqp.model.operations import carry_out, in_steps

if TYPE_CHECKING:
    from fakeamqp.model.limits.memory import Memory
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.outcome import Outcome
    from fakeamqp.model.queues.queue import DeathReason
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["DeadLettered", "DropReason", "Dropped", "MessageOutcomes", "OutcomeHistories", "Returned"]

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


class Returned(NamedTuple):
    """A message was returned to its publisher. `channel` is the number of the channel it was published on."""

    virtual_host: str
    message: Message
    when: float
    code: int
    text: str
    channel: int | None


class DeadLettered(NamedTuple):
    """`message` was dead-lettered from `queue`; `exchange` routed it as `outcome` says."""

    virtual_host: str
    message: Message
    when: float
    queue: str
    reason: DeathReason
    exchange: str
    routing_key: str
    outcome: Outcome


class Dropped(NamedTuple):
    """A message was dropped. `queue` is the one that held or refused it, None where there was none."""

    virtual_host: str
    message: Message
    when: float
    queue: str | None
    reason: DropReason
    detail: str


class OutcomeHistories:
    """The latest outcomes in all virtual hosts, at most `capacity` of each kind."""

    __slots__ = ("dead_lettered", "dropped", "returned")

    def __init__(
        self, capacity: int, memory: Memory | None = None, most_octets: int = Bounds.history_octets
    ) -> None:
        self.returned: History[Returned] = History(capacity, memory, most_octets)
        self.dead_lettered: History[DeadLettered] = History(capacity, memory, most_octets)
        self.dropped: History[Dropped] = History(capacity, memory, most_octets)

    def clear(self) -> None:
        """Forget everything."""
        self.returned.clear()
        self.dead_lettered.clear()
        self.dropped.clear()


class MessageOutcomes:
    """Records the outcomes of messages in one virtual host, where a history or a tap is installed."""

    __slots__ = ("_virtual_host",)

    def __init__(self, virtual_host: VirtualHost) -> None:
        self._virtual_host = virtual_host

    def returned(self, message: Message, code: int, text: str, channel: int | None = None) -> None:
        """The message is returned to its publisher."""
        vhost, state = self._virtual_host.name, self._virtual_host.state
        if state.outcome_histories is not None:
            state.outcome_histories.returned.append(
                Returned(vhost, message, state.clock.time(), code, text, channel)
            )
        if state.tap is not None:
            state.tap.model("returned", message=message, code=code, text=text, virtual_host=vhost)

    def expired(self, message: Message, queue: str) -> None:
        """Its time to live is over. Its outcome (dead-lettered or dropped) is recorded separately."""
        state = self._virtual_host.state
        if state.tap is not None:
            state.tap.expired(message, queue, self._virtual_host.name)

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
        vhost, state = self._virtual_host.name, self._virtual_host.state
        if state.outcome_histories is not None:
            state.outcome_histories.dead_lettered.append(
                DeadLettered(
                    vhost,
                    message,
                    state.clock.time(),
                    queue,
                    reason,
                    exchange,
                    dead.routing_key,
                    outcome,
                )
            )
        if state.tap is not None:
            state.tap.dead_lettered(message, queue, reason, exchange, outcome, vhost)

    def dropped(self, message: Message, queue: str | None, reason: DropReason, detail: str) -> None:
        """The message is dropped; `detail` explains why."""
        vhost, state = self._virtual_host.name, self._virtual_host.state
        histories, tap = state.outcome_histories, state.tap
        if histories is not None:
            histories.dropped.append(Dropped(vhost, message, state.clock.time(), queue, reason, detail))
        if tap is not None:
            tap.dropped((message,), queue, reason, detail, vhost)

    def dropped_all(
        self, messages: Sequence[Message], queue: str | None, reason: DropReason, detail: str
    ) -> None:
        """All of these messages are dropped."""
        carry_out(self.dropping(messages, queue, reason, detail))

    def dropping(
        self, messages: Sequence[Message], queue: str | None, reason: DropReason, detail: str
    ) -> Iterator[None]:
        """The steps of `dropped_all`. Of a large number of messages only the latest are recorded."""
        vhost, state = self._virtual_host.name, self._virtual_host.state
        histories, tap = state.outcome_histories, state.tap
        if tap is not None and messages:
            tap.dropped(messages, queue, reason, detail, vhost)
        if histories is None:
            return
        history, when = histories.dropped, state.clock.time()

        def record(part: Sequence[Message]) -> None:
            for message in part:
                history.append(Dropped(vhost, message, when, queue, reason, detail))

        yield from in_steps(history.latest(messages), record)
