"""The writers that Spark calls: one object in the driver, and a copy of it in each task."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyspark.sql.datasource as spark
from pyspark import TaskContext

from fakeamqp.spark.sink.columns import QUEUE, Path, find_columns, queue_not_to_feed

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from fakeamqp.spark.options import WriteOptions

_log = logging.getLogger("fakeamqp.spark.sink")

# Local properties that Spark sets for the tasks of a streaming query; restarts keep the id of the query.
_QUERY, _BATCH = "sql.streaming.queryId", "streaming.sql.batchId"


@dataclass(frozen=True)
class Written(spark.WriterCommitMessage):
    """The result of a task: how many messages were published, and what became of them.

    Attributes:
        partition: the number of the task.
        published: the messages that were sent, each counted once.
        confirmed: those that the broker has confirmed.
        returned: how often the broker returned a message that no queue got. Such a message is confirmed, too,
            and may be returned again if it is published again.
        republished: how often a message was sent again after a lost connection.
    """

    partition: int
    published: int
    confirmed: int
    returned: int
    republished: int


class _Writer:
    """The common part of both writers. The driver creates it, which checks the columns."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        self._options = options
        self._columns: Mapping[str, tuple[Path, ...]] = find_columns(schema, options)
        headers = [schema.fields[path[0]].dataType for path in self._columns.get("headers", ())]
        self._decimals = any('"decimal(' in kind.json() for kind in headers)
        self._job = uuid.uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Publish the rows of one partition and wait until the broker has confirmed them all.

        Raises:
            BrokerUnreachable: no connection can be opened.
            ConnectionLost: the connection ended before all messages were confirmed.
            PublishError: a row cannot be converted, or a message was returned, refused or not confirmed.
        """
        from fakeamqp.spark.sink.messages import SinkRows
        from fakeamqp.spark.sink.publisher import SinkPublisher

        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        origin = f"{self._origin(context)}-{partition}"
        row = 0
        with SinkPublisher(self._options, self._decimals) as publisher:
            for batch in iterator:
                rows = SinkRows(batch, row, self._columns, self._options, origin)
                publisher.publish(rows.messages())
                row += batch.num_rows
        return Written(partition, row, publisher.confirmed, publisher.returned.count, publisher.republished)

    def commit(self, messages: list[spark.WriterCommitMessage | None], batchId: int | None = None) -> None:
        """Log how many messages were published; all of them are confirmed."""
        counts = _counts(messages)
        level = logging.WARNING if counts["returned"] or counts["republished"] else logging.INFO
        _log.log(level, "%s: %s", _named(batchId), _in_words(counts))

    def abort(self, messages: list[spark.WriterCommitMessage | None], batchId: int | None = None) -> None:
        """Log how many messages were published. They stay published; the next attempt repeats them."""
        _log.warning(
            "%s failed, and what is published stays published. Of the tasks that have finished: %s",
            _named(batchId),
            _in_words(_counts(messages)),
        )

    def _origin(self, context: TaskContext | None) -> str:
        """The prefix of the message ids: unique to the write, and the same in all attempts of its tasks."""
        return self._job


class BatchWriter(_Writer, spark.DataSourceArrowWriter):
    """Publishes the rows of a DataFrame. A task borrows a connection of its process, and opens a channel.

    Args:
        options: the options of the sink.
        schema: the schema of the DataFrame.

    Raises:
        ColumnError: a column is missing, unknown or of the wrong type.
        OptionError: the options need a column that is missing.
    """


if TYPE_CHECKING or hasattr(spark, "DataSourceStreamArrowWriter"):
    _StreamArrowWriter = spark.DataSourceStreamArrowWriter
else:  # Spark 4.0 passes record batches to streaming writers if they derive from the Arrow writer of batches.

    class _StreamArrowWriter(spark.DataSourceStreamWriter, spark.DataSourceArrowWriter):
        pass


class MicroBatchWriter(_Writer, _StreamArrowWriter):
    """Publishes the rows of each micro-batch, like `BatchWriter`; the message ids contain the batch id.

    If Spark runs a batch again after a restart, the message ids are the same, provided that the rows and
    their order are the same. No row goes back to the queue that its column `queue` names.

    Raises:
        OptionError: also if the query may read its own messages.
    """

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self._columns = {**self._columns, QUEUE: queue_not_to_feed(schema, options)}

    def _origin(self, context: TaskContext | None) -> str:
        query = context and context.getLocalProperty(_QUERY)
        batch = context and context.getLocalProperty(_BATCH)
        return f"{query}-{batch}" if query and batch else self._job


def _named(batch: int | None) -> str:
    return "the write" if batch is None else f"batch {batch}"


def _counts(messages: Sequence[object]) -> dict[str, int]:
    done = [message for message in messages if isinstance(message, Written)]
    names = ("published", "confirmed", "returned", "republished")
    return {name: sum(getattr(message, name) for message in done) for name in names}


def _in_words(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())
