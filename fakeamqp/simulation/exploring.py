"""Runs a test under many schedules, and explains the first failure."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from fakeamqp.errors import Result
from fakeamqp.simulation.errors import SimulationError
from fakeamqp.simulation.running import run
from fakeamqp.simulation.schedule import KINDS, Decision, Key, Schedule
from fakeamqp.simulation.shrinking import Deviations, shrink
from fakeamqp.simulation.steps import Steps, difference

Test = Callable[[], Coroutine[Any, Any, object]]
#: Runs a test under a schedule; returns what it raised, or None.
Outcome = Callable[[Schedule], "BaseException | None"]


@dataclass(frozen=True)
class Failure:
    """A schedule under which a test fails."""

    #: Repeats the failure: `run(test(), seed=seed)`.
    seed: int
    #: What the test raised under this seed.
    error: BaseException
    #: All decisions of that run.
    decisions: list[Decision] = field(repr=False)
    #: The deviations that are enough to fail, in order; [] if it fails in first-come order, too.
    needed: list[Decision]
    #: The number of decisions of the run with these deviations alone.
    shrunk_decisions: int
    #: The error of the run with these deviations alone.
    shrunk_error: BaseException
    #: How many runs it took to find them, and whether the test passes without any one of them.
    runs: int
    minimal: bool
    #: In words, which tasks of the app go on in another order than without the last decision; "" if none do.
    tasks: str = ""

    @property
    def deviations(self) -> dict[Key, int]:
        """The needed deviations, for `Schedule(seed, deviations=...)`."""
        return {decision.key: decision.chosen for decision in self.needed}

    @property
    def parts_at(self) -> Decision | None:
        """The first decision at which the shrunk run parts from a passing one; None in first-come order."""
        return self.needed[-1] if self.needed else None

    @property
    def text(self) -> str:
        """The failure in words."""
        error = "".join(traceback.format_exception_only(type(self.error), self.error)).strip()
        lines = [f"seed {self.seed} fails: {error.splitlines()[0]}"]
        deviations = sum(1 for decision in self.decisions if decision.chosen)
        if not self.needed:
            lines.append("It fails in first-come order as well, so its schedule does not matter.")
            return "\n".join(lines)
        few = len(self.needed)
        lines.append(
            f"Of its {len(self.decisions)} decisions, {deviations} deviate from first-come order. "
            f"In a run of {self.shrunk_decisions}, {'one is' if few == 1 else f'{few} are'} enough to fail"
            f"{'' if self.minimal else ' (or fewer)'}:"
        )
        lines += [f"  {decision}" for decision in self.needed]
        if self.minimal:
            last = "it" if few == 1 else "the last one"
            lines.append(f"Without {last} the test passes: there it parts from a passing schedule.")
        if self.tasks:
            lines.append(self.tasks)
        if any(decision.kind == "task" for decision in self.needed):
            lines.append(
                "It needs tasks that go on in another order than they became ready. asyncio promises no "
                "order of tasks, but its loops keep this one."
            )
        return "\n".join(lines)


@dataclass(frozen=True)
class Exploration(Result):
    """What came of running a test under many schedules. A failure that nothing reads fails the test."""

    #: The number of schedules that were run, without those of shrinking.
    schedules: int
    #: The first failure, or None.
    failure: Failure | None

    def _failure(self) -> str:
        if self.failure is None:
            return ""
        return f"explore() has found a failure, and nothing has read it: use check()\n{self.failure.text}"


class FailingSchedule(SimulationError):
    """A test fails under a schedule; the cause is its error, the text says which decisions make it fail."""

    __module__ = "fakeamqp.simulation"

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        #: The failure.
        self.failure = failure


def explore(
    test: Test,
    seeds: int | Iterable[int] = 200,
    *,
    kinds: Iterable[str] = KINDS,
    errors: tuple[type[BaseException], ...] = (Exception,),
    shrink_runs: int = 300,
    **settings: Any,
) -> Exploration:
    """Run a test under several schedules, up to the first that fails.

    Args:
        test: a function that returns a new coroutine for each run, such as a coroutine function.
        seeds: how many schedules, from seed 0 (first-come order) on; or the seeds themselves.
        kinds: the kinds of decisions that may deviate from first-come order; see `schedule.KINDS`.
        errors: what counts as a failure. Anything else ends the exploration and is raised.
        shrink_runs: how many more runs may be used to shrink a failing schedule; 0 to leave it as it is.
        settings: further arguments of `run`.

    Returns:
        How many schedules were run, and the failure if there was one.

    Raises:
        SimulationError: there are no seeds, or an argument of `run` is invalid.
    """

    def outcome(schedule: Schedule) -> BaseException | None:
        try:
            run(test(), schedule=schedule, **{"quiet_end": True, **settings})
        except errors as error:
            return error
        return None

    return explore_runs(outcome, seeds, kinds=kinds, shrink_runs=shrink_runs)


def explore_runs(
    outcome: Outcome,
    seeds: int | Iterable[int],
    *,
    kinds: Iterable[str] = KINDS,
    shrink_runs: int = 300,
) -> Exploration:
    """`explore` for a function that runs the test under a schedule, and returns its error or None."""
    allowed = tuple(kinds)
    count = 0
    for seed in range(seeds) if isinstance(seeds, int) else seeds:
        count += 1
        schedule = Schedule(seed, kinds=allowed)
        error = outcome(schedule)
        if error is not None:
            return Exploration(count, _explain(outcome, schedule, error, shrink_runs))
    if count == 0:
        raise SimulationError(f"seeds={seeds!r} are no schedules, so the test would pass without a run")
    return Exploration(count, None)


def check(test: Test, seeds: int | Iterable[int] = 200, **settings: Any) -> int:
    """Run a test under several schedules, and raise if one fails. Arguments are those of `explore`.

    Returns:
        The number of schedules.

    Raises:
        FailingSchedule: the test fails under a schedule.
    """
    exploration = explore(test, seeds, **settings)
    if exploration.failure is not None:
        raise FailingSchedule(exploration.failure) from exploration.failure.shrunk_error
    return exploration.schedules


def _explain(outcome: Outcome, schedule: Schedule, error: BaseException, shrink_runs: int) -> Failure:
    seed, like = schedule.seed, _kind_of(error)
    shrunk = schedule
    last_error = error

    def fails(deviations: Deviations) -> Deviations | None:
        nonlocal shrunk, last_error
        again = Schedule(seed, deviations=deviations)
        again_error = outcome(again)
        if again_error is None or _kind_of(again_error) != like:
            return None
        shrunk, last_error = again, again_error
        return again.deviations

    runs = 0
    if shrink_runs:
        _, runs = shrink(fails, schedule.deviations, shrink_runs)
    decisions = shrunk.decisions
    failure = Failure(
        seed,
        error,
        schedule.decisions,
        [decision for decision in decisions if decision.chosen],
        len(decisions),
        last_error,
        runs,
        minimal=0 < runs < shrink_runs,
    )
    return replace(failure, tasks=_overtaking(outcome, failure))


def _overtaking(outcome: Outcome, failure: Failure) -> str:
    """Which tasks of the app go on in another order than in the passing run without the last decision."""
    if not (failure.minimal and failure.needed):
        return ""
    orders: list[list[str]] = []
    for deviations in (failure.deviations, dict(list(failure.deviations.items())[:-1])):
        schedule = Schedule(failure.seed, deviations=deviations)
        schedule.steps = Steps()
        outcome(schedule)
        orders.append(schedule.steps.order)
    return difference(*orders)


def _kind_of(error: BaseException) -> tuple[object, ...]:
    """What two runs that fail in the same way have in common: the type, and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return type(error), (frames[-1].filename, frames[-1].lineno) if frames else None
