"""The thread that consumes: from the broker into a store, for as long as the query lives.

It runs beside Spark's calls so that heartbeats are answered and messages acknowledged however long a
micro-batch takes, and so that the end of a channel is noticed when it happens. Spark's thread asks it
questions through `Consumer.barrier` and otherwise looks at the store.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from fakeamqp.spark.connection import Link
from fakeamqp.spark.errors import BrokerUnreachable, ConnectionLost, SparkError
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.spool.intake import Course, Intake, QueueRefused, Standing
from fakeamqp.spark.spool.store import Store, log
from fakeamqp.spark.spool.target import Target

__all__ = ["Consumer"]

# Also how long a connection has to last so that the end of it is not one more failure of the last attempt.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
_GOODBYE = 8.0


@dataclass
class _Question:
    target: Target | None = None
    answer: Standing | None = None


class Consumer:
    """Consumes the queues of the options into a store, in a thread of its own."""

    def __init__(self, options: ReadOptions, store: Store) -> None:
        self._options = options
        self._store = store
        self._state = threading.Condition()
        self._questions: list[_Question] = []
        self._link: Link | None = None
        self._poked = threading.Event()
        self._failure: BaseException | None = None
        self._stopping = False
        self._flush_at_end = True
        self._course = Course()
        self._shown_arrived = 0
        self._proven = False
        self._consumed_once = False
        self._consuming_since: float | None = None
        self._thread = threading.Thread(target=self._run, name="amqp consumer", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    # --- Spark's thread -------------------------------------------------------------------------------

    def barrier(self, target: Target | None = None) -> Standing:
        """Have everything in the store that was confirmed to its publisher before, as far as there is room.

        Args:
            target: is given what is in the queues now, to know when it has come; nothing beyond it is taken
                in until it is forgotten.

        Raises:
            ConnectionLost: if the connection was lost and could not be had again in time.
            SparkError: whatever else has ended the consumer.
        """
        question = _Question(target)
        with self._state:
            self._questions.append(question)
        self.poke()
        with self._state:
            while question.answer is None:
                self._check()
                self._state.wait()
        return question.answer

    def forget(self, target: Target) -> None:
        """Take in again what is beyond a target."""
        with self._state:
            if self._course.target is target:
                self._course.target = None
        self.poke()

    def limit(self, limited: bool) -> None:
        """Whether to leave messages with the broker when the store is full."""
        self._course.unlimited = not limited
        self.poke()

    def wait_for_more(self, arrived: int, timeout: float) -> bool:
        """Wait until more messages have come than `arrived`; whether they have within `timeout` seconds.

        Raises:
            SparkError: as `barrier`.
        """
        with self._state:
            self._state.wait_for(lambda: self._failure is not None or self._shown_arrived > arrived, timeout)
            self._check()
            return self._shown_arrived > arrived

    def poke(self) -> None:
        """Have the thread look again: there is something to do, or room in the store."""
        self._poked.set()
        with self._state:
            if self._link is not None:
                self._link.wake()

    def stop(self, *, flush: bool = True) -> bool:
        """End. What has come is stored and acknowledged, or left to the broker without `flush`.

        Returns:
            whether the thread has ended; a broker that does not answer can keep it.
        """
        self._flush_at_end = flush
        self._stopping = True
        self.poke()
        if self._thread.ident is not None:
            self._thread.join(_GOODBYE)
        return not self._thread.is_alive()

    def _check(self) -> None:
        if self._failure is not None:
            failure = self._failure
            raise (
                failure
                if isinstance(failure, SparkError)
                else SparkError(f"the consumer ended: {type(failure).__name__}: {failure}")
            ) from failure
        if self._stopping:
            raise ConnectionLost("the reader was stopped")

    # --- its own thread: connections ------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._keep_consuming()
        except BaseException as error:
            with self._state:
                self._failure = error
                self._state.notify_all()

    def _keep_consuming(self) -> None:
        lost_at: float | None = None
        pause = _FIRST_PAUSE
        while not self._stopping:
            self._proven, self._consuming_since = False, None
            try:
                self._consume()
            except (ConnectionLost, BrokerUnreachable) as error:
                if not self._consumed_once and isinstance(error, (QueueRefused, BrokerUnreachable)):
                    # A mistake in the options, most likely: waiting will not help.
                    raise
                now = time.monotonic()
                since = self._consuming_since
                if lost_at is None or self._proven or (since is not None and now - since > _LONGEST_PAUSE):
                    lost_at, pause = now, _FIRST_PAUSE
                tried = now - lost_at
                if tried + pause > self._options.reconnect_timeout:
                    raise ConnectionLost(f"{error} (tried again for {tried:.1f} s)") from error
                log.warning("%s; connecting again", error)
                self._poked.clear()
                if not self._stopping:
                    self._poked.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _consume(self) -> None:
        """Consume until the reader is stopped.

        Raises:
            BrokerUnreachable: if there is no connection to be had.
            ConnectionLost: when the connection, the channel or a consumer ends.
        """
        with Link(self._options.connection) as link:
            try:
                with self._state:
                    self._link = link
                intake = Intake(link, self._options, self._store, self._course)
                self._consuming_since = time.monotonic()
                self._consumed_once = True
                while not self._stopping:
                    link.check()
                    self._answer(intake)
                    intake.keep_up()
                    link.turn(intake.patience())
                    if self._course.arrived != self._shown_arrived:
                        self._show_arrived()
                if self._flush_at_end:
                    intake.flush()
            finally:
                with self._state:
                    self._link = None

    def _answer(self, intake: Intake) -> None:
        while self._questions:
            question = self._questions[0]
            if question.target is not None:
                self._course.target = question.target
            answer = intake.ask(question.target)
            self._proven = True
            self._show_arrived()
            with self._state:
                self._questions.pop(0)
                question.answer = answer
                self._state.notify_all()

    def _show_arrived(self) -> None:
        with self._state:
            self._shown_arrived = self._course.arrived
            self._state.notify_all()
