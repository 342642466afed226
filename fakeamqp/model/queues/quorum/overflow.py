"""The limits of a quorum queue (RabbitMQ: documented).

Above a limit the queue drops from its head, or it blocks publishers: a publisher that finds the queue above a
limit is refused until at most four fifths of the limits are used. The queue remembers this for each
publisher.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from fakeamqp.model.arguments import QueueOptions
    from fakeamqp.model.queues.quorum.queue import QuorumQueue

__all__ = ["Overflow"]

_SOFT_LIMIT = 0.8
"""Publishers are unblocked when at most this part of a limit is used."""


class _Anybody:
    """Stands for publishers that are not connections."""


_ANYBODY = _Anybody()


class Overflow:
    """The limits of one queue: `bounded` if there are any, `rejects` if it blocks publishers then."""

    __slots__ = ("_blocked", "_max_bytes", "_max_length", "_queue", "bounded", "rejects")

    def __init__(self, queue: QuorumQueue) -> None:
        self._queue = queue
        self.bounded: bool = False
        self.rejects: bool = False
        self._max_length: int | None = None
        self._max_bytes: int | None = None
        self._blocked: WeakKeyDictionary[object, bool] = WeakKeyDictionary()
        """By publisher, whether it is blocked (overflow reject-publish)."""

    def adopt(self, options: QueueOptions) -> None:
        """Apply new options."""
        self._max_length = options.max_length
        self._max_bytes = options.max_length_bytes
        self.bounded = self._max_length is not None or self._max_bytes is not None
        self.rejects = self.bounded and options.overflow == "reject-publish"

    def refuses(self, publisher: object) -> bool:
        """Whether this publisher is blocked; a new one is if the queue is above its limits now."""
        if publisher is None:
            publisher = _ANYBODY
        blocked = self._blocked.get(publisher)
        if blocked is None:
            blocked = self._blocked[publisher] = self._above()
        return blocked

    def would_refuse(self, publisher: object) -> bool:
        """The answer of `refuses`. Nothing changes."""
        if not self.rejects:
            return False
        blocked = self._blocked.get(_ANYBODY if publisher is None else publisher)
        return self._above() if blocked is None else blocked

    def _counts(self) -> tuple[int, int]:
        """The messages and bytes that count for the limits."""
        queue = self._queue
        count, octets = queue.parked.amount()
        return len(queue.ready) + count, queue.ready_bytes + octets

    def _above(self) -> bool:
        count, octets = self._counts()
        return (self._max_length is not None and count > self._max_length) or (
            self._max_bytes is not None and octets > self._max_bytes
        )

    def _below_soft_limits(self) -> bool:
        count, octets = self._counts()
        return (self._max_length is None or count <= int(self._max_length * _SOFT_LIMIT)) and (
            self._max_bytes is None or octets <= int(self._max_bytes * _SOFT_LIMIT)
        )

    def check(self) -> None:
        """Drop from the head, or block or unblock publishers."""
        if self.rejects:
            if self._above():
                for publisher in self._blocked:
                    self._blocked[publisher] = True
                return
            if not self._below_soft_limits():
                return
        elif self.bounded:
            queue = self._queue
            while len(queue.ready) and self._above():
                queue.parked.die(queue.pop(), "maxlen")
        if self._blocked:
            for publisher in self._blocked:
                self._blocked[publisher] = False
