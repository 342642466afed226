"""The stream reader of queues, as Spark makes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from fakeamqp.spark.micro_batches import MicroBatchReader, RunningQuery
from fakeamqp.spark.queue.partitions import read_partition

if TYPE_CHECKING:
    import pyarrow as pa


class QueueStreamReader(MicroBatchReader):
    """Reads queues in micro-batches through the store of an acknowledgement mode."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(partition)

    def _begin(self) -> RunningQuery:
        from fakeamqp.spark.queue.query import QueueQuery

        return QueueQuery.begin(self._options, self._columns)
