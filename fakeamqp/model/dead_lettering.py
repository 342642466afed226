"""The way of dead letters: from the queue a message died in to its dead-letter exchange, and on.

What clients reject, and what is in a queue that is deleted, may go to the queue's alternate exchange instead:
as it is, with no word of the death. A dead-letter exchange goes before an alternate one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from fakeamqp.model.dead_letter import dead_lettered, is_cycle

if TYPE_CHECKING:
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.message import Message
    from fakeamqp.model.queues import DeathReason, Queue
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["DeadLettering"]


class _Leaving(NamedTuple):
    """`message` leaves the queue of this name, as `dead`.

    It goes to the exchange that `dead` names, or to an alternate one.
    """

    queue: str
    message: Message
    dead: Message
    reason: DeathReason
    alternate: Exchange | None = None


class DeadLettering:
    """Passes on what dies in the queues of one virtual host."""

    __slots__ = ("_held", "_virtual_host", "_waiting")

    def __init__(self, virtual_host: VirtualHost) -> None:
        self._virtual_host = virtual_host
        self._waiting: list[_Leaving] = []
        self._held = False

    def died(self, queue: Queue, message: Message, reason: DeathReason, failures: int | None = None) -> None:
        """A message died in `queue`: pass it to the queue's dead-letter exchange, or drop it.

        `failures` says how often clients failed to deal with it there, where the queue counts that.
        """
        virtual_host = self._virtual_host
        ends = virtual_host.ends
        target = queue.options.dead_letter_exchange
        if reason == "expired":
            ends.expired(message, queue.name)
        if target is None or target not in virtual_host.exchanges:
            if reason == "rejected" and queue.alternate_exchange is not None:
                self.passed_on(queue, message, reason)
            else:
                ends.dropped(message, queue.name, reason, _nowhere(target))
            return
        dead = dead_lettered(queue, message, reason, virtual_host.state.clock.time(), failures)
        self._leaves(_Leaving(queue.name, message, dead, reason))

    def passed_on(self, queue: Queue, message: Message, reason: DeathReason) -> None:
        """A message leaves `queue` for its alternate exchange, unchanged.

        Source: message.reject/alternate-exchange, queue.declare/alternate-exchange-routing.
        """
        name = queue.alternate_exchange
        alternate = self._virtual_host.exchanges.get(name) if name else None
        if alternate is None:
            detail = f"alternate exchange {name!r} does not exist"
            self._virtual_host.ends.dropped(message, queue.name, reason, detail)
        else:
            self._leaves(_Leaving(queue.name, message, message, reason, alternate))

    def _leaves(self, leaving: _Leaving) -> None:
        self._waiting.append(leaving)
        # A full queue passes a message on at once, to one that may be full as well, and so on: such chains
        # may be longer than the stack is deep, so what dies meanwhile waits for the outermost call.
        if len(self._waiting) == 1 and not self._held:
            self._bury_all()

    def hold(self) -> bool:
        """Let what dies from now on wait for `release`; False where it waits already."""
        if self._held or self._waiting:
            return False
        self._held = True
        return True

    def release(self) -> None:
        """Undo `hold`, where it said True."""
        self._held = False
        self._bury_all()

    def _bury_all(self) -> None:
        try:
            for each in self._waiting:
                self._bury(each)
        finally:
            self._waiting.clear()

    def _bury(self, leaving: _Leaving) -> None:
        """Send a message where it goes from the queue it left."""
        queue, message, dead, reason, alternate = leaving
        ends = self._virtual_host.ends
        outcome = self._virtual_host.routing.route(dead, alternate)
        if not outcome.queues and not outcome.delays:
            ends.dropped(message, queue, reason, _no_way(dead, alternate))
            return
        barred: tuple[Queue, ...] = ()
        for each in outcome.queues:
            cycle = _cycle(each.name, leaving)
            if cycle is not None:
                ends.dropped(dead, each.name, "cycle", cycle)
            elif each.bury(dead) or _passes_on(each):
                continue
            else:
                self.refused(each, dead)
            barred = (*barred, each)
        if barred:
            outcome = replace(outcome, queues=tuple(each for each in outcome.queues if each not in barred))
        if outcome.queues or outcome.delays:
            exchange = None if alternate is None else alternate.name
            ends.dead_lettered(message, queue, reason, dead, outcome, exchange)

    def refused(self, queue: Queue, message: Message) -> None:
        """A full queue has not taken the message, which nobody keeps."""
        if not _passes_on(queue):
            self._virtual_host.ends.dropped(
                message, queue.name, "maxlen", f"the queue was full and refused it ({queue.options.overflow})"
            )


def _passes_on(queue: Queue) -> bool:
    """Whether what the queue refuses is a dead letter of it: then that is what it says."""
    return queue.kind == "queue" and queue.options.overflow == "reject-publish-dlx"


def _nowhere(exchange: str | None) -> str:
    """Why there is no exchange for a dead letter."""
    if exchange is None:
        return "the queue has no dead-letter exchange"
    return f"dead-letter exchange {exchange!r} does not exist"


def _cycle(queue: str, leaving: _Leaving) -> str | None:
    """Why a message may not come to the queue of this name; None where it may.

    What leaves a queue for its alternate exchange has left it for good, even if the queue is bound to that
    exchange (queue.declare/alternate-exchange-routing). Other deaths do not count: a client made it leave.
    """
    if leaving.alternate is not None:
        return "it had just left that queue" if queue == leaving.queue else None
    if leaving.reason != "rejected" and is_cycle(queue, leaving.dead):
        return "it had died there before, and nobody rejected it since"
    return None


def _no_way(dead: Message, alternate: Exchange | None) -> str:
    """Why a message got no further than the exchange it went to."""
    kind, name = ("dead-letter", dead.exchange) if alternate is None else ("alternate", alternate.name)
    return f"{kind} exchange {name!r} found no queue for routing key {dead.routing_key!r}"
