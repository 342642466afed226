"""Follows the ends of all streams of a query, in its own thread for the lifetime of the query.

The thread answers heartbeats while Spark is busy with a batch, and connects again when the connection
is lost. Spark's thread asks it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from fakeamqp.spark.connection import Link
from fakeamqp.spark.errors import BrokerUnreachable, ConnectionLost, SparkError
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.queue_types import check_is_stream
from fakeamqp.spark.retries import Retries
from fakeamqp.spark.stream_queue.offsets import Mark, Place
from fakeamqp.spark.stream_queue.super_stream import more_partitions, partitions
from fakeamqp.spark.stream_queue.tail import Tail, first_message

__all__ = ["Answer", "Tails"]

T = TypeVar("T")

log = logging.getLogger("fakeamqp.spark.stream_queue")

_GOODBYE = 5.0
# Seconds. RabbitMQ closes channels with a delivery that is unacknowledged for half an hour.
_ACKNOWLEDGED_EVERY = 60.0
# Seconds between questions for new partitions of super streams.
_PARTITIONS_EVERY = 5.0


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
        self._state = threading.Condition()
        self._job: Callable[[], Any] | None = None
        self._results: list[Any] = []
        self._answered = 0
        self._ends: dict[str, int] = {}
        self._link: Link | None = None
        self._tails: dict[str, Tail] = {}
        self._partitions: dict[str, list[str]] = {}
        self._look_for_partitions_at = 0.0
        self._stopped = threading.Event()
        self._failure: BaseException | None = None
        self._checked = False
        self._thread = threading.Thread(target=self._run, name="amqp tails", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def ask(self, begin: Mapping[str, Place]) -> Answer:
        """The state of the streams now, compared with places that Spark has.

        Raises:
            OptionError: if one is no stream, or a super stream has no partitions.
            ConnectionLost: the connection was lost and could not be opened again in time.
            SparkError: whatever else keeps the thread from knowing.
        """
        return self._call(lambda: self._answer(begin))

    def marks(self, stops: Mapping[str, int]) -> dict[str, Mark | None]:
        """The mark of the place at an offset, for each of these streams.

        Raises:
            ConnectionLost, SparkError: as `ask`.
        """
        return self._call(lambda: {stream: self._tails[stream].mark(at - 1) for stream, at in stops.items()})

    def firsts(self, streams: Iterable[str]) -> dict[str, int]:
        """The offset of the first message of each of these streams, which have some.

        Raises:
            ConnectionLost, SparkError: as `ask`.
        """
        return self._call(lambda: {stream: self._first(stream) for stream in streams})

    @property
    def known(self) -> dict[str, int]:
        """The ends of the last answer."""
        with self._state:
            return dict(self._ends)

    def _call(self, job: Callable[[], T]) -> T:
        """Run a job in the thread; again, if the connection is lost meanwhile."""
        with self._state:
            self._results = []
            self._job = job
            if self._link is not None:
                self._link.wake()
            self._state.wait_for(lambda: self._failure is not None or self._results)
            if not self._results:
                assert self._failure is not None
                raise self._in_our_words(self._failure)
            found: T = self._results[0]
            return found

    def stop(self) -> None:
        """Stop the thread."""
        self._stopped.set()
        with self._state:
            if self._link is not None:
                self._link.wake()
        if self._thread.ident is not None:
            self._thread.join(_GOODBYE)

    @staticmethod
    def _in_our_words(failure: BaseException) -> BaseException:
        if isinstance(failure, SparkError):
            return type(failure)(str(failure))
        return SparkError(f"the reader of streams ended: {type(failure).__name__}: {failure}")

    # --- its own thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._keep_watching()
            failure: BaseException = ConnectionLost("the reader was stopped")
        except BaseException as error:
            failure = error
        with self._state:
            self._failure = failure
            self._state.notify_all()

    def _keep_watching(self) -> None:
        retries = Retries(self._options.reconnect_timeout)
        while not self._stopped.is_set():
            answered = self._answered
            try:
                self._watch()
            except (ConnectionLost, BrokerUnreachable) as error:
                if not self._checked:
                    raise
                if self._answered > answered:
                    retries.succeeded()
                pause = retries.pause(error)
                log.warning("%s; connecting again", error)
                self._stopped.wait(pause)

    def _watch(self) -> None:
        with Link(self._options.connection) as link:
            self._tails = {}
            try:
                with self._state:
                    self._link = link
                self._run_jobs(link)
            finally:
                with self._state:
                    self._link = None

    def _run_jobs(self, link: Link) -> None:
        acknowledge_at = 0.0
        while not self._stopped.is_set():
            link.check()
            if self._job is not None:
                result = self._job()
                link.check()  # A stream that was deleted meanwhile may have given a wrong answer.
                with self._state:
                    self._job, self._results = None, [result]
                    self._answered += 1
                    self._state.notify_all()
            now = time.monotonic()
            if now >= acknowledge_at:
                for tail in self._tails.values():
                    tail.acknowledge()
                acknowledge_at = now + _ACKNOWLEDGED_EVERY
            link.turn(max(acknowledge_at - now, 0.0) if self._job is None else 0.0)

    def _answer(self, begin: Mapping[str, Place]) -> Answer:
        link = self._link
        assert link is not None
        streams = self._streams(link, begin)
        for stream in streams:
            if stream not in self._tails:
                self._tails[stream] = Tail(link, stream, self._options.connection.connect_timeout)
        ends = {stream: self._tails[stream].ask() for stream in streams}
        if not self._checked:
            # Empty queues of other types look the same.
            for stream, end in ends.items():
                if end is None:
                    check_is_stream(self._options.connection, stream)
            self._checked = True
        replaced = (stream for stream in streams if self._tails[stream].replaced(begin.get(stream, _UNKNOWN)))
        found = {stream: end for stream, end in ends.items() if end is not None}
        answer = Answer(streams, found, frozenset(replaced))
        with self._state:
            self._ends = found
        return answer

    def _streams(self, link: Link, begin: Mapping[str, Place]) -> tuple[str, ...]:
        options, found = self._options, self._partitions
        if not options.super_streams:
            return options.streams
        now = time.monotonic()
        if now >= self._look_for_partitions_at:
            self._look_for_partitions_at = now + _PARTITIONS_EVERY
            for name in options.super_streams:
                if name in found:
                    found[name] += more_partitions(link, name, len(found[name]))
                else:
                    found[name] = partitions(link, name)
        # A partition that was there and is missing is an error of its own: it cannot be consumed.
        return tuple(dict.fromkeys([*(stream for name in found for stream in found[name]), *begin]))

    def _first(self, stream: str) -> int:
        assert self._link is not None
        patience = self._options.connection.connect_timeout
        found = first_message(self._link, stream, "first", patience, sure=True)
        assert found is not None
        return found.offset


_UNKNOWN = Place(0)
