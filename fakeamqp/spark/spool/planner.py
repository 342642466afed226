"""Plans the end of each micro-batch: by the rows in the store, Spark's limits, and Trigger.AvailableNow."""

from __future__ import annotations

from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.spool.backlog import Backlog
from fakeamqp.spark.spool.channel import SpoolStatus
from fakeamqp.spark.spool.consumer import SpoolConsumer
from fakeamqp.spark.spool.store import Store, log


class BatchPlanner:
    """Answers `latestOffset`. Rows are numbered as in the store; ends are exclusive."""

    def __init__(self, options: ReadOptions, store: Store, consumer: SpoolConsumer) -> None:
        self._options = options
        self._store = store
        self._consumer = consumer
        self._backlog: Backlog | None = None
        self._last = store.committed

    @property
    def _most(self) -> int | None:
        """The maximum number of rows in a batch.

        Half of the window is for the next batch: Spark commits a batch only when it plans the next one.
        """
        return None if self._store.acks_on_arrival else self._consumer.window // 2

    def planned(self, end: int) -> None:
        """Note that Spark has planned a batch up to a row. Spark processes it before it asks for more."""
        self._last = max(self._last, end)

    def prepare_available_now(self) -> None:
        """Limit all batches to the messages that are in the queues now.

        Raises:
            SparkError: as `SpoolConsumer.barrier`.
        """
        backlog = Backlog()
        self._consumer.barrier(backlog)
        self._backlog = backlog

    def latest(self, start: int | None, max_rows: int) -> int:
        """The end of a batch from `start` with at most `max_rows` rows; `start` if there are no new rows.

        Without `start` the batch begins at the end of the last one.

        Raises:
            SparkError: as `SpoolConsumer.barrier`.
        """
        start = self._begin(start)
        while True:
            if not (self._store.visible >= start + max_rows and self._bounded(start + max_rows) > start):
                self._wait_for_rows(start)
            wanted = min(self._bounded(self._store.visible), start + max_rows)
            end = self._hand_out(start, wanted, self._options.max_bytes)
            # Rows in memory that are gone since were those of a channel that was lost: they come again.
            if end > start or wanted <= start:
                return end

    def all_available(self, start: int | None) -> int:
        """The end of a batch from `start` with all messages that are in the queues now, without a limit.

        Raises:
            SparkError: as `SpoolConsumer.barrier`.
        """
        start = self._begin(start)
        backlog = self._backlog or Backlog()
        self._consumer.limit(False)
        try:
            status = self._consumer.barrier(None if backlog is self._backlog else backlog)
            while backlog.row is None or self._store.visible < backlog.row:
                most = self._most
                if most is not None and status.visible >= start + most:
                    break
                if not status.held and not (status.ready and self._more_comes(status.arrived)):
                    self._end(backlog, status)
                    break
                status = self._consumer.barrier()
        finally:
            self._consumer.limit(True)
            if backlog is not self._backlog:
                self._consumer.forget(backlog)
        visible = self._store.visible
        return self._hand_out(start, visible if backlog.row is None else min(visible, backlog.row))

    def _begin(self, start: int | None) -> int:
        if start is None:
            start = self._last
        self._store.processed(start)
        self._consumer.poke()
        return start

    def _wait_for_rows(self, start: int) -> None:
        """Wait for new rows, until it is clear that none will arrive."""
        while True:
            status = self._consumer.barrier()
            if self._bounded(status.visible) > start:
                return
            if self._backlog is not None and self._backlog.row is not None and self._backlog.row <= start:
                return
            if status.held:
                continue
            # Ready messages may be about to arrive, since the prefetch was just freed; or others get them.
            if not status.ready or not self._more_comes(status.arrived):
                if self._backlog is not None:
                    self._end(self._backlog, status)
                return

    def _end(self, backlog: Backlog, status: SpoolStatus) -> None:
        backlog.end_at(status.visible)
        if status.ready:
            log.warning(
                "%s: %d messages are ready, and the broker delivers none of them: this read ends without "
                "them. Another consumer may be the single active consumer",
                ", ".join(map(repr, self._options.queues)),
                status.ready,
            )

    def _more_comes(self, arrived: int) -> bool:
        return self._consumer.wait_for_more(arrived, self._options.idle_timeout)

    def _bounded(self, end: int) -> int:
        """`end`, limited by Trigger.AvailableNow."""
        row = None if self._backlog is None else self._backlog.row
        return end if row is None else min(end, row)

    def _hand_out(self, start: int, end: int, max_bytes: int | None = None) -> int:
        most = self._most
        if most is not None:
            end = min(end, start + most)
        self._last = max(start, self._store.hand_out(start, end, max_bytes))
        return self._last
