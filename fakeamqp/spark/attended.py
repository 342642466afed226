"""A connection in a thread of its own, for the lifetime of a query.

The thread answers heartbeats while Spark is busy with a batch, and connects again when the connection is
lost. Spark's thread gives it jobs.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from fakeamqp.spark.connection import Link
from fakeamqp.spark.errors import BrokerUnreachable, ConnectionLost, SparkError
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.retries import LONGEST_PAUSE, RetryBudget

T = TypeVar("T")

log: logging.Logger = logging.getLogger("fakeamqp.spark")

_GOODBYE = 5.0


def with_heartbeat(options: ReadOptions, seconds: int) -> ReadOptions:
    """The options with this heartbeat, unless they have one."""
    if options.connection.heartbeat is not None:
        return options
    return replace(options, connection=replace(options.connection, heartbeat=seconds))


class AttendedLink:
    """A connection that a thread keeps open, and that runs jobs.

    Args:
        options: of the reader.
        name: of the thread.
        prepare: is called with each new connection, in the thread.
        due: does what is due, in the thread, and returns the seconds until the next call; None for never.
    """

    def __init__(
        self,
        options: ReadOptions,
        name: str,
        prepare: Callable[[Link], None],
        due: Callable[[], float | None] = lambda: None,
    ) -> None:
        self._options = options
        self._prepare = prepare
        self._due = due
        self._state = threading.Condition()
        self._job: Callable[[Link], Any] | None = None
        self._results: list[Any]
        self._jobs_done = 0
        self._opened_at: float | None
        self._link: Link | None = None
        self._stopped = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def call(self, job: Callable[[Link], T]) -> T:
        """Run a job in the thread; again from its beginning, if the connection is lost meanwhile.

        Raises:
            BrokerUnreachable, ConnectionLost: there is no connection for as long as `reconnectTimeout`, or
                there was none for the first job.
            SparkError: the job or the preparation of a connection has failed, now or before.
        """
        with self._state:
            if self._thread.ident is None:
                self._thread.start()
            self._results = []
            self._job = job
            if self._link is not None:
                self._link.wake()
            self._state.wait_for(lambda: self._failure is not None or self._results)
            if not self._results:
                failure = self._failure
                if isinstance(failure, SparkError):
                    raise type(failure)(str(failure))
                raise SparkError(f"the {self._thread.name} ended: {type(failure).__name__}: {failure}")
            found: T = self._results[0]
            return found

    def wait(self, seconds: float) -> None:
        """Let time pass, until the thread is stopped."""
        self._stopped.wait(seconds)

    def stop(self) -> None:
        """Close the connection, and end the thread."""
        self._stopped.set()
        with self._state:
            if self._link is not None:
                self._link.wake()
        if self._thread.ident is not None:
            self._thread.join(_GOODBYE)

    # --- its own thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._keep_open()
            failure: BaseException = ConnectionLost("the reader was stopped")
        except BaseException as error:
            failure = error
        with self._state:
            self._failure = failure
            self._state.notify_all()

    def _keep_open(self) -> None:
        retries = RetryBudget(self._options.reconnect_timeout)
        while not self._stopped.is_set():
            done, self._opened_at = self._jobs_done, None
            try:
                self._attend()
            except (ConnectionLost, BrokerUnreachable) as error:
                if not self._jobs_done:
                    raise
                since = self._opened_at
                # A connection that lasts longer than the longest pause counts as a success.
                if self._jobs_done > done or (since and time.monotonic() - since > LONGEST_PAUSE):
                    retries.succeeded()
                pause = retries.pause(error)
                log.warning("%s; connecting again", error)
                self._stopped.wait(pause)

    def _attend(self) -> None:
        with Link(self._options.connection) as link:
            self._prepare(link)
            self._opened_at = time.monotonic()
            try:
                with self._state:
                    self._link = link
                while not self._stopped.is_set():
                    link.check()
                    if self._job is not None:
                        result = self._job(link)
                        link.check()  # A queue that was deleted meanwhile may have given a wrong answer.
                        with self._state:
                            self._job, self._results = None, [result]
                            self._jobs_done += 1
                            self._state.notify_all()
                    pause = self._due()
                    link.turn(pause if self._job is None else 0.0)
            finally:
                with self._state:
                    self._link = None
