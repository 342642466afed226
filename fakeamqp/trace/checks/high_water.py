"""The most unsettled messages held at once: the reference implementation of `unacked_high_water.sql`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from fakeamqp.trace.checks.rows import Record, Row, runs

__all__ = ["unacked_high_water"]

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
        if self.deliveries == 1 or self.level > self.high_water:
            self.high_water, self.high_water_number = self.level, number
        if 0 < self.limit < self.level:
            self.exceedances += 1
            if self.first_exceedance is None:
                self.first_exceedance = number


def unacked_high_water(records: Iterable[Record]) -> list[dict[str, Any]]:
    """The rows of `Traces.unacked_high_water`, as dictionaries."""
    found = [row for run in runs(records) for row in _of_run(run)]
    return sorted(
        found,
        key=lambda row: (
            *(-row["exceedances"], -row["high_water"]),
            *(row["run"], row["alias"], row["channel"], row["session"], row["scope"]),
            *(row["consumer_tag"] or "", row["consumer"] or 0),
        ),
    )


def _of_run(run: list[Row]) -> Iterable[dict[str, Any]]:
    consumers: dict[tuple[Place, str], tuple[int, Row]] = {}
    levels: dict[tuple[Place, str | None, int | None], _Level] = {}
    outstanding: dict[tuple[Place, int | None], list[_Level]] = {}
    for row in run:
        place = row.place
        of_channel = levels.setdefault((place, None, None), _Level())
        if row.kind == "frame" and row.name == "basic.qos" and row.received:
            of_channel.limit = row.prefetch or 0 if row.shared else 0
        elif row.kind != "model":
            continue
        elif row.name == "consumer added" and row.consumer_tag is not None:
            count = consumers.get((place, row.consumer_tag), (0, row))[0]
            consumers[place, row.consumer_tag] = (count + 1, row)
        elif row.name in _SETTLED:
            for level in outstanding.pop((place, row.delivery_tag), ()):
                level.level -= 1
        elif row.name == "delivered":
            # The trace has no settlement of an earlier delivery with this tag.
            outstanding.pop((place, row.delivery_tag), None)
            if row.consumer_tag is None or (place, row.consumer_tag) not in consumers:
                continue
            count, consumer = consumers[place, row.consumer_tag]
            if consumer.no_ack is not False:
                continue
            own = levels.setdefault((place, row.consumer_tag, count), _Level(limit=consumer.prefetch or 0))
            held = outstanding[place, row.delivery_tag] = [own, of_channel] if consumer.shared else [own]
            for level in held:
                level.rise(row.number)
    for (place, consumer_tag, number), level in levels.items():
        if level.deliveries:
            yield {
                "run": run[0].run,
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
