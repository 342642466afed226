"""Which tests are simulated, and what their marker says about it."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any
from unittest import TestCase

import pytest

from fakeamqp.errors import near_match

from .. import endpoints, marker, options

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeGuard

__all__ = [
    "FIXTURE",
    "applies",
    "asynchronous",
    "coroutine_function",
    "explored",
    "owns",
    "problem",
    "request",
    "runner_settings",
    "seeds",
    "settings_problem",
]

FIXTURE = "amqp_simulation"
_ASYNCHRONOUS = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_SETTINGS = {"now": "now", "patch_time": "patch_time", "time_limit": "limit"}
"""The marker's names of arguments of `fakeamqp.simulation.run`."""
_REAL_TIME = ("amqp_stream", "make_amqp_stream", "pika_channel", "pika_connection", "amqp_spark")
"""Fixtures whose clients need a broker in a thread."""


def applies(item: pytest.Item) -> bool:
    """Whether `item` runs in a simulation: its marker says so, or it takes the fixture."""
    taken = FIXTURE in getattr(item, "fixturenames", ())
    return bool(marker.arguments(item).get("simulated", taken))


def coroutine_function(item: pytest.Item) -> Callable[..., Any] | None:
    """The coroutine function of `item`, without what plugins that run coroutines have put around it."""
    function = getattr(item, "obj", None)
    while function is not None and not inspect.iscoroutinefunction(function):
        function = getattr(function, "__wrapped__", None)
    return function


def seeds(item: pytest.Item) -> Sequence[int] | None:
    """The seeds of the schedules that `item` runs under; None if it runs once."""
    given = marker.arguments(item).get("seeds")
    if given is None:
        return None
    schedules = options.schedules(item.config)
    if schedules is not None:
        return range(schedules)
    return range(given) if isinstance(given, int) else tuple(given)


def request(item: pytest.Item) -> None:
    """A simulated test gets the fixture with its simulation, before all others."""
    names = getattr(item, "fixturenames", None)
    if names is not None and applies(item):
        names[:] = [FIXTURE, *(name for name in names if name != FIXTURE)]


def asynchronous(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """The coroutine function or asynchronous generator function of a fixture; None if it is synchronous.

    Older versions of pytest-asyncio, such as 1.0, replace it by a synchronous one when tests are collected.
    """
    if getattr(function, "__globals__", {}).get("__name__") == "pytest_asyncio.plugin":
        function = getattr(function, "__wrapped__", function)
    code = getattr(function, "__code__", None)
    return function if code is not None and code.co_flags & _ASYNCHRONOUS else None


def owns(request: pytest.FixtureRequest) -> bool:
    """Whether a fixture belongs to one test, and this is simulated."""
    return request.scope == "function" and applies(request.node)


def explored(item: pytest.Item) -> TypeGuard[pytest.Function]:
    """Whether `item` runs under several schedules. Errors of its marker are those of its setup."""
    if "seeds" not in marker.arguments(item) or not isinstance(item, pytest.Function) or not applies(item):
        return False
    config = item.config
    if options.real_url_of(item) is not None or options.seed(config) is not None:
        return False
    if config.getoption("setuponly", False):
        return False
    return not (settings_problem(item) or problem(item))


def runner_settings(item: pytest.Item) -> dict[str, Any]:
    """The arguments of `fakeamqp.simulation.Runner` that the marker sets."""
    given = marker.arguments(item)
    return {theirs: given[ours] for ours, theirs in _SETTINGS.items() if ours in given}


def settings_problem(item: pytest.Item) -> str:
    """The problem with the marker's arguments about simulations; "" if there is none."""
    given = marker.arguments(item)
    own = [name for name in marker.SIMULATION if name in given and name != "simulated"]
    if own and not applies(item):
        return (
            f"{own[0]}={given[own[0]]!r} is about simulations, and this test is not simulated: add "
            "simulated=True"
        )
    if not isinstance(given.get("simulated", True), bool):
        return f"simulated={given['simulated']!r}: give True or False"
    wanted = given.get("seeds", 1)
    if isinstance(wanted, bool) or (not (isinstance(wanted, int) and wanted > 0) and not _numbers(wanted)):
        return f"seeds={wanted!r}: give the number of schedules, or a list of seeds"
    if not applies(item):
        return ""
    from fakeamqp.simulation import SimulationError
    from fakeamqp.simulation.running import check_settings
    from fakeamqp.simulation.schedule import KINDS

    kinds = given.get("kinds", KINDS)
    if not isinstance(kinds, (list, tuple, set, frozenset)) or not kinds:
        return f"kinds={kinds!r}: give a list of kinds; there are {', '.join(KINDS)}"
    for kind in kinds:
        if kind not in KINDS:
            return f"kinds={kinds!r}: there is no kind {kind!r}{near_match(kind, KINDS)}"
    for ours, theirs in _SETTINGS.items():
        try:
            check_settings(**({theirs: given[ours]} if ours in given else {}))
        except SimulationError as error:
            return f"{ours}={given[ours]!r}: {error}"
    return ""


def problem(item: pytest.Item) -> str:
    """Why `item`, which is simulated, cannot be; "" if it can."""
    given = marker.arguments(item)
    fixtures = getattr(item, "fixturenames", ())
    cls = getattr(item, "cls", None)
    if cls is not None and issubclass(cls, TestCase):
        return "a simulated test is a function or a method of a plain class, not of a unittest.TestCase"
    if coroutine_function(item) is None:
        return "a simulated test is a coroutine: write `async def`, or mark the test with simulated=False"
    if "anyio_backend" in fixtures:
        return "the test runs in a simulation, and anyio runs it as well: take away its marker anyio"
    if given.get("runtime", "asyncio") != "asyncio":
        return f"the broker of a simulated test runs in its loop: leave out runtime={given['runtime']!r}"
    if given.get("scope") == "session" or not set(endpoints.OF_THE_SESSION).isdisjoint(fixtures):
        return (
            "the broker of the session runs in a thread, and a simulated test has no connection to it: "
            "let the test take amqp_broker, without scope='session'"
        )
    for name in _REAL_TIME:
        if name in fixtures:
            return (
                f"the clients of {name} block or are in other processes, and a simulated test has all of "
                "its clients in its loop: use aio_pika_connection, or connect with aio-pika in the test"
            )
    return ""


def _numbers(wanted: object) -> bool:
    try:
        numbers = list(wanted)  # type: ignore[call-overload]
    except TypeError:
        return False
    return bool(numbers) and all(type(number) is int for number in numbers)
