"""The streaming reader of streams, as Spark calls it.

Offsets are `{stream: offset}`, exclusive at the end of a batch: Spark's checkpoint is all there is to know.
Spark makes several readers, of which one lives as long as the query; nothing tells it apart but the calls, so
nothing begins before the first one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from fakeamqp.spark.columns import Column
from fakeamqp.spark.errors import DataLoss, OptionError
from fakeamqp.spark.lag import report
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.query_process import exit_on_sigterm
from fakeamqp.spark.read_limits import AvailableNow, default_limit, most_rows
from fakeamqp.spark.stream_queue.batch import read
from fakeamqp.spark.stream_queue.lag import StreamLag
from fakeamqp.spark.stream_queue.ranges import Range, StreamPartition, admitted, cut

if TYPE_CHECKING:
    import pyarrow as pa

    from fakeamqp.spark.stream_queue.tails import Tails

__all__ = ["StreamMicroBatchReader"]

log = logging.getLogger("fakeamqp.spark.stream_queue")


class StreamMicroBatchReader(DataSourceStreamReader, AvailableNow):
    """Follows streams, micro-batch by micro-batch.

    Raises:
        OptionError: if an option does not go with streams.
    """

    def __init__(self, options: ReadOptions, columns: Sequence[Column]) -> None:
        if options.max_bytes is not None:
            raise OptionError(
                "option 'maxBytesPerTrigger' is for 'queue': how large messages of a stream are is not known "
                "before they are read; say maxMessagesPerTrigger"
            )
        self._options = options
        self._columns = tuple(columns)
        self._tails: Tails | None = None
        self._restore_signal: Callable[[], None] | None = None
        self._available: dict[str, int] | None = None
        self._last: dict[str, int] | None = None
        self._asked_without_limit = False
        self._lag = StreamLag(options)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_tails": None, "_restore_signal": None}

    def initialOffset(self) -> dict[str, int]:
        """The offsets of `startingOffsets` or `startingTimestamp`, for every stream.

        Raises:
            OptionError: if one is no stream, or the options say no start.
            BrokerUnreachable, ConnectionLost: if the broker cannot be asked.
        """
        from fakeamqp.spark.stream_queue.positions import starts

        self._last = starts(self._options)
        return dict(self._last)

    def getDefaultReadLimit(self) -> Any:
        """The option `maxMessagesPerTrigger`."""
        return default_limit(self._options.max_messages)

    def prepareForTriggerAvailableNow(self) -> None:
        """Limit the query to the messages that are in the streams now."""
        self._available = self._ends(self._last or {})

    def latestOffset(self, start: dict[str, int] | None = None, limit: Any = None) -> dict[str, int]:
        """The end of the next micro-batch.

        PySpark before 4.2 gives no limit, and asks only once when the trigger is AvailableNow: so the first
        answer is then everything that there is.

        Raises:
            ConnectionLost: the connection was lost and could not be opened again in time.
            DataLoss: if a stream ends before it was read up to, and that is an error.
        """
        begin = (self._last if start is None else start) or {}
        ends = self._available or self._ends(begin)
        if start is None and limit is None:
            most = self._options.max_messages if self._asked_without_limit else None
            self._asked_without_limit = True
        else:
            most = most_rows(limit, self._options.max_messages)
        self._last = admitted(begin, ends, most)
        return dict(self._last)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """The ends of the streams at the last request and the lag, for the progress of the query."""
        ends = self._tails.known if self._tails is not None else None
        return report(ends, self._lag.now(self._last or {}, ends)) if ends else None

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """The ranges of a micro-batch, cut into tasks of about the same size.

        Raises:
            BrokerUnreachable, ConnectionLost: if the broker has to be asked where a new stream begins.
        """
        self._last = dict(end)
        return cut([Range(*each) for each in self._ranges(start, end)], self._options.min_partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages of a task, as record batches. Runs in executors.

        Raises:
            DataLoss: if messages are gone and that is an error.
            BrokerUnreachable, ConnectionLost: if there is no connection for as long as `reconnectTimeout`.
        """
        assert isinstance(partition, StreamPartition)
        return read(self._options, self._columns, partition)

    def commit(self, end: dict[str, int]) -> None:
        """Nothing to do: streams keep messages that are read."""

    def stop(self) -> None:
        """Close the connection."""
        tails, self._tails = self._tails, None
        if tails is not None:
            tails.stop()
        if self._restore_signal is not None:
            self._restore_signal()

    def _ask(self) -> dict[str, int]:
        if self._tails is None:
            from fakeamqp.spark.stream_queue.tails import Tails

            self._restore_signal = exit_on_sigterm()
            self._tails = Tails(self._options)
            self._tails.start()
        return self._tails.ask()

    def _ranges(self, start: dict[str, int], end: dict[str, int]) -> Iterator[tuple[str, int, int]]:
        for stream, stop in end.items():
            first = start.get(stream)
            if first is None:
                from dataclasses import replace

                from fakeamqp.spark.stream_queue.positions import EARLIEST, starts

                only = replace(
                    self._options, streams=(stream,), starting_offsets=EARLIEST, starting_timestamp=None
                )
                first = starts(only)[stream]
            # The stream was declared again: its messages are unread.
            yield stream, 0 if first > stop else first, stop

    def _ends(self, begin: dict[str, int]) -> dict[str, int]:
        """The ends of the streams, asked again if one ends before the position of the query."""
        ends = self._ask()
        deadline = time.monotonic() + self._options.idle_timeout
        while _too_early(begin, ends) and time.monotonic() < deadline:
            ends = self._ask()  # After a broker's restart its answers may come before its messages.
        for stream in _too_early(begin, ends):
            what = (
                f"stream {stream!r} was read up to {begin[stream]} and ends before {ends[stream]}: it was "
                "deleted and declared anew, or has lost what it had"
            )
            if self._options.fail_on_data_loss:
                raise DataLoss(f"{what}; say failOnDataLoss=false to read what is in it now")
            log.warning("%s; reading what is in it now", what)
        return {stream: ends.get(stream, begin.get(stream, 0)) for stream in self._options.streams}


def _too_early(begin: dict[str, int], ends: dict[str, int]) -> list[str]:
    return [stream for stream, end in ends.items() if end < begin.get(stream, 0)]
