"""The batch reader of queues that Spark calls: one task per queue.

A task asks for the number of messages when it starts. Spark plans a DataFrame once and reads it again for
each action, so a number from the planning would be outdated after the first action.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from fakeamqp.spark.errors import ConnectionLost
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.rows.columns import Column

if TYPE_CHECKING:
    import pyarrow as pa

# Seconds. A task answers no heartbeats while Spark processes a record batch, so the default interval of the
# broker is too short. Without heartbeats the broker would never notice that a machine has failed.
_HEARTBEAT = 600


@dataclass
class QueuePartition(InputPartition):
    """The queue that a task reads."""

    queue: str


class BrowseReader(DataSourceReader):
    """Reads the ready messages of classic and quorum queues, and returns them to the queues.

    The broker marks all of them as redelivered, for every later consumer. Nothing else changes.
    """

    def __init__(self, options: ReadOptions, columns: Sequence[Column]) -> None:
        self._options = options
        self._columns = tuple(columns)

    def partitions(self) -> Sequence[InputPartition]:
        """The queues, after a check of each: Spark would repeat the tasks before it reports an error.

        Raises:
            BrokerUnreachable: no connection can be opened.
            QueueRefused: a queue does not exist, or the user may not read it.
            OptionError: a queue is a stream.
            DeliveryLimit: a quorum queue counts the read, and may drop messages.
            ConnectionLost: the connection ended before.
        """
        from fakeamqp.spark.browse.delivery_limit import check_may_be_read
        from fakeamqp.spark.wire.attended import with_heartbeat
        from fakeamqp.spark.wire.pool import lend
        from fakeamqp.spark.wire.refusals import refused

        options = with_heartbeat(self._options, _HEARTBEAT)
        with lend(options.connection) as connection:
            for queue in options.queues:
                try:
                    connection.channel().count(queue)
                except ConnectionLost as error:
                    raise refused(f"cannot read queue {queue!r}", error) from None
                check_may_be_read(connection, options, queue)
        return [QueuePartition(queue) for queue in options.queues]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages of a queue as record batches, in an executor. Errors are those of `snapshot`."""
        assert isinstance(partition, QueuePartition)
        from fakeamqp.spark.browse.snapshot import snapshot
        from fakeamqp.spark.rows.record_batches import record_batch
        from fakeamqp.spark.wire.attended import with_heartbeat

        options = with_heartbeat(self._options, _HEARTBEAT)
        for rows in snapshot(options, partition.queue):
            yield record_batch(rows, self._columns)
