"""Shrinks a failing schedule to the fewest deviations that still fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fakeamqp.simulation.schedule import Key

Deviations = dict[Key, int]

# Kinds of deviations that a failure had better not need, the least likely in practice first.
_DISPENSABLE = ("task", "cut", "pause", "latency", "delay", "settle", "enqueue", "confirm")


def shrink(
    fails: Callable[[Deviations], Deviations | None], deviations: Mapping[Key, int], most_runs: int = 300
) -> tuple[Deviations, int]:
    """Leave out deviations as long as the test fails, then make the others as small as possible.

    Args:
        fails: runs the test with deviations. Returns those that the run made if it failed in the same way, or
            None if it did not.
        deviations: deviations with which the test fails, in the order of their decisions.
        most_runs: the maximum number of runs; after that the best so far is returned.

    Returns:
        The fewest deviations that were found, and the number of runs. Unless the runs were used up, the test
        passes without any one of them.
    """
    runs = 0
    tried: set[tuple[tuple[Key, int], ...]] = set()
    best = dict(deviations)

    def accept(candidate: Deviations) -> bool:
        nonlocal runs, best
        identity = tuple(candidate.items())
        if runs >= most_runs or identity in tried:
            return False
        tried.add(identity)
        runs += 1
        made = fails(candidate)
        if made is None:
            return False
        # Some may not have come up any more.
        best = made if len(made) < len(candidate) else candidate
        return True

    if not best or accept({}):
        return best, runs
    for kind in _DISPENSABLE:
        without = {key: chosen for key, chosen in best.items() if key[0] != kind}
        if 0 < len(without) < len(best):
            accept(without)
    _leave_out(accept, lambda: best)
    for key in list(best):
        for smaller in range(1, best.get(key, 0)):
            if accept({**best, key: smaller}):
                break
    return best, runs


def _leave_out(accept: Callable[[Deviations], bool], best: Callable[[], Deviations]) -> None:
    """Leave out parts, first large ones, until the test passes without any single deviation."""
    size = max(1, len(best()) // 2)
    while True:
        start, left_out = 0, False
        while start < len(best()):
            items = list(best().items())
            if len(items) > size and accept(dict(items[:start] + items[start + size :])):
                left_out = True
            else:
                start += size
        if size > 1:
            size //= 2
        elif not left_out:
            return
