"""The store of `ackMode=none`: messages are acknowledged before Spark sees them."""

from __future__ import annotations

from collections.abc import Sequence

from fakeamqp.spark.columns import Column
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.spool.memory import MemoryStore

__all__ = ["AtMostOnce"]


class AtMostOnce(MemoryStore):
    """Rows in memory, whose messages are acknowledged before anything is done with them.

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
        """Up to where the broker knows that messages were acknowledged."""
        return self._settled

    def settled(self) -> None:
        """The broker knows all acknowledgements sent so far."""
        self._settled = self.next

    def new_channel(self) -> None:
        """What is not known to have been acknowledged may come again: it is forgotten."""
        with self._lock:
            self._truncate(max(self._settled, self.committed))
