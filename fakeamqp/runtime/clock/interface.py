"""The interfaces of clocks and timers that the runtime uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

__all__ = ["ClockTimer", "EngineClock", "TimerQueue"]


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
