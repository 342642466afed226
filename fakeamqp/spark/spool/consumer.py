"""The consumer thread: from the broker into a store, for the lifetime of the query.

It runs beside Spark's calls. So heartbeats are answered and messages are acknowledged however long a
micro-batch takes, and the end of a channel is noticed at once. Spark's thread calls `SpoolConsumer.barrier`,
and otherwise reads the store.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from fakeamqp.spark.connection import Link
from fakeamqp.spark.errors import BrokerUnreachable, ConnectionLost, QueueRefused, SparkError
from fakeamqp.spark.lag import REFRESH
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.retries import LONGEST_PAUSE, RetryBudget
from fakeamqp.spark.spool.backlog import Backlog
from fakeamqp.spark.spool.channel import ConsumingChannel, SharedState, SpoolStatus, WindowTooWide
from fakeamqp.spark.spool.store import Store, log

_GOODBYE = 8.0


@dataclass
class _Question:
    backlog: Backlog | None = None
    answer: SpoolStatus | None = None


class SpoolConsumer:
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
        self._flush_at_end: bool
        self._shared = SharedState()
        self._shown_arrived = 0
        self._proven: bool
        self._consumed_once = False
        self._consuming_since: float | None
        self._count_wanted = False
        self._thread = threading.Thread(target=self._run, name="amqp consumer", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    # --- Spark's thread -------------------------------------------------------------------------------

    def barrier(self, backlog: Backlog | None = None) -> SpoolStatus:
        """Wait until the store has all messages that were confirmed to publishers before.

        Args:
            backlog: starts counting the messages that are in the queues now. Later messages are not stored
                until `forget`.

        Raises:
            ConnectionLost: the connection was lost and could not be opened again in time.
            SparkError: the consumer has ended for another reason.
        """
        question = _Question(backlog)
        with self._state:
            self._questions.append(question)
        self.poke()
        with self._state:
            while question.answer is None:
                self._check()
                self._state.wait()
        return question.answer

    @property
    def window(self) -> int:
        """The prefetch count of each queue, which becomes smaller if messages are large."""
        return self._shared.window or self._options.prefetch

    def depths(self) -> SharedState:
        """The state of the queues, as it was counted last; asks for a new count if that is too long ago."""
        if time.monotonic() - self._shared.counted_at >= REFRESH:
            self._count_wanted = True
            self.poke()
        return self._shared

    def forget(self, backlog: Backlog) -> None:
        """Remove the limit of a backlog."""
        with self._state:
            if self._shared.backlog is backlog:
                self._shared.backlog = None
        self.poke()

    def limit(self, limited: bool) -> None:
        """Choose whether messages are left to the broker when the store is full."""
        self._shared.unlimited = not limited
        self.poke()

    def wait_for_more(self, arrived: int, timeout: float) -> bool:
        """Wait until more messages than `arrived` were received. Returns False after `timeout` seconds.

        Raises:
            SparkError: as `barrier`.
        """
        with self._state:
            self._state.wait_for(lambda: self._failure is not None or self._shown_arrived > arrived, timeout)
            self._check()
            return self._shown_arrived > arrived

    def poke(self) -> None:
        """Wake the thread: there is work, or space in the store."""
        self._poked.set()
        with self._state:
            if self._link is not None:
                self._link.wake()

    def stop(self, *, flush: bool = True) -> bool:
        """Stop. With `flush`, received messages are stored and acknowledged first.

        Returns:
            True if the thread has ended. A broker that does not answer can delay that.
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
            if isinstance(failure, SparkError):
                raise failure.with_traceback(None)  # That of the thread says nothing more.
            raise SparkError(f"the consumer ended: {type(failure).__name__}: {failure}") from failure
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
        retries = RetryBudget(self._options.reconnect_timeout)
        while not self._stopping:
            self._proven, self._consuming_since = False, None
            try:
                self._consume()
            except WindowTooWide as error:
                log.warning("%s", error)
            except (ConnectionLost, BrokerUnreachable) as error:
                if not self._consumed_once and isinstance(error, (QueueRefused, BrokerUnreachable)):
                    # Most likely an error in the options, which a retry does not fix.
                    raise
                since = self._consuming_since
                # A connection that lasts longer than the longest pause counts as a success.
                if self._proven or (since is not None and time.monotonic() - since > LONGEST_PAUSE):
                    retries.succeeded()
                pause = retries.pause(error)
                log.warning("%s; connecting again", error)
                self._poked.clear()
                if not self._stopping:
                    self._poked.wait(pause)

    def _consume(self) -> None:
        """Consume until the reader is stopped.

        Raises:
            BrokerUnreachable: no connection can be opened.
            ConnectionLost: when the connection, the channel or a consumer ends.
        """
        with Link(self._options.connection) as link:
            try:
                with self._state:
                    self._link = link
                channel = ConsumingChannel(link, self._options, self._store, self._shared)
                self._consuming_since = time.monotonic()
                self._consumed_once = True
                while not self._stopping:
                    link.check()
                    self._answer(channel)
                    if self._count_wanted:
                        self._count_wanted = False
                        channel.count()
                    channel.run_due_work()
                    link.turn(channel.idle_limit())
                    if self._shared.arrived != self._shown_arrived:
                        self._show_arrived()
                if self._flush_at_end:
                    channel.flush(at_end=True)
            finally:
                with self._state:
                    self._link = None

    def _answer(self, channel: ConsumingChannel) -> None:
        while self._questions:
            question = self._questions[0]
            if question.backlog is not None:
                self._shared.backlog = question.backlog
            answer = channel.ask(question.backlog)
            self._proven = True
            self._show_arrived()
            with self._state:
                self._questions.pop(0)
                question.answer = answer
                self._state.notify_all()

    def _show_arrived(self) -> None:
        with self._state:
            self._shown_arrived = self._shared.arrived
            self._state.notify_all()
