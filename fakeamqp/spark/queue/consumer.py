"""The consumer: from the broker into a store, for the lifetime of the query.

It consumes in the thread of an attended connection, beside Spark's calls. So messages are acknowledged
however long a micro-batch takes, and the end of a channel is noticed at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from fakeamqp.spark.lag import REFRESH
from fakeamqp.spark.queue.channel import Backlog, ConsumerState, ConsumingChannel, Status, WindowTooWide
from fakeamqp.spark.queue.store import Store, log
from fakeamqp.spark.wire.attended import AttendedConnection
from fakeamqp.spark.wire.queue_types import check_is_no_stream

if TYPE_CHECKING:
    from fakeamqp.spark.options import ReadOptions
    from fakeamqp.spark.wire.connection import WireConnection

T = TypeVar("T")


class QueueConsumer:
    """Consumes the queues of the options into a store. One thread calls it.

    Attributes:
        state: what the consumer knows. After a change, `poke` makes it notice that.

    Raises:
        ConnectionLost: the connection was lost and could not be opened again in time. Waits raise it.
        SparkError: the consumer has ended for another reason. Waits raise it.
    """

    def __init__(self, options: ReadOptions, store: Store) -> None:
        self.state: ConsumerState = ConsumerState()
        self._options = options
        self._store = store
        self._attended = AttendedConnection(
            options, "consumer", self._prepare, self._run_due_work, self._finish, consumes=True
        )
        self._connection: WireConnection
        self._channel: ConsumingChannel | None = None
        self._count_wanted = self._flush_at_end = False

    def start(self) -> None:
        """Begin to consume."""
        self._attended.start()

    def barrier(self, backlog: Backlog | None = None) -> Status:
        """Wait until the store has all messages that were confirmed to publishers before.

        A backlog starts counting the messages that are in the queues now. Later messages are not stored until
        it is removed from the state.
        """

        def ask(_connection: WireConnection) -> Status:
            if backlog is not None:
                self.state.backlog = backlog
            return self._on_channel(lambda channel: channel.ask(backlog))

        return self._attended.call(ask)

    def wait_for_more(self, arrived: int, timeout: float) -> bool:
        """Wait until more messages than `arrived` were received. Returns False after `timeout` seconds."""
        return self._attended.wait(timeout, lambda: self.state.arrived > arrived)

    def refresh(self) -> None:
        """Have the queues counted again, if that was too long ago."""
        if time.monotonic() - self.state.counted_at >= REFRESH:
            self._count_wanted = True
            self.poke()

    def poke(self) -> None:
        """Tell the consumer that there is work, or space in the store."""
        self._attended.wake()

    def stop(self, *, flush: bool = True) -> bool:
        """Stop. With `flush`, received messages are stored and acknowledged first.

        Returns True if the thread has ended. A broker that does not answer can delay that.
        """
        self._flush_at_end = flush
        return self._attended.stop()

    # --- in the thread of the connection --------------------------------------------------------------

    def _prepare(self, connection: WireConnection) -> None:
        for queue in self._options.queues:
            check_is_no_stream(connection, queue)
        self._connection, self._channel = connection, None
        self._on_channel(lambda _channel: None)

    def _run_due_work(self) -> float | None:
        if self._count_wanted:
            self._count_wanted = False
            self._on_channel(lambda channel: channel.count())
        return self._on_channel(lambda channel: channel.run_due_work())

    def _finish(self) -> None:
        if self._flush_at_end:
            self._on_channel(lambda channel: channel.flush(at_end=True))

    def _on_channel(self, do: Callable[[ConsumingChannel], T]) -> T:
        """Do something on the channel; again on another one, if its window was too wide."""
        while True:
            try:
                if self._channel is None:
                    self._channel = ConsumingChannel(self._connection, self._options, self._store, self.state)
                return do(self._channel)
            except WindowTooWide as error:
                log.warning("%s", error)
                self._channel = None
