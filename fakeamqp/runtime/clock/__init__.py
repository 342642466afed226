"""The clocks of a broker, and the real one: the machine's time, even if a test has frozen it.

A test moves `VirtualClock`, and `WallClock` follows the wall clock that the code under test sees. These two
are stepped clocks (`SteppedClock`): between steps their time stands still, and a step runs every due timer at
its due time. `Clock` is the public handle of all of them. Only the real clock is imported by default.

Tests freeze time in two ways, and neither may affect the broker in its default mode:

* freezegun replaces `time.time` and every module global that refers to it with a Python function that returns
  real or frozen time depending on the call stack. So no module global here refers to a time function, and if
  freezegun was active when this module was imported, the real function is taken from freezegun's module.
* time-machine changes the C function itself, so no reference is safe. It does not change the monotonic clock,
  and has an escape hatch to the original wall clock, which is used while it travels.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from fakeamqp.model.timers import TimeSource


def _real(name: str) -> Callable[[], float]:
    """The original function `time.<name>`, even if freezegun has replaced it."""
    function: Callable[[], float] = getattr(time, name)
    # A replacement is a Python function whose module holds the original as `real_<name>`.
    while (namespace := getattr(function, "__globals__", None)) is not None:
        original = namespace.get(f"real_{name}")
        if original is None or original is function:
            break
        function = original
    return function


class RealClock(TimeSource):
    """The machine's own time, immune to freezegun and time-machine."""

    __slots__ = ()

    # Class attributes, because freezegun replaces module globals only; static, so that they do not bind.
    _monotonic = staticmethod(_real("monotonic"))
    _wall = staticmethod(_real("time"))

    # Seconds on the machine's monotonic clock. It has no wrapper, because a trace reads it for every event.
    now = _monotonic

    def time(self) -> float:
        """Real wall time, in seconds since the epoch."""
        time_machine = sys.modules.get("time_machine")
        if time_machine is not None:
            try:
                hatch = time_machine.escape_hatch
                # Before its first travel, time-machine 2 ends the process if it is asked for the time.
                if hatch.is_travelling():
                    original: float = hatch.time.time()
                    return original
            except (AttributeError, ValueError):
                pass  # it is being imported, or another thread has just ended its travel
        return self._wall()

    def __repr__(self) -> str:
        return "<RealClock>"
