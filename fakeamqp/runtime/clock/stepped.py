"""Stepped clocks: the base of the virtual clock and the wall clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from fakeamqp.model.timers import TimeSource
from fakeamqp.runtime.errors import ClockError

if TYPE_CHECKING:
    from fakeamqp.model.timers import Timer, Timers

Settle: TypeAlias = "Callable[[], None]"
"""Has an engine process all input and follow its clock. Any thread may call it."""

LATEST = 253_402_300_799.0
"""The last second of the year 9999, in seconds since the epoch: a datetime cannot be later."""

# Sums of instants are not exact: a timer within a nanosecond of the new time is due.
MARGIN = 1e-9
_MICROSECONDS = 6
_NANOSECONDS = 9


class SteppedClock(TimeSource):
    """A clock that stands still between steps; the engine makes the steps.

    `now()` begins at 0.0 and does not change during a turn of the loop, so that all events of a turn have the
    same time. A step to an instant runs the due timers in order, each at its own due time.

    All methods except `now` and `time` require the engine's lock. The engine sets `timers`, and `failed`,
    which takes an exception of a timer.
    """

    timers: Timers
    failed: Callable[[str, BaseException], None]
    autojump: float | None = None
    """Real seconds of idleness after which time jumps to the next timer; None for never."""

    def __init__(self, wall: float) -> None:
        self._now = 0.0
        self._began = 0.0
        self._wall = wall
        """Wall time at `now()` 0.0."""
        self._heading = 0.0
        self._held_since = 0.0
        #: Whether a step is under way.
        self.moving: bool = False
        #: Whether heartbeat timeouts use this clock although clients use another.
        self.strict: bool = False
        #: Whether a test is moving time at the moment with a method of `Clock`.
        self.by_hand = False

    # -- the interface of the model

    def now(self) -> float:
        """Seconds since the clock was created."""
        return self._now

    def time(self) -> float:
        """Wall time in seconds since the epoch, in whole microseconds."""
        return round(self._wall + self._now, _MICROSECONDS)

    @property
    def holds_peers(self) -> bool:
        """Whether heartbeat timeouts of clients use this clock."""
        return self.strict

    @property
    def holds_newcomers(self) -> bool:
        """Whether handshake timeouts use this clock; they also do while a test moves it."""
        return self.holds_peers or self.by_hand

    def held_since(self) -> float:
        """The end of the last step without heartbeat timeouts."""
        return self._held_since

    def heading(self) -> float:
        """The end of the current step, or `now()`."""
        return self._heading if self.moving else self._now

    def hint(self) -> str:
        """A hint for a wait that timed out because this clock stands still; "" if there is none."""
        state = self.state_in_words()
        if not state:
            return ""
        timer = self.awaited()
        if timer is None:
            return f"{state}. No timer is pending that more time would run."
        left = timer.due - self._now
        way = self.way_to_move(left)
        then = f": {way}" if way else ""
        return f"{state}. Next, {timer.words} in {seconds_in_words(left)} s{then}"

    # -- steps

    @property
    def rate(self) -> float:
        """Seconds that pass per real second."""
        raise NotImplementedError

    @property
    def elapsed(self) -> float:
        """Seconds that have passed since the clock was created or reset."""
        return round(self._now - self._began, _NANOSECONDS)

    def step_to(self, instant: float, between: Callable[[], None] | None = None) -> None:
        """Move forward to `instant`, and run the timers that are due on the way.

        `between` is called after each timer; what peers do meanwhile happens at the time of this timer. A
        timer that runs in a step cannot call this.
        """
        if self.moving:
            raise ClockError("time is moving already; a timer that runs meanwhile cannot move it")
        self._heading = max(instant, self._now)
        try:
            self.moving = True  # Inside, since an exception of a signal handler may come anywhere.
            while (due := self.timers.next_due()) is not None and due <= instant + MARGIN:
                if due > self._now:
                    self._now = due
                try:
                    self.timers.run_due(None if between is None else _always)
                except Exception as error:  # this timer is removed; the others are still due
                    self.failed("timer", error)
                if between is not None:
                    between()
            if instant > self._now:
                self._now = instant
        finally:
            self.moving = False
            if not self.holds_peers:
                self._held_since = self._now

    def follow(self, *, noticed: bool = True, between: Callable[[], None] | None = None) -> None:
        """Move to the instant where this clock should be, as `step_to` does.

        `noticed` says that the broker is being accessed. Does nothing during a step.
        """
        if self.moving:
            return
        instant = self._due_instant(noticed)
        if instant > self._now:
            self.step_to(instant, between)

    def reset(self) -> None:
        """Restart `elapsed`; `now()` continues."""
        self._began = self._now
        self.strict = False

    # -- the interface of subclasses

    def _due_instant(self, noticed: bool) -> float:
        """The value that `now()` should have."""
        return self._now

    def sleep(self) -> float | None:
        """Real seconds that the loop may sleep; None if only input or a test can cause work."""
        raise NotImplementedError

    def state_in_words(self) -> str:
        """A description of this clock for a test that waits; "" if time passes by itself."""
        raise NotImplementedError

    def way_to_move(self, seconds: float) -> str:
        """The code with which a test makes `seconds` pass; "" if it need not."""
        raise NotImplementedError

    def attach(self, settle: Settle) -> None:
        """An engine with this clock has started."""

    def detach(self) -> None:
        """The engine has stopped."""

    # -- jumps of an idle broker

    def note_activity(self) -> None:
        """The broker was active: it is not idle."""

    def jump(self) -> float | None:
        """The instant to jump to if the broker has been idle for long enough; otherwise None."""
        return None

    def not_idle(self) -> None:
        """Postpone a jump, because the broker is not idle."""

    def moved(self) -> None:
        """A test has moved time: continue from here."""

    # -- helpers

    def awaited(self, *, housekeeping: bool = False) -> Timer | None:
        """The next timer for whose sake time may be moved, or the very next one."""
        return next(
            (timer for timer in self.timers.pending() if housekeeping or not timer.housekeeping), None
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} +{self.elapsed:g} s>"


def _always() -> bool:
    return True


def seconds_in_words(seconds: float) -> str:
    """Seconds rounded up to a millisecond, without trailing zeros."""
    milliseconds = max(0, -int(-(seconds * 1000 - 1e-6) // 1))
    return f"{milliseconds / 1000:.3f}".rstrip("0").rstrip(".")
