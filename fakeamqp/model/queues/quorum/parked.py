"""Messages that a quorum queue cannot deliver now: they wait for a retry, or are held dead letters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fakeamqp.model.held_dead_letters import HeldDeadLetters
from fakeamqp.model.queues.quorum.retries import Retries

if TYPE_CHECKING:
    from fakeamqp.model.arguments import QueueOptions
    from fakeamqp.model.message import Message
    from fakeamqp.model.message_outcomes import DropReason
    from fakeamqp.model.queues.queue import DeathReason
    from fakeamqp.model.queues.quorum.message import QuorumMessage
    from fakeamqp.model.queues.quorum.queue import QuorumQueue

__all__ = ["ParkedMessages"]


class ParkedMessages:
    """The parked messages of one queue: `retries`, and dead letters if it holds them until they arrive.

    Args:
        queue: the queue of the messages.
        fewer: called when dead letters have left.
    """

    __slots__ = ("_fewer", "_held", "_queue", "retries")

    def __init__(
        self,
        queue: QuorumQueue,
        fewer: Callable[[], None],
    ) -> None:
        self.retries: Retries = Retries(queue.virtual_host, queue.name, self._again)
        self._queue = queue
        self._fewer = fewer
        self._held: HeldDeadLetters | None = None

    def adopt(self, options: QueueOptions) -> None:
        """Apply new options."""
        # Dropping from the head and holding every dead letter are contradictory: RabbitMQ then drops.
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
        """The number of messages, and their bytes."""
        retries, held = self.retries, self._held
        if held is None:
            return len(retries.heap), retries.octets
        return len(retries.heap) + len(held), retries.octets + held.octets

    def messages(self) -> list[Message]:
        """All messages: those for a retry, soonest first, then dead letters."""
        delayed = [queued.message for queued in self.retries.waiting()]
        return [*delayed, *(() if self._held is None else self._held.messages())]

    def _again(self, due: list[QuorumMessage]) -> None:
        """Return messages whose retry is due."""
        queue = self._queue
        for queued in due:
            queue.ready.put_back(queued)
            queue.ready_bytes += queued.size
        queue.dispatch()

    def die(self, queued: QuorumMessage, reason: DeathReason) -> None:
        """Dead-letter a message."""
        if self._held is not None:
            self._held.hold(queued.message, reason, queued.failures, queued.size)
        else:
            queue = self._queue
            queue.virtual_host.dead_letters.died(queue, queued.message, reason, queued.failures)

    def try_again(self) -> None:
        """Publish held dead letters again, because options changed."""
        if self._held is not None:
            self._held.try_again()

    def start_over(self) -> None:
        """Publish held dead letters again after a restart."""
        if self._held is not None:
            self._held.start_over()

    def clear_dead_letters(self, reason: DropReason, detail: str) -> int:
        """Drop the held dead letters. Returns how many there were."""
        return 0 if self._held is None else self._held.clear(detail, reason)
