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
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.runtime.clock.interface import TimerQueue

__all__ = ["RealClock"]


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

    # Seconds on the machine's monotonic clock. No method around it: a trace reads it for every event.
    now = _monotonic

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

    @property
    def holds_peers(self) -> bool:
        """Clients live by real time, too."""
        return True

    @property
    def holds_newcomers(self) -> bool:
        """So have those that are just connecting."""
        return True

    def held_since(self) -> float:
        """Always."""
        return float("-inf")

    def heading(self) -> float:
        """`now()`: nobody moves this clock."""
        return self._monotonic()

    def remark(self, _timers: TimerQueue) -> str:
        """Nothing to say: this clock goes by itself."""
        return ""

    def __repr__(self) -> str:
        return "<RealClock>"
