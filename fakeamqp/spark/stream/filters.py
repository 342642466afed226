"""Filters of a batch read that narrow the ranges of offsets, so that less is read.

Spark applies all filters again afterwards, so a filter that is not understood is no error.

A stream is sorted by the times at which the broker stored its messages, and publishers set the column
`timestamp`. So filters on it narrow only if `timestampTolerance` says how far the two are apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

from fakeamqp.spark.stream.ranges import Range

_AT_LEAST = frozenset({"EqualTo", "EqualNullSafe", "In", "GreaterThan", "GreaterThanOrEqual"})
_AT_MOST = frozenset({"EqualTo", "EqualNullSafe", "In", "LessThan", "LessThanOrEqual"})
# No message is older, and none is newer.
_BEGINNING = datetime.fromtimestamp(0, timezone.utc)
_END = datetime(9999, 12, 31, tzinfo=timezone.utc)


class FilterBounds:
    """What the filters leave of all ranges: offsets from `start` to before `stop`, of some streams.

    `since` and `until` limit the column `timestamp`; both are inclusive.
    """

    def __init__(self) -> None:
        self.start: int = 0
        self.stop: int | None = None
        self.streams: set[str] | None = None
        self.since: datetime | None = None
        self.until: datetime | None = None

    def narrowed(self, ranges: Iterable[Range]) -> Iterator[Range]:
        """The ranges within the bounds."""
        for each in ranges:
            if self.streams is None or each.stream in self.streams:
                stop = each.stop if self.stop is None else min(each.stop, self.stop)
                yield each._replace(start=max(each.start, self.start), stop=stop)

    def add(self, each: Any) -> None:
        """Take a filter of PySpark into account."""
        if not hasattr(each, "attribute") or not hasattr(each, "value"):
            return  # It has another form, as Not has.
        column, kind, value = tuple(each.attribute), type(each).__name__, each.value
        values = set(value) if kind == "In" else {value}
        if column == ("queue",) and kind in ("EqualTo", "EqualNullSafe", "In"):
            self.streams = values if self.streams is None else self.streams & values
        elif column == ("offset",) and all(type(each) is int for each in values) and values:
            if kind in _AT_LEAST:
                self.start = max(self.start, min(values) + (kind == "GreaterThan"))
            if kind in _AT_MOST:
                stop = max(values) + (kind != "LessThan")
                self.stop = stop if self.stop is None else min(self.stop, stop)
        elif column == ("timestamp",) and all(map(_is_time, values)) and values:
            if kind in _AT_LEAST:
                self.since = max(filter(None, (self.since, min(values))))
            if kind in _AT_MOST:
                self.until = min(filter(None, (self.until, max(values))))

    def stored(self, tolerance: float) -> tuple[datetime | None, datetime | None]:
        """When the broker stored the first message that is wanted, and after the last; None for no limit.

        Both are whole seconds, as brokers take them.

        Args:
            tolerance: the maximum difference between `timestamp` and that time, in seconds.
        """
        margin = timedelta(seconds=tolerance)
        first = last = None
        if self.since is not None and self.since - _BEGINNING > margin:
            first = (self.since - margin).replace(microsecond=0)
        if self.until is not None and _END - self.until > margin:
            last = max(self.until + margin + timedelta(seconds=1), _BEGINNING).replace(microsecond=0)
        return first, last


def _is_time(value: object) -> bool:
    return isinstance(value, datetime) and value.tzinfo is not None
