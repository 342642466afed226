"""Pytest plugin: all tests in a random order, and garbage looked for all the time.

`--shuffle SEED` mixes the tests of all files, and the cases of a folded test; the same seed gives the same
order. Tests that depend on what ran before them fail, as do tests that keep what others look for. The
collector runs every few hundred allocations and after one test in ten, so that finalizers run early, and in
the midst of other things. `make flake-hunt` runs the suite like this, many times.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from fakeamqp.simulation.loop import SimulatedLoop

__all__ = ["THRESHOLDS"]

#: Objects until the collector looks at the youngest generation, and how often at the two others.
THRESHOLDS = (199, 5, 5)
_FULL = 0.1
"""After which part of the tests all garbage is looked for."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("fakeamqp").addoption(
        "--shuffle", type=int, metavar="SEED", help="run the tests of all files in a random order"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Shuffle if it is asked for."""
    seed = config.getoption("--shuffle")
    if seed is not None:
        config.pluginmanager.register(_Shuffle(seed), "shuffle of tests")


class _Shuffle:
    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._random = Random(seed)

    def pytest_report_header(self) -> str:
        return f"shuffle: seed {self._seed}"

    # After pytest's own order, which puts tests with the same parameters of a fixture together.
    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        # With a generator of its own: all processes that share the suite must find the same order.
        Random(self._seed).shuffle(items)

    @pytest.hookimpl(trylast=True, optionalhook=True)
    def pytest_cases(self, items: list[pytest.Function]) -> None:
        self._random.shuffle(items)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Iterator[None]:
        before = gc.get_threshold()
        # The modules and tests are a million objects, which would be looked through each time.
        freezes = gc.get_freeze_count() == 0  # A run inside a test leaves that to the run around it.
        if freezes:
            gc.collect()
            gc.freeze()
        gc.set_threshold(*THRESHOLDS)
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(SimulatedLoop, "__init__", _without_debug(SimulatedLoop.__init__))
                return (yield)
        finally:
            gc.set_threshold(*before)
            if freezes:
                gc.unfreeze()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self) -> None:
        if self._random.random() < _FULL:
            gc.collect()


def _without_debug(create: Any) -> Any:
    """Create simulated loops as always, but out of asyncio's debug mode if nobody asks for it.

    In that mode asyncio notes the whole stack for each future, which makes a simulated day 31 seconds long
    instead of 2. Nothing in a simulation depends on real time. All other loops are in debug mode.
    """

    def created(loop: SimulatedLoop, *args: Any, **options: Any) -> None:
        create(loop, *args, **options)
        loop.set_debug(False)

    return created
