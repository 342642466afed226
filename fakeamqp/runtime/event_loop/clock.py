"""The clock of an event loop."""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop

from fakeamqp.runtime.clock.real import RealClock

__all__ = ["LoopClock"]


class LoopClock(RealClock):
    """Follows `loop.time()`, which a simulation moves as it likes. It stands still while it has no loop.

    `now()` begins at 0.0, and continues where it was when the broker starts again in another loop.
    """

    def __init__(self) -> None:
        self._started_at = _wall_time_of(asyncio._get_running_loop())
        """Wall time at `now()` 0.0."""
        self._now = 0.0
        self._loop: AbstractEventLoop | None = None
        self._offset = 0.0

    def attach(self, loop: AbstractEventLoop) -> None:
        """Follow a loop from now on."""
        if self._loop is None and not self._now:
            self._started_at = _wall_time_of(loop)
        self._loop = loop
        self._offset = self._now - loop.time()

    def detach(self) -> None:
        """Stand still."""
        self._now = self.now()
        self._loop = None

    def now(self) -> float:
        """Seconds of the loop's time since the broker was first started."""
        loop = self._loop
        return self._now if loop is None else self._offset + loop.time()

    def time(self) -> float:
        """Wall time in seconds since the epoch: that of the first start, and what has passed on the loop's
        clock since then.
        """
        return self._started_at + self.now()

    def __repr__(self) -> str:
        return f"<LoopClock {self.now():g}>"


def _wall_time_of(loop: AbstractEventLoop | None) -> float:
    """Seconds since the epoch. A simulation has a wall clock of its own."""
    found: float = getattr(loop, "wall_time", RealClock().time)()
    return found
