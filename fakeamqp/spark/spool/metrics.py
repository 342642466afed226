"""The figures of a query on queues: depths, consumers, unprocessed messages, and how far it is behind."""

from __future__ import annotations

import time
from typing import Any

from fakeamqp.spark.lag import FallingBehind, LagClock
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.spool.consumer import SpoolConsumer
from fakeamqp.spark.spool.store import Store


class QueueMetrics:
    """The figures of a query. The broker is asked from time to time by the thread of the consumer."""

    def __init__(self, options: ReadOptions, store: Store, consumer: SpoolConsumer) -> None:
        self._store = store
        self._consumer = consumer
        self._clock = LagClock()
        self._behind = FallingBehind(
            "queue " + ", ".join(options.queues),
            "More processors, a larger maxMessagesPerTrigger or fewer columns help; shards divide a queue",
            options.max_messages,
        )

    def now(self) -> dict[str, Any]:
        """The figures.

        Their names are public, and documented in `docs/spark.md`.
        """
        state = self._consumer.depths()
        rows, octets = self._store.waiting
        depths = {queue: dict(depth) for queue, depth in state.depths.items()}
        ready = sum(depth["ready"] for depth in depths.values())
        # What arrived after the count was ready then, and is held or stored now.
        lag = max(ready - (state.arrived - state.arrived_before), 0) + state.held + rows
        position = self._store.next - rows
        seconds = self._clock.age(position, position + lag) if lag else 0.0
        published = self._store.timestamp_of_next() if rows else None
        if published is not None:
            seconds = max(seconds, round(time.time() - published, 1))
        self._behind.look(lag, seconds)
        return {
            "lag": lag,
            "lagSeconds": seconds,
            "ready": ready,
            "consumers": sum(depth["consumers"] for depth in depths.values()),
            "unacknowledged": state.unacknowledged,
            "redelivered": state.redelivered,
            "spoolRows": rows,
            "spoolBytes": octets,
            "queues": depths,
        }
