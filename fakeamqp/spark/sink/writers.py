"""The writers that Spark calls: one object on the driver, and a copy of it in every task."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyspark.sql.datasource as spark
from pyspark import TaskContext

from fakeamqp.spark.sink.columns import find_columns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from fakeamqp.spark.options import WriteOptions

__all__ = ["BatchWriter", "MicroBatchWriter", "Written"]

_log = logging.getLogger("fakeamqp.spark.sink")

# Local properties that Spark sets for the tasks of a streaming query; the query's id outlives restarts.
_QUERY, _BATCH = "sql.streaming.queryId", "streaming.sql.batchId"


@dataclass(frozen=True)
class Written(spark.WriterCommitMessage):
    """The result of a task: the number of confirmed messages, and of those that were unroutable."""

    partition: int
    confirmed: int
    returned: int


class _Writer:
    """What both writers share. Made on the driver, which refuses columns before any task starts."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        self._options = options
        self._columns = find_columns(schema, options)
        self._job = uuid.uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Publish the rows of one partition and wait until the broker has confirmed them all.

        Raises:
            BrokerUnreachable: no connection can be opened.
            ConnectionLost: if it ends on the way.
            PublishError: if a row cannot be a message, or a message is returned, refused or not confirmed.
        """
        from fakeamqp.spark.sink.messages import Encoder
        from fakeamqp.spark.sink.publisher import Publisher

        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        encoder = Encoder(self._columns, self._options, f"{self._origin(context)}-{partition}")
        row = 0
        with Publisher(self._options) as publisher:
            for batch in iterator:
                publisher.publish(encoder.messages(batch, row))
                row += batch.num_rows
        return Written(partition, publisher.confirmed, publisher.returned)

    def _origin(self, context: TaskContext | None) -> str:
        """What makes the message ids of one write unlike those of another, and the same when tried again."""
        return self._job


class BatchWriter(_Writer, spark.DataSourceArrowWriter):
    """Publishes the rows of a DataFrame, each task on a connection of its own.

    Args:
        options: of the sink.
        schema: of the DataFrame.

    Raises:
        ColumnError: if a column is missing, unknown or of the wrong type.
        OptionError: if the options need a column that is not there.
    """

    def commit(self, messages: list[spark.WriterCommitMessage | None]) -> None:
        """Log what was published. All of it is confirmed, and there is nothing else to do."""
        _log.info("published %s", _in_words(messages))

    def abort(self, messages: list[spark.WriterCommitMessage | None]) -> None:
        """Log what was published. It cannot be taken back."""
        _log_abort("the write", messages)


if TYPE_CHECKING or hasattr(spark, "DataSourceStreamArrowWriter"):
    _StreamArrowWriter = spark.DataSourceStreamArrowWriter
else:  # Spark 4.0 hands record batches to every writer that is an Arrow writer for batches.

    class _StreamArrowWriter(spark.DataSourceStreamWriter, spark.DataSourceArrowWriter):
        pass


class MicroBatchWriter(_Writer, _StreamArrowWriter):
    """Publishes the rows of every micro-batch; as `BatchWriter`, with the batch in the message ids.

    A batch that Spark runs again after a restart has the same message ids, if its rows are the same and come
    in the same order.
    """

    def commit(self, messages: list[spark.WriterCommitMessage | None], batchId: int) -> None:
        """Log what was published. All of it is confirmed, and there is nothing else to do."""
        _log.info("batch %d: published %s", batchId, _in_words(messages))

    def abort(self, messages: list[spark.WriterCommitMessage | None], batchId: int) -> None:
        """Log what was published. It cannot be taken back, and is published again with the batch."""
        _log_abort(f"batch {batchId}", messages)

    def _origin(self, context: TaskContext | None) -> str:
        query = context and context.getLocalProperty(_QUERY)
        batch = context and context.getLocalProperty(_BATCH)
        return f"{query}-{batch}" if query and batch else self._job


def _in_words(messages: Sequence[object]) -> str:
    done = [message for message in messages if isinstance(message, Written)]
    returned = sum(message.returned for message in done)
    return f"{sum(message.confirmed for message in done)} messages from {len(done)} tasks" + (
        f", {returned} of which no queue got and were dropped" if returned else ""
    )


def _log_abort(what: str, messages: Sequence[object]) -> None:
    _log.warning(
        "%s failed. Tasks that were through had published %s; those that were not may have published some "
        "rows too. What is published stays published",
        what,
        _in_words(messages),
    )
