"""The virtual clock: a test moves its time."""

from __future__ import annotations

from fakeamqp.runtime.clock import RealClock
from fakeamqp.runtime.clock.stepped import LATEST, SteppedClock, seconds_in_words

# The pause before the next check of a broker that was not idle when it could have jumped, in real seconds.
_NOT_IDLE_SECONDS = 0.01


class VirtualClock(SteppedClock):
    """Stands still until a test moves it, unless `rate` or `autojump` is set.

    It begins at the wall time `start`, in seconds since the epoch; None is the present.
    """

    def __init__(self, start: float | None = None) -> None:
        self._start = start
        super().__init__(self._start_time())
        self._rate = 0.0
        self.autojump: float | None = None
        self._based = (0.0, 0.0)
        """An instant of this clock and the same one of real time, from which time runs at `rate`."""
        self._jump_at = 0.0

    def _start_time(self) -> float:
        return round(RealClock().time() if self._start is None else self._start, 6)

    def reset(self) -> None:
        super().reset()
        self._wall = self._start_time() - self._now
        self._rate = 0.0
        self.autojump = None

    # -- running by itself

    @property
    def rate(self) -> float:
        """Virtual seconds per real second; 0.0 while time stands still."""
        return self._rate

    @rate.setter
    def rate(self, rate: float) -> None:
        self._rate = rate
        self._based = (self._now, RealClock.now())

    def _due_instant(self, noticed: bool) -> float:
        if not self._rate:
            return self._now
        instant, real = self._based
        return min(self._last, instant + (RealClock.now() - real) * self._rate)

    @property
    def _last(self) -> float:
        """The end of the year 9999: a running clock stops there."""
        return LATEST - self._wall

    def moved(self) -> None:
        self._based = (self._now, RealClock.now())

    # -- jumping when idle

    def note_activity(self) -> None:
        if self.autojump is not None:
            self._jump_at = RealClock.now() + self.autojump

    def not_idle(self) -> None:
        self._jump_at = RealClock.now() + max(self.autojump or 0.0, _NOT_IDLE_SECONDS)

    def jump(self) -> float | None:
        if self.autojump is None or RealClock.now() < self._jump_at:
            return None
        timer = self.awaited()
        return None if timer is None or timer.due > self._last else timer.due

    def sleep(self) -> float | None:
        timeout = None
        if self._rate and (due := self.timers.next_due()) is not None:
            timeout = max(0.0, (due - self._due_instant(True)) / self._rate)
        if self.autojump is not None and (timer := self.awaited()) and timer.due <= self._last:
            until_jump = max(0.0, self._jump_at - RealClock.now())
            timeout = until_jump if timeout is None else min(timeout, until_jump)
        return timeout

    # -- hints

    def state_in_words(self) -> str:
        if self._rate:
            pace = f"runs {self._rate:g} times as fast as real time"
        elif self.autojump is not None:
            pace = f"jumps when the broker has been idle for {self.autojump:g} s"
        else:
            pace = "stands still until the test moves it"
        return f"Time is virtual and {pace}; it has been moved by {seconds_in_words(self.elapsed)} s so far"

    def way_to_move(self, seconds: float) -> str:
        return f"broker.clock.advance({seconds_in_words(seconds)})"
