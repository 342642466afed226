"""The way of dead letters: from the queue a message died in to its dead-letter exchange, and on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fakeamqp.model.dead_letter import dead_lettered, is_cycle

if TYPE_CHECKING:
    from fakeamqp.model.message import Message
    from fakeamqp.model.queues import DeathReason, Queue
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["DeadLettering"]


class DeadLettering:
    """Passes on what dies in the queues of one virtual host."""

    __slots__ = ("_held", "_virtual_host", "_waiting")

    def __init__(self, virtual_host: VirtualHost) -> None:
        self._virtual_host = virtual_host
        self._waiting: list[tuple[str, Message, Message, DeathReason]] = []
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
            ends.dropped(message, queue.name, reason, _nowhere(target))
            return
        dead = dead_lettered(queue, message, reason, virtual_host.state.clock.time(), failures)
        self._waiting.append((queue.name, message, dead, reason))
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
                self._bury(*each)
        finally:
            self._waiting.clear()

    def _bury(self, queue: str, message: Message, dead: Message, reason: DeathReason) -> None:
        """Pass on, as `dead`, what died in the queue of this name."""
        ends = self._virtual_host.ends
        outcome = self._virtual_host.routing.route(dead)
        if not outcome.queues and not outcome.delays:
            ends.dropped(message, queue, reason, _no_way(dead))
            return
        barred: tuple[Queue, ...] = ()
        for each in outcome.queues:
            if reason != "rejected" and is_cycle(each.name, dead):
                ends.dropped(
                    dead, each.name, "cycle", "it had died there before, and nobody rejected it since"
                )
            elif each.bury(dead) or _passes_on(each):
                continue
            else:
                self.refused(each, dead)
            barred = (*barred, each)
        if barred:
            outcome = replace(outcome, queues=tuple(each for each in outcome.queues if each not in barred))
        if outcome.queues or outcome.delays:
            ends.dead_lettered(message, queue, reason, dead, outcome)

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


def _no_way(dead: Message) -> str:
    """Why a dead letter got no further than its exchange."""
    return f"dead-letter exchange {dead.exchange!r} found no queue for routing key {dead.routing_key!r}"
