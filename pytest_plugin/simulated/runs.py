"""The simulation in which a test and its asynchronous fixtures run."""

from __future__ import annotations

import functools
import inspect
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from .. import checks, marker, options, unused_faults
from . import chosen

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from fakeamqp.simulation import Runner, Schedule

__all__ = ["drawn", "run", "set_schedule", "simulation", "synchronous", "test"]

T = TypeVar("T")

_NEXT: pytest.StashKey[Schedule] = pytest.StashKey()
_DRAWN: pytest.StashKey[Schedule] = pytest.StashKey()
_RUNNER: pytest.StashKey[Runner] = pytest.StashKey()


def set_schedule(item: pytest.Item, schedule: Schedule) -> None:
    """Give this schedule to the next run of `item`."""
    item.stash[_NEXT] = schedule


def drawn(item: pytest.Item) -> Schedule | None:
    """The schedule of the last run of `item`, if it has one."""
    return item.stash.get(_DRAWN, None)


@contextmanager
def simulation(item: pytest.Item) -> Iterator[Runner]:
    """The simulation of one run of `item`."""
    from fakeamqp.simulation import Runner, Schedule

    # A schedule serves one run: its draws go on where they were.
    schedule = item.stash.get(_NEXT, None)
    if schedule is None:
        kinds = marker.arguments(item).get("kinds")
        settings = {} if kinds is None else {"kinds": kinds}
        schedule = Schedule(options.seed(item.config) or 0, **settings)
    else:
        del item.stash[_NEXT]
    item.stash[_DRAWN] = schedule
    with Runner(schedule=schedule, quiet_end=True, **chosen.runner_settings(item)) as runner:
        item.stash[_RUNNER] = runner
        try:
            yield runner
        finally:
            del item.stash[_RUNNER]


def run(item: pytest.Item, main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the simulation of `item`."""
    return item.stash[_RUNNER].run(main)


def test(item: pytest.Function) -> None:
    """Run the coroutine of `item` in its simulation."""
    function = chosen.coroutine_function(item)
    assert function is not None
    arguments = {name: item.funcargs[name] for name in item._fixtureinfo.argnames}
    item.stash[_RUNNER].run(_main(item, function, arguments))


async def _main(item: pytest.Item, function: Callable[..., Any], arguments: dict[str, Any]) -> None:
    await function(**arguments)
    await unused_faults.settle(item)
    await checks.verify_async(item)


def synchronous(function: Callable[..., Any], request: pytest.FixtureRequest) -> Callable[..., Any]:
    """An asynchronous fixture function as one that runs in the simulation of the test."""
    item = request.node
    request.getfixturevalue(chosen.FIXTURE)
    instance = getattr(request, "instance", None)
    if instance is not None and inspect.ismethod(function):
        function = function.__func__.__get__(instance)

    names = inspect.signature(function).parameters

    @functools.wraps(function)
    def run(**given: Any) -> Any:
        # Older versions of pytest-asyncio add arguments for a function of their own.
        arguments = {name: given[name] for name in names}
        runner = item.stash[_RUNNER]
        if inspect.iscoroutinefunction(function):
            return runner.run(function(**arguments))
        generator = function(**arguments)

        def finish() -> None:
            try:
                runner.run(_next(generator))
            except StopAsyncIteration:
                return
            raise ValueError(f"the asynchronous fixture {request.fixturename} yields more than once")

        value = runner.run(_next(generator))
        request.addfinalizer(finish)
        return value

    return run


async def _next(generator: Any) -> Any:
    return await generator.__anext__()
