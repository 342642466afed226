"""Follows the ends of all streams of a query, in the thread of an attended connection."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import NamedTuple

from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.stream.discovery import discoveries
from fakeamqp.spark.stream.offsets import StreamMark, StreamPlace
from fakeamqp.spark.stream.tail import Tail, first_offset
from fakeamqp.spark.wire.attended import AttendedConnection
from fakeamqp.spark.wire.connection import WireConnection

# Seconds. RabbitMQ closes channels with a delivery that is unacknowledged for half an hour.
_ACKNOWLEDGED_EVERY = 60.0


class StreamState(NamedTuple):
    """What a stream has, compared with the place up to which it was read.

    `end` is the offset behind its last message, None if there is no message. `first` is where to begin if it
    is new, or not the stream that was read; `loss` says the latter in words.
    """

    end: int | None
    first: int | None
    loss: str | None


class Tails:
    """The ends of the streams of the options.

    Attributes:
        known: those of the last answer.

    Raises:
        OptionError: if one is no stream, or there are none.
        QueueRefused, BrokerUnreachable, ConnectionLost: the first question found no answer, or the connection
            was lost and could not be opened again in time.
        SparkError: whatever else keeps the thread from knowing.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._attended = AttendedConnection(options, "reader of streams", self._prepare, self._acknowledge)
        self._tails: dict[str, Tail] = {}
        self._acknowledge_at = float("-inf")
        self._discoveries = discoveries(options)
        self.known: dict[str, int] = {}

    def ask(self, begin: Mapping[str, StreamPlace]) -> dict[str, StreamState]:
        """The state of each stream now, compared with the places that Spark has."""
        return self._attended.call(lambda connection: self._states(connection, begin))

    def marks(
        self, begin: Mapping[str, StreamPlace], stops: Mapping[str, int]
    ) -> dict[str, StreamMark | None]:
        """The mark of the place at an offset, for each of these streams; a batch begins at `begin`."""

        def mark(connection: WireConnection, stream: str, at: int) -> StreamMark | None:
            known = stream in self._tails
            tail = self._tail(connection, stream)
            if not known:  # The connection was lost since the last answer.
                tail.ask()
                if tail.replaced(begin[stream]):
                    return begin[stream].mark  # So that tasks find that it is another stream.
            return tail.mark(at - 1)

        return self._attended.call(
            lambda connection: {stream: mark(connection, stream, at) for stream, at in stops.items()}
        )

    def wait(self, seconds: float) -> None:
        """Let time pass between two questions."""
        self._attended.wait(seconds)

    def stop(self) -> None:
        """Stop the thread."""
        self._attended.stop()

    # --- its own thread -------------------------------------------------------------------------------

    def _prepare(self, _connection: WireConnection) -> None:
        self._tails = {}

    def _acknowledge(self) -> float:
        now = time.monotonic()
        if now >= self._acknowledge_at:
            for tail in self._tails.values():
                tail.acknowledge()
            self._acknowledge_at = now + _ACKNOWLEDGED_EVERY
        return self._acknowledge_at - now

    def _tail(self, connection: WireConnection, stream: str) -> Tail:
        if stream not in self._tails:
            self._tails[stream] = Tail(connection, stream, self._options.connection.connect_timeout)
        return self._tails[stream]

    def _states(self, connection: WireConnection, begin: Mapping[str, StreamPlace]) -> dict[str, StreamState]:
        streams = self._streams(connection, begin)
        states = {stream: self._state(connection, stream, begin.get(stream)) for stream in streams}
        self.known = {stream: state.end for stream, state in states.items() if state.end is not None}
        return states

    def _state(self, connection: WireConnection, stream: str, place: StreamPlace | None) -> StreamState:
        tail = self._tail(connection, stream)
        end = tail.ask()
        loss = None
        if place is not None and (end or 0) < place.next:
            what = "is empty" if end is None else f"ends before {end}"
            loss = f"{what}: it was deleted and declared anew, or has lost what it had"
        elif place is not None and tail.replaced(place):
            loss = "has other messages now: it was deleted and declared anew"
        elif place is not None or end is None:
            return StreamState(end, None, None)
        patience = self._options.connection.connect_timeout
        return StreamState(end, 0 if end is None else first_offset(connection, stream, patience), loss)

    def _streams(self, connection: WireConnection, begin: Mapping[str, StreamPlace]) -> tuple[str, ...]:
        if not self._discoveries:
            return self._options.streams
        there = [stream for each in self._discoveries for stream in each.look(connection)]
        # A stream that was there and is missing is an error of its own: it cannot be consumed.
        pattern = re.compile(self._options.stream_pattern or ".*", re.DOTALL)
        before = (stream for stream in begin if pattern.fullmatch(stream))
        return tuple(dict.fromkeys([*there, *before]))
