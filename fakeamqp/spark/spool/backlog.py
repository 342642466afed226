"""The messages that are in the queues at one moment, and the row at which all of them have arrived."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.spark.records import DeliveredRow


class Backlog:
    """Counts the arrival of the messages that were in the queues when `expect` was called.

    Messages of a queue arrive in its order, so the backlog of a queue has arrived after as many messages as
    it had. Each queue is counted for itself.

    Attributes:
        row: the end of the backlog, exclusive; None while messages are missing.
    """

    def __init__(self) -> None:
        self.row: int | None = None
        self._missing: dict[str, int] = {}
        self._from = 0

    @property
    def pending(self) -> bool:
        """True while messages are missing."""
        return self.row is None

    def rows_left(self, next_row: int) -> int | None:
        """The number of rows of the backlog from `next_row` on; None while messages are missing."""
        return None if self.row is None else max(self.row - next_row, 0)

    def expect(self, counts: Mapping[str, int], next_row: int) -> None:
        """Start counting: the queues have `counts` messages, which arrive as row `next_row` or later."""
        self._missing = {queue: count for queue, count in counts.items() if count}
        self._from = next_row
        self.row = None if self._missing else next_row

    def message_arrived(self, queue: str, end: int) -> None:
        """Count a message that arrived or was dropped as a repetition; `end` is the end of the rows."""
        left = self._missing.get(queue)
        if left is None or self.row is not None:
            return
        if left > 1:
            self._missing[queue] = left - 1
            return
        del self._missing[queue]
        if not self._missing:
            self.row = end

    def messages_arrived(self, messages: Iterable[DeliveredRow]) -> None:
        """Count messages, without those that arrived before `expect`."""
        if self.row is None:
            for message in messages:
                if message.offset >= self._from:
                    self.message_arrived(message.queue, message.offset + 1)

    def returned(self, messages: Iterable[DeliveredRow], next_row: int) -> None:
        """Expect messages again that went back to their queues; the next row to arrive is `next_row`."""
        end = self._from if self.row is None else self.row
        for message in messages:
            if message.offset < end:
                self._missing[message.queue] = self._missing.get(message.queue, 0) + 1
                self.row = None
        self._from = next_row

    def restart(self, next_row: int) -> None:
        """Count again on a new channel: messages that were not stored are redelivered."""
        if self.row is not None and self.row > next_row:
            self.row = None

    def end_at(self, row: int) -> None:
        """Set the end, because no more messages of the backlog will arrive."""
        self._missing = {}
        self.row = row
