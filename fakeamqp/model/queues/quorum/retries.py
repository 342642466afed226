"""Messages that a quorum queue does not deliver again at once: delayed retry (RabbitMQ 4.3: documented)."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from fakeamqp.model.queues.quorum.alarm import MARGIN, Alarm

if TYPE_CHECKING:
    from fakeamqp.model.queues.options import QueueOptions
    from fakeamqp.model.queues.quorum.message import QuorumMessage
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["Retries", "retry_delay"]


def retry_delay(options: QueueOptions, failures: int, *, failed: bool) -> float | None:
    """For how many seconds a message waits that came back; None where it does not.

    `failures` counts how often it failed so far, `failed` says whether it has just now.
    """
    shortest = options.delayed_retry_min
    if options.delayed_retry_type not in ("all", "failed" if failed else "returned") or shortest is None:
        return None
    longest = shortest if options.delayed_retry_max is None else options.delayed_retry_max
    return min(shortest * max(1, failures), longest)


class Retries:
    """What waits in one queue to be tried again. `heap` has it, `octets` is the size of it all.

    Args:
        virtual_host: whose clock counts.
        name: of the queue, for the timer's label.
        again: called with the messages whose time has come.
    """

    __slots__ = ("_again", "_alarm", "_name", "_virtual_host", "heap", "octets")

    def __init__(
        self, virtual_host: VirtualHost, name: str, again: Callable[[list[QuorumMessage]], None]
    ) -> None:
        self.octets = 0
        self._virtual_host = virtual_host
        self._name = name
        self._again = again
        self._alarm = Alarm(virtual_host, self._is_due)
        self.heap: list[tuple[float, int, QuorumMessage]] = []
        """When, position, message."""

    def waiting(self) -> list[QuorumMessage]:
        """All of them, the soonest first."""
        return [queued for _, _, queued in sorted(self.heap)]

    def add(self, queued: QuorumMessage, delay: float) -> None:
        """One is to be tried again after so many seconds."""
        heappush(self.heap, (self._virtual_host.now() + delay, queued.position, queued))
        self.octets += queued.size
        self._watch()

    def clear(self) -> list[QuorumMessage]:
        """Take out all of them; returns what `waiting` would."""
        taken = self.waiting()
        self.heap.clear()
        self.octets = 0
        self._watch()
        return taken

    def stop(self) -> None:
        """Try no more: the queue has gone."""
        self._alarm.stop()

    def _watch(self) -> None:
        due = self.heap[0][0] if self.heap else None
        self._alarm.set(due, f"q '{self._name}' tries a message again")

    def _is_due(self) -> None:
        now = self._virtual_host.now() + MARGIN
        due = []
        while self.heap and self.heap[0][0] <= now:
            queued = heappop(self.heap)[2]
            self.octets -= queued.size
            due.append(queued)
        self._watch()
        self._again(due)
