"""Batch reads of one queue take turns.

A read keeps messages unacknowledged, so a second read at the same time would miss them without an error. A
query reads a queue twice if it joins a DataFrame with itself, for example. Two reads in one task cannot take
turns if Spark wants rows of the second one before it has all rows of the first.
"""

from __future__ import annotations

import logging
import os
import socket
from contextlib import suppress

from pyspark import TaskContext

from fakeamqp.spark.errors import ConnectionLost, SparkError
from fakeamqp.spark.wire.connection import WireConnection
from fakeamqp.spark.wire.lease import LeaseRefused, LeaseTaken, is_held, lease_name, release_lease, take_lease

log: logging.Logger = logging.getLogger("fakeamqp.spark")


class Turn:
    """The turn of one read of a queue."""

    def __init__(self, connection: WireConnection, queue: str) -> None:
        self._connection = connection
        self._queue = queue
        task = _this_task()
        # Held by a read that waits for Spark: another read in the same task would wait in vain.
        self._task_lease = None if task is None else lease_name(f"browse-task.{task}", queue)

    def begin(self, patience: float) -> None:
        """Wait until no other read keeps messages of the queue. A user without leases reads at once.

        Raises:
            SparkError: another read has kept them for `patience` seconds, or is in the same task.
            ConnectionLost: the connection has ended.
        """
        try:
            take_lease(self._connection, lease_name("browse", self._queue), patience, self._check_task)
        except LeaseTaken:
            raise SparkError(
                f"cannot read queue {self._queue!r}: another batch read of it, in this query or in another "
                f"one, did not end within {patience:g} s, and batch reads of a queue take turns. Read the "
                "queue once and cache() the DataFrame, or set a larger reconnectTimeout"
            ) from None
        except LeaseRefused as error:
            log.info(
                "reading queue %r without a lease, so other batch reads may miss its messages: %s",
                self._queue,
                error,
            )

    def waits_for_spark(self) -> None:
        """Let other reads in the same task know that this one keeps messages until Spark takes its rows.

        Raises:
            ConnectionLost: the connection has ended.
        """
        lease, self._task_lease = self._task_lease, None
        if lease is not None:
            with suppress(LeaseRefused, LeaseTaken):
                take_lease(self._connection, lease, 0)

    def end(self) -> None:
        """Let the next read begin."""
        with suppress(ConnectionLost):
            for lease in [*self._connection.leases]:
                release_lease(self._connection, lease)

    def _check_task(self) -> None:
        if self._task_lease is not None and is_held(self._connection, self._task_lease):
            raise SparkError(
                f"cannot read queue {self._queue!r}: the same task already reads it, and the first "
                "read would not end before the second. Read the queue once and cache() the DataFrame"
            )


def _this_task() -> str | None:
    """A name of this attempt of a task, the same in all of its Python processes; None outside of Spark."""
    context = TaskContext.get()
    if context is None:
        return None
    # Applications count their tasks alike. The Python processes of an executor have one parent.
    return f"{socket.gethostname()}.{os.getppid()}.{context.taskAttemptId()}"
