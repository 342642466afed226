"""The streaming reader of streams, as Spark calls it.

Offsets are places in streams (`fakeamqp.spark.stream_queue.offsets`), exclusive at the end of a batch.
Spark's checkpoint is all there is to know.
Spark makes several readers, of which one lives as long as the query; nothing tells it apart but the calls, so
nothing begins before the first one.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from time import monotonic as now
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
from fakeamqp.spark.stream_queue.offsets import StreamPlace, from_json, to_json
from fakeamqp.spark.stream_queue.ranges import Range, StreamPartition, admitted, cut

if TYPE_CHECKING:
    import pyarrow as pa

    from fakeamqp.spark.stream_queue.tails import Answer, Tails

log: logging.Logger = logging.getLogger("fakeamqp.spark.stream_queue")

# Seconds between two questions for the same.
_BETWEEN = 0.05


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
        self._available_now = False
        self._available: dict[str, int] | None = None
        self._last: dict[str, Any] | None = None
        self._asked_without_limit = self._asked_without_start = False
        self._triggered_at = -math.inf
        self._lag = StreamLag(options)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_tails": None, "_restore_signal": None}

    def initialOffset(self) -> dict[str, Any]:
        """The places of `startingOffsets` or `startingTimestamp`, for every stream.

        Raises:
            OptionError: if one is no stream, or the options say no start.
            BrokerUnreachable, ConnectionLost: if the broker cannot be asked.
        """
        from fakeamqp.spark.connection import Link
        from fakeamqp.spark.stream_queue.positions import starts
        from fakeamqp.spark.stream_queue.super_stream import with_partitions

        if self._available_now:
            self._connected()
        with Link(self._options.connection) as link:
            self._last = to_json(starts(with_partitions(self._options, link), link))
        return self._last

    def getDefaultReadLimit(self) -> Any:
        """The option `maxMessagesPerTrigger`."""
        return default_limit(self._options.max_messages)

    def prepareForTriggerAvailableNow(self) -> None:
        """Limit the query to the messages that are in the streams at its first other call."""
        self._available_now = True

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
        """The end of the next micro-batch.

        PySpark before 4.2 gives no start and no limit, and asks only once when the trigger is AvailableNow:
        so the first answer is then everything that there is, wherever the batch will start.

        Raises:
            ConnectionLost: the connection was lost and could not be opened again in time.
            DataLoss: if a stream is not the one that was read before, and that is an error.
        """
        known = self._last if start is None else start
        self._asked_without_start |= known is None
        old = from_json(known or {})
        begin, ends = self._begin_and_ends(old)
        if start is None and limit is None:
            most = self._options.max_messages if self._asked_without_limit else None
            self._asked_without_limit = True
        else:
            most = most_rows(limit, self._options.max_messages)
        following = {stream: place.next for stream, place in begin.items()}
        stops = admitted(following, ends, most) if self._is_due(following, ends) else following
        stops = {stream: stop for stream, stop in stops.items() if stop != following[stream]}
        marks = self._connected().marks(begin, stops) if stops else {}
        # A stream that the options do not name any more keeps its place: it may come back.
        places = {**old, **{stream: place for stream, place in begin.items() if stream in old}}
        for stream, stop in stops.items():
            first = begin[stream].first if begin[stream] is not old.get(stream) else None
            places[stream] = StreamPlace(stop, marks[stream], first)
        self._last = to_json(places)
        return self._last

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """The ends of the streams at the last request and the lag, for the progress of the query."""
        ends = self._tails.known if self._tails is not None else None
        if not ends:
            return None
        position = {stream: place.next for stream, place in from_json(self._last or {}).items()}
        return report(ends, self._lag.now(position, ends))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The ranges of a micro-batch, cut into tasks of about the same size.

        Raises:
            ConnectionLost, DataLoss: as `latestOffset`, if that did not know the start.
        """
        self._last = end
        begin = from_json(start)
        if self._asked_without_start and start != end:
            # Only now it is known where the batch starts, and with which streams.
            begin, _ = self._begin_and_ends(begin)
            self._asked_without_start = False
        ranges = []
        for stream, place in from_json(end).items():
            first = begin[stream].next if stream in begin else 0
            if place.first is not None and place != begin.get(stream):
                first = place.first
            elif first > place.next:  # The stream was declared again: the note of an earlier version.
                first = 0
            ranges.append(Range(stream, first, place.next, place.mark))
        return cut(ranges, self._options.min_partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages of a task, as record batches. Runs in executors.

        Raises:
            DataLoss: if messages are gone and that is an error.
            BrokerUnreachable, ConnectionLost: if there is no connection for as long as `reconnectTimeout`.
        """
        assert isinstance(partition, StreamPartition)
        return read(self._options, self._columns, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing to do: streams keep messages that are read."""

    def stop(self) -> None:
        """Close the connection."""
        tails, self._tails = self._tails, None
        if tails is not None:
            tails.stop()
        if self._restore_signal is not None:
            self._restore_signal()

    def _connected(self) -> Tails:
        if self._tails is None:
            from fakeamqp.spark.stream_queue.tails import Tails

            self._restore_signal = exit_on_sigterm()
            self._tails = Tails(self._options)
            if self._available_now:
                self._available = self._tails.ask({}).ends
        return self._tails

    def _ask(self, begin: dict[str, StreamPlace]) -> Answer:
        return self._connected().ask(begin)

    def _is_due(self, begin: dict[str, int], ends: dict[str, int]) -> bool:
        """Whether there are messages enough for a batch, or those there are have waited long enough."""
        options, time = self._options, now()
        backlog = sum(end - begin[stream] for stream, end in ends.items())
        waits = self._available is None and backlog < options.min_messages
        if waits and time - self._triggered_at < options.max_trigger_delay:
            return False
        if backlog:
            self._triggered_at = time
        return True

    def _begin_and_ends(self, old: dict[str, StreamPlace]) -> tuple[dict[str, StreamPlace], dict[str, int]]:
        """Where the next batch begins and what there is, for each stream."""
        answer = self._ask(old)
        asked_at = now()
        # After a broker's restart its answers may come before its messages.
        while any(now() < asked_at + self._patience(answer, stream) for stream in _too_early(old, answer)):
            self._connected().wait(_BETWEEN)
            answer = self._ask(old)
        lost = _too_early(old, answer)
        for stream in [*lost, *sorted(answer.replaced)]:
            what = f"stream {stream!r} was read up to {old[stream].next} and "
            if stream in lost:
                what += f"ends before {answer.ends[stream]}" if stream in answer.ends else "is empty"
                what += ": it was deleted and declared anew, or has lost what it had"
            else:
                what += "has other messages now: it was deleted and declared anew"
            if self._options.fail_on_data_loss:
                raise DataLoss(f"{what}; say failOnDataLoss=false to read what is in it now")
            log.warning("%s; reading what is in it now", what)
        new = [
            stream
            for stream in answer.ends
            if stream not in old or stream in lost or stream in answer.replaced
        ]
        firsts = self._connected().firsts(new) if new else {}
        firsts |= dict.fromkeys(set(lost) - answer.ends.keys(), 0)
        first_of = {} if self._asked_without_start and not old else firsts
        begin = {
            stream: StreamPlace(firsts[stream], first=first_of.get(stream))
            if stream in firsts
            else old[stream]
            for stream in answer.streams
            if stream in firsts or stream in old
        }
        ends = {stream: answer.ends.get(stream, place.next) for stream, place in begin.items()}
        if self._available is not None:
            ends = {
                stream: max(min(end, self._available.get(stream, 0)), begin[stream].next)
                for stream, end in ends.items()
            }
        return begin, ends

    def _patience(self, answer: Answer, stream: str) -> float:
        """Seconds until an answer that is too early is true. No message at all may be one that is slow."""
        options = self._options
        return options.idle_timeout if stream in answer.ends else options.connection.connect_timeout


def _too_early(begin: dict[str, StreamPlace], answer: Answer) -> list[str]:
    """The streams that end before the place that was read, or are empty."""
    return [
        stream
        for stream in answer.streams
        if stream in begin and answer.ends.get(stream, 0) < begin[stream].next
    ]
