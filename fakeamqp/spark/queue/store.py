"""Rows between the broker and Spark, numbered in the order of arrival; and the stores in memory.

There is one store per acknowledgement mode. The consumer's thread adds rows. Spark's thread asks for ranges
of them, and commits the rows that it has processed.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from fakeamqp.spark.errors import OptionError
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.queue.partitions import Block, Piece
from fakeamqp.spark.rows.columns import Column
from fakeamqp.spark.rows.record_batches import DeliveredRow, record_batch
from fakeamqp.spark.spools import data_loss

log: logging.Logger = logging.getLogger("fakeamqp.spark")


class Store:
    """Rows in blocks, oldest first. Those in memory are lost with the query."""

    acks_on_arrival: ClassVar[bool] = True  # Whether messages do not wait for Spark's commit.
    on_disk: ClassVar[bool] = False  # Whether rows take no memory.
    least_window: ClassVar[int] = 1  # The smallest prefetch count that lets a query go on.

    def __init__(self, options: ReadOptions, columns: Sequence[Column]) -> None:
        self.id: str = str(uuid.uuid4())  # Which store the numbers belong to; offsets carry it.
        self.next: int = 0  # The number of the next row.
        self.committed: int = 0  # The first row that Spark has not committed.
        self._columns = tuple(columns)
        self._blocks: list[Block] = []
        self._max_bytes = options.spool_max_bytes
        self._options = options
        self._settled = self._processed = self._handed = self._unprocessed_bytes = 0
        self._lock = threading.RLock()

    # --- the consumer's side --------------------------------------------------------------------------

    def add(self, messages: Sequence[DeliveredRow]) -> None:
        """Add messages, numbered from `next` on. On return they are as safe as the mode guarantees."""
        batch = record_batch(messages, self._columns)
        self._append(Block(self.next, self.next + batch.num_rows, batch.nbytes, batch))

    def new_channel(self) -> None:
        """Note a new channel: the unacknowledged messages of the previous one are redelivered."""
        with self._lock:
            end = max(self._lasting, self.committed)
            if end < self.next:
                log.info("%d messages that Spark did not get are redelivered", self.next - end)
            blocks, self._blocks = self._blocks, []
            self.next, self._unprocessed_bytes = end, 0
            for block in blocks:
                if block.first < end:
                    batch = block.load().slice(0, end - block.first)
                    self._append(Block(block.first, block.first + batch.num_rows, batch.nbytes, batch))

    @property
    def _lasting(self) -> int:
        """The end of the rows that stay when a channel ends: later ones are those of redelivered messages."""
        return self._settled

    def settled(self, end: int) -> None:
        """Note that the broker has processed the acknowledgements of this channel for rows before `end`."""
        with self._lock:
            self._settled = max(self._settled, end)

    def repeats(self, _queue: str, _properties: bytes, _body: bytes) -> bool:
        """Whether a redelivered message is a row already, so that it must not become another one."""
        return False

    @property
    def visible(self) -> int:
        """The end of the rows that Spark may have."""
        return self.next

    @property
    def full(self) -> bool:
        """True if enough rows wait for Spark; never without any rows."""
        return self._unprocessed_bytes >= self._max_bytes and self.next > self._processed

    @property
    def waiting(self) -> tuple[int, int]:
        """The number of rows that Spark has not asked for yet, and their approximate size in bytes."""
        with self._lock:
            size = sum(block.size for block in self._blocks if block.end > self._handed)
            return self.next - self._handed, size

    def timestamp_of_next(self) -> float | None:
        """The property `timestamp` of the next row for Spark, in seconds since 1970, if it is known."""
        with self._lock:
            row = self._handed
            block = next((each for each in self._blocks if each.first <= row < each.end), None)
        if block is None or block.broken or "timestamp" not in (batch := block.load()).schema.names:
            return None
        found = batch.column("timestamp")[row - block.first].value
        return None if found is None else found / 1e6

    def close(self) -> None:
        """Release all resources."""

    # --- Spark's side ---------------------------------------------------------------------------------

    def hand_out(self, start: int, end: int, max_bytes: int | None = None) -> int:
        """Note that Spark gets rows up to `end`, as far as they are visible. Returns their end.

        With `max_bytes` it gets only as many rows as have bodies of so many bytes, but at least one.
        """
        with self._lock:
            end = min(end, self.visible)
            if max_bytes is not None and end > start:
                end = self.within(start, end, max_bytes)
            self._handed = max(self._handed, end)
            return end

    def processed(self, end: int) -> None:
        """Note that Spark asks for rows after `end`, so earlier rows no longer count for the size limit."""
        with self._lock:
            end = min(end, self.next)
            if end > self._processed:
                self._processed = end
                self._unprocessed_bytes = sum(block.size for block in self._blocks if block.end > end)

    def commit(self, end: int) -> None:
        """Note that Spark never asks for rows before `end` again, and remove those that nothing needs."""
        with self._lock:
            self.committed = max(self.committed, min(end, self.next))
            self._blocks = [block for block in self._blocks if block.end > self.committed]
            self.processed(self.committed)

    def offset(self, row: int) -> dict[str, Any]:
        """The offset of a row."""
        return {"spool": self.id, "next": row}

    def position(self, offset: dict[str, Any]) -> int:
        """The row of an offset. In memory, one of an earlier run of the query is before all rows.

        Raises:
            DataLoss: the spool does not belong to the checkpoint, and that fails the query.
        """
        row = offset.get("next")
        return row if offset.get("spool") == self.id and isinstance(row, int) else 0

    def pieces(self, start: int, end: int) -> list[Piece]:
        """The rows from `start` to `end`, exclusive; in memory, as far as they have not been committed.

        Raises:
            DataLoss: if some are gone and that fails the query.
        """
        found = []
        with self._lock:
            at = start if self.on_disk else max(start, self.committed)
            for block in self._blocks:
                if block.end <= at or max(block.first, at) >= end:
                    continue
                if block.first > at:
                    data_loss(self._options, f"rows {at} to {block.first - 1} are gone")
                at, upto = max(at, block.first), min(block.end, end)
                if block.broken:
                    data_loss(
                        self._options, f"rows {at} to {upto - 1} cannot be read: {block.path}: {block.broken}"
                    )
                else:
                    found.append(Piece(block, at - block.first, upto - block.first))
                at = upto
            if at < end:
                data_loss(self._options, f"rows {at} to {end - 1} are gone")
        return found

    def within(self, start: int, end: int, max_bytes: int) -> int:
        """The end of the rows from `start` whose bodies have at most this many bytes; at least one row."""
        left = max_bytes
        for piece in self.pieces(start, end):
            batch = piece.block.load()
            if "value" not in batch.schema.names:
                return end
            column = batch.column("value").slice(piece.start, len(piece))
            sizes = pc.cumulative_sum(pc.cast(pc.fill_null(pc.binary_length(column), 0), pa.int64()))
            fitting: int = pc.sum(pc.less_equal(sizes, left)).as_py() or 0
            if fitting < len(piece):
                return max(piece.block.first + piece.start + fitting, start + 1)
            left -= int(sizes[-1].as_py())
        return end

    def _append(self, block: Block) -> None:
        with self._lock:
            self._blocks.append(block)
            self.next = block.end
            if block.end > self._processed:
                self._unprocessed_bytes += block.size


class UntilCommit(Store):
    """Rows in memory, whose messages are acknowledged when Spark commits them (`ackMode=commit`).

    The batch in progress comes again when its channel ends, also because of a window that was too wide. A
    batch has at most half of `prefetch`: Spark commits it only when it plans the next one.

    A batch that Spark wrote down and did not finish before a crash is empty when it is repeated, because an
    offset means nothing to another channel. It does not get what happens to be in the queue: a sink that
    knows the number of the batch would leave that out.
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

    @property
    def _lasting(self) -> int:
        return self._handed


class AtMostOnce(Store):
    """Rows in memory, whose messages are acknowledged before Spark sees them (`ackMode=none`).

    At most once: what is in memory is lost when the query ends or fails, and no message is processed twice.
    So Spark gets rows only once the broker has answered a question that came after their acknowledgement.
    Without acknowledgements, as with `no_ack`, neither `prefetch` nor the limit of memory would hold.
    """

    @property
    def visible(self) -> int:
        """The end of the rows whose acknowledgements the broker has processed."""
        return self._settled
