"""What a quorum queue keeps that nobody can be sent now: for a retry, or as dead letters on their way."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fakeamqp.model.at_least_once import HeldDeadLetters
from fakeamqp.model.queues.quorum.retries import Retries

if TYPE_CHECKING:
    from fakeamqp.model.ends import DropReason
    from fakeamqp.model.message import Message
    from fakeamqp.model.queues.options import QueueOptions
    from fakeamqp.model.queues.queue import DeathReason
    from fakeamqp.model.queues.quorum.message import QuorumMessage
    from fakeamqp.model.queues.quorum.queue import QuorumQueue

__all__ = ["Aside"]


class Aside:
    """What one queue has set aside: `retries`, and dead letters if it keeps them until they have arrived.

    Args:
        queue: whose messages these are.
        fewer: called when there are fewer dead letters than before.
    """

    __slots__ = ("_fewer", "_held", "_queue", "retries")

    def __init__(
        self,
        queue: QuorumQueue,
        fewer: Callable[[], None],
    ) -> None:
        self.retries = Retries(queue.virtual_host, queue.name, self._again)
        self._queue = queue
        self._fewer = fewer
        self._held: HeldDeadLetters | None = None

    def adopt(self, options: QueueOptions) -> None:
        """Go by these options from now on."""
        # Dropping from the head and keeping every dead letter contradict each other: RabbitMQ then drops.
        keeps = (
            options.dead_letter_strategy == "at-least-once"
            and options.overflow == "reject-publish"
            and options.dead_letter_exchange is not None
        )
        if keeps and self._held is None:
            self._held = HeldDeadLetters(self._queue, self._fewer)
        elif not keeps and self._held is not None:
            self._held.clear("the queue no longer keeps dead letters until they have arrived")
            self._held = None

    def amount(self) -> tuple[int, int]:
        """How many messages, and their bytes."""
        retries, held = self.retries, self._held
        if held is None:
            return len(retries.heap), retries.octets
        return len(retries.heap) + len(held), retries.octets + held.octets

    def messages(self) -> list[Message]:
        """All messages: those for a retry, the soonest first, then dead letters."""
        delayed = [queued.message for queued in self.retries.waiting()]
        return [*delayed, *(() if self._held is None else self._held.messages())]

    def _again(self, due: list[QuorumMessage]) -> None:
        """The time has come to try these again."""
        queue = self._queue
        for queued in due:
            queue.ready.put_back(queued)
            queue.ready_bytes += queued.size
        queue.dispatch()

    def die(self, queued: QuorumMessage, reason: DeathReason) -> None:
        """A message has died: it is a dead letter from now on."""
        if self._held is not None:
            self._held.hold(queued.message, reason, queued.failures, queued.size)
        else:
            queue = self._queue
            queue.virtual_host.dead_letters.died(queue, queued.message, reason, queued.failures)

    def try_again(self) -> None:
        """Other options may let dead letters go on."""
        if self._held is not None:
            self._held.try_again()

    def start_over(self) -> None:
        """After a restart dead letters set out again."""
        if self._held is not None:
            self._held.start_over()

    def clear_dead_letters(self, reason: DropReason, detail: str) -> int:
        """Drop the dead letters. Returns how many there were."""
        return 0 if self._held is None else self._held.clear(detail, reason)
