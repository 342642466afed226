"""Follows the ends of all streams of a query, in its own thread for the lifetime of the query.

The thread answers heartbeats while Spark is busy with a batch, and connects again when the connection
is lost. Spark's thread asks it.
"""

from __future__ import annotations

import logging
import threading
import time

from fakeamqp.spark.connection import Link
from fakeamqp.spark.errors import BrokerUnreachable, ConnectionLost, SparkError
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.stream_queue.tail import Tail, check_is_stream

__all__ = ["Tails"]

log = logging.getLogger("fakeamqp.spark.stream_queue")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
_GOODBYE = 5.0
# Seconds. RabbitMQ closes channels with a delivery that is unacknowledged for half an hour.
_ACKNOWLEDGED_EVERY = 60.0


class Tails:
    """The ends of the streams of the options."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._state = threading.Condition()
        self._asked = 0
        self._answered = 0
        self._ends: dict[str, int] = {}
        self._link: Link | None = None
        self._stopped = threading.Event()
        self._failure: BaseException | None = None
        self._checked = False
        self._thread = threading.Thread(target=self._run, name="amqp tails", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def ask(self) -> dict[str, int]:
        """The offset after the last message of every stream that is not empty.

        Raises:
            ConnectionLost: the connection was lost and could not be opened again in time.
            SparkError: whatever else keeps the thread from knowing.
        """
        with self._state:
            self._asked += 1
            asked = self._asked
            if self._link is not None:
                self._link.wake()
            self._state.wait_for(lambda: self._failure is not None or self._answered >= asked)
            if self._failure is not None:
                raise self._in_our_words(self._failure)
            return dict(self._ends)

    @property
    def known(self) -> dict[str, int]:
        """The last answer."""
        with self._state:
            return dict(self._ends)

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
        lost_at: float | None = None
        pause = _FIRST_PAUSE
        while not self._stopped.is_set():
            answered = self._answered
            try:
                self._watch()
            except (ConnectionLost, BrokerUnreachable) as error:
                if not self._checked:
                    raise
                now = time.monotonic()
                if lost_at is None or self._answered > answered:
                    lost_at, pause = now, _FIRST_PAUSE
                if now - lost_at + pause > self._options.reconnect_timeout:
                    raise ConnectionLost(f"{error} (tried again for {now - lost_at:.1f} s)") from error
                log.warning("%s; connecting again", error)
                self._stopped.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _watch(self) -> None:
        options = self._options
        with Link(options.connection) as link:
            patience = options.connection.connect_timeout
            tails = {stream: Tail(link, stream, patience) for stream in options.streams}
            try:
                with self._state:
                    self._link = link
                self._answer_questions(link, tails)
            finally:
                with self._state:
                    self._link = None

    def _answer_questions(self, link: Link, tails: dict[str, Tail]) -> None:
        acknowledge_at = 0.0
        while not self._stopped.is_set():
            link.check()
            if self._asked > self._answered:
                asked = self._asked
                ends = {stream: tail.ask() for stream, tail in tails.items()}
                self._check(ends)
                with self._state:
                    self._ends = {stream: end for stream, end in ends.items() if end is not None}
                    self._answered = asked
                    self._state.notify_all()
            now = time.monotonic()
            if now >= acknowledge_at:
                for tail in tails.values():
                    tail.acknowledge()
                acknowledge_at = now + _ACKNOWLEDGED_EVERY
            link.turn(max(acknowledge_at - now, 0.0) if self._asked <= self._answered else 0.0)

    def _check(self, ends: dict[str, int | None]) -> None:
        """Check once that the queues are streams: empty queues of other types look the same."""
        if not self._checked:
            for stream, end in ends.items():
                if end is None:
                    check_is_stream(self._options.connection, stream)
            self._checked = True
