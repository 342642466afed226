"""The store of `ackMode=none`: messages are acknowledged before Spark sees them."""

from __future__ import annotations

from collections.abc import Sequence

from fakeamqp.spark.columns import Column
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.spool.memory import MemoryStore


class AtMostOnce(MemoryStore):
    """Rows in memory, whose messages are acknowledged before they are processed.

    At most once: what is in memory is lost when the query ends or fails, and no message is processed twice.
    To hold that, Spark gets rows only once the broker has answered a question that came after their
    acknowledgement. They are acknowledged by hand, unlike a consumer with `no_ack`, so that `prefetch` and
    the limit of memory hold.
    """

    shows_when_settled = True

    def __init__(self, options: ReadOptions, columns: Sequence[Column]) -> None:
        super().__init__(options, columns)
        self._settled = 0

    @property
    def visible(self) -> int:
        """The end of the rows whose acknowledgements the broker has processed."""
        return self._settled

    def settled(self, end: int) -> None:
        """Note that the broker has processed the acknowledgements of this channel for rows before `end`."""
        self._settled = max(self._settled, end)

    def new_channel(self) -> None:
        """Messages that may be unacknowledged are redelivered, so they are removed."""
        with self._lock:
            self._truncate(max(self._settled, self.committed))
