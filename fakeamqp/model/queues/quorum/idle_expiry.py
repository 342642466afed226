"""Deletes a quorum queue that is unused for the time of `x-expires`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.model.queues.queue import UNUSED_TOO_LONG
from fakeamqp.model.queues.quorum.deadline import Deadline

if TYPE_CHECKING:
    from fakeamqp.model.queues.quorum.queue import QuorumQueue

__all__ = ["IdleExpiry"]


class IdleExpiry:
    """Deletes one queue when `x-expires` has passed without use; consumers keep it alive.

    RabbitMQ checks every few seconds, and only promises that the queue is deleted some time after.
    """

    __slots__ = ("_deadline", "_last", "_queue")

    def __init__(self, queue: QuorumQueue) -> None:
        self._queue = queue
        self._last = queue.virtual_host.now()
        self._deadline = Deadline(queue.virtual_host, self._too_long)

    def now(self) -> None:
        """The queue is in use."""
        self._last = self._queue.virtual_host.now()
        self.watch()

    def watch(self) -> None:
        """Set the timer after a use or a change of options or consumers."""
        queue = self._queue
        expires = queue.options.expires
        counts = expires is not None and not queue.subscriptions and not queue.deleted
        self._check_at(self._last + expires if counts and expires is not None else None)

    def _check_at(self, instant: float | None) -> None:
        # Set again even for the same instant, so that it fires after everything else that is due.
        self._deadline.set(None, "")
        self._deadline.set(instant, f"q '{self._queue.name}' expires unused")

    def stop(self) -> None:
        """The queue has been deleted."""
        self._deadline.stop()

    def _too_long(self) -> None:
        queue = self._queue
        if queue.deleted or queue.subscriptions:
            return
        if queue.unacked:
            self._check_at(queue.virtual_host.now() + queue.choices.tick)
        else:
            queue.virtual_host.queues.remove(queue, UNUSED_TOO_LONG)
