"""What is in the queues at a moment, and when all of it has come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.spark.records import Delivered

__all__ = ["Target"]


class Target:
    """A row to end at: behind the last message that was in a queue when the target was set.

    Messages of a queue come in its order, so as many as it held have to come; those that other queues send
    meanwhile do not count in their place.

    Attributes:
        row: the row to end at, exclusive; None as long as messages are missing.
    """

    def __init__(self) -> None:
        self.row: int | None = None
        self._missing: dict[str, int] = {}
        self._from = 0

    @property
    def pending(self) -> bool:
        """Whether messages are missing."""
        return self.row is None

    def rows_left(self, next_row: int) -> int | None:
        """How many rows from `next_row` on are not beyond the target; None if that is not known yet."""
        return None if self.row is None else max(self.row - next_row, 0)

    def expect(self, counts: Mapping[str, int], next_row: int) -> None:
        """Messages that come as `next_row` or later are what the queues hold now."""
        self._missing = {queue: count for queue, count in counts.items() if count}
        self._from = next_row
        self.row = None if self._missing else next_row

    def came(self, queue: str, end: int) -> None:
        """A message has come, or was left out; rows go up to `end`, exclusive."""
        left = self._missing.get(queue)
        if left is None or self.row is not None:
            return
        if left > 1:
            self._missing[queue] = left - 1
            return
        del self._missing[queue]
        if not self._missing:
            self.row = end

    def came_all(self, messages: Iterable[Delivered]) -> None:
        """Messages have come; those of before the target was set do not count."""
        if self.row is None:
            for message in messages:
                if message.offset >= self._from:
                    self.came(message.queue, message.offset + 1)

    def starts_again(self, next_row: int) -> None:
        """What had come and was not stored is lost, and comes again: it is counted anew, if it is needed."""
        if self.row is not None and self.row > next_row:
            self.row = None

    def settle_for(self, row: int) -> None:
        """Nothing more of it will come."""
        self._missing = {}
        self.row = row
