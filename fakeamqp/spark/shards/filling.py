"""Takes messages from one shard into a segment, in an executor.

The order is: lease, deliveries, file, note, acknowledgement. A crash before the file is complete leaves a
temporary file; one after it leaves messages that are redelivered, and that the next segments leave out. The
note says that a segment was complete, so that one that is lost later is not filled again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from fakeamqp.spark.errors import BrokerUnreachable, ConnectionLost, QueueRefused
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.rows.columns import Column, arrow_schema
from fakeamqp.spark.rows.identity import stream_offset
from fakeamqp.spark.rows.record_batches import DeliveredRow, record_batch
from fakeamqp.spark.rows.repetitions import Repetitions
from fakeamqp.spark.shards.folder import Filled, SharedFolder
from fakeamqp.spark.spools import data_loss
from fakeamqp.spark.wire.exact import ExactConsumer
from fakeamqp.spark.wire.lease import LeaseTaken, lease_name, release_lease, take_lease
from fakeamqp.spark.wire.pool import lend
from fakeamqp.spark.wire.queue_types import check_is_no_stream
from fakeamqp.spark.wire.retries import RetryBudget

if TYPE_CHECKING:
    from fakeamqp.spark.shards.reader import ShardPartition
    from fakeamqp.spark.wire.connection import WireConnection

log: logging.Logger = logging.getLogger("fakeamqp.spark")

#: The segments before the present one that may have messages which are redelivered.
KEPT = 8

#: More rows than a segment has. The column `offset` is the number of the segment times this, plus the row.
ROWS = 1 << 32

# Seconds without a delivery after which the queue is asked whether it is empty.
_QUIET = 0.02


def fill(
    options: ReadOptions,
    folder: SharedFolder,
    partition: ShardPartition,
    number: int,
    columns: Sequence[Column],
) -> bool:
    """Complete a segment of a shard, by its number, unless it is complete already.

    Returns:
        False if it was complete before and is gone, and that is no error.

    Raises:
        DataLoss: it was complete before and is gone.
        OptionError: the shard is a stream.
        BrokerUnreachable, ConnectionLost, QueueRefused: the shard cannot be read for as long as
            `reconnectTimeout`, or its lease is not free for so long.
        SpoolError: the segment cannot be written.
    """
    shard, lease = partition.shard, lease_name(partition.spool, partition.shard)
    retries = RetryBudget(options.reconnect_timeout)
    while True:
        there = folder.contents(shard)
        if number in there.sizes:
            if number not in there.filled:  # The attempt that completed it ended before it noted that.
                rows = sum(batch.num_rows for batch in folder.read(shard, number))
                folder.note(shard, number, Filled(rows))
            return True
        if number in there.filled:
            data_loss(options, f"segment {number} of shard {shard!r} is gone from {folder.path}")
            return False
        try:
            with lend(options.connection) as connection:
                take_lease(connection, lease, options.reconnect_timeout)
                # The task that had the lease before may have completed it.
                if number not in folder.contents(shard).sizes:
                    SegmentFiller(connection, options, folder, partition, number, columns).run()
                release_lease(connection, lease)
        except (ConnectionLost, BrokerUnreachable, QueueRefused) as error:
            if number in folder.contents(shard).sizes:
                log.warning("%s; segment %d of %r is complete, and may be redelivered", error, number, shard)
                continue
            if isinstance(error, LeaseTaken):
                raise
            pause = retries.pause(error)
            log.warning("%s; connecting again", error)
            time.sleep(pause)


@dataclass
class SegmentFiller:
    """Takes the messages of one segment from the queue, writes them to the file, and acknowledges them."""

    connection: WireConnection
    options: ReadOptions
    folder: SharedFolder
    partition: ShardPartition
    number: int
    columns: Sequence[Column]

    def __post_init__(self) -> None:
        options = self.options
        self._shard = self.partition.shard
        self._repetitions = Repetitions(options.dedupe, self.columns, self._earlier)
        self._dropped = 0
        self._consumer = ExactConsumer(
            self.connection,
            self._shard,
            self.partition.most,
            priority=options.consumer_priority,
            first=self.number * ROWS,
            repeats=self._repeats,
        )

    def run(self) -> None:
        """Complete the segment. Errors are those of `fill`."""
        consumer, shard, number = self._consumer, self._shard, self.number
        if self.folder.write(shard, number, arrow_schema(self._repetitions.columns), self._batches()):
            counts = Filled(consumer.arrived, consumer.redelivered, self._dropped)
            self.folder.note(shard, number, counts)
            consumer.acknowledge()
            if self._dropped:
                log.warning(
                    "segment %d of shard %r leaves out %d of %d redelivered messages: earlier segments have "
                    "them (dedupe=%s)",
                    *(number, shard, self._dropped, consumer.redelivered, self.options.dedupe),
                )
        else:
            log.warning(
                "another task has completed segment %d of %r: %d messages return to the queue",
                *(number, shard, consumer.arrived),
            )
        consumer.close()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """The messages of the segment."""
        consumer = self._consumer
        ready: int | None = None
        while consumer.missing:
            ready = consumer.turn(_QUIET)
            if consumer.has_batch:
                yield self._batch(consumer.take())
            if ready == 0 or (ready and consumer.idle >= self.options.idle_timeout):
                break
        consumer.cancel()
        if ready:
            check_is_no_stream(self.connection, self._shard)
            if not consumer.arrived:
                log.warning(
                    "queue %r has %d ready messages, and the broker delivers none: another consumer may be "
                    "the single active consumer",
                    *(self._shard, ready),
                )
        if rows := consumer.take():
            yield self._batch(rows)

    def _batch(self, rows: list[DeliveredRow]) -> pa.RecordBatch:
        # The queue was no stream when the query began. An app may have copied the header.
        if stream_offset(rows[0].properties)[0] is not None:
            check_is_no_stream(self.connection, self._shard)
        return record_batch(rows, self._repetitions.columns)

    def _repeats(self, properties: bytes, body: bytes) -> bool:
        """Whether an earlier segment has a redelivered message."""
        has = self._repetitions.has(self._shard, properties, body)
        self._dropped += has
        return has

    def _earlier(self) -> Iterator[pa.RecordBatch]:
        for number in self.folder.contents(self._shard).sizes:
            if self.number - KEPT <= number < self.number:
                yield from self.folder.read(self._shard, number)
