"""The wall clock: what `datetime.now()` returns in the code under test, frozen or not."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from fakeamqp.runtime.clock import wall_clock_hooks
from fakeamqp.runtime.clock.real import RealClock
from fakeamqp.runtime.clock.stepped import SteppedClock, seconds_in_words
from fakeamqp.runtime.clock.wall_time import LIBRARIES, read

if TYPE_CHECKING:
    from fakeamqp.runtime.clock.interface import TimerQueue
    from fakeamqp.runtime.clock.stepped import Settle

__all__ = ["WallClock"]

_SECOND = 1_000_000_000
# The interval at which the loop reads a wall clock that a test may move without a hook, in real seconds.
_POLL_SECONDS = 0.015
# How long frozen time must have ended before the clock follows to the present, unless an access comes first.
_LEFT_SECONDS = 0.25


class WallClock(SteppedClock):
    """Moves forward with the wall clock, which is real or controlled by freezegun or time-machine.

    `time()` is the wall clock's time. If that goes back, no time passes.

    Between two freezes the wall clock is real for a moment. This counts only if the broker is accessed, or if
    it lasts: otherwise a test that freezes twice would see time move to the present and back.
    """

    def __init__(self) -> None:
        self._real = RealClock()
        self._reading = read()
        self._passed = 0
        """Nanoseconds by which the wall clock has moved forward so far."""
        self._continuous = True
        self._left_at: float | None = None
        self._settle: Settle | None = None
        super().__init__(self._reading.wall / _SECOND)

    @property
    def rate(self) -> float:
        """1.0, or 0.0 while the wall clock stands still."""
        return 1.0 if self._reading.runs else 0.0

    @property
    def holds_peers(self) -> bool:
        """Heartbeat timeouts apply only while the wall clock is the real one, since clients use real time."""
        return self.strict or self._continuous

    def _due_instant(self, noticed: bool) -> float:
        if self._settle is not None and wall_clock_hooks.missing():
            wall_clock_hooks.install()
        reading, former = read(), self._reading
        if (
            reading.controller is None
            and former.controller is not None
            and not noticed
            and not self._left_for_good()
        ):
            return self._now
        self._left_at = None
        self._reading = reading
        self._continuous = reading.controller is None and former.controller is None
        self._passed += max(0, reading.wall - former.wall)
        instant = self._passed / _SECOND
        self._wall = reading.wall / _SECOND - instant
        return instant

    def _left_for_good(self) -> bool:
        now = self._real.now()
        if self._left_at is None:
            self._left_at = now
        return now - self._left_at >= _LEFT_SECONDS

    def sleep(self, timers: TimerQueue) -> float | None:
        """Real seconds until the next timer, or until the wall clock must be read again."""
        due = timers.next_due()
        if due is None:
            return None
        timeout = max(0.0, due - self._now) if self._reading.runs else None
        tampering = any(name in sys.modules for name in LIBRARIES)
        if tampering and (timeout is None or timeout > _POLL_SECONDS) and self.awaited(timers) is not None:
            return _POLL_SECONDS
        return timeout

    def attach(self, settle: Settle) -> None:
        """Install hooks that call `settle` when a test moves the wall clock."""
        self._settle = settle
        wall_clock_hooks.add(settle)

    def detach(self) -> None:
        """Undo `attach`."""
        if self._settle is not None:
            wall_clock_hooks.remove(self._settle)
            self._settle = None

    # -- hints

    def state_in_words(self) -> str:
        """Describes a wall clock that stands still; otherwise ""."""
        if self._reading.runs:
            return ""
        return (
            f"The broker follows the wall clock, which {self._reading.library} holds still; "
            f"{seconds_in_words(self.elapsed)} s have passed on it so far"
        )

    def way_to_move(self, seconds: float) -> str:
        """The call that moves the clock."""
        if self._reading.library == "freezegun":
            return f"freezer.tick({seconds_in_words(seconds)})"
        return f"time_machine.shift({seconds_in_words(seconds)})"
