"""The batch reader of queues that Spark calls: one task per queue.

A task asks for the number of messages when it starts. Spark plans a DataFrame once and reads it again for
each action, so a number from the planning would be outdated after the first action.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from fakeamqp.spark.columns import Column
from fakeamqp.spark.errors import ConnectionLost
from fakeamqp.spark.options import ReadOptions

if TYPE_CHECKING:
    import pyarrow as pa

# The limits of a record batch: messages, and their bytes. A task has one record batch in memory.
_ROWS = 10_000
_OCTETS = 8 << 20

# Seconds. A task answers no heartbeats while Spark processes a record batch, so the default interval of the
# broker is too short. Without heartbeats the broker would never notice that a machine has failed.
_HEARTBEAT = 600


@dataclass
class QueuePartition(InputPartition):
    """The queue that a task reads.

    `limit` is how often its messages may be returned, None if that does not matter.
    """

    queue: str
    limit: int | None = None


class BrowseReader(DataSourceReader):
    """Reads the ready messages of classic and quorum queues, and returns them to the queues."""

    def __init__(self, options: ReadOptions, columns: Sequence[Column]) -> None:
        self._options = options
        self._columns = tuple(columns)

    def partitions(self) -> Sequence[InputPartition]:
        """The queues, after a check that they exist: Spark would repeat the tasks before it reports an error.

        Raises:
            BrokerUnreachable: no connection can be opened.
            ConnectionLost: a queue does not exist, or the user may not read it.
        """
        from fakeamqp.spark.browse.delivery_limit import limit_of_reads
        from fakeamqp.spark.connection import Link

        planned = []
        with Link(self._options.connection) as link:
            channel = link.channel()
            for queue in self._options.queues:
                try:
                    link.call(channel.queue_declare, queue, passive=True)
                except ConnectionLost as error:
                    raise ConnectionLost(f"cannot read queue {queue!r}: {error}") from None
                planned.append(QueuePartition(queue, limit_of_reads(link, queue)))
        return planned

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages of a queue as record batches. Runs in executors.

        Raises:
            OptionError: the queue is a stream.
            BrokerUnreachable: no connection can be opened.
            ConnectionLost: the connection ended before all messages were read.
            DeliveryLimit: the queue may drop messages that are returned once more.
            SparkError: the broker does not deliver messages that it counts as ready, or another read of the
                queue does not end in time.
        """
        assert isinstance(partition, QueuePartition)
        from fakeamqp.spark.attended import with_heartbeat
        from fakeamqp.spark.browse.snapshot import snapshot
        from fakeamqp.spark.records import record_batch

        options = with_heartbeat(self._options, _HEARTBEAT)
        for messages in snapshot(options, partition.queue, _ROWS, _OCTETS, partition.limit):
            yield record_batch(messages, self._columns)
