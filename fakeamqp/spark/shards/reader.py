"""The stream reader of shards, as Spark makes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from fakeamqp.spark.micro_batches import MicroBatchReader, RunningQuery
from fakeamqp.spark.rows.columns import arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class ShardPartition(InputPartition):
    """Segments of a shard, by their numbers; new ones take at most `most` messages."""

    spool: str
    shard: str
    segments: tuple[int, ...]
    most: int


class ShardStreamReader(MicroBatchReader):
    """Reads each queue of the options in a task of its own."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a shard. Runs in executors.

        Raises:
            SpoolError: the executor does not see the spool, or it cannot be read or written.
            SparkError: as `fakeamqp.spark.shards.filling.fill`.
        """
        assert isinstance(partition, ShardPartition)
        from fakeamqp.spark.queue.partitions import pick
        from fakeamqp.spark.shards.filling import fill
        from fakeamqp.spark.shards.folder import SharedFolder

        options = self._options
        folder = SharedFolder(options.spool_folder or "", sync=options.spool_sync)
        schema = arrow_schema(self._columns)
        folder.require(partition.spool)
        for number in partition.segments:
            if fill(options, folder, partition, number, self._columns):
                for batch in folder.read(partition.shard, number):
                    yield pick(batch, schema, not options.fail_on_data_loss)

    def _begin(self) -> RunningQuery:
        from fakeamqp.spark.shards.query import ShardQuery

        return ShardQuery(self._options)
