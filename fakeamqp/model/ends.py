"""How messages end that no client has dealt with: the one place where it is noted.

A message that was published and is in a queue is there until a client settles it, or until one of these
happens: it is dead-lettered, and is then in other queues, or it is dropped, which always has a reason. A
publish that no queue has is dropped as well, unless its publisher gets it back. So whoever counts finds every
message again: delivered, in a queue (or kept by an exchange for later), returned, dead-lettered, or dropped.

What is noted goes to the tap and, for whoever looks later, into a history.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from fakeamqp.model.history import History

if TYPE_CHECKING:
    from fakeamqp.model.message import Message
    from fakeamqp.model.outcome import Outcome
    from fakeamqp.model.queues.queue import DeathReason
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["DeadLettered", "DropReason", "Dropped", "Ends", "Histories", "Returned"]

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
"""Why a message is gone. The first five are also what dead letters die of. The others: no queue was there for
it; it came back to a queue it had died in; somebody emptied the queue; a restart or a crash does not keep it;
its stream had too much or too old; its stream cannot store it. With arguments of Apache's brokers: it was
published over the connection that the queue is exclusive to; a newer message with the same value has come."""


class Returned(NamedTuple):
    """A publisher was sent back what it published. `channel` is the number of the channel it published on."""

    virtual_host: str
    message: Message
    when: float
    code: int
    text: str
    channel: int | None


class DeadLettered(NamedTuple):
    """`message` died in `queue`, and `exchange` passed it on to what `outcome` names."""

    virtual_host: str
    message: Message
    when: float
    queue: str
    reason: DeathReason
    exchange: str
    routing_key: str
    outcome: Outcome


class Dropped(NamedTuple):
    """A message is gone. `queue` is the one that had it or did not take it, None where there was none."""

    virtual_host: str
    message: Message
    when: float
    queue: str | None
    reason: DropReason
    detail: str


class Histories:
    """What the latest ends were, over all virtual hosts; of each kind at most `capacity` are kept."""

    __slots__ = ("dead_lettered", "dropped", "returned")

    def __init__(self, capacity: int) -> None:
        self.returned: History[Returned] = History(capacity)
        self.dead_lettered: History[DeadLettered] = History(capacity)
        self.dropped: History[Dropped] = History(capacity)

    def clear(self) -> None:
        """Forget everything."""
        self.returned.clear()
        self.dead_lettered.clear()
        self.dropped.clear()


class Ends:
    """Notes the ends of messages in one virtual host, if anybody wants to know."""

    __slots__ = ("_virtual_host",)

    def __init__(self, virtual_host: VirtualHost) -> None:
        self._virtual_host = virtual_host

    def returned(self, message: Message, code: int, text: str, channel: int | None = None) -> None:
        """The publisher is sent the message back."""
        host, state = self._virtual_host.name, self._virtual_host.state
        if state.ends is not None:
            state.ends.returned.append(Returned(host, message, state.clock.time(), code, text, channel))
        if state.tap is not None:
            state.tap.model("returned", message=message, code=code, text=text, virtual_host=host)

    def expired(self, message: Message, queue: str) -> None:
        """Its time to live is over. What becomes of it is told apart from that."""
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
        """What died in a queue is in others now, as `dead`, or an exchange keeps it for later.

        `exchange` passed it on, where that is not the one that `dead` names.
        """
        exchange = dead.exchange if exchange is None else exchange
        host, state = self._virtual_host.name, self._virtual_host.state
        if state.ends is not None:
            state.ends.dead_lettered.append(
                DeadLettered(
                    host,
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
            state.tap.dead_lettered(message, queue, reason, exchange, outcome, host)

    def dropped(self, message: Message, queue: str | None, reason: DropReason, detail: str) -> None:
        """The message is gone; `detail` says more of why, in words."""
        host, state = self._virtual_host.name, self._virtual_host.state
        ends, tap = state.ends, state.tap
        if ends is not None:
            ends.dropped.append(Dropped(host, message, state.clock.time(), queue, reason, detail))
        if tap is not None:
            tap.dropped((message,), queue, reason, detail, host)

    def dropped_all(
        self, messages: Iterable[Message], queue: str | None, reason: DropReason, detail: str
    ) -> None:
        """All of these are gone."""
        host, state = self._virtual_host.name, self._virtual_host.state
        ends, tap = state.ends, state.tap
        if ends is None and tap is None:
            return
        lost = tuple(messages)
        if ends is not None:
            when = state.clock.time()
            for message in lost:
                ends.dropped.append(Dropped(host, message, when, queue, reason, detail))
        if tap is not None and lost:
            tap.dropped(lost, queue, reason, detail, host)
