"""Ranges of offsets, and the split of a batch into tasks.

A range is a stream with its first offset and the one behind its last. Not every offset of a range has a
message: brokers keep notes of their own in streams, which take offsets and are not delivered.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from pyspark.sql.datasource import InputPartition

from fakeamqp.spark.stream.offsets import StreamMark

# A task costs Spark 10 to 20 ms; this many messages take ten times as long.
_TASK_ROWS = 2500


class Range(NamedTuple):
    """Offsets of a stream, from `start` to before `stop`. `mark` is a message that the stream had."""

    stream: str
    start: int
    stop: int
    mark: StreamMark | None = None

    @property
    def size(self) -> int:
        """The number of offsets."""
        return self.stop - self.start


@dataclass
class StreamPartition(InputPartition):
    """The range of one task; None if there is nothing to read."""

    range: Range | None


def cut(ranges: Iterable[Range], least: int) -> list[InputPartition]:
    """The ranges as tasks: each is at least one, and large ones are split until there are about `least`."""
    ranges = [each for each in ranges if each.size > 0]
    total = sum(each.size for each in ranges)
    if not total:
        return []
    size = total / max(1, min(least, total // _TASK_ROWS))
    tasks: list[InputPartition] = []
    for stream, start, stop, mark in ranges:
        pieces = max(1, round((stop - start) / size))
        edges = [start + (stop - start) * number // pieces for number in range(pieces + 1)]
        tasks += [StreamPartition(Range(stream, *edge, mark)) for edge in pairwise(edges)]
    return tasks
