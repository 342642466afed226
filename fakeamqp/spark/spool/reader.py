"""The stream reader of queues, as Spark calls it.

Spark makes several: one in a process that lives as long as the query and where all calls but `read` happen,
and others that only plan, and are pickled to executors for `read`. Nothing tells them apart but the calls, so
nothing begins before the first call: no connection, no lock, no thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from fakeamqp.spark.columns import Column
from fakeamqp.spark.lag import report
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.query_process import exit_on_sigterm, runs_tasks_here
from fakeamqp.spark.read_limits import AvailableNow, default_limit, most_rows
from fakeamqp.spark.spool import partitions as cutting

if TYPE_CHECKING:
    import pyarrow as pa

    from fakeamqp.spark.spool.consumer import SpoolConsumer
    from fakeamqp.spark.spool.planner import BatchPlanner
    from fakeamqp.spark.spool.store import Store


class QueueStreamReader(DataSourceStreamReader, AvailableNow):
    """Reads queues in micro-batches through the store of an acknowledgement mode.

    Offsets are `{"spool": id, "next": row}`: the store, and the number of the next row.
    """

    def __init__(self, options: ReadOptions, columns: Sequence[Column]) -> None:
        self._options = options
        self._columns = tuple(columns)
        self._running: _Running | None = None
        self._available_now = self._asked_without_limit = False

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_running": None}

    def initialOffset(self) -> dict[str, Any]:
        """The oldest row that is not processed."""
        store = self._life().store
        return store.offset(store.committed)

    def getDefaultReadLimit(self) -> Any:
        """The option `maxMessagesPerTrigger`."""
        return default_limit(self._options.max_messages)

    def prepareForTriggerAvailableNow(self) -> None:
        """Limit the query to the messages that are in the queues at its first other call."""
        self._available_now = True

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
        """The end of the next micro-batch.

        PySpark before 4.2 gives no limit, and asks only once when the trigger is AvailableNow: so the first
        answer is then everything that there is.

        Raises:
            ConnectionLost: the connection was lost and could not be opened again in time.
            SparkError: whatever else keeps messages from coming.
        """
        life = self._life()
        row = None if start is None else life.store.position(start)
        if limit is None and start is None:
            most = self._options.max_messages if self._asked_without_limit else None
            self._asked_without_limit = True
        else:
            most = most_rows(limit, self._options.max_messages)
        end = life.planner.all_available(row) if most is None else life.planner.latest(row, most)
        return life.store.offset(end)

    def reportLatestOffset(self) -> dict[str, Any]:
        """The newest row and the depth of the queues, for the progress of the query."""
        life = self._life()
        return report(life.store.offset(life.store.visible), life.metrics.now())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The rows of a micro-batch, cut into tasks; always the same for the same offsets.

        Raises:
            DataLoss: if rows are gone and that fails the query.
            SpoolError: if rows were stored without a column that is wanted now.
        """
        life, options = self._life(), self._options
        first, stop = life.store.position(start), life.store.position(end)
        life.planner.planned(stop)
        if first >= stop:
            return []
        plan = cutting.file_partitions if life.files else cutting.inline_partitions
        pieces = life.store.pieces(first, stop)
        return plan(pieces, self._columns, options.min_partitions, not options.fail_on_data_loss)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition. Runs in executors."""
        return cutting.read_partition(partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Note that Spark has processed all rows before `end`."""
        life = self._life()
        life.store.commit(life.store.position(end))
        life.consumer.poke()

    def stop(self) -> None:
        """Store and acknowledge received messages, and close the connection and the store."""
        running, self._running = self._running, None
        if running is not None:
            running.end()

    def _life(self) -> _Running:
        if self._running is None:
            self._running = _Running(self._options, self._columns)
            if self._available_now:
                self._running.planner.prepare_available_now()
        return self._running


class _Running:
    """The resources of a running query; `files` is whether executors read the files of the spool."""

    def __init__(self, options: ReadOptions, columns: Sequence[Column]) -> None:
        from fakeamqp.spark.spool.consumer import SpoolConsumer
        from fakeamqp.spark.spool.metrics import QueueMetrics
        from fakeamqp.spark.spool.planner import BatchPlanner

        self.store: Store = _store(options.ack_mode)(options, columns)
        self.consumer: SpoolConsumer = SpoolConsumer(options, self.store)
        self.planner: BatchPlanner = BatchPlanner(options, self.store, self.consumer)
        wanted = options.transport == "file" or (options.transport == "auto" and runs_tasks_here())
        self.files = wanted and options.ack_mode == "spool"
        self.metrics = QueueMetrics(options, self.store, self.consumer)
        self._restore_signal = exit_on_sigterm()
        self.consumer.start()

    def end(self, *, flush: bool = True) -> None:
        if self.consumer.stop(flush=flush):
            self.store.close()
        self._restore_signal()


def _store(ack_mode: str) -> Callable[[ReadOptions, Sequence[Column]], Store]:
    if ack_mode == "commit":
        from fakeamqp.spark.spool.commit import UntilCommit

        return UntilCommit
    if ack_mode == "none":
        from fakeamqp.spark.spool.none import AtMostOnce

        return AtMostOnce
    from fakeamqp.spark.spool.spool import Spool

    return Spool
