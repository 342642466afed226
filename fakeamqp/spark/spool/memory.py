"""The common part of the stores of `ackMode=commit` and `none`: rows in memory, lost with the query."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from fakeamqp.spark.columns import Column
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.records import DeliveredRow, record_batch
from fakeamqp.spark.spool.store import MemoryBlock, Piece, Store, log


class MemoryStore(Store):
    """Rows in memory. Offsets of an earlier run of the query stand for rows that no longer exist."""

    def __init__(self, options: ReadOptions, columns: Sequence[Column]) -> None:
        super().__init__(columns, options.spool_max_bytes, options.fail_on_data_loss)
        self.id: str = str(uuid.uuid4())

    def add(self, messages: Sequence[DeliveredRow]) -> None:
        """Keep messages."""
        batch = record_batch(messages, self.columns)
        with self._lock:
            self._append(MemoryBlock(batch, self.next, self.next + batch.num_rows, batch.nbytes))

    def commit(self, end: int) -> None:
        """Remove the rows before `end`."""
        with self._lock:
            self.committed: int = max(self.committed, min(end, self.next))
            self._blocks = [block for block in self._blocks if block.end > self.committed]
            self.processed(self.committed)

    def position(self, offset: dict[str, Any]) -> int:
        """The row of an offset; one of an earlier run is before all rows."""
        row = offset.get("next")
        if offset.get("spool") == self.id and isinstance(row, int):
            return row
        return 0

    def pieces(self, start: int, end: int) -> list[Piece]:
        """The rows from `start` to `end`, exclusive, as far as they have not been committed."""
        return super().pieces(max(start, self.committed), end) if end > self.committed else []

    def _truncate(self, end: int) -> None:
        """Remove the rows from `end` on."""
        kept = []
        for block in self._blocks:
            if block.first < end:
                rows = min(block.end, end) - block.first
                batch = block.batch.slice(0, rows)
                kept.append(MemoryBlock(batch, block.first, block.first + rows, batch.nbytes))
        if end < self.next:
            log.info("%d messages that Spark did not get are redelivered", self.next - end)
        self.next: int
        self._blocks, self.next = kept, end
        self._waiting_bytes = sum(block.octets for block in kept if block.end > self._processed)
