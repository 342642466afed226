"""Checks of deliveries: their order, and how many unsettled messages each consumer and channel holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from fakeamqp.trace.checks.rows import Check, Record, TraceRow, found

_IN_QUEUE = frozenset(("enqueued", "delivered", "acked", "rejected", "requeued"))


class FifoCheck(Check):
    """Finds, in the rows of one run, first deliveries after that of a message that was enqueued later."""

    def __init__(self) -> None:
        self._latest: dict[tuple[int, str | None], tuple[str, int]] = {}
        self._rerouted: set[int] = set()
        self._furthest: dict[tuple[Any, ...], tuple[int, int, int]] = {}

    def see(self, row: TraceRow) -> Iterator[dict[str, Any]]:
        if row.kind != "model" or row.message is None:
            return
        if row.name in ("dead-lettered", "delay over"):
            self._rerouted.add(row.message)
        if row.name not in _IN_QUEUE:
            return
        before, place = self._latest.get((row.message, row.queue), ("", -1))
        self._latest[row.message, row.queue] = (row.name, row.number)
        first = row.name == "delivered" and before == "enqueued" and row.redelivered is False
        if not first or row.message in self._rerouted:
            return
        priority = row.priority or 0
        path = (*row.place, row.queue, priority)
        ahead = self._furthest.get(path)
        if ahead is not None and place < ahead[0]:
            yield {
                **row.values("run", "number", "alias", "channel", "session"),
                **row.values("queue", "consumer_tag", "delivery_tag"),
                "priority": priority,
                "message": row.message,
                "enqueued_number": place,
                "overtaken_by": ahead[1],
                "overtaken_by_number": ahead[2],
            }
        self._furthest[path] = max(ahead or (-1, -1, -1), (place, row.message, row.number))


def fifo_violations(records: Iterable[Record]) -> list[dict[str, Any]]:
    """The rows of `Traces.fifo_violations`, as dictionaries."""
    return list(found(FifoCheck, records))


Place: TypeAlias = tuple[str, "int | None", int]
_SETTLED = frozenset(("acked", "rejected", "requeued"))


@dataclass(slots=True)
class _Level:
    """The number of messages that one consumer, or one channel, holds."""

    limit: int = 0
    level: int = 0
    deliveries: int = 0
    high_water: int = 0
    high_water_number: int = 0
    prefetch: int = 0
    exceedances: int = 0
    first_exceedance: int | None = None

    def rise(self, number: int) -> None:
        """Count the delivery whose event has this number."""
        self.level += 1
        self.deliveries += 1
        self.prefetch = max(self.prefetch, self.limit)
        if self.level > self.high_water:
            self.high_water, self.high_water_number = self.level, number
        if 0 < self.limit < self.level:
            self.exceedances += 1
            if self.first_exceedance is None:
                self.first_exceedance = number


class HighWater(Check):
    """Counts, in the rows of one run, what each consumer and each channel holds."""

    def __init__(self) -> None:
        self._run = ""
        self._consumers: dict[tuple[Place, str], tuple[int, TraceRow]] = {}
        self._levels: dict[tuple[Place, str | None, int | None], _Level] = {}
        self._outstanding: dict[tuple[Place, int | None], list[_Level]] = {}

    def see(self, row: TraceRow) -> Iterable[dict[str, Any]]:
        self._run, place = row.run, row.place
        if row.kind == "frame" and row.name == "basic.qos" and row.received:
            self._of_channel(place).limit = row.prefetch or 0 if row.shared else 0
        elif row.kind != "model":
            pass
        elif row.name == "consumer added" and row.consumer_tag is not None:
            count = self._consumers.get((place, row.consumer_tag), (0, row))[0]
            self._consumers[place, row.consumer_tag] = (count + 1, row)
        elif row.name in _SETTLED:
            for level in self._outstanding.pop((place, row.delivery_tag), ()):
                level.level -= 1
        elif row.name == "delivered":
            # The trace has no settlement of an earlier delivery with this tag.
            self._outstanding.pop((place, row.delivery_tag), None)
            self._delivered(place, row)
        return ()

    def _delivered(self, place: Place, row: TraceRow) -> None:
        if row.consumer_tag is None or (place, row.consumer_tag) not in self._consumers:
            return
        count, consumer = self._consumers[place, row.consumer_tag]
        if consumer.no_ack is not False:
            return
        own = self._levels.setdefault((place, row.consumer_tag, count), _Level(limit=consumer.prefetch or 0))
        held = [own, self._of_channel(place)] if consumer.shared else [own]
        self._outstanding[place, row.delivery_tag] = held
        for level in held:
            level.rise(row.number)

    def _of_channel(self, place: Place) -> _Level:
        return self._levels.setdefault((place, None, None), _Level())

    def end(self) -> Iterator[dict[str, Any]]:
        """The maximum of each consumer and each channel that got deliveries."""
        for (place, consumer_tag, number), level in self._levels.items():
            if level.deliveries:
                yield {
                    "run": self._run,
                    **dict(zip(("alias", "channel", "session"), place, strict=True)),
                    "scope": "channel" if consumer_tag is None else "consumer",
                    "consumer_tag": consumer_tag,
                    "consumer": number,
                    "deliveries": level.deliveries,
                    "high_water": level.high_water,
                    "high_water_number": level.high_water_number,
                    "prefetch": level.prefetch,
                    "exceedances": level.exceedances,
                    "first_exceedance": level.first_exceedance,
                }


def unacked_high_water(records: Iterable[Record]) -> list[dict[str, Any]]:
    """The rows of `Traces.unacked_high_water`, as dictionaries."""
    return sorted(
        found(HighWater, records),
        key=lambda row: (
            *(-row["exceedances"], -row["high_water"]),
            *(row["run"], row["alias"], row["channel"], row["session"], row["scope"]),
            *(row["consumer_tag"] or "", row["consumer"] or 0),
        ),
    )
