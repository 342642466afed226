"""The wall clock's time: what `datetime.now()` says to the code under test, frozen or not."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from fakeamqp.runtime.clock import hooks
from fakeamqp.runtime.clock.real import RealClock
from fakeamqp.runtime.clock.stepped import SteppedClock, seconds_in_words
from fakeamqp.runtime.clock.worlds import LIBRARIES, read

if TYPE_CHECKING:
    from fakeamqp.runtime.clock.interface import TimerQueue
    from fakeamqp.runtime.clock.stepped import Settle

__all__ = ["WallClock"]

_SECOND = 1_000_000_000
# How often to look at a wall clock that a test may move unseen, in real seconds.
_POLL_SECONDS = 0.015
# How long a frozen world must have been left until that counts, unless somebody notices before.
_LEFT_SECONDS = 0.25


class WallClock(SteppedClock):
    """Passes when the wall clock moves forward, be it real, frozen by freezegun or led by time-machine.

    `time()` is what the wall clock says. When that goes back, no time passes.

    Between two frozen worlds there is a moment of the real one. It counts only if somebody does something in
    it, or if it lasts: otherwise a test that freezes twice would see time go to the present and back.
    """

    def __init__(self) -> None:
        self._real = RealClock()
        self._reading = read()
        self._passed = 0
        """Nanoseconds by which the wall clock has moved forward."""
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
        """Clients live by the real world's time: their silence counts only there."""
        return self.strict or self._continuous

    def _due_instant(self, noticed: bool) -> float:
        if self._settle is not None and hooks.missing():
            hooks.install()
        reading, former = read(), self._reading
        if reading.world is None and former.world is not None and not noticed and not self._left_for_good():
            return self._now
        self._left_at = None
        self._reading = reading
        self._continuous = reading.world is None and former.world is None
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
        """Real seconds until the next timer, or until the wall clock may have been moved for it."""
        due = timers.next_due()
        if due is None:
            return None
        timeout = max(0.0, due - self._now) if self._reading.runs else None
        tampering = any(name in sys.modules for name in LIBRARIES)
        if tampering and (timeout is None or timeout > _POLL_SECONDS) and self.awaited(timers) is not None:
            return _POLL_SECONDS
        return timeout

    def attach(self, settle: Settle) -> None:
        """Have the engine told when a test moves the wall clock."""
        self._settle = settle
        hooks.add(settle)

    def detach(self) -> None:
        """Undo `attach`."""
        if self._settle is not None:
            hooks.remove(self._settle)
            self._settle = None

    # -- words

    def state_in_words(self) -> str:
        """That the wall clock stands still, where it does."""
        if self._reading.runs:
            return ""
        return (
            f"The broker follows the wall clock, which {self._reading.library} holds still; "
            f"{seconds_in_words(self.elapsed)} s have passed on it so far"
        )

    def way_to_move(self, seconds: float) -> str:
        """The call that does it."""
        if self._reading.library == "freezegun":
            return f"freezer.tick({seconds_in_words(seconds)})"
        return f"time_machine.shift({seconds_in_words(seconds)})"
