"""The figures of a query on shards: depths, consumers, and how far it is behind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fakeamqp.spark.lag import FallingBehind, LagClock
from fakeamqp.spark.options import ReadOptions


class ShardMetrics:
    """The figures of a query, as of its last batch.

    Attributes:
        redelivered: how many of the messages of this run had been delivered before, to any consumer, without
            those of the last batch.
    """

    def __init__(self, options: ReadOptions) -> None:
        self.redelivered = 0
        self._planned = dict.fromkeys(options.queues, 0)
        self._last = dict(self._planned)
        self._clocks = {shard: LagClock() for shard in options.queues}
        self._behind = FallingBehind(
            "shards " + ", ".join(options.queues),
            "More shards with as many processors, or a larger maxMessagesPerTrigger help",
            options.max_messages,
        )

    def planned(self, shard: str, count: int) -> None:
        """Note that the batch has so many of the messages that are ready in a shard."""
        self._planned[shard] += count
        self._last[shard] = count

    def now(self, depths: Mapping[str, Mapping[str, int]], octets: int, redelivered: int) -> dict[str, Any]:
        """The figures; their names are public, and documented in `docs/spark.md`.

        Args:
            depths: of the shards, when the batch was planned.
            octets: the size of the spool.
            redelivered: how many messages of the batch had been delivered before.
        """
        lag, seconds = 0, 0.0
        for shard, depth in depths.items():
            left = max(depth["ready"] - self._last[shard], 0)
            at = self._planned[shard]
            lag, seconds = lag + left, max(seconds, self._clocks[shard].age(at, at + left))
        self._behind.look(lag, seconds)
        return {
            "lag": lag,
            "lagSeconds": seconds,
            "ready": sum(depth["ready"] for depth in depths.values()),
            "consumers": sum(depth["consumers"] for depth in depths.values()),
            "redelivered": self.redelivered + redelivered,
            "spoolBytes": octets,
            "queues": {shard: dict(depth) for shard, depth in depths.items()},
        }
