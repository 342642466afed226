"""What the runtime asks of clocks and timers, whatever they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

__all__ = ["EngineClock", "Timer", "TimerQueue"]


class Timer(Protocol):
    """A timer that can be called off."""

    @property
    def due(self) -> float:
        """The instant at which it runs."""
        ...

    @property
    def housekeeping(self) -> bool:
        """Whether nobody moves time for its sake."""
        ...

    @property
    def awaits_peer(self) -> bool:
        """Whether it is cancelled as soon as a client has done its next step."""
        ...

    @property
    def words(self) -> str:
        """What it is for."""
        ...

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

    def pending(self) -> Iterator[Timer]:
        """What is still to run, in that order."""
        ...

    def run_due(self) -> int:
        """Run what is due."""
        ...


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
