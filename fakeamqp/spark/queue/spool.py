"""The store of `ackMode=spool`: segments on the disk, which outlive the query."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from fakeamqp.spark.errors import SpoolError
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.queue.folder import FolderLock, SpoolFolder
from fakeamqp.spark.queue.store import Store
from fakeamqp.spark.rows.columns import Column
from fakeamqp.spark.rows.record_batches import DeliveredRow, record_batch
from fakeamqp.spark.rows.repetitions import Repetitions
from fakeamqp.spark.spools import check_kind, data_loss

# Where messages come one by one, the acknowledgements of older segments have been answered long ago.
_KEPT_SEGMENTS = 200


class Spool(Store):
    """Segments on the disk: a message is acknowledged once it is there, and a range of rows stays the same.

    A message that was stored, and whose acknowledgement did not reach the broker before the channel ended, is
    redelivered: `repeats` recognizes it. Committed segments are kept for as long as their messages may be
    redelivered.

    Raises:
        SpoolError: if the folder cannot be used, or another query has it.
        DataLoss: if segments that Spark has not processed cannot be read and that fails the query.
    """

    on_disk = True
    id: str
    next: int
    committed: int

    def __init__(self, options: ReadOptions, columns: Sequence[Column]) -> None:
        self._repetitions = Repetitions(options.dedupe, columns, self._earlier, by_queue=True)
        super().__init__(options, self._repetitions.columns)
        # Between the disk and the broker there are at most as many as the broker sends without an ack.
        self._kept_rows = 2 * options.prefetch * len(options.queues) if self._repetitions else 0
        path = _path_of(options.spool_folder or "")
        self._lock_of_folder = FolderLock(path)
        try:
            self._folder = SpoolFolder(path, sync=options.spool_sync)
            self.id, self.committed = self._folder.state()
            self._processed = self._handed = self.next = self.committed
            for segment in self._folder.segments():
                if segment.end <= self.committed:
                    self._blocks.append(segment)
                    continue
                if segment.first > self.next:
                    data_loss(self._options, f"rows {self.next} to {segment.first - 1} of the spool are gone")
                if segment.broken:
                    data_loss(self._options, f"segment {segment.path} cannot be read: {segment.broken}")
                self._append(segment)
        except BaseException:
            self.close()
            raise
        # Messages of rows before it are those of earlier channels; of rows before the other, unless settled.
        self._first_of_channel = self._may_return = self.next

    def new_channel(self) -> None:
        """Note a new channel: the unacknowledged messages of the previous one are redelivered."""
        with self._lock:
            if self._settled < self.next:
                self._may_return = self.next
            self._first_of_channel = self.next
            self._repetitions.forget()

    def add(self, messages: Sequence[DeliveredRow]) -> None:
        """Write messages to the disk as a segment, or raise a SpoolError: they are not acknowledged then."""
        try:
            self._append(self._folder.write(self.next, record_batch(messages, self._columns)))
        except SpoolError as error:
            raise SpoolError(
                f"{error}; its messages were not acknowledged, and are still in the queue"
            ) from None

    def repeats(self, queue: str, properties: bytes, body: bytes) -> bool:
        """Whether a redelivered message is a row that an earlier channel has stored."""
        with self._lock:
            return self._repetitions.has(queue, properties, body)

    def _earlier(self) -> Iterator[pa.RecordBatch]:
        for segment in self._blocks:
            if segment.first < self._first_of_channel and not segment.broken:
                yield segment.load()

    def commit(self, end: int) -> None:
        """Note that Spark never asks for rows before `end` again, and remove segments that nothing needs."""
        with self._lock:
            if end <= self.committed:
                return
            self.committed = min(end, self.next)
            self.processed(self.committed)
            self._folder.save(self.id, self.committed)
            first_kept = self._first_kept()
            removed, self._blocks[:first_kept] = self._blocks[:first_kept], []
            self._folder.remove(removed)
            if all(block.first >= self._first_of_channel for block in self._blocks[:1]):
                self._repetitions.forget()  # They count no segment that is left.

    def _first_kept(self) -> int:
        """The index of the first block that is kept: those that are processed tell what is redelivered.

        They are kept for as many rows as the broker may redeliver. Rows whose acknowledgements it has
        processed are kept, too, because a crash of the broker may lose these; but not if they are large.
        """
        blocks = self._blocks
        index = done = sum(1 for segment in blocks if segment.end <= self.committed)
        may_return = bool(blocks) and blocks[0].first < self._may_return
        rows = size = 0
        while index > 0 and rows < self._kept_rows and done - index < _KEPT_SEGMENTS:
            block = blocks[index - 1]
            size += block.size
            if size > self._max_bytes and block.end <= self._settled and not may_return:
                break
            index -= 1
            rows += block.end - block.first
        return index

    def position(self, offset: dict[str, Any]) -> int:
        """The row of an offset; data is lost if it is of another spool, or of a later state of this one."""
        spool, row, path = offset.get("spool"), offset.get("next"), self._folder.path
        if spool == self.id and isinstance(row, int) and row <= self.next:
            return row
        if spool == self.id:
            data_loss(
                self._options,
                f"the checkpoint continues at row {row}, and the spool in {path} ends at {self.next}",
            )
        else:
            data_loss(
                self._options, f"the checkpoint belongs to spool {spool}, and {path} has spool {self.id}"
            )
        return self.committed

    def close(self) -> None:
        """Release the lock of the folder."""
        self._lock_of_folder.release()


def _path_of(said: str) -> Path:
    """The folder of the option, created if necessary, or a SpoolError."""
    name = said.removeprefix("file://").removeprefix("file:")
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
