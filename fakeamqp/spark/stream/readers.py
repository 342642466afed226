"""The readers of streams, as Spark makes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from fakeamqp.spark.errors import OptionError
from fakeamqp.spark.micro_batches import MicroBatchReader, RunningQuery
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.rows.columns import Column
from fakeamqp.spark.stream.filters import FilterBounds
from fakeamqp.spark.stream.ranges import Range, StreamPartition, cut

if TYPE_CHECKING:
    import pyarrow as pa


class RangeReader:
    """Reads the ranges of tasks, in executors."""

    _options: ReadOptions
    _columns: tuple[Column, ...]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages of a task, as record batches. Errors are those of `read_range`."""
        from fakeamqp.spark.rows.record_batches import record_batch
        from fakeamqp.spark.stream.reading import read_range

        assert isinstance(partition, StreamPartition)
        if partition.range is not None:
            for messages in read_range(self._options, partition.range):
                yield record_batch(messages, self._columns)


class StreamMicroBatchReader(RangeReader, MicroBatchReader):
    """Follows streams, micro-batch by micro-batch."""

    def _begin(self) -> RunningQuery:
        from fakeamqp.spark.stream.query import StreamQuery

        return StreamQuery(self._options)


class StreamBatchReader(RangeReader, DataSourceReader):
    """Reads streams from the starting offsets or times of the options up to the ending ones."""

    def __init__(self, options: ReadOptions, columns: Sequence[Column]) -> None:
        self._options = options
        self._columns = tuple(columns)
        self._bounds = FilterBounds()

    def partitions(self) -> Sequence[InputPartition]:
        """The ranges to read, cut into tasks of about the same size.

        Raises:
            OptionError: if one is no stream, or the options say no range.
            QueueRefused: if a stream does not exist, or may not be read.
            BrokerUnreachable: no connection can be opened.
            ConnectionLost: it ended before.
        """
        from fakeamqp.spark.stream.discovery import with_found_streams
        from fakeamqp.spark.stream.positions import ends, starts, stored_between
        from fakeamqp.spark.wire.connection import WireConnection

        options = self._options
        if options.starting_timestamp is None and options.starting_offsets.strip().lower() == "latest":
            raise OptionError("option 'startingOffsets' is 'latest', which is where a batch read ends")
        with WireConnection(options.connection) as connection:
            options = with_found_streams(options, connection)
            stop = ends(options, connection)
            start = starts(options, connection)
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
                ranges = [stored_between(options, connection, each, *times) for each in ranges]
        # Without partitions Spark makes one task that reads none of them.
        return cut(ranges, options.min_partitions) or [StreamPartition(None)]


class FilteringBatchReader(StreamBatchReader):
    """The reader for `filterPushdown`.

    Spark refuses a reader with the method `pushFilters` unless `spark.sql.python.filterPushdown.enabled` is
    set, which is off by default.
    """

    def pushFilters(self, filters: list[Any]) -> list[Any]:
        """Narrow the ranges, and return the filters that Spark has to apply: all."""
        for each in filters:
            self._bounds.add(each)
        return filters


def batch_reader(options: ReadOptions, columns: Sequence[Column]) -> StreamBatchReader:
    """The reader for these options."""
    return (FilteringBatchReader if options.filter_pushdown else StreamBatchReader)(options, columns)
