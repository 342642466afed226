"""The real clock, while the code under test is frozen.

Each case runs in a fresh interpreter, so that import order is its own and no patch leaks.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from types import SimpleNamespace

import pytest

from fakeamqp.runtime import RealClock

PRELUDE = """
import sys, time, threading
wall, monotonic = time.time(), time.monotonic()

def check(clock):
    '''The clock tells the real time, close to what it was when this process began.'''
    assert abs(clock.now() - monotonic) < 60, (clock.now(), monotonic)
    assert abs(clock.time() - wall) < 60, (clock.time(), wall)

def deep(depth, clock):
    check(clock) if depth == 0 else deep(depth - 1, clock)

def everywhere(clock):
    '''At any stack depth, on the main thread and on another one.'''
    failures = []
    def run():
        for depth in range(12):
            try:
                deep(depth, clock)
            except AssertionError as error:
                failures.append((depth, error))
    run()
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert not failures, failures
"""


def run(code: str) -> None:
    result = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code)], capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("tick", [False, True])
def test_clock_imported_before_freezegun_shows_real_time(tick: bool) -> None:
    run(f"""
        from fakeamqp.runtime.clock import RealClock
        from freezegun import freeze_time
        clock = RealClock()
        with freeze_time("2001-01-01", tick={tick}):
            assert time.time() < 1e9
            everywhere(clock)
            everywhere(RealClock())
        everywhere(clock)
    """)


def test_clock_imported_inside_freeze_time_shows_real_time() -> None:
    run("""
        from freezegun import freeze_time
        with freeze_time("2001-01-01"):
            from fakeamqp.runtime.clock import RealClock
            clock = RealClock()
            everywhere(clock)
            now = clock.now()
            while clock.now() == now:  # it moves, although time stands
                pass
        everywhere(clock)
        with freeze_time("2050-01-01"):
            everywhere(clock)
    """)


def test_clock_imported_by_a_thread_inside_nested_freezes_shows_real_time() -> None:
    run("""
        from freezegun import freeze_time
        clocks = []
        def start():
            from fakeamqp.runtime.clock import RealClock
            clocks.append(RealClock())
        with freeze_time("2001-01-01"), freeze_time("2002-01-01", ignore=["nobody"]):
            thread = threading.Thread(target=start)
            thread.start()
            thread.join()
            everywhere(clocks[0])
        everywhere(clocks[0])
    """)


@pytest.mark.parametrize("tick", [False, True])
def test_clock_shows_real_time_inside_time_machine(tick: bool) -> None:
    pytest.importorskip("time_machine")
    run(f"""
        import time_machine
        from fakeamqp.runtime.clock import RealClock
        clock = RealClock()
        everywhere(clock)
        with time_machine.travel(1.0, tick={tick}):
            assert time.time() < 1000
            everywhere(clock)
        everywhere(clock)
    """)


def test_clock_imported_inside_time_machine_shows_real_time() -> None:
    pytest.importorskip("time_machine")
    run("""
        import time_machine
        with time_machine.travel(1.0, tick=False):
            from fakeamqp.runtime.clock import RealClock
            clock = RealClock()
            everywhere(clock)
        everywhere(clock)
    """)


def test_time_machine_is_not_asked_for_the_time_before_its_first_travel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Version 2 ends the process then; its pytest plugin imports it in tests that never travel."""

    def segmentation_fault() -> float:
        raise AssertionError("time-machine 2 ends the process here")

    hatch = SimpleNamespace(is_travelling=lambda: False, time=SimpleNamespace(time=segmentation_fault))
    monkeypatch.setitem(sys.modules, "time_machine", SimpleNamespace(escape_hatch=hatch))
    monkeypatch.setitem(sys.modules, "_time_machine", SimpleNamespace(original_time=segmentation_fault))
    assert abs(RealClock().time() - time.time()) < 60


def test_a_timer_of_an_engine_runs_while_time_is_frozen() -> None:
    run("""
        from freezegun import freeze_time
        with freeze_time("2001-01-01"):
            from fakeamqp.model.operations import Operations
            from fakeamqp.model.timers import Timers
            from fakeamqp.runtime import ThreadEngine, RealClock
            clock = RealClock()
            engine = ThreadEngine(clock, Timers(clock), lambda peer, notify: None, operations=Operations())
            engine.start()
            ran = threading.Event()
            with engine:
                engine.timers.call_at(clock.now() + 0.01, ran.set)
            assert ran.wait(30)
            engine.stop()
    """)


def test_now_never_goes_back_and_is_the_monotonic_clock() -> None:
    clock = RealClock()
    readings = [time.monotonic(), *[clock.now() for _ in range(1000)], time.monotonic()]
    assert readings == sorted(readings)
