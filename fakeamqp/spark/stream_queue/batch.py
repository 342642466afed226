"""The batch reader of streams, as Spark calls it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from fakeamqp.spark.columns import Column
from fakeamqp.spark.errors import OptionError
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.stream_queue.filters import FilterBounds, PushFilters
from fakeamqp.spark.stream_queue.ranges import Range, StreamPartition, cut

if TYPE_CHECKING:
    import pyarrow as pa


class StreamBatchReader(DataSourceReader):
    """Reads streams from the starting offsets or times of the options up to the ending ones."""

    def __init__(self, options: ReadOptions, columns: Sequence[Column]) -> None:
        self._options = options
        self._columns = tuple(columns)
        self._bounds = FilterBounds()
        self.pushFilters: PushFilters = PushFilters(self._bounds)

    def partitions(self) -> Sequence[InputPartition]:
        """The ranges to read, cut into tasks of about the same size.

        Raises:
            OptionError: if one is no stream, or the options say no range.
            BrokerUnreachable: no connection can be opened.
            ConnectionLost: if a stream does not exist, or may not be read.
        """
        from fakeamqp.spark.connection import Link
        from fakeamqp.spark.stream_queue.positions import ends, starts, stored_between
        from fakeamqp.spark.stream_queue.super_stream import with_partitions

        options = self._options
        if options.starting_timestamp is None and options.starting_offsets.strip().lower() == "latest":
            raise OptionError("option 'startingOffsets' is 'latest', which is where a batch read ends")
        with Link(options.connection) as link:
            options = with_partitions(options, link)
            stop = ends(options, link)
            start = starts(options, link)
            for stream in options.streams:
                if start[stream].next > stop[stream].next:
                    raise OptionError(
                        f"stream {stream!r} is to be read from {start[stream].next} on, and up to "
                        f"{stop[stream].next} only; see the options 'startingOffsets', 'startingTimestamp', "
                        "'endingOffsets' and 'endingTimestamp'"
                    )
            everything = (
                Range(stream, start[stream].next, stop[stream].next, stop[stream].mark)
                for stream in options.streams
            )
            ranges = list(self._bounds.narrowed(everything))
            if options.timestamp_tolerance is not None:
                times = self._bounds.stored(options.timestamp_tolerance)
                ranges = [stored_between(link, each, *times) for each in ranges]
        # Without partitions Spark makes one task that reads none of them.
        return cut(ranges, options.min_partitions) or [StreamPartition(None)]

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
    if partition.range is not None:
        from fakeamqp.spark.records import record_batch
        from fakeamqp.spark.stream_queue.reading import read_range

        for messages in read_range(options, partition.range):
            yield record_batch(messages, columns)
