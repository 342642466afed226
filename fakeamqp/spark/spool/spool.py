"""The store of `ackMode=spool`: segments on the disk, which outlive the query."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from fakeamqp.spark.columns import SOURCE_COLUMNS, Column
from fakeamqp.spark.errors import DataLoss, SpoolError
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.records import DeliveredRow, record_batch
from fakeamqp.spark.spool.lock import FolderLock
from fakeamqp.spark.spool.segments import SpoolFolder, SpoolSegment, SpoolState
from fakeamqp.spark.spool.store import Store, log
from fakeamqp.spark.spool_kinds import check_kind

# Where messages come one by one, the acknowledgements of older segments have been answered long ago.
_KEPT_SEGMENTS = 200
_IDENTITY = tuple(column for column in SOURCE_COLUMNS if column.name in ("queue", "message_id"))


class Spool(Store):
    """Segments on the disk: a message is acknowledged once it is there, and a range of rows stays the same.

    A message that was spooled, and whose acknowledgement did not reach the broker before a crash, comes
    again. With `dedupe` it is recognised by its queue and message id, and dropped; so committed segments are
    kept for as long as a message in them may be redelivered.

    Raises:
        SpoolError: if the folder cannot be used, or another query has it.
        DataLoss: if segments that Spark has not processed cannot be read and that fails the query.
    """

    on_disk = True

    def __init__(self, options: ReadOptions, columns: Sequence[Column]) -> None:
        stored = tuple(columns)
        if options.dedupe:
            stored += tuple(column for column in _IDENTITY if column not in stored)
        super().__init__(stored, options.spool_max_bytes, options.fail_on_data_loss)
        path = _folder(options.spool_folder or "")
        self._lock_of_folder = FolderLock(path)
        try:
            self._folder = SpoolFolder(path, sync=options.spool_sync)
            state = self._folder.state()
            self.id: str = state.spool
            self.next: int
            self.committed = self._processed = self._handed = self.next = state.committed
            for segment in self._folder.segments():
                self._recover(segment)
        except BaseException:
            self._lock_of_folder.release()
            raise
        self._dedupe = options.dedupe
        # Between the disk and the broker there are at most as many as the broker sends without an ack.
        self._kept_rows = 2 * options.prefetch * len(options.queues) if options.dedupe else 0
        self._ids: set[tuple[str, str]] | None = None
        self._settled = 0
        # Rows before this one are of earlier channels, and their messages may be redelivered.
        self._may_return = self.next

    def new_channel(self) -> None:
        """Note a new channel. The unacknowledged messages of the previous one are redelivered."""
        with self._lock:
            if self._settled < self.next:
                self._may_return = self.next

    def settled(self, end: int) -> None:
        """Note that the broker has processed the acknowledgements of this channel for rows before `end`."""
        with self._lock:
            self._settled = max(self._settled, end)
            self.settle_wanted = False

    def add(self, messages: Sequence[DeliveredRow]) -> None:
        """Write messages to the disk as a segment.

        Raises:
            SpoolError: if they cannot be written; they must not be acknowledged then.
        """
        batch = record_batch(messages, self.columns)
        try:
            segment = self._folder.write(self.next, batch)
        except SpoolError as error:
            raise SpoolError(
                f"{error}; its messages were not acknowledged, and are still in the queue"
            ) from None
        with self._lock:
            self._append(segment)
            if self._ids is not None:
                self._ids.update(_identities(batch))

    def known(self, queue: str, message_id: str) -> bool:
        """True if the spool has such a message, as far back as one may be redelivered."""
        if not self._dedupe:
            return False
        with self._lock:
            if self._ids is None:
                # Loaded on demand: most queries get no redelivered message.
                self._ids = set()
                for segment in self._blocks:
                    if not segment.broken:
                        self._ids.update(_identities(segment.load()))
            return (queue, message_id) in self._ids

    def commit(self, end: int) -> None:
        """Remove segments that are no longer needed."""
        with self._lock:
            if end <= self.committed:
                return
            self.committed: int = min(end, self.next)
            self.processed(self.committed)
            self._folder.save(SpoolState(self.id, self.committed))
            first_kept = self._first_kept()
            removed, self._blocks[:first_kept] = self._blocks[:first_kept], []
            if removed:
                self._ids = None
                self._folder.remove(removed)

    def _first_kept(self) -> int:
        """The index of the first block that is kept: those that are processed know what may come again.

        They are kept for as many rows as the broker may redeliver. Rows whose acknowledgements it has
        processed are kept, too, because a crash of the broker may lose these; but not if they are large.
        """
        blocks = self._blocks
        index = done = sum(1 for segment in blocks if segment.end <= self.committed)
        oldest_may_return = bool(blocks) and blocks[0].first < self._may_return
        rows = octets = 0
        while index > 0 and rows < self._kept_rows and done - index < _KEPT_SEGMENTS:
            block = blocks[index - 1]
            octets += block.octets
            if octets > self._max_bytes and not oldest_may_return:
                if block.end <= self._settled:
                    break
                self.settle_wanted: bool = True
            index -= 1
            rows += block.end - block.first
        return index

    def position(self, offset: dict[str, Any]) -> int:
        """The row of an offset.

        Raises:
            DataLoss: if this is not the spool that the checkpoint was written with, or it is an older state
                of it, and that fails the query.
        """
        spool, row = offset.get("spool"), offset.get("next")
        if spool == self.id and isinstance(row, int) and row <= self.next:
            return row
        what = (
            f"the checkpoint goes on at row {row}, and the spool in {self._folder.path} ends at {self.next}"
            if spool == self.id
            else f"the checkpoint belongs to spool {spool}, and {self._folder.path} has spool {self.id}"
        )
        if self._fail_on_data_loss:
            raise DataLoss(
                f"{what}; bring back the spool that belongs to the checkpoint, start with a new checkpoint, "
                "or set failOnDataLoss=false to continue with the remaining messages"
            )
        log.warning("%s; continuing with the remaining messages (failOnDataLoss=false)", what)
        return self.committed

    def close(self) -> None:
        """Release the lock of the folder."""
        self._lock_of_folder.release()

    def _recover(self, segment: SpoolSegment) -> None:
        if segment.end > self.committed:
            if segment.first > self.next:
                self._lost(f"rows {self.next} to {segment.first - 1} of the spool are gone")
            if segment.broken:
                self._lost(f"segment {segment.path} cannot be read: {segment.broken}")
            self._append(segment)
        else:
            self._blocks.append(segment)


def _folder(said: str) -> Path:
    """The folder of the option, created if necessary.

    Raises:
        SpoolError: if it cannot be.
    """
    name = said.removeprefix("file://") if said.startswith("file://") else said.removeprefix("file:")
    if "://" in name:
        raise SpoolError(
            f"spoolDir is {said!r}; it has to be a folder of the driver's own file system, where files can "
            "be locked and brought to the disk"
        )
    path = Path(os.path.abspath(name))
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpoolError(f"cannot make the spool's folder {path}: {error.strerror}") from None
    check_kind(str(path), os.listdir(path), shards=False)
    return path


def _identities(batch: pa.RecordBatch) -> set[tuple[str, str]]:
    if not {"queue", "message_id"} <= set(batch.schema.names):
        return set()
    queues, ids = (batch.column(name).to_pylist() for name in ("queue", "message_id"))
    return {(queue, each) for queue, each in zip(queues, ids, strict=True) if each is not None}
