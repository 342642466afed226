"""Runs coroutines in a simulation."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from datetime import datetime, timezone
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from fakeamqp.simulation.errors import SimulationError, TimeLimit
from fakeamqp.simulation.loop import LIMIT, START, SimulatedLoop
from fakeamqp.simulation.ordered_sets import keep_order_of_sets
from fakeamqp.simulation.randomness import SeededRandomness
from fakeamqp.simulation.schedule import Schedule
from fakeamqp.simulation.stable_texts import make_texts_stable
from fakeamqp.simulation.wall_time import check_available, wall_time_follows

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")

# How long tasks may go on at the end when they have been cancelled, in simulated seconds.
_LONGEST_END = 3600.0
# How often what is still there is cancelled.
_MOST_ROUNDS = 10


class Runner:
    """Runs several coroutines in one simulation, as `asyncio.Runner` does in one loop.

    Use it as a context manager, or call `close`. Arguments are those of `run`.

    Raises:
        SimulationError: a loop is running in this thread, an argument is invalid, or `patch_time` lacks its
            library.
    """

    __module__ = "fakeamqp.simulation"

    #: The event loop of the simulation.
    loop: SimulatedLoop

    def __init__(
        self,
        *,
        seed: int | None = None,
        schedule: Schedule | None = None,
        now: datetime | float | None = None,
        limit: float | None = LIMIT,
        patch_time: bool = False,
        debug: bool | None = None,
        quiet_end: bool = False,
    ) -> None:
        if asyncio._get_running_loop() is not None:
            raise SimulationError(
                "a simulation cannot be run in a running event loop: call it from code that is not async, as "
                "asyncio.run"
            )
        check_settings(now=now, limit=limit, patch_time=patch_time)
        if patch_time:
            check_available()
        if schedule is None and seed is not None:
            schedule = Schedule(seed)
        self.loop = SimulatedLoop(schedule, start=_epoch_seconds(now), limit=limit)
        if debug is not None:
            self.loop.set_debug(debug)
        self._randomness = None if schedule is None else SeededRandomness(schedule.seed)
        self._entered = ExitStack()
        self._patch_time = patch_time
        self._quiet_end = quiet_end

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine until it returns. Other tasks stand still afterwards, until the next run.

        Returns:
            What the coroutine returns.

        Raises:
            Deadlock: nothing can ever happen again, and the coroutine is not done.
            TimeLimit: the limit of simulated time has passed.
            SimulationError: the runner is closed.
        """
        if self.loop.is_closed():
            main.close()
            raise SimulationError("the simulation is closed: make a new Runner")
        with self._patches():
            return self.loop.run_until_complete(main)

    def close(self) -> None:
        """Cancel what is left, and close the loop. Idempotent.

        Raises:
            SimulationError: what is left does not end within an hour of simulated time when it is cancelled.
        """
        loop = self.loop
        if loop.is_closed():
            return
        if self._quiet_end:
            loop.set_exception_handler(lambda _loop, _report: None)
        try:
            with self._patches():
                _cancel_all(loop)
                loop.run_until_complete(loop.shutdown_asyncgens())
                loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            loop.close()

    @contextmanager
    def _patches(self) -> Iterator[None]:
        """What code under test finds changed while the simulation runs."""
        with ExitStack() as patches:
            if self._patch_time:
                patches.enter_context(wall_time_follows(self.loop))
            if self._randomness is not None:
                make_texts_stable()
                patches.enter_context(keep_order_of_sets())
                patches.enter_context(self._randomness.used())
                patches.enter_context(_no_garbage_collection())
            asyncio.set_event_loop(self.loop)
            patches.callback(asyncio.set_event_loop, None)
            yield

    def __enter__(self) -> Self:
        if self._randomness is not None:
            # Between two runs as well: a finalizer may call the loop.
            self._entered.enter_context(_no_garbage_collection())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The error of the coroutine matters more than tasks that do not end.
        with self._entered, nullcontext() if error is None else suppress(SimulationError):
            self.close()


def run(
    main: Coroutine[Any, Any, T],
    *,
    seed: int | None = None,
    schedule: Schedule | None = None,
    now: datetime | float | None = None,
    limit: float | None = LIMIT,
    patch_time: bool = False,
    debug: bool | None = None,
    quiet_end: bool = False,
) -> T:
    """Run a coroutine in a new simulation, as `asyncio.run` does in a new loop.

    When nothing is ready, time jumps to the next timer. Connections and servers are in memory.

    Args:
        main: the coroutine.
        seed: draws the order of what can happen in any order, and random values of the code (`random`,
            `os.urandom`, `uuid`, `secrets`). The same seed gives the same run. None: first-come order, and
            random values as they come; 0: first-come order and drawn values.
        schedule: makes the choices instead of a new one with this seed.
        now: the wall-clock time at the start, a datetime (UTC without a time zone) or seconds of the epoch;
            2024-01-01 00:00 UTC by default.
        limit: the largest simulated time in seconds, a week by default; None for no limit.
        patch_time: whether `time.time`, `time.monotonic`, `datetime.now` and so on follow simulated time.
            Needs time-machine or freezegun.
        debug: asyncio's debug mode.
        quiet_end: whether exceptions of tasks that are still running at the end, and are cancelled, are not
            logged.

    Returns:
        What the coroutine returns.

    Raises:
        Deadlock: nothing can ever happen again, and the coroutine is not done.
        TimeLimit: the limit of simulated time has passed.
        SimulationError: a loop is running in this thread, an argument is invalid, `patch_time` lacks its
            library, or tasks that are left do not end within an hour of simulated time when they are
            cancelled.
    """
    try:
        runner = Runner(
            seed=seed,
            schedule=schedule,
            now=now,
            limit=limit,
            patch_time=patch_time,
            debug=debug,
            quiet_end=quiet_end,
        )
    except BaseException:
        main.close()
        raise
    with runner:
        return runner.run(main)


def current() -> SimulatedLoop:
    """The simulation that runs the caller.

    Raises:
        SimulationError: the caller does not run in a simulation.
    """
    loop = asyncio._get_running_loop()
    if not isinstance(loop, SimulatedLoop):
        raise SimulationError(
            "no simulation is running: call this in a coroutine that fakeamqp.simulation.run runs"
        )
    return loop


def check_settings(*, now: object = None, limit: object = LIMIT, patch_time: object = False) -> None:
    """Check arguments of `run`.

    Raises:
        SimulationError: one has a wrong type or value.
    """
    if not isinstance(now, datetime) and not _are_seconds(now):
        raise SimulationError(f"now must be a datetime, or seconds of the epoch, not {now!r}")
    if not _are_seconds(limit):
        raise SimulationError(f"limit must be a number of seconds, or None, not {limit!r}")
    if not isinstance(patch_time, bool):
        raise SimulationError(f"patch_time must be True or False, not {patch_time!r}")


def _are_seconds(value: object) -> bool:
    if value is None:
        return True
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0


def _epoch_seconds(now: datetime | float | None) -> float:
    """A wall-clock time in seconds of the epoch."""
    if now is None:
        return START
    if isinstance(now, datetime):
        return (now if now.tzinfo is not None else now.replace(tzinfo=timezone.utc)).timestamp()
    return float(now)


def _cancel_all(loop: SimulatedLoop) -> None:
    """Cancel all tasks, also those that tasks start while they end."""
    for _ in range(_MOST_ROUNDS):
        tasks = sorted(asyncio.all_tasks(loop), key=lambda task: getattr(task, "number", 0))
        if not tasks:
            return
        _cancel(loop, tasks)


def _cancel(loop: SimulatedLoop, tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    try:
        with loop.limited_to(_LONGEST_END):
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    except TimeLimit:
        from fakeamqp.simulation.waits import describe_tasks

        raise SimulationError(
            f"these tasks go on {_LONGEST_END:g} simulated seconds after the coroutine has returned and they "
            f"were cancelled, so asyncio.run would not end; end them in the coroutine:\n"
            f"{describe_tasks(loop)}"
        ) from None
    for task in tasks:
        if not task.cancelled() and task.exception() is not None:
            loop.call_exception_handler(
                {
                    "message": "unhandled exception during shutdown of the simulation",
                    "exception": task.exception(),
                    "task": task,
                }
            )


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Keep finalizers from running at a moment that depends on what else the process has done."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
