"""The messages that wait in a queue with the priority levels of Apache's brokers."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from fakeamqp.model.queues.ready import PriorityFifo

if TYPE_CHECKING:
    from fakeamqp.model.queues.queue import QueuedMessage

__all__ = ["FairShareFifo"]

_MEDIUM = 4
"""The priority of messages without one (0-10: message.delivery-priority)."""


class FairShareFifo(PriorityFifo):
    """Priority levels around the middle of the priorities, the highest first.

    With `shares`, a level that has delivered its share pauses until all lower levels have delivered theirs or
    are empty. A share of 0 never pauses.
    """

    __slots__ = ("_had", "_shares")

    def __init__(self, levels: int, shares: tuple[int, ...] = ()) -> None:
        super().__init__(levels - 1)
        self._shares = shares
        self._had = [0] * levels
        """How many messages each level has delivered in this round."""

    def number(self, queued: QueuedMessage) -> int:
        """See the base class; a message without a priority counts as one of medium priority."""
        priority = queued.message.properties.priority
        lowest = 5 - ceil(len(self._levels) / 2)
        number = (_MEDIUM if priority is None else priority) - lowest
        return min(max(number, 0), self._maximum)

    def _next(self) -> int:
        """The level that the next message comes from; there must be one."""
        filled = [number for number in range(self._maximum, -1, -1) if self._levels[number]]
        if self._shares:
            for number in filled:
                if not self._shares[number] or self._had[number] < self._shares[number]:
                    return number
        return filled[0]

    def head(self) -> QueuedMessage | None:
        """The message delivered next, left in place."""
        return self._levels[self._next()].head() if self._used else None

    def pop(self) -> QueuedMessage:
        """Take the message delivered next."""
        number = self._next()
        if self._shares:
            if self._shares[number] and self._had[number] >= self._shares[number]:
                self._had = [0] * len(self._had)  # All levels have delivered their shares: a new round.
            self._had[number] += 1
        return self._pop(number)
