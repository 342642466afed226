"""The store of `ackMode=commit`: the broker keeps messages until Spark has processed them."""

from __future__ import annotations

from collections.abc import Sequence

from fakeamqp.spark.columns import Column
from fakeamqp.spark.errors import OptionError
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.records import DeliveredRow
from fakeamqp.spark.spool.memory import MemoryStore


class UntilCommit(MemoryStore):
    """Rows in memory, whose messages are acknowledged when Spark commits them.

    It promises less than the spool:

    - At least once. Spark commits a batch when it plans the next one, so the last batch of a query is never
      acknowledged, and is redelivered after every restart.
    - A batch that Spark wrote down and did not finish before a crash is empty when it is repeated, and its
      messages come in a later one: an offset means nothing to another channel. They are never taken from what
      happens to be in the queue, since a sink that knows the batch's number would leave those out.
    - Messages are without an acknowledgement for as long as a batch takes; the broker's limit for that has to
      be longer.
    - No more messages are in a batch than half of `prefetch`: the other half is for the next one.

    Raises:
        OptionError: if the broker may only send one message at a time.
    """

    acks_on_arrival = False
    least_window = 2

    def __init__(self, options: ReadOptions, columns: Sequence[Column]) -> None:
        if options.prefetch < 2:
            raise OptionError(
                "option 'prefetch' is 1; with ackMode=commit it has to be 2 or more, since a batch is "
                "acknowledged only when there is another one"
            )
        super().__init__(options, columns)
        self._first_of_channel = 0
        self._tags: dict[int, int] = {}

    def add(self, messages: Sequence[DeliveredRow]) -> None:
        """Keep messages with their delivery tags."""
        with self._lock:
            tags = (message.tag for message in messages)
            self._tags.update(zip(range(self.next, self.next + len(messages)), tags, strict=True))
            super().add(messages)

    def commit(self, end: int) -> None:
        """Remove the rows before `end`, and acknowledge their messages."""
        with self._lock:
            for row in range(self.committed, min(end, self.next)):
                tag = self._tags.pop(row, 0)
                if row >= self._first_of_channel:
                    self.committed_tag = tag
            super().commit(end)

    def new_channel(self) -> None:
        """All unacknowledged messages are redelivered, so those that Spark does not have yet are removed."""
        with self._lock:
            self._truncate(max(self._handed, self.committed))
            self._tags = {}
            self._first_of_channel = self.next
            self.committed_tag: int = 0
