"""Delayed retries: returned messages that a quorum queue redelivers later (RabbitMQ 4.3: documented)."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from fakeamqp.model.queues.quorum.deadline import MARGIN, Deadline

if TYPE_CHECKING:
    from fakeamqp.model.arguments import QueueOptions
    from fakeamqp.model.queues.quorum.message import QuorumMessage
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["Retries", "retry_delay"]


def retry_delay(options: QueueOptions, failures: int, *, failed: bool) -> float | None:
    """The delay of a returned message in seconds; None means no delay.

    `failures` counts its failures so far, `failed` says whether the last return was one.
    """
    shortest = options.delayed_retry_min
    if options.delayed_retry_type not in ("all", "failed" if failed else "returned") or shortest is None:
        return None
    longest = shortest if options.delayed_retry_max is None else options.delayed_retry_max
    return min(shortest * max(1, failures), longest)


class Retries:
    """The messages of one queue that wait for a retry, in `heap`; `octets` is their total size.

    Args:
        virtual_host: its clock is used.
        name: of the queue, for the timer's label.
        again: called with the messages whose retry is due.
    """

    __slots__ = ("_again", "_deadline", "_name", "_virtual_host", "heap", "octets")

    def __init__(
        self, virtual_host: VirtualHost, name: str, again: Callable[[list[QuorumMessage]], None]
    ) -> None:
        self.octets: int = 0
        self._virtual_host = virtual_host
        self._name = name
        self._again = again
        self._deadline = Deadline(virtual_host, self._is_due)
        self.heap: list[tuple[float, int, QuorumMessage]] = []
        """Due time, position, message."""

    def waiting(self) -> list[QuorumMessage]:
        """All of them, soonest first."""
        return [queued for _, _, queued in sorted(self.heap)]

    def add(self, queued: QuorumMessage, delay: float) -> None:
        """Add a message that is redelivered after `delay` seconds."""
        heappush(self.heap, (self._virtual_host.now() + delay, queued.position, queued))
        self.octets += queued.size
        self._watch()

    def clear(self) -> list[QuorumMessage]:
        """Take out all of them, soonest first."""
        taken = self.waiting()
        self.heap.clear()
        self.octets = 0
        self._watch()
        return taken

    def stop(self) -> None:
        """The queue has been deleted."""
        self._deadline.stop()

    def _watch(self) -> None:
        due = self.heap[0][0] if self.heap else None
        self._deadline.set(due, f"q '{self._name}' retries a message")

    def _is_due(self) -> None:
        now = self._virtual_host.now() + MARGIN
        due = []
        while self.heap and self.heap[0][0] <= now:
            queued = heappop(self.heap)[2]
            self.octets -= queued.size
            due.append(queued)
        self._watch()
        self._again(due)
