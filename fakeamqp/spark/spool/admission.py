"""How far a micro-batch may go: what there is, what Spark allows, and what was there when it began."""

from __future__ import annotations

from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.spool.consumer import Consumer
from fakeamqp.spark.spool.store import Store
from fakeamqp.spark.spool.target import Target

__all__ = ["Admission"]


class Admission:
    """Answers `latestOffset`. Rows are numbers of the store; ends are exclusive."""

    def __init__(self, options: ReadOptions, store: Store, consumer: Consumer) -> None:
        self._options = options
        self._store = store
        self._consumer = consumer
        self._target: Target | None = None
        self._last = store.committed
        # Half of the window is for the next batch: only when there is one is this one acknowledged.
        self._most = None if store.acks_on_arrival else options.prefetch // 2

    def planned(self, end: int) -> None:
        """Spark has planned a batch up to a row; before it asks for more it has processed it."""
        self._last = max(self._last, end)

    def prepare_available_now(self) -> None:
        """From now on there is nothing but what the queues hold at this moment.

        Raises:
            SparkError: as `Consumer.barrier`.
        """
        target = Target()
        self._consumer.barrier(target)
        self._target = target

    def latest(self, start: int | None, max_rows: int) -> int:
        """Where a batch from `start` on ends that has at most so many rows; `start` if there is nothing new.

        Without `start` it begins where the last one ended.

        Raises:
            SparkError: as `Consumer.barrier`.
        """
        start = self._begin(start)
        if not (self._store.visible >= start + max_rows and self._bounded(start + max_rows) > start):
            self._wait_for_rows(start)
        end = min(self._bounded(self._store.visible), start + max_rows)
        if self._options.max_bytes is not None and end > start:
            end = self._store.within(start, end, self._options.max_bytes)
        return self._hand_out(start, end)

    def everything(self, start: int | None) -> int:
        """Where a batch from `start` on ends that has all there is at this moment, however much.

        Raises:
            SparkError: as `Consumer.barrier`.
        """
        start = self._begin(start)
        target = self._target or Target()
        self._consumer.limit(False)
        try:
            standing = self._consumer.barrier(None if target is self._target else target)
            while target.row is None or self._store.visible < target.row:
                if self._most is not None and standing.visible >= start + self._most:
                    break
                if not standing.held and not (standing.ready and self._more_comes(standing.arrived)):
                    target.settle_for(standing.visible)
                    break
                standing = self._consumer.barrier()
        finally:
            self._consumer.limit(True)
            if target is not self._target:
                self._consumer.forget(target)
        visible = self._store.visible
        return self._hand_out(start, visible if target.row is None else min(visible, target.row))

    def _begin(self, start: int | None) -> int:
        if start is None:
            start = self._last
        self._store.processed(start)
        self._consumer.poke()
        return start

    def _wait_for_rows(self, start: int) -> None:
        """Wait until there is something new, or there will not be."""
        while True:
            standing = self._consumer.barrier()
            if self._bounded(standing.visible) > start:
                return
            if self._target is not None and self._target.row is not None and self._target.row <= start:
                return
            if standing.held:
                continue
            # Ready messages may be on their way, since the window was just freed; or they are for others.
            if not standing.ready or not self._more_comes(standing.arrived):
                if self._target is not None:
                    self._target.settle_for(standing.visible)
                return

    def _more_comes(self, arrived: int) -> bool:
        return self._consumer.wait_for_more(arrived, self._options.idle_timeout)

    def _bounded(self, end: int) -> int:
        """As far as Trigger.AvailableNow allows."""
        row = None if self._target is None else self._target.row
        return end if row is None else min(end, row)

    def _hand_out(self, start: int, end: int) -> int:
        if self._most is not None:
            end = min(end, start + self._most)
        self._last = max(start, self._store.hand_out(end))
        return self._last
