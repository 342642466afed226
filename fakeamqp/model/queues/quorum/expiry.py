"""Expiry of a quorum queue's messages, of which only those at a head expire, and of an unused queue."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, cast

from fakeamqp.model.operations import STEP
from fakeamqp.model.queues.queue import UNUSED_TOO_LONG, expires_messages

if TYPE_CHECKING:
    from fakeamqp.model.queues.quorum.queue import QuorumMessage, QuorumQueue
    from fakeamqp.model.queues.waiting import QueuedMessage
    from fakeamqp.model.timers import Label, Timer
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["MARGIN", "SHORTEST_LIFE", "Deadline", "Expiry", "IdleExpiry"]

MARGIN = 1e-9
"""Seconds by which a timer may fire early: instants are sums of floats."""


class Deadline:
    """Fires at one instant of the broker's clock, `due`; None means never.

    Args:
        virtual_host: its clock is used.
        callback: called when it fires.
    """

    __slots__ = ("_callback", "_timer", "_virtual_host", "due")

    def __init__(self, virtual_host: VirtualHost, callback: Callable[[], None]) -> None:
        self.due: float | None = None
        self._virtual_host = virtual_host
        self._callback = callback
        self._timer: Timer | None = None

    def set(self, due: float | None, label: Label) -> None:
        """Move the timer to an instant. Does nothing if that is `due` already."""
        if due == self.due:
            return
        self.stop()
        self.due = due
        self._timer = None if due is None else self._virtual_host.call_at(due, self._fire, label)

    def stop(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def _fire(self) -> None:
        self._timer = self.due = None
        self._callback()


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
