"""Runs a coroutine in a simulation."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from datetime import datetime, timezone
from typing import Any, TypeVar

from fakeamqp.simulation.errors import SimulationError, TimeLimit
from fakeamqp.simulation.loop import LIMIT, START, SimulatedLoop
from fakeamqp.simulation.schedule import Schedule

__all__ = ["current", "run", "run_in"]

T = TypeVar("T")

# How long tasks may go on at the end when they have been cancelled, in simulated seconds.
_LONGEST_END = 3600.0
# How often what is still there is cancelled.
_MOST_ROUNDS = 10


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
        Needs
            time-machine or freezegun.
        debug: asyncio's debug mode.
        quiet_end: whether exceptions of tasks that are still running at the end, and are cancelled, are not
            logged.

    Returns:
        What the coroutine returns.

    Raises:
        Deadlock: nothing can ever happen again, and the coroutine is not done.
        TimeLimit: the limit of simulated time has passed.
        SimulationError: a loop is running in this thread, `patch_time` lacks its library, or tasks that are
            left do not end within an hour of simulated time when they are cancelled.
    """
    if asyncio._get_running_loop() is not None:
        main.close()
        raise SimulationError(
            "a simulation cannot be run in a running event loop: call fakeamqp.simulation.run from code that "
            "is not async, as asyncio.run"
        )
    if schedule is None and seed is not None:
        schedule = Schedule(seed)
    loop = SimulatedLoop(schedule, start=epoch_seconds(now), limit=limit)
    return run_in(loop, main, patch_time=patch_time, debug=debug, quiet_end=quiet_end)


def run_in(
    loop: SimulatedLoop,
    main: Coroutine[Any, Any, T],
    *,
    patch_time: bool = False,
    debug: bool | None = None,
    quiet_end: bool = False,
) -> T:
    """Run a coroutine in a simulated loop, cancel what is left, and close the loop.

    Further arguments are those of `run`. With `quiet_end`, exceptions of what is cancelled are not logged.
    """
    with ExitStack() as patches:
        try:
            if patch_time:
                from fakeamqp.simulation.wall_time import wall_time_follows

                patches.enter_context(wall_time_follows(loop))
            if loop.schedule is not None:
                from fakeamqp.simulation.ordered_sets import ordered_sets
                from fakeamqp.simulation.randomness import seeded_randomness
                from fakeamqp.simulation.stable_hashes import make_hashes_stable

                make_hashes_stable()
                patches.enter_context(ordered_sets())
                patches.enter_context(seeded_randomness(loop.schedule.seed))
                patches.enter_context(_no_garbage_collection())
            if debug is not None:
                loop.set_debug(debug)
        except BaseException:
            main.close()
            loop.close()
            raise
        asyncio.set_event_loop(loop)
        passed = False
        try:
            result = loop.run_until_complete(main)
            passed = True
            return result
        finally:
            if quiet_end:
                loop.set_exception_handler(lambda _loop, _report: None)
            try:
                # The error of the coroutine matters more than tasks that do not end.
                with nullcontext() if passed else suppress(SimulationError):
                    _cancel_all(loop)
                    loop.run_until_complete(loop.shutdown_asyncgens())
                    loop.run_until_complete(loop.shutdown_default_executor())
            finally:
                asyncio.set_event_loop(None)
                loop.close()


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


def epoch_seconds(now: datetime | float | None) -> float:
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
