"""Rows between the broker and Spark, numbered in the order of arrival.

There is one store per acknowledgement mode. The consumer's thread adds rows, Spark's asks for ranges of
them and says what it is through with.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from fakeamqp.spark.columns import Column
from fakeamqp.spark.errors import DataLoss

if TYPE_CHECKING:
    from fakeamqp.spark.records import DeliveredRow

log: logging.Logger = logging.getLogger("fakeamqp.spark")


@dataclass(frozen=True)
class MemoryBlock:
    """Rows `first` to `end`, `end` exclusive, that are in memory only."""

    batch: pa.RecordBatch
    first: int
    end: int
    octets: int

    def load(self) -> pa.RecordBatch:
        """The rows."""
        return self.batch


#: Rows that came together; `fakeamqp.spark.spool.segments.SpoolSegment` is the other one.
Block = Any


@dataclass(frozen=True)
class Piece:
    """Some rows of a block: those from `start` to `stop` of it, `stop` exclusive."""

    block: Block
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def octets(self) -> int:
        """The approximate size of the rows in bytes."""
        block = self.block
        return int(block.octets * len(self) / max(block.end - block.first, 1))


class Store:
    """The common part of the stores of all acknowledgement modes. Rows are in blocks, oldest first.

    Attributes:
        id: which store the numbers belong to; offsets carry it.
        next: the number of the next row.
        committed: the first row that Spark is not through with, by its word.
        committed_tag: where messages are acknowledged when Spark is through with them: the last delivery tag
            of the present channel that may be.
        acks_on_arrival: whether messages are acknowledged once they are added.
        on_disk: whether rows take no memory.
        least_window: the smallest prefetch count that lets a query go on.
        settle_wanted: whether the broker should be asked, so that `settled` is called.
        shows_when_settled: whether Spark may see rows only once the broker knows that they were acknowledged.
    """

    acks_on_arrival: ClassVar[bool] = True
    on_disk: ClassVar[bool] = False
    least_window: ClassVar[int] = 1
    shows_when_settled: ClassVar[bool] = False

    def __init__(self, columns: Sequence[Column], max_bytes: int, fail_on_data_loss: bool) -> None:
        self.id = ""
        self.next: int = 0
        self.committed = 0
        self.committed_tag = 0
        self.settle_wanted = False
        self.columns: tuple[Column, ...] = tuple(columns)
        self._blocks: list[Block] = []
        self._max_bytes = max_bytes
        self._fail_on_data_loss = fail_on_data_loss
        self._processed = 0
        self._handed = 0
        self._waiting_bytes = 0
        self._lock = threading.RLock()

    # --- the consumer's side --------------------------------------------------------------------------

    def add(self, messages: Sequence[DeliveredRow]) -> None:
        """Add messages, numbered from `next` on. On return they are as safe as the mode guarantees."""
        raise NotImplementedError

    def new_channel(self) -> None:
        """Note a new channel. The unacknowledged messages of the previous one are redelivered."""

    def settled(self, end: int) -> None:
        """Note that the broker has processed the acknowledgements of this channel for rows before `end`."""

    def known(self, _queue: str, _message_id: str) -> bool:
        """True if the store has a message of this queue and id, so that another one is a repetition."""
        return False

    @property
    def visible(self) -> int:
        """The end of the rows that Spark may have."""
        return self.next

    @property
    def full(self) -> bool:
        """True if enough rows wait for Spark; never without any rows."""
        return self._waiting_bytes >= self._max_bytes and self.next > self._processed

    @property
    def waiting(self) -> tuple[int, int]:
        """The number of rows that Spark has not asked for yet, and their approximate size in bytes."""
        with self._lock:
            blocks = [block for block in self._blocks if block.end > self._handed]
            return self.next - self._handed, sum(block.octets for block in blocks)

    def timestamp_of_next(self) -> float | None:
        """The property `timestamp` of the next row for Spark, in seconds since 1970, if it is known."""
        with self._lock:
            row = self._handed
            block = next((each for each in self._blocks if each.first <= row < each.end), None)
        if block is None or getattr(block, "broken", None):
            return None
        batch = block.load()
        if "timestamp" not in batch.schema.names:
            return None
        found = batch.column("timestamp")[row - block.first].value
        return None if found is None else found / 1e6

    def close(self) -> None:
        """Release all resources."""

    # --- Spark's side ---------------------------------------------------------------------------------

    def hand_out(self, start: int, end: int, max_bytes: int | None = None) -> int:
        """Note that Spark gets rows from `start` up to `end`, or to the last row. Returns that end.

        Args:
            start: the first row.
            end: the end of the rows, exclusive.
            max_bytes: the maximum bytes of their bodies, but at least one row; None for no maximum.
        """
        with self._lock:  # Rows that were handed out stay if their channel is lost.
            end = min(end, self.visible)
            if max_bytes is not None and end > start:
                end = self.within(start, end, max_bytes)
            self._handed = max(self._handed, end)
            return end

    def processed(self, end: int) -> None:
        """Note that Spark asks for rows after `end`, so earlier rows no longer count for the size limit."""
        with self._lock:
            end = min(end, self.next)
            if end <= self._processed:
                return
            self._processed = end
            self._waiting_bytes = sum(block.octets for block in self._blocks if block.end > self._processed)

    def commit(self, end: int) -> None:
        """Note that Spark never asks for rows before `end` again."""
        raise NotImplementedError

    def position(self, offset: dict[str, Any]) -> int:
        """The row of an offset.

        Raises:
            DataLoss: if it is none of this store and that fails the query.
        """
        raise NotImplementedError

    def offset(self, row: int) -> dict[str, Any]:
        """The offset of a row."""
        return {"spool": self.id, "next": row}

    def pieces(self, start: int, end: int) -> list[Piece]:
        """The rows from `start` to `end`, exclusive.

        Raises:
            DataLoss: if some are gone and that fails the query.
        """
        found = []
        with self._lock:
            at = start
            for block in self._blocks:
                if block.end <= at or block.first >= end:
                    continue
                if block.first > at:
                    self._lost(f"rows {at} to {block.first - 1} are gone")
                at = max(at, block.first)
                upto = min(block.end, end)
                if getattr(block, "broken", None):
                    self._lost(f"rows {at} to {upto - 1} cannot be read: {block.path}: {block.broken}")
                else:
                    found.append(Piece(block, at - block.first, upto - block.first))
                at = upto
            if at < end:
                self._lost(f"rows {at} to {end - 1} are gone")
        return found

    def within(self, start: int, end: int, max_bytes: int) -> int:
        """The end of the rows from `start` whose bodies have at most this many bytes; at least one row."""
        import pyarrow.compute as pc

        left = max_bytes
        for piece in self.pieces(start, end):
            batch = piece.block.load()
            if "value" not in batch.schema.names:
                return end
            column = batch.column("value").slice(piece.start, len(piece))
            sizes = pc.cumulative_sum(pc.cast(pc.fill_null(pc.binary_length(column), 0), pa.int64()))
            fitting: int = pc.sum(pc.less_equal(sizes, left)).as_py() or 0
            if fitting < len(piece):
                return max(int(piece.block.first) + piece.start + fitting, start + 1)
            left -= int(sizes[-1].as_py())
        return end

    def _lost(self, what: str) -> None:
        if self._fail_on_data_loss:
            raise DataLoss(
                f"{what}; they were acknowledged, so the broker no longer has them. Bring the spool back, or "
                "say failOnDataLoss=false to go on without them"
            )
        log.warning("%s; continuing without them (failOnDataLoss=false)", what)

    def _append(self, block: Block) -> None:
        self._blocks.append(block)
        self.next = block.end
        self._waiting_bytes += block.octets
