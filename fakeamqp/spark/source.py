"""The data source with the format name `amqp`, and its readers and writers.

Spark imports this module whenever it looks for data sources, in every session of a machine where it is
installed, so it needs only PySpark until the first read or write.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from fakeamqp.spark.errors import OptionError
from fakeamqp.spark.options import read_options, write_options

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType


class AmqpDataSource(DataSource):
    """Queues and streams of an AMQP 0-9-1 broker as DataFrames, and DataFrames as messages.

    `spark.read`, `spark.readStream`, `df.write` and `df.writeStream` use it as `format("amqp")`; it registers
    itself. Its options are in `fakeamqp.spark.options.table`, its columns in `fakeamqp.spark.rows.columns`.
    """

    @classmethod
    def name(cls) -> str:
        """The format name."""
        return "amqp"

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(dict(options.items()))

    def schema(self) -> StructType:
        """The columns that the options select.

        Raises:
            OptionError: if an option is unknown, missing or malformed.
            ColumnError: if `columns` names one that there is not.
        """
        from pyspark.sql.pandas.types import from_arrow_schema

        from fakeamqp.spark.rows.columns import arrow_schema, chosen_columns

        return from_arrow_schema(arrow_schema(chosen_columns(read_options(self.options))))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads queues without removing messages, or a range of streams."""
        from fakeamqp.spark.rows.columns import wanted_columns

        options = read_options(self.options)
        columns = wanted_columns(schema, options)
        if not options.queues:
            from fakeamqp.spark.stream import batch_reader

            return batch_reader(options, columns)
        if options.shards:
            raise OptionError("option 'shards' is for readStream: a batch read has a task for each queue")
        from fakeamqp.spark.browse import BrowseReader

        return BrowseReader(options, columns)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Consumes queues through a store or in executors, or follows streams."""
        from fakeamqp.spark.rows.columns import wanted_columns

        options = read_options(self.options, streaming=True)
        columns = wanted_columns(schema, options)
        if not options.queues:
            from fakeamqp.spark.stream import StreamMicroBatchReader

            return StreamMicroBatchReader(options, columns)
        if options.shards:
            from fakeamqp.spark.shards import ShardStreamReader

            return ShardStreamReader(options, columns)
        from fakeamqp.spark.queue.reader import QueueStreamReader

        return QueueStreamReader(options, columns)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Publishes the rows of a DataFrame."""
        from fakeamqp.spark.sink import BatchWriter

        _appends(overwrite)
        return BatchWriter(write_options(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Publishes the rows of every micro-batch."""
        from fakeamqp.spark.sink import MicroBatchWriter

        _appends(overwrite)
        return MicroBatchWriter(write_options(self.options), schema)


def _appends(overwrite: bool) -> None:
    if overwrite:
        raise OptionError(
            "the sink only appends: use mode('append'), and for a stream outputMode('append') or 'update'"
        )
