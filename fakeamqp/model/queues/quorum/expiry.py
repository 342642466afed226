"""When the messages of a quorum queue expire: those that stand at a head, and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from fakeamqp.model.queues.queue import expires_messages
from fakeamqp.model.queues.quorum.alarm import MARGIN, Alarm

if TYPE_CHECKING:
    from fakeamqp.model.queues.queue import QueuedMessage
    from fakeamqp.model.queues.quorum.message import QuorumMessage
    from fakeamqp.model.queues.quorum.queue import QuorumQueue

__all__ = ["SHORTEST_LIFE", "Expiry"]

SHORTEST_LIFE = 0.001
"""A message with a time to live of 0 lives for a millisecond: long enough for a consumer that waits."""


class Expiry:
    """Sees to it that messages of one queue go when their time to live is over."""

    __slots__ = ("_alarm", "_queue")

    def __init__(self, queue: QuorumQueue) -> None:
        self._queue = queue
        self._alarm = Alarm(queue.virtual_host, queue.dispatch)

    def _expired(self, queued: QueuedMessage) -> bool:
        return queued.expires_at is not None and queued.expires_at <= self._queue.virtual_host.now() + MARGIN

    def drop(self) -> None:
        """Let what has expired at a head die."""
        queue = self._queue
        taken = cast("list[QuorumMessage]", queue.ready.take_while(self._expired))
        queue.ready_bytes -= sum(queued.size for queued in taken)
        for queued in taken:
            queue.kept_aside.die(queued, "expired")

    def watch(self) -> None:
        """Have what stands at a head dropped when its time comes."""
        due = min(
            (each.expires_at for each in self._queue.ready.heads() if each.expires_at is not None),
            default=None,
        )
        if due != self._alarm.due:
            self._alarm.set(due, lambda: self._label(due))

    def _label(self, due: float | None) -> str:
        """What the timer is for, in words."""
        return expires_messages(self._queue.name, sum(each.expires_at == due for each in self._queue.ready))

    def stop(self) -> None:
        """Watch no more: the queue has gone."""
        self._alarm.stop()
