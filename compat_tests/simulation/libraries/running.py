"""Runs workloads under many schedules, and sorts what comes of it."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version

from compat_tests.simulation.libraries.workload import Broken, Workload, plan
from fakeamqp import simulation
from fakeamqp.simulation import Failure

__all__ = ["Example", "Outcome", "kind_of", "quiet", "run"]

# How many failures of a kind are shrunk.
_EXAMPLES = 3


@dataclass(frozen=True)
class Example:
    """A failure of a kind, with as few faults and deviations as were found."""

    failure: Failure
    #: The faults that are needed, a line each.
    faults: tuple[str, ...]

    @property
    def size(self) -> int:
        """The number of faults and deviations."""
        return len(self.faults) + len(self.failure.needed)


@dataclass
class Outcome:
    """What came of a workload."""

    workload: Workload
    schedules: int = 0
    #: By the kind of failure: the seeds that fail, in order.
    seeds: dict[str, list[int]] = field(default_factory=dict)
    #: By the kind of failure: the one of the first few that needs least.
    examples: dict[str, Example] = field(default_factory=dict)

    @property
    def versions(self) -> dict[str, str]:
        """The versions of its packages."""
        return {name: version(name) for name in self.workload.packages}

    @property
    def unknown(self) -> dict[str, list[int]]:
        """The failures that are no known findings."""
        return {kind: seeds for kind, seeds in self.seeds.items() if kind not in self.workload.known}


def run(workload: Workload, seeds: Iterable[int], *, shrink: bool = True) -> Outcome:
    """Run a workload under all seeds. The first failures of each kind are shrunk."""
    outcome = Outcome(workload)
    with quiet():
        for seed in seeds:
            failure = _failure(workload, seed)
            outcome.schedules += 1
            if failure is None:
                continue
            kind = kind_of(failure.error)
            seeds_of_kind = outcome.seeds.setdefault(kind, [])
            if shrink and len(seeds_of_kind) < _EXAMPLES:
                example = _shrunk(workload, failure, kind)
                if kind not in outcome.examples or example.size < outcome.examples[kind].size:
                    outcome.examples[kind] = example
            seeds_of_kind.append(seed)
    return outcome


def kind_of(error: BaseException) -> str:
    """In which way a workload failed: two failures of the same kind have the same words."""
    return error.kind if isinstance(error, Broken) else f"{type(error).__name__}: {error}".splitlines()[0]


def _failure(workload: Workload, seed: int, shrink_runs: int = 0) -> Failure | None:
    return simulation.explore(workload.run, [seed], shrink_runs=shrink_runs).failure


def _shrunk(workload: Workload, failure: Failure, kind: str) -> Example:
    """Leave out faults as long as the workload fails in the same way, then deviations of the schedule."""
    plans = failure.error.plans if isinstance(failure.error, Broken) else ()
    head, *lines = plans[0].splitlines() if plans else ("",)

    def fails(kept: list[str]) -> bool:
        with _planned("\n".join((head, *kept))):
            again = _failure(workload, failure.seed)
        return again is not None and kind_of(again.error) == kind

    faults = _fewest(lines, fails)
    if not lines or not fails(faults):
        return Example(_failure(workload, failure.seed, 300) or failure, tuple(lines))
    with _planned("\n".join((head, *faults))):
        return Example(_failure(workload, failure.seed, 300) or failure, tuple(faults))


def _fewest(lines: list[str], fails: Callable[[list[str]], bool]) -> list[str]:
    """Leave out parts, first large ones, until it fails with no single line left out."""
    size = max(1, len(lines) // 2)
    while lines:
        start, left_out = 0, False
        while start < len(lines):
            fewer = lines[:start] + lines[start + size :]
            if fails(fewer):
                lines, left_out = fewer, True
            else:
                start += size
        if size > 1:
            size //= 2
        elif not left_out:
            break
    return lines


@contextmanager
def _planned(faults: str) -> Iterator[None]:
    token = plan.set(faults)
    try:
        yield
    finally:
        plan.reset(token)


@contextmanager
def quiet() -> Iterator[None]:
    """Without the log of the libraries, and without warnings about what a failed run leaves behind."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
