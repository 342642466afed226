"""Follows the ends of all streams of a query, in the thread of an attended connection."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fakeamqp.spark.attended import AttendedLink
from fakeamqp.spark.connection import Link
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.queue_types import check_is_stream
from fakeamqp.spark.stream_queue.offsets import StreamMark, StreamPlace
from fakeamqp.spark.stream_queue.super_stream import Partitions
from fakeamqp.spark.stream_queue.tail import Tail, first_message

# Seconds. RabbitMQ closes channels with a delivery that is unacknowledged for half an hour.
_ACKNOWLEDGED_EVERY = 60.0


@dataclass(frozen=True)
class Answer:
    """The streams, the offsets after the last messages of those that have any, and those that are others."""

    streams: tuple[str, ...]
    ends: dict[str, int]
    replaced: frozenset[str]


class Tails:
    """The ends of the streams of the options."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._attended = AttendedLink(options, "reader of streams", self._prepare, self._acknowledge)
        self._ends: dict[str, int] = {}
        self._tails: dict[str, Tail] = {}
        self._acknowledge_at = float("-inf")
        self._partitions: dict[str, Partitions] = {}
        self._checked = False

    def ask(self, begin: Mapping[str, StreamPlace]) -> Answer:
        """The state of the streams now, compared with places that Spark has.

        Raises:
            OptionError: if one is no stream, or a super stream has no partitions.
            ConnectionLost: the connection was lost and could not be opened again in time.
            SparkError: whatever else keeps the thread from knowing.
        """
        return self._attended.call(lambda link: self._answer(link, begin))

    def marks(
        self, begin: Mapping[str, StreamPlace], stops: Mapping[str, int]
    ) -> dict[str, StreamMark | None]:
        """The mark of the place at an offset, for each of these streams; a batch begins at `begin`.

        Raises:
            ConnectionLost, SparkError: as `ask`.
        """

        def mark(link: Link, stream: str, at: int) -> StreamMark | None:
            known = stream in self._tails
            tail = self._tail(link, stream)
            if not known:  # The connection was lost since the last answer.
                tail.ask()
                if tail.replaced(begin[stream]):
                    return begin[stream].mark  # So that tasks find that it is another stream.
            return tail.mark(at - 1)

        return self._attended.call(lambda link: {each: mark(link, each, at) for each, at in stops.items()})

    def firsts(self, streams: Iterable[str]) -> dict[str, int]:
        """The offset of the first message of each of these streams, which have some.

        Raises:
            ConnectionLost, SparkError: as `ask`.
        """
        return self._attended.call(lambda link: {stream: self._first(link, stream) for stream in streams})

    @property
    def known(self) -> dict[str, int]:
        """The ends of the last answer."""
        return self._ends

    def wait(self, seconds: float) -> None:
        """Let time pass between two questions."""
        self._attended.wait(seconds)

    def stop(self) -> None:
        """Stop the thread."""
        self._attended.stop()

    # --- its own thread -------------------------------------------------------------------------------

    def _prepare(self, _link: Link) -> None:
        self._tails = {}

    def _acknowledge(self) -> float:
        now = time.monotonic()
        if now >= self._acknowledge_at:
            for tail in self._tails.values():
                tail.acknowledge()
            self._acknowledge_at = now + _ACKNOWLEDGED_EVERY
        return self._acknowledge_at - now

    def _tail(self, link: Link, stream: str) -> Tail:
        if stream not in self._tails:
            self._tails[stream] = Tail(link, stream, self._options.connection.connect_timeout)
        return self._tails[stream]

    def _answer(self, link: Link, begin: Mapping[str, StreamPlace]) -> Answer:
        streams = self._streams(link, begin)
        ends = {stream: self._tail(link, stream).ask() for stream in streams}
        if not self._checked:
            # Empty queues of other types look the same.
            for stream, end in ends.items():
                if end is None:
                    check_is_stream(self._options.connection, stream)
            self._checked = True
        replaced = (stream for stream in streams if self._tails[stream].replaced(begin.get(stream, _UNKNOWN)))
        found = {stream: end for stream, end in ends.items() if end is not None}
        self._ends = found
        return Answer(streams, found, frozenset(replaced))

    def _streams(self, link: Link, begin: Mapping[str, StreamPlace]) -> tuple[str, ...]:
        if not self._options.super_streams:
            return self._options.streams
        for name in self._options.super_streams:
            if name in self._partitions:
                self._partitions[name].look_for_more(link)
            else:
                partitions = Partitions(name, self._options)
                partitions.find(link)
                self._partitions[name] = partitions
        # A partition that was there and is missing is an error of its own: it cannot be consumed.
        there = (stream for found in self._partitions.values() for stream in found.streams)
        return tuple(dict.fromkeys([*there, *begin]))

    def _first(self, link: Link, stream: str) -> int:
        patience = self._options.connection.connect_timeout
        found = first_message(link, stream, "first", patience, sure=True)
        assert found is not None
        return found.offset


_UNKNOWN = StreamPlace(0)
