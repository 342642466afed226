"""The real clock: the machine's time, whatever the code under test has frozen.

Tests freeze time in two ways, and both must not reach the broker in its default mode:

* freezegun puts a Python function in the place of `time.time` and of every module global that refers to
  it, and that function answers with real or frozen time depending on who is on the stack. So no module
  global here refers to a time function, and when freezegun was active before this module was imported, the
  real function is taken from where freezegun keeps it.
* time-machine changes the C function itself, so no reference is safe. It leaves the monotonic clock alone
  and offers the original wall clock under another name, which is asked whenever time-machine is loaded.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Protocol

__all__ = ["EngineClock", "RealClock", "Timer", "TimerQueue"]


class EngineClock(Protocol):
    """What the engine asks a clock, of whatever mode."""

    def now(self) -> float:
        """The instant that timers are compared with: seconds, never going back."""
        ...

    def time(self) -> float:
        """Wall time in seconds since the epoch."""
        ...

    def seconds_until(self, due: float) -> float | None:
        """How long, in real seconds, the loop may sleep before it must look whether `due` has come.

        None when it never comes by itself, because only a test moves this clock.
        """
        ...


class Timer(Protocol):
    """A timer that can be called off."""

    def cancel(self) -> None:
        """Make sure it does not run."""
        ...


class TimerQueue(Protocol):
    """The timers of one clock, as the runtime sees them."""

    def call_at(self, due: float, callback: Callable[[], object], label: str = ...) -> Timer:
        """Call `callback()` when the clock reaches `due`."""
        ...

    def next_due(self) -> float | None:
        """The earliest instant at which there is something to run."""
        ...

    def run_due(self) -> int:
        """Run what is due."""
        ...


def _real(name: str) -> Callable[[], float]:
    """The function `time.<name>` as the interpreter made it, also while freezegun stands in its place."""
    function: Callable[[], float] = getattr(time, name)
    # A stand-in is a Python function whose own module holds the original as `real_<name>`.
    while (namespace := getattr(function, "__globals__", None)) is not None:
        original = namespace.get(f"real_{name}")
        if original is None or original is function:
            break
        function = original
    return function


class RealClock:
    """The machine's own time, immune to freezegun and time-machine."""

    __slots__ = ()

    # Class attributes: freezegun replaces module globals only. staticmethod, so that they never bind.
    _monotonic = staticmethod(_real("monotonic"))
    _wall = staticmethod(_real("time"))

    def now(self) -> float:
        """Seconds on the machine's monotonic clock."""
        return self._monotonic()

    def time(self) -> float:
        """Real wall time, in seconds since the epoch."""
        time_machine = sys.modules.get("_time_machine")
        if time_machine is not None:
            try:
                original: float = time_machine.original_time()
                return original
            except (AttributeError, ValueError):
                pass  # nobody is travelling, so the plain function tells the truth
        return self._wall()

    def seconds_until(self, due: float) -> float:
        """Real seconds until `now()` reaches `due`, 0.0 when it has."""
        return max(0.0, due - self._monotonic())

    def __repr__(self) -> str:
        return "<RealClock>"
