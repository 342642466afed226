"""A running query on queues: where its micro-batches end, and how far it is behind."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql.datasource import InputPartition

from fakeamqp.spark.lag import FallingBehind, LagClock, totals
from fakeamqp.spark.micro_batches import Offset
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.queue.channel import Backlog
from fakeamqp.spark.queue.consumer import QueueConsumer
from fakeamqp.spark.queue.partitions import partitions_of
from fakeamqp.spark.queue.spool import Spool
from fakeamqp.spark.queue.store import AtMostOnce, Store, UntilCommit, log
from fakeamqp.spark.rows.columns import Column

_STORES = {"spool": Spool, "commit": UntilCommit, "none": AtMostOnce}


class QueueQuery:
    """A store, a consumer that fills it, and the plan of micro-batches. Ends of rows are exclusive.

    Offsets are `{"spool": id, "next": row}`: the store, and the number of the next row.

    Raises:
        SpoolError: the store cannot be opened, or rows were stored without a column that is wanted now.
        DataLoss: rows are gone and that fails the query.
        SparkError: as `QueueConsumer.barrier`.
    """

    def __init__(
        self, options: ReadOptions, columns: Sequence[Column], store: Store, consumer: QueueConsumer
    ) -> None:
        self.store = store
        self.consumer = consumer
        self._options = options
        self._columns = columns
        self._backlog: Backlog | None = None
        self._last = store.committed
        self._warned: Counter[str] = Counter()
        self._clock = LagClock()
        self._behind = FallingBehind(
            "queue " + ", ".join(options.queues),
            "More processors, a larger maxMessagesPerTrigger or fewer columns help; shards divide a queue",
            options.max_messages,
        )

    @staticmethod
    def begin(options: ReadOptions, columns: Sequence[Column]) -> QueueQuery:
        """Open the store of the acknowledgement mode, and begin to consume."""
        store: Store = _STORES[options.ack_mode](options, columns)
        query = QueueQuery(options, columns, store, QueueConsumer(options, store))
        query.consumer.start()
        return query

    def close(self, *, flush: bool = True) -> None:
        """Stop consuming, and close the store; with `flush`, it gets the received messages first."""
        if self.consumer.stop(flush=flush):
            self.store.close()
        self._warn_of_dropped_messages()

    def limit_to_available(self) -> None:
        backlog = Backlog()
        self.consumer.barrier(backlog)
        self._backlog = backlog

    def first(self) -> Offset:
        return self.store.offset(self.store.committed)

    def advance(self, start: Offset | None, most: int | None) -> Offset:
        row = self._last if start is None else self.store.position(start)
        self.store.processed(row)
        self.consumer.poke()
        self._last = max(row, self._all(row) if most is None else self._some(row, most))
        self._warn_of_dropped_messages()
        return self.store.offset(self._last)

    def plan(self, start: Offset, end: Offset) -> list[InputPartition]:
        options = self._options
        first, stop = self.store.position(start), self.store.position(end)
        self._last = max(self._last, stop)  # Spark processes the batch before it asks for more.
        if first >= stop:
            return []
        return partitions_of(
            self.store.pieces(first, stop),
            self._columns,
            options.min_partitions,
            files=options.transport == "file",
            missing_is_null=not options.fail_on_data_loss,
        )

    def commit(self, end: Offset) -> None:
        self.store.commit(self.store.position(end))
        self.consumer.poke()

    def progress(self) -> dict[str, Any]:
        """The newest row, and the figures of the query by their documented names.

        The consumer asks the broker from time to time.
        """
        self.consumer.refresh()
        state, depths = self.consumer.state, self.consumer.state.depths
        rows, size = self.store.waiting
        ready = sum(depth["ready"] for depth in depths.values())
        # What arrived after the count was ready then, and is held or stored now.
        lag = max(ready - (state.arrived - state.arrived_before), 0) + state.held + rows
        position = self.store.next - rows
        seconds = self._clock.age(position, position + lag) if lag else 0.0
        published = self.store.timestamp_of_next() if rows else None
        if published is not None:
            seconds = max(seconds, round(time.time() - published, 1))
        metrics = {
            **self._behind.look(lag, seconds),
            **totals(depths),
            "unacknowledged": state.unacknowledged,
            "redelivered": state.redelivered,
            "dropped": sum(state.dropped[queue] for queue in self._options.queues),
            "spoolRows": rows,
            "spoolBytes": size,
        }
        return {"offset": self.store.offset(self.store.visible), "metrics": metrics}

    def _some(self, start: int, max_rows: int) -> int:
        store, backlog = self.store, self._backlog

        def some_came() -> bool:
            return self._upto(backlog) > start or (backlog is not None and backlog.is_over(start))

        while True:
            if not (store.visible >= start + max_rows and some_came()):
                self._wait(some_came, backlog)
            wanted = min(self._upto(backlog), start + max_rows)
            end = self._hand_out(start, wanted, self._options.max_bytes)
            # Rows in memory that are gone since were those of a channel that has ended: they come again.
            if end > start or wanted <= start:
                return end

    def _all(self, start: int) -> int:
        store, state = self.store, self.consumer.state
        backlog = self._backlog or Backlog()

        def all_came() -> bool:
            most = self._most
            return backlog.is_over(store.visible) or (most is not None and store.visible >= start + most)

        state.unlimited = True
        try:
            self._wait(all_came, backlog, count=backlog is not self._backlog)
        finally:
            state.unlimited, state.backlog = False, self._backlog
            self.consumer.poke()
        return self._hand_out(start, self._upto(backlog))

    def _wait(self, done: Callable[[], bool], backlog: Backlog | None, *, count: bool = False) -> None:
        """Wait until `done`, or until it is clear that no more rows will be visible: the backlog ends then.

        With `count`, the messages of the backlog are counted first.
        """
        status = self.consumer.barrier(backlog if count else None)
        while not done():
            # Ready messages may be about to arrive, since the prefetch was just freed; or others get them.
            timeout = self._options.idle_timeout
            if status.held or (status.ready and self.consumer.wait_for_more(status.arrived, timeout)):
                status = self.consumer.barrier()
                continue
            if backlog is not None:
                backlog.end_at(status.visible)
                if status.ready:
                    log.warning(
                        "%s: %d messages are ready, and the broker delivers none of them: this read ends "
                        "without them. Another consumer may be the single active consumer",
                        ", ".join(map(repr, self._options.queues)),
                        status.ready,
                    )
            return

    def _warn_of_dropped_messages(self) -> None:
        """Log which redelivered messages were dropped since the last call."""
        dropped = {
            queue: count - self._warned[queue]
            for queue in self._options.queues
            if (count := self.consumer.state.dropped[queue]) > self._warned[queue]
        }
        if dropped:
            self._warned.update(dropped)
            log.warning(
                "dropped redelivered messages that the spool has already: %s. By option dedupe=%s they are "
                "those of stored rows; dedupe=none keeps them",
                ", ".join(f"{count} of queue {queue!r}" for queue, count in dropped.items()),
                self._options.dedupe,
            )

    @property
    def _most(self) -> int | None:
        """The maximum number of rows in a batch.

        Half of the window is for the next batch: Spark commits a batch only when it plans the next one.
        """
        window = self.consumer.state.window or self._options.prefetch
        return None if self.store.acks_on_arrival else window // 2

    def _upto(self, backlog: Backlog | None) -> int:
        """The end of the visible rows that are of the backlog, as far as its end is known."""
        row = None if backlog is None else backlog.row
        return self.store.visible if row is None else min(self.store.visible, row)

    def _hand_out(self, start: int, end: int, max_bytes: int | None = None) -> int:
        most = self._most
        return self.store.hand_out(start, end if most is None else min(end, start + most), max_bytes)
