"""Runs a test under many schedules, and reports the failure that takes the fewest deviations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from _pytest.runner import runtestprotocol

from .. import marker, repeated_runs
from ..unused_faults import Told
from . import chosen, runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fakeamqp.simulation import Failure, Schedule

__all__ = ["note", "run_under_all", "sections", "verify"]

_FAILURE: pytest.StashKey[Failure] = pytest.StashKey()
_REPEATED: pytest.StashKey[bool] = pytest.StashKey()
_SECTION = "AMQP simulation"


class _Unrepeatable(Told):
    """The failure of a test that fails under a schedule, and passes when this is repeated."""

    __module__ = "builtins"
    __qualname__ = __name__ = "NotRepeatable"


def run_under_all(item: pytest.Function, nextitem: pytest.Item | None) -> None:
    """Run `item` under the schedules of its marker; pytest gets the reports of one run.

    This is the run under the shrunk failing schedule, or the run in first-come order if all pass.
    """
    from fakeamqp.simulation import Schedule
    from fakeamqp.simulation.exploring import explore_runs
    from fakeamqp.simulation.schedule import KINDS

    seeds = chosen.seeds(item)
    assert seeds is not None
    skipped = False

    def outcome(schedule: Schedule) -> BaseException | None:
        nonlocal skipped
        if skipped:
            return None
        runs.set_schedule(item, schedule)
        error = repeated_runs.run_quietly(item)
        # The run that pytest is told about skips the test again.
        skipped = isinstance(error, (pytest.skip.Exception, pytest.xfail.Exception))
        return None if skipped else error

    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    kinds = marker.arguments(item).get("kinds", KINDS)
    failure = explore_runs(outcome, seeds, kinds=kinds).failure
    if failure is None:
        runs.set_schedule(item, Schedule(0))
    else:
        item.stash[_FAILURE] = failure
        runs.set_schedule(item, Schedule(failure.seed, deviations=failure.deviations))
    runtestprotocol(item, nextitem=nextitem)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def note(item: pytest.Item) -> None:
    """Note that the run that pytest is told about fails."""
    item.stash[_REPEATED] = True


def verify(item: pytest.Item) -> None:
    """Fail `item`, whose run has ended, if it has passed and failed under the same schedule before."""
    failure = item.stash.get(_FAILURE, None)
    if failure is None or _REPEATED in item.stash:
        return
    error = failure.shrunk_error
    raise _Unrepeatable(
        f"the test fails with seed {failure.seed}, and passes when the same schedule is repeated: something "
        "that the simulation does not control makes the difference, such as a thread, the time of the "
        f"machine, or what an earlier run has left in a global variable. It failed with "
        f"{type(error).__name__}: {error}",
        pytrace=False,
    ) from error


def sections(item: pytest.Item) -> Iterator[tuple[str, str]]:
    """The section of the report of a failed test: its schedule, and how to repeat it."""
    failure, schedule = item.stash.get(_FAILURE, None), runs.drawn(item)
    if failure is not None:
        repeat = f"--amqp-seed={failure.seed} repeats the run before its deviations were reduced to these."
        yield _SECTION, f"{failure.text}\n{repeat if failure.needed else _repeat(failure.seed)}"
    elif schedule is not None:
        deviations = len(schedule.deviations)
        order = (
            f"of {len(schedule.decisions)} decisions, {deviations} deviate from first-come order"
            if deviations
            else "first-come order"
        )
        yield _SECTION, f"seed {schedule.seed}: {order}.\n{_repeat(schedule.seed)}"


def _repeat(seed: int) -> str:
    return f"--amqp-seed={seed} repeats this run."
