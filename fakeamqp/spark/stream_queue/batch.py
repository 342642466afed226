"""The batch reader of streams, as Spark calls it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from fakeamqp.spark.columns import Column
from fakeamqp.spark.errors import OptionError
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.stream_queue.ranges import Range, StreamPartition, cut

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["StreamBatchReader"]


class StreamBatchReader(DataSourceReader):
    """Reads streams from `startingOffsets` or `startingTimestamp` up to `endingOffsets`."""

    def __init__(self, options: ReadOptions, columns: Sequence[Column]) -> None:
        self._options = options
        self._columns = tuple(columns)

    def partitions(self) -> Sequence[InputPartition]:
        """The ranges to read, cut into tasks of about the same size.

        Raises:
            OptionError: if one is no stream, or the options say no range.
            BrokerUnreachable: no connection can be opened.
            ConnectionLost: if a stream does not exist, or may not be read.
        """
        from fakeamqp.spark.stream_queue.positions import ends, starts

        options = self._options
        if options.starting_timestamp is None and options.starting_offsets.strip().lower() == "latest":
            raise OptionError("option 'startingOffsets' is 'latest', which is where a batch read ends")
        stop = ends(options)
        start = starts(options)
        for stream in options.streams:
            if start[stream] > stop[stream]:
                raise OptionError(
                    f"stream {stream!r} is to be read from {start[stream]} on, and up to {stop[stream]} "
                    "only; see the options 'startingOffsets' and 'endingOffsets'"
                )
        ranges = [Range(stream, start[stream], stop[stream]) for stream in options.streams]
        # Without partitions Spark makes one task that reads none of them.
        return cut(ranges, options.min_partitions) or [StreamPartition(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages of a task, as record batches. Runs in executors.

        Raises:
            DataLoss: if messages are gone and that is an error.
            BrokerUnreachable, ConnectionLost: if there is no connection for as long as `reconnectTimeout`.
        """
        assert isinstance(partition, StreamPartition)
        return read(self._options, self._columns, partition)


def read(
    options: ReadOptions, columns: Sequence[Column], partition: StreamPartition
) -> Iterator[pa.RecordBatch]:
    """The messages of a task, as record batches."""
    if partition.ranges:
        from fakeamqp.spark.records import record_batch
        from fakeamqp.spark.stream_queue.reading import read_ranges

        for messages in read_ranges(options, partition.ranges):
            yield record_batch(messages, columns)
