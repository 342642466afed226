"""The batch reader of queues, as Spark calls it: one task for each queue.

How many messages a queue holds is asked when its task starts. Spark plans a DataFrame once and reads it again
for every action, so a number that was found in planning would be the one of the first action for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from fakeamqp.spark.columns import Column
from fakeamqp.spark.errors import ConnectionLost
from fakeamqp.spark.options import ReadOptions

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BrowseReader", "QueuePartition"]

# Messages of a record batch, and bytes of their bodies: what a task has in memory, besides one socket read.
_ROWS = 10_000
_OCTETS = 8 << 20

# Seconds. A task answers no heartbeats while Spark works on a batch it gave, so the broker's own interval is
# too short; none at all would have the broker wait for ever for a machine that is gone.
_HEARTBEAT = 600


@dataclass
class QueuePartition(InputPartition):
    """A queue."""

    queue: str


class BrowseReader(DataSourceReader):
    """Reads what is ready in classic and quorum queues, and puts it back."""

    def __init__(self, options: ReadOptions, columns: Sequence[Column]) -> None:
        self._options = options
        self._columns = tuple(columns)

    def partitions(self) -> Sequence[InputPartition]:
        """The queues, each of them seen to exist: tasks would be tried several times before they say so.

        Raises:
            BrokerUnreachable: no connection can be opened.
            ConnectionLost: if a queue does not exist, or may not be read.
        """
        from fakeamqp.spark.connection import Link

        with Link(self._options.connection) as link:
            channel = link.channel()
            for queue in self._options.queues:
                try:
                    link.call(channel.queue_declare, queue, passive=True)
                except ConnectionLost as error:
                    raise ConnectionLost(f"cannot read queue {queue!r}: {error}") from error
        return [QueuePartition(queue) for queue in self._options.queues]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages of a queue as record batches. Runs in executors.

        Raises:
            OptionError: if the queue is a stream.
            BrokerUnreachable: no connection can be opened.
            ConnectionLost: if it ends before everything is read.
            SparkError: if the broker keeps back messages that it counts.
        """
        assert isinstance(partition, QueuePartition)
        from fakeamqp.spark.browse.snapshot import snapshot
        from fakeamqp.spark.records import record_batch

        options = self._options
        if options.connection.heartbeat is None:
            options = replace(options, connection=replace(options.connection, heartbeat=_HEARTBEAT))
        for messages in snapshot(options, partition.queue, _ROWS, _OCTETS):
            yield record_batch(messages, self._columns)
