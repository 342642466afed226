"""Rows between the broker and Spark, numbered in the order of their arrival.

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
    from fakeamqp.spark.records import Delivered

__all__ = ["Block", "MemoryBlock", "Piece", "Store"]

log = logging.getLogger("fakeamqp.spark")


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


#: Rows that came together; `fakeamqp.spark.spool.segments.Segment` is the other one.
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
        """About how large the rows are."""
        block = self.block
        return int(block.octets * len(self) / max(block.end - block.first, 1))


class Store:
    """What the stores of all acknowledgement modes share. Rows live in blocks, oldest first.

    Attributes:
        id: which store the numbers belong to; offsets carry it.
        next: the number of the next row.
        committed: the first row that Spark is not through with, by its word.
        committed_tag: where messages are acknowledged when Spark is through with them: the last delivery tag
            of the present channel that may be.
        acks_on_arrival: whether messages are acknowledged once they are added.
        shows_when_settled: whether Spark may see rows only once the broker knows that they were acknowledged.
    """

    acks_on_arrival: ClassVar[bool] = True
    shows_when_settled: ClassVar[bool] = False

    def __init__(self, columns: Sequence[Column], max_bytes: int, fail_on_data_loss: bool) -> None:
        self.id = ""
        self.next = 0
        self.committed = 0
        self.committed_tag = 0
        self.columns = tuple(columns)
        self._blocks: list[Block] = []
        self._max_bytes = max_bytes
        self._fail_on_data_loss = fail_on_data_loss
        self._processed = 0
        self._handed = 0
        self._waiting_bytes = 0
        self._lock = threading.RLock()

    # --- the consumer's side --------------------------------------------------------------------------

    def add(self, messages: Sequence[Delivered]) -> None:
        """Take messages in, numbered from `next` on; they are as safe as the mode promises on return."""
        raise NotImplementedError

    def new_channel(self) -> None:
        """A channel was opened in place of one that is gone, with all that it had not acknowledged."""

    def settled(self) -> None:
        """The broker knows all acknowledgements sent so far."""

    def known(self, _queue: str, _message_id: str) -> bool:
        """Whether a message of this queue and id is in the store, and a second one is a repetition."""
        return False

    @property
    def visible(self) -> int:
        """Up to where there are rows that Spark may have."""
        return self.next

    @property
    def full(self) -> bool:
        """Whether there is enough waiting for Spark; never when nothing is."""
        return self._waiting_bytes >= self._max_bytes and self.next > self._processed

    def close(self) -> None:
        """Let go of everything."""

    # --- Spark's side ---------------------------------------------------------------------------------

    def hand_out(self, end: int) -> int:
        """Note that Spark gets rows up to `end`, or as far as there are any; where that is."""
        with self._lock:
            end = min(end, self.visible)
            self._handed = max(self._handed, end)
            return end

    def processed(self, end: int) -> None:
        """Spark asks for what comes after `end`: what is before makes room for more."""
        with self._lock:
            end = min(end, self.next)
            if end <= self._processed:
                return
            self._processed = end
            self._waiting_bytes = sum(block.octets for block in self._blocks if block.end > self._processed)

    def commit(self, end: int) -> None:
        """Spark will never ask for rows before `end` again."""
        raise NotImplementedError

    def position(self, offset: dict[str, Any]) -> int:
        """The row that an offset means.

        Raises:
            DataLoss: if it is none of this store and that fails the query.
        """
        raise NotImplementedError

    def offset(self, row: int) -> dict[str, Any]:
        """The offset that means this row."""
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
        """How far rows from `start` on have bodies of at most so many bytes together; at least one row."""
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
                f"{what}; they were acknowledged, so the broker has them no more. Bring the spool back, or "
                "say failOnDataLoss=false to go on without them"
            )
        log.warning("%s; going on without them, as failOnDataLoss=false says", what)

    def _append(self, block: Block) -> None:
        self._blocks.append(block)
        self.next = block.end
        self._waiting_bytes += block.octets
