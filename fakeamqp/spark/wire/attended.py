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

from fakeamqp.spark.errors import BrokerUnreachable, ConnectionLost, QueueRefused, SparkError
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.wire.connection import WireConnection
from fakeamqp.spark.wire.retries import LONGEST_PAUSE, RetryBudget

T = TypeVar("T")

log: logging.Logger = logging.getLogger("fakeamqp.spark")

# Seconds: a broker that does not answer delays the end of the thread.
_GOODBYE = 8.0
_STOPPED = "the reader was stopped"


def with_heartbeat(options: ReadOptions, seconds: int) -> ReadOptions:
    """The options with this heartbeat, unless they have one."""
    if options.connection.heartbeat is not None:
        return options
    return replace(options, connection=replace(options.connection, heartbeat=seconds))


class AttendedConnection:
    """A connection that a thread keeps open, and that runs jobs. One other thread calls it.

    Args:
        options: of the reader.
        name: of the thread.
        prepare: is called with each new connection, in the thread.
        due: does what is due, in the thread, and returns the seconds until the next call; None for never.
        end: is called in the thread when it is stopped, if it has a connection then.
        consumes: whether the preparation reads messages, so that it is a success without a job; before the
            first success the thread opens a lost connection again, and fails at any other error.
    """

    def __init__(
        self,
        options: ReadOptions,
        name: str,
        prepare: Callable[[WireConnection], None],
        due: Callable[[], float | None] = lambda: None,
        end: Callable[[], None] = lambda: None,
        *,
        consumes: bool = False,
    ) -> None:
        self._options = options
        self._prepare = prepare
        self._due = due
        self._end = end
        self._consumes = consumes
        self._state = threading.Condition()
        self._job: Callable[[WireConnection], Any] | None = None
        self._results: list[Any]
        self._jobs_done = 0
        self._opened_at: float | None = None
        self._connection: WireConnection | None = None
        self._woken = threading.Event()
        self._stopped = False
        self._failure: SparkError | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread, if it was not started or stopped before."""
        if self._thread.ident is None and self._failure is None:
            self._thread.start()

    def call(self, job: Callable[[WireConnection], T]) -> T:
        """Run a job in the thread; again from its beginning, if the connection is lost meanwhile.

        Raises:
            BrokerUnreachable, ConnectionLost: there is no connection for as long as `reconnectTimeout`, or
                there was none for the first job.
            SparkError: the job or the preparation of a connection has failed, now or before.
        """
        with self._state:
            self.start()
            self._results = []
            self._job = job
            self.wake()
            self._state.wait_for(lambda: self._failure is not None or self._results)
            if not self._results:
                self._check()
            found: T = self._results[0]
            return found

    def wait(self, seconds: float, done: Callable[[], bool] = lambda: False) -> bool:
        """Wait until something is done in the thread. Returns False if it is not within some seconds.

        Raises:
            SparkError: as `call`, or the thread was stopped.
        """
        with self._state:
            is_done = self._state.wait_for(lambda: self._failure is not None or done(), seconds)
            self._check()
            return is_done

    def wake(self) -> None:
        """Have the thread do what is due now, or connect again."""
        with self._state:
            self._woken.set()
            if self._connection is not None:
                self._connection.wake()

    def stop(self) -> bool:
        """Close the connection, and end the thread. Returns True if it has ended."""
        self._stopped = True
        self.wake()
        if self._thread.ident is not None:
            self._thread.join(_GOODBYE)
        with self._state:
            self._failure = self._failure or ConnectionLost(_STOPPED)
            self._state.notify_all()
        return not self._thread.is_alive()

    def _check(self) -> None:
        if (failure := self._failure) is not None:
            raise type(failure)(str(failure)) from failure.__cause__

    # --- its own thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        failure: SparkError = ConnectionLost(_STOPPED)
        try:
            self._keep_open()
        except SparkError as error:
            failure = error
        except BaseException as error:
            failure = SparkError(f"the {self._thread.name} ended: {type(error).__name__}: {error}")
            failure.__cause__ = error
        with self._state:
            self._failure = failure
            self._state.notify_all()

    def _keep_open(self) -> None:
        retries = RetryBudget(self._options.reconnect_timeout)
        has_consumed = False
        while not self._stopped:
            done, self._opened_at = self._jobs_done, None
            try:
                self._attend()
            except (ConnectionLost, BrokerUnreachable, QueueRefused) as error:
                since = self._opened_at
                has_consumed |= self._consumes and since is not None
                is_loss = self._consumes and isinstance(error, ConnectionLost)
                if not (self._jobs_done or has_consumed or is_loss):
                    # Most likely an error in the options, which another attempt does not fix.
                    raise
                # A connection that lasts longer than the longest pause counts as a success.
                if self._jobs_done > done or (since is not None and time.monotonic() - since > LONGEST_PAUSE):
                    retries.succeeded()
                pause = retries.pause(error)
                log.warning("%s; connecting again", error)
                self._woken.clear()
                if not self._stopped:
                    self._woken.wait(pause)

    def _attend(self) -> None:
        with WireConnection(self._options.connection) as connection:
            self._prepare(connection)
            self._opened_at = time.monotonic()
            try:
                with self._state:
                    self._connection = connection
                while True:
                    self._woken.clear()
                    if self._stopped:
                        break
                    connection.check()
                    if self._job is not None:
                        result = self._job(connection)
                        connection.check()
                        with self._state:
                            self._job, self._results = None, [result]
                            self._jobs_done += 1
                            self._state.notify_all()
                    pause = self._due()
                    with self._state:
                        self._state.notify_all()
                    # Jobs and what is due may have taken the wake.
                    connection.turn(0.0 if self._woken.is_set() else pause)
                self._end()
            finally:
                with self._state:
                    self._connection = None
