"""A running query on streams: where its micro-batches end, and how far it is behind.

Offsets are places in streams (`fakeamqp.spark.stream.offsets`), exclusive at the end of a batch.
"""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Mapping
from time import monotonic as now
from typing import Any

from pyspark.sql.datasource import InputPartition

from fakeamqp.spark.errors import DataLoss
from fakeamqp.spark.lag import FallingBehind, LagClock
from fakeamqp.spark.micro_batches import Offset, share
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.stream.discovery import with_found_streams
from fakeamqp.spark.stream.offsets import StreamPlace, from_json, to_json
from fakeamqp.spark.stream.positions import starts
from fakeamqp.spark.stream.ranges import Range, cut
from fakeamqp.spark.stream.tails import StreamState, Tails
from fakeamqp.spark.wire.connection import WireConnection

log: logging.Logger = logging.getLogger("fakeamqp.spark.stream")

# Seconds between two questions for the same.
_BETWEEN = 0.05


class StreamQuery:
    """The ends of streams, and the plan of micro-batches. The connection opens when it is needed.

    Raises:
        OptionError: one is no stream, or the options say no start.
        QueueRefused, BrokerUnreachable, ConnectionLost: the broker could not be asked in time.
        DataLoss: a stream is not the one that was read before, and that is an error.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._tails = Tails(options)
        self._available: dict[str, int] | None = None
        self._last: Offset | None = None
        self._asked_without_start = False
        self._triggered_at = -math.inf
        self._clocks: defaultdict[str, LagClock] = defaultdict(LagClock)
        names = options.stream_pattern or ", ".join([*options.streams, *options.super_streams])
        self._behind = FallingBehind(
            f"stream {names}",
            "More processors, a larger maxMessagesPerTrigger or fewer columns help; a super stream divides a "
            "stream. Messages that retention removes before they are read are lost",
            options.max_messages,
        )

    def close(self) -> None:
        self._tails.stop()

    def limit_to_available(self) -> None:
        self._tails.ask({})
        self._available = self._tails.known

    def first(self) -> Offset:
        """The places of `startingOffsets` or `startingTimestamp`, for every stream."""
        with WireConnection(self._options.connection) as connection:
            self._last = to_json(starts(with_found_streams(self._options, connection), connection))
        return self._last

    def advance(self, start: Offset | None, most: int | None) -> Offset:
        known = self._last if start is None else start
        self._asked_without_start |= known is None
        old = from_json(known or {})
        begin, ends = self._begin_and_ends(old)
        backlogs = {stream: end - begin[stream].next for stream, end in ends.items()}
        shares = share(backlogs, most) if self._is_due(sum(backlogs.values())) else {}
        stops = {stream: begin[stream].next + count for stream, count in shares.items()}
        marks = self._tails.marks(begin, stops) if stops else {}
        # A stream that the options do not name any more keeps its place: it may come back.
        places = {**old, **{stream: place for stream, place in begin.items() if stream in old}}
        for stream, stop in stops.items():
            first = begin[stream].first if begin[stream] is not old.get(stream) else None
            places[stream] = StreamPlace(stop, marks[stream], first)
        self._last = to_json(places)
        return self._last

    def progress(self) -> dict[str, Any] | None:
        """The ends of the streams at the last request, and the lag. Before a request there is none."""
        ends = self._tails.known
        if not ends:
            return None
        position = {stream: place.next for stream, place in from_json(self._last or {}).items()}
        return {"offset": ends, "metrics": self._metrics(position, ends)}

    def plan(self, start: Offset, end: Offset) -> list[InputPartition]:
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

    def commit(self, end: Offset) -> None:
        """Nothing to do: streams keep messages that are read."""

    def _is_due(self, backlog: int) -> bool:
        """Whether there are messages enough for a batch, or those there are have waited long enough."""
        options, time = self._options, now()
        waits = self._available is None and backlog < options.min_messages
        if waits and time - self._triggered_at < options.max_trigger_delay:
            return False
        if backlog:
            self._triggered_at = time
        return True

    def _begin_and_ends(self, old: dict[str, StreamPlace]) -> tuple[dict[str, StreamPlace], dict[str, int]]:
        """Where the next batch begins and what there is, for each stream."""
        # Where the batch before has ended is unknown as long as Spark has told no start.
        start_is_known = bool(old) or not self._asked_without_start
        begin, ends = {}, {}
        for stream, state in self._states(old).items():
            if state.loss is not None:
                what = f"stream {stream!r} was read up to {old[stream].next} and {state.loss}"
                if self._options.fail_on_data_loss:
                    raise DataLoss(f"{what}; say failOnDataLoss=false to read what is in it now")
                log.warning("%s; reading what is in it now", what)
            if state.first is not None:
                begin[stream] = StreamPlace(state.first, first=state.first if start_is_known else None)
            elif stream in old:
                begin[stream] = old[stream]
            else:
                continue
            end = state.end or 0
            if self._available is not None:
                end = min(end, self._available.get(stream, 0))
            ends[stream] = max(end, begin[stream].next)
        return begin, ends

    def _states(self, old: dict[str, StreamPlace]) -> dict[str, StreamState]:
        """The state of each stream. After a broker's restart its answers may come before its messages."""
        states = self._tails.ask(old)
        answered_at = now()
        while now() < answered_at + self._patience(old, states):
            self._tails.wait(_BETWEEN)
            states = self._tails.ask(old)
        return states

    def _patience(self, old: dict[str, StreamPlace], states: dict[str, StreamState]) -> float:
        """Seconds until a stream that ends before its place counts as another one."""
        ends = [states[each].end for each in old.keys() & states if (states[each].end or 0) < old[each].next]
        if None in ends:  # No message at all may be one that is slow.
            return self._options.connection.connect_timeout
        return self._options.idle_timeout if ends else 0.0

    def _metrics(self, position: Mapping[str, int], ends: Mapping[str, int]) -> dict[str, Any]:
        """The figures, by the offsets up to which batches are planned, and the ends of the streams.

        A message may have more than one offset, so the lag is an upper bound.
        """
        streams = {}
        for stream, end in ends.items():
            at = min(position.get(stream, end), end)
            streams[stream] = {"end": end, "lag": end - at, "lagSeconds": self._clocks[stream].age(at, end)}
        lag = sum(each["lag"] for each in streams.values())
        seconds = max((each["lagSeconds"] for each in streams.values()), default=0.0)
        return {**self._behind.look(int(lag), seconds), "streams": streams}
