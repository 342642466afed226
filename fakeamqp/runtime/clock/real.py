"""The interfaces of clocks, and the real clock: the machine's time, even if a test has frozen it.

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
from collections.abc import Callable, Iterator
from typing import Protocol

__all__ = ["ClockTimer", "EngineClock", "RealClock", "TimerQueue"]


class ClockTimer(Protocol):
    """A timer that can be cancelled."""

    @property
    def due(self) -> float:
        """The instant at which it is due."""
        ...

    @property
    def housekeeping(self) -> bool:
        """Whether a test that moves time to the next timer skips it."""
        ...

    @property
    def awaits_peer(self) -> bool:
        """Whether the next step of a client cancels it."""
        ...

    @property
    def words(self) -> str:
        """A description, for reports."""
        ...

    def cancel(self) -> None:
        """Cancel the timer."""
        ...


class TimerQueue(Protocol):
    """The timers of one clock, as the runtime sees them."""

    def call_at(self, due: float, callback: Callable[[], object], label: str = ...) -> ClockTimer:
        """Call `callback()` when the clock reaches `due`."""
        ...

    def next_due(self) -> float | None:
        """The earliest instant at which a timer is due, or None."""
        ...

    def pending(self) -> Iterator[ClockTimer]:
        """The pending timers, in the order in which they are due."""
        ...

    def run_due(self, pauses: Callable[[], bool] | None = None, until: float = ...) -> int:
        """Run the timers that are due by `until`, or up to the one after which `pauses()` is true.

        Returns how many ran.
        """
        ...


class EngineClock(Protocol):
    """The clock interface of the engine."""

    def now(self) -> float:
        """The instant that timers are compared with: seconds, never going back."""
        ...

    def time(self) -> float:
        """Wall time in seconds since the epoch."""
        ...

    def seconds_until(self, due: float) -> float | None:
        """How long, in real seconds, the loop may sleep before it checks whether `due` is reached.

        None if only a test moves this clock.
        """
        ...


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


class RealClock:
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

    def seconds_until(self, due: float) -> float:
        """Seconds until `now()` reaches `due`, at least 0.0."""
        return max(0.0, due - self.now())

    @property
    def holds_peers(self) -> bool:
        """Clients use this time as well."""
        return True

    @property
    def holds_newcomers(self) -> bool:
        """Connecting clients use this time as well."""
        return True

    def held_since(self) -> float:
        """Heartbeat timeouts have always applied."""
        return float("-inf")

    def heading(self) -> float:
        """`now()`, because nothing moves this clock."""
        return self.now()

    def hint(self, _timers: TimerQueue) -> str:
        """Always "", because this clock runs by itself."""
        return ""

    def __repr__(self) -> str:
        return "<RealClock>"
