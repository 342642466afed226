"""Counts of what happens to messages, and their rates, on the broker's clock.

The tap of a broker with the API counts; a broker without it has no such tap. Nothing runs between requests: a
counter notes the second of each event, and a request adds up what it asks for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

RATE_SECONDS = 5
"""A rate is the mean over this many seconds, RabbitMQ's interval of collection."""
_KEPT_SECONDS = 3600


class Counter:
    """The number of events of one kind, and how many of them each second saw."""

    __slots__ = ("_by_second", "total")

    def __init__(self) -> None:
        self.total: int = 0
        self._by_second: dict[int, int] = {}

    def add(self, now: float, count: int = 1) -> None:
        """So many events happened."""
        self.total += count
        second = int(now)
        by_second = self._by_second
        by_second[second] = by_second.get(second, 0) + count
        if len(by_second) > 2 * _KEPT_SECONDS:
            for old in [each for each in by_second if each < second - _KEPT_SECONDS]:
                del by_second[old]

    def since(self, instant: float) -> int:
        """How many events happened after an instant."""
        return sum(count for second, count in self._by_second.items() if second > instant)

    def totals(self, instants: Sequence[float]) -> list[int]:
        """The totals at instants in descending order.

        The work grows with the number of seconds plus the number of instants, since a request may ask for
        3600 samples while it holds the engine.
        """
        later = sorted(self._by_second.items())
        total, totals = self.total, []
        for instant in instants:
            while later and later[-1][0] > instant:
                total -= later.pop()[1]
            totals.append(total)
        return totals

    def rate(self, now: float) -> float:
        """Events per second in the latest seconds."""
        return self.since(now - RATE_SECONDS) / RATE_SECONDS


class SampleHistory:
    """Which samples of a counter a request asks for.

    Args:
        age: how many seconds the samples go back.
        step: seconds between two samples.
    """

    def __init__(self, age: int, step: int) -> None:
        self.age = age
        self.step = step

    def details(self, counter: Counter, now: float, wall: float) -> dict[str, Any]:
        """The value of a key such as `publish_details`, with samples, the latest first."""
        latest = int(wall) // self.step * self.step
        times = [latest - back for back in range(0, self.age + self.step, self.step)]
        values = counter.totals([now - (wall - time) for time in times])
        return {
            "rate": counter.rate(now),
            "samples": [
                {"sample": value, "timestamp": time * 1000} for value, time in zip(values, times, strict=True)
            ],
            "avg_rate": (values[0] - values[-1]) / self.age if self.age else 0.0,
            "avg": sum(values) / len(values),
        }


class Counts:
    """The counters of one thing by name; those that never counted are 0."""

    __slots__ = ("_counters",)

    def __init__(self) -> None:
        self._counters: defaultdict[str, Counter] = defaultdict(Counter)

    def add(self, name: str, now: float, count: int = 1) -> None:
        """Count events of one kind."""
        self._counters[name].add(now, count)

    def __bool__(self) -> bool:
        return bool(self._counters)

    def total(self, name: str) -> int:
        """How many events of one kind there were."""
        counter = self._counters.get(name)
        return 0 if counter is None else counter.total

    def shown(
        self, names: Iterable[str], now: float, wall: float, history: SampleHistory | None = None
    ) -> dict[str, Any]:
        """The totals, and for each the rate under its name with `_details`."""
        found: dict[str, Any] = {}
        for name in names:
            counter = self._counters.get(name) or _NONE
            found[name] = counter.total
            found[f"{name}_details"] = (
                {"rate": counter.rate(now)} if history is None else history.details(counter, now, wall)
            )
        return found


_NONE = Counter()

PUBLISHING = ("publish", "confirm", "return_unroutable", "drop_unroutable")
"""What is counted of a channel that publishes."""
CONSUMING = (
    "get",
    "get_no_ack",
    "deliver",
    "deliver_no_ack",
    "redeliver",
    "ack",
    "deliver_get",
    "get_empty",
)
"""What is counted of a channel that consumes."""


class Statistics:
    """All counts of one broker.

    Args:
        now: the broker's clock.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.clear()

    def clear(self) -> None:
        """Forget everything: the broker was reset or restarted."""
        self.whole: Counts = Counts()
        self.churn: Counts = Counts()
        self.virtual_hosts: defaultdict[str, Counts] = defaultdict(Counts)
        self.queues: defaultdict[tuple[str, str], Counts] = defaultdict(Counts)
        self.exchanges: defaultdict[tuple[str, str], Counts] = defaultdict(Counts)
        self.connections: defaultdict[str, Counts] = defaultdict(Counts)
        self.channels: defaultdict[tuple[str, int], Counts] = defaultdict(Counts)
        self.connected_at: dict[str, float] = {}
        """The wall time at which each connection began, by its name."""

    def of_message(
        self,
        name: str,
        count: int = 1,
        *,
        virtual_host: str | None = None,
        queue: str | None = None,
        connection: str | None = None,
        channel: int | None = None,
    ) -> None:
        """Count what happened to messages: for the whole broker, and for what took part."""
        now = self.now()
        self.whole.add(name, now, count)
        if virtual_host is not None:
            self.virtual_hosts[virtual_host].add(name, now, count)
            if queue is not None:
                self.queues[virtual_host, queue].add(name, now, count)
        if connection is not None and channel is not None:
            self.channels[connection, channel].add(name, now, count)

    def forget_connection(self, name: str) -> None:
        """A connection has ended."""
        self.connections.pop(name, None)
        self.connected_at.pop(name, None)
        for key in [key for key in self.channels if key[0] == name]:
            del self.channels[key]
