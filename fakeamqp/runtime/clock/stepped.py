"""Time that moves in steps: what virtual time and the wall clock's time have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from fakeamqp.runtime.errors import ClockError

if TYPE_CHECKING:
    from fakeamqp.runtime.clock.interface import Timer, TimerQueue

__all__ = ["MARGIN", "SteppedClock", "seconds_in_words"]

Settle: TypeAlias = "Callable[[], None]"
"""Has an engine deal with all that has arrived and follow its clock. Any thread may call it."""

# Sums of instants are not exact. What is due within a nanosecond of where time is moved is due.
MARGIN = 1e-9
_MICROSECONDS = 6
_NANOSECONDS = 9


class SteppedClock:
    """Time that stands still but for steps, which the engine takes.

    `now()` begins at 0.0 and stays put while a turn of the loop lasts, so that whatever happens in a turn
    happens at one instant. A step to an instant runs the timers that are due by then in their order, each at
    its own due instant.

    All but `now` and `time` needs the engine's lock.
    """

    autojump: float | None = None
    """Real seconds of idleness after which time jumps; None: it never does."""

    def __init__(self, wall: float) -> None:
        self._now = 0.0
        self._began = 0.0
        self._wall = wall
        """Wall time when `now()` was 0.0, or would have been."""
        self._heading = 0.0
        self._held_since = 0.0
        self._moving = False
        #: Whether clients are held to this clock even where their own is another.
        self.strict = False
        #: Whether a test is moving time by so many seconds just now, and not something else in its stead.
        self.by_hand = False

    # -- what the model asks

    def now(self) -> float:
        """Seconds since the clock was made."""
        return self._now

    def time(self) -> float:
        """Wall time in seconds since the epoch, in whole microseconds."""
        return round(self._wall + self._now, _MICROSECONDS)

    @property
    def holds_peers(self) -> bool:
        """Whether the silence of clients counts on this clock."""
        return self.strict

    @property
    def holds_newcomers(self) -> bool:
        """Whether a handshake has to end in time on this clock: also where a test moves it by hand."""
        return self.holds_peers or self.by_hand

    def held_since(self) -> float:
        """Where the last step ended in which the silence of clients did not count."""
        return self._held_since

    def heading(self) -> float:
        """Where the step that is under way leads; `now()` when there is none."""
        return self._heading if self._moving else self._now

    def remark(self, timers: TimerQueue) -> str:
        """What this clock may have to do with it that something did not come about."""
        state = self.state_in_words()
        if not state:
            return ""
        timer = self.awaited(timers)
        if timer is None:
            return f"{state}. No timer is pending that more time would run."
        left = timer.due - self._now
        way = self.way_to_move(left)
        then = f": {way}" if way else ""
        return f"{state}. Next, {timer.words} in {seconds_in_words(left)} s{then}"

    # -- steps

    @property
    def rate(self) -> float:
        """Seconds that pass here in a real one."""
        raise NotImplementedError

    @property
    def elapsed(self) -> float:
        """Seconds that have passed since the clock was made or reset."""
        return round(self._now - self._began, _NANOSECONDS)

    def step_to(
        self, instant: float, timers: TimerQueue, failed: Callable[[str, BaseException], None]
    ) -> None:
        """Move to `instant`, running what is due on the way; never back.

        An exception from a timer is handed to `failed`, and the step goes on.

        Raises:
            ClockError: a step is under way, and one of its timers asks for another.
        """
        if self._moving:
            raise ClockError("time is being moved already, and a timer that runs meanwhile cannot move it")
        self._moving = True
        self._heading = max(instant, self._now)
        try:
            while (due := timers.next_due()) is not None and due <= instant + MARGIN:
                if due > self._now:
                    self._now = due
                try:
                    timers.run_due()
                except Exception as error:  # the one timer is gone, the others are still due
                    failed("timer", error)
            if instant > self._now:
                self._now = instant
        finally:
            self._moving = False
            if not self.holds_peers:
                self._held_since = self._now

    def follow(
        self,
        timers: TimerQueue,
        failed: Callable[[str, BaseException], None],
        *,
        noticed: bool = True,
    ) -> None:
        """Move to where this clock should be by now. `noticed`: somebody is about to see or do something.

        Does nothing while a step is under way.
        """
        if self._moving:
            return
        instant = self._due_instant(noticed)
        if instant > self._now:
            self.step_to(instant, timers, failed)

    def reset(self) -> None:
        """Count from the beginning again; `now()` goes on."""
        self._began = self._now
        self.strict = False

    # -- what differs

    def _due_instant(self, noticed: bool) -> float:
        """Where `now()` should be by now."""
        return self._now

    def sleep(self, timers: TimerQueue) -> float | None:
        """Real seconds until the loop must look again; None when only others can cause anything."""
        raise NotImplementedError

    def seconds_until(self, due: float) -> float | None:
        """See `EngineClock`: nothing is known of a single instant, `sleep` knows more."""
        return 0.0 if due <= self._now else None

    def state_in_words(self) -> str:
        """What a waiting test ought to know about this clock; "" when time just passes."""
        raise NotImplementedError

    def way_to_move(self, seconds: float) -> str:
        """How a test makes `seconds` pass, as code; "" when it need not."""
        raise NotImplementedError

    def attach(self, settle: Settle) -> None:
        """An engine that lives on this clock has started."""

    def detach(self) -> None:
        """The engine has stopped."""

    # -- jumps of an idle broker

    def stirred(self) -> None:
        """Something has happened: the broker is not idle."""

    def jump(self, timers: TimerQueue) -> float | None:
        """Where to jump to because the broker has been idle for long enough; None when it has not."""
        return None

    def not_idle(self) -> None:
        """It was time to jump, but the broker has something to do."""

    def moved(self) -> None:
        """Time was moved by hand: what passes by itself goes on from here."""

    # -- helpers

    @staticmethod
    def awaited(timers: TimerQueue, *, housekeeping: bool = False) -> Timer | None:
        """The next timer for whose sake time may be moved, or the very next one."""
        return next((timer for timer in timers.pending() if housekeeping or not timer.housekeeping), None)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} +{self.elapsed:g} s>"


def seconds_in_words(seconds: float) -> str:
    """Seconds rounded up to a millisecond, without idle zeros: moving by so much suffices."""
    milliseconds = max(0, -int(-(seconds * 1000 - 1e-6) // 1))
    return f"{milliseconds / 1000:.3f}".rstrip("0").rstrip(".")
