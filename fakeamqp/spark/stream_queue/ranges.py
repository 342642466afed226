"""Ranges of offsets: the part of a backlog for the next batch, and the split of a batch into tasks.

A range is a stream with its first offset and the one behind its last. Not every offset of a range has a
message: brokers keep notes of their own in streams, which take offsets and are not delivered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql.datasource import InputPartition

__all__ = ["Range", "StreamPartition", "admitted", "cut"]

# A task costs Spark 10 to 20 ms and a connection; this many messages take ten times as long.
_TASK_ROWS = 2500


class Range(NamedTuple):
    """Offsets of a stream, from `start` to before `stop`."""

    stream: str
    start: int
    stop: int

    @property
    def size(self) -> int:
        """The number of offsets."""
        return self.stop - self.start


@dataclass
class StreamPartition(InputPartition):
    """The ranges of one task."""

    ranges: tuple[Range, ...]


def cut(ranges: Iterable[Range], least: int) -> list[InputPartition]:
    """The ranges as tasks of about the same size: at least `least`, or fewer if those would be tiny."""
    ranges = [each for each in ranges if each.size > 0]
    left = sum(each.size for each in ranges)
    if not left:
        return []
    tasks: list[InputPartition] = []
    pieces: list[Range] = []
    count = max(1, min(least, left // _TASK_ROWS))
    space = -(-left // count)
    for stream, start, stop in ranges:
        while start < stop:
            piece = Range(stream, start, min(stop, start + space))
            pieces.append(piece)
            start = piece.stop
            left -= piece.size
            space -= piece.size
            if not space and left:
                tasks.append(StreamPartition(tuple(pieces)))
                pieces, count = [], count - 1
                space = -(-left // count)
    return [*tasks, StreamPartition(tuple(pieces))]


def admitted(start: Mapping[str, int], end: Mapping[str, int], most: int | None) -> dict[str, int]:
    """The end of a batch from `start` with at most `most` messages of those before `end`.

    Streams share the limit in proportion to their backlogs; each gives at least one message if it has any,
    even if there are more streams than messages allowed: none waits for ever.
    """
    backlogs = {stream: end[stream] - start.get(stream, 0) for stream in end}
    left = sum(backlog for backlog in backlogs.values() if backlog > 0)
    if most is None or left <= most:
        return dict(end)
    ends = dict(end)
    for stream, backlog in sorted(backlogs.items(), key=lambda item: item[1]):
        if backlog > 0:
            share = min(backlog, max(most * backlog // left, 1))
            ends[stream] = start.get(stream, 0) + share
            most, left = max(most - share, 0), left - backlog
    return ends
