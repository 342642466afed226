"""How long a quorum queue lives without use (`x-expires`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.model.queues.queue import UNUSED_TOO_LONG
from fakeamqp.model.queues.quorum.alarm import Alarm

if TYPE_CHECKING:
    from fakeamqp.model.queues.quorum.queue import QuorumQueue

__all__ = ["Use"]


class Use:
    """Has one queue go when `x-expires` has passed without use; consumers keep it alive.

    RabbitMQ looks every few seconds and promises no more than that the queue goes some time after.
    """

    __slots__ = ("_alarm", "_last", "_queue")

    def __init__(self, queue: QuorumQueue) -> None:
        self._queue = queue
        self._last = queue.virtual_host.now()
        self._alarm = Alarm(queue.virtual_host, self._too_long)

    def now(self) -> None:
        """It is in use."""
        self._last = self._queue.virtual_host.now()
        self.watch()

    def watch(self) -> None:
        """Options or consumers are others, or it was used: count anew."""
        queue = self._queue
        expires = queue.options.expires
        counts = expires is not None and not queue.subscriptions and not queue.deleted
        self._look_at(self._last + expires if counts and expires is not None else None)

    def _look_at(self, instant: float | None) -> None:
        # Anew even if it is the same instant: then after all else that is due by now.
        self._alarm.set(None, "")
        self._alarm.set(instant, f"q '{self._queue.name}' expires unused")

    def stop(self) -> None:
        """The queue has gone."""
        self._alarm.stop()

    def _too_long(self) -> None:
        queue = self._queue
        if queue.deleted or queue.subscriptions:
            return
        if queue.unacked:
            self._look_at(queue.virtual_host.now() + queue.choices.tick)
        else:
            queue.virtual_host.remove_queue(queue, UNUSED_TOO_LONG)
