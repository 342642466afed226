"""Ranges of offsets: which part of a backlog is the next batch, and how a batch is cut into tasks.

A range is a stream with its first offset and the one behind its last. Not every offset of a range has a
message: brokers keep notes of their own in streams, which take offsets and are not delivered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql.datasource import InputPartition

__all__ = ["Range", "StreamPartition", "admitted", "cut"]

# A task costs Spark 10 to 20 ms, and a connection; so many messages take ten times that.
_TASK_ROWS = 2500


class Range(NamedTuple):
    """Offsets of a stream, from `start` to before `stop`."""

    stream: str
    start: int
    stop: int

    @property
    def size(self) -> int:
        """How many offsets these are."""
        return self.stop - self.start


@dataclass
class StreamPartition(InputPartition):
    """What one task reads."""

    ranges: tuple[Range, ...]


def cut(ranges: Iterable[Range], least: int) -> list[InputPartition]:
    """The ranges as tasks of about the same size: `least` of them, or fewer if those would be tiny."""
    ranges = [each for each in ranges if each.size > 0]
    left = sum(each.size for each in ranges)
    if not left:
        return []
    tasks: list[InputPartition] = []
    pieces: list[Range] = []
    count = max(1, min(least, left // _TASK_ROWS))
    room = -(-left // count)
    for stream, start, stop in ranges:
        while start < stop:
            piece = Range(stream, start, min(stop, start + room))
            pieces.append(piece)
            start = piece.stop
            left -= piece.size
            room -= piece.size
            if not room and left:
                tasks.append(StreamPartition(tuple(pieces)))
                pieces, count = [], count - 1
                room = -(-left // count)
    return [*tasks, StreamPartition(tuple(pieces))]


def admitted(start: Mapping[str, int], end: Mapping[str, int], most: int | None) -> dict[str, int]:
    """Where a batch from `start` ends that has at most `most` messages of what there is up to `end`.

    Every stream gives in proportion to its backlog, and at least one message if it has any, even if there
    are more streams than messages allowed: none waits for ever.
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
