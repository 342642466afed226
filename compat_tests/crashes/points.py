"""Where to kill: a thing that can be seen from outside, and how often it has to happen first."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from compat_tests.crashes.lanes import Lane

__all__ = ["Point", "random_points"]


@dataclass(frozen=True)
class Point:
    """A moment in the life of the pipeline."""

    words: str
    reached: Callable[[], bool]

    def __str__(self) -> str:
        return self.words


SPOOL = "rows in the spool"
_COUNTS: dict[str, Callable[[Lane], int]] = {
    SPOOL: Lane.spooled,
    "batches begun": Lane.planned,
    "batches in the sink": Lane.written,
    "batches finished": Lane.committed,
}


def random_points(draw: random.Random, lanes: Sequence[Lane], count: int) -> Iterator[Point]:
    """Points, one per incarnation, each reached before it has read `count` more messages of each lane.

    The kinds come in random order, each once before one comes again.
    """
    while True:
        for kind in draw.sample(list(_COUNTS), len(_COUNTS)):
            lane = draw.choice(lanes)
            if kind == SPOOL and not lane.spools:
                continue
            look = _COUNTS[kind]
            # There are two batches at least, and as many rows, in what is published.
            more = draw.randint(1, count * 3 // 4) if kind == SPOOL else draw.randint(1, 2)
            yield Point(
                f"{look(lane) + more} {kind} of {lane.name}", _at_least(look, lane, look(lane) + more)
            )


def _at_least(look: Callable[[Lane], int], lane: Lane, wanted: int) -> Callable[[], bool]:
    return lambda: look(lane) >= wanted
