"""Expiry of a quorum queue's messages: only messages at a head expire."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from fakeamqp.model.operations import STEP
from fakeamqp.model.queues.queue import expires_messages
from fakeamqp.model.queues.quorum.deadline import MARGIN, Deadline

if TYPE_CHECKING:
    from fakeamqp.model.queues.queue import QueuedMessage
    from fakeamqp.model.queues.quorum.message import QuorumMessage
    from fakeamqp.model.queues.quorum.queue import QuorumQueue

__all__ = ["SHORTEST_LIFE", "Expiry"]

SHORTEST_LIFE = 0.001
"""Seconds that a message with a time to live of 0 lives: long enough for a waiting consumer."""


class Expiry:
    """Drops messages of one queue when their time to live is over."""

    __slots__ = ("_deadline", "_queue")

    def __init__(self, queue: QuorumQueue) -> None:
        self._queue = queue
        self._deadline = Deadline(queue.virtual_host, self._due)

    def _expired(self, queued: QueuedMessage) -> bool:
        return queued.expires_at is not None and queued.expires_at <= self._queue.virtual_host.now() + MARGIN

    def drop(self) -> None:
        """Dead-letter expired messages at the heads."""
        self._drop_some(sys.maxsize)

    def _drop_some(self, most: int) -> int:
        """Dead-letter at most so many; returns how many."""
        queue = self._queue
        left = most

        def taken_now(queued: QueuedMessage) -> bool:
            nonlocal left
            if not left or not self._expired(queued):
                return False
            left -= 1
            return True

        taken = cast("list[QuorumMessage]", queue.ready.take_while(taken_now))
        queue.ready_bytes -= sum(queued.size for queued in taken)
        for queued in taken:
            queue.parked.die(queued, "expired")
        return len(taken)

    def _due(self) -> None:
        self._queue.virtual_host.state.operations.run(self._dropping())

    def _dropping(self) -> Iterator[None]:
        """The steps of dead-lettering messages whose time is over, and a dispatch."""
        while self._drop_some(STEP) == STEP:
            yield
        if not self._queue.deleted:
            self._queue.dispatch()

    def watch(self) -> None:
        """Set the timer for the next expiry at a head."""
        due = min(
            (each.expires_at for each in self._queue.ready.heads() if each.expires_at is not None),
            default=None,
        )
        if due != self._deadline.due:
            self._deadline.set(due, lambda: self._label(due))

    def _label(self, due: float | None) -> str:
        """The label of the timer."""
        return expires_messages(self._queue.name, sum(each.expires_at == due for each in self._queue.ready))

    def stop(self) -> None:
        """The queue has been deleted."""
        self._deadline.stop()
