"""`Clock`: the public handle of a broker's clock."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import takewhile
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from fakeamqp.blocking import blocking
from fakeamqp.errors import nearest
from fakeamqp.lazy import raise_if_renamed
from fakeamqp.runtime.clock import RealClock
from fakeamqp.runtime.clock.stepped import LATEST, MARGIN, SteppedClock, seconds_in_words
from fakeamqp.runtime.errors import ClockError, NothingPending

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fakeamqp.model.timers import Timer
    from fakeamqp.runtime.clock.virtual import VirtualClock
    from fakeamqp.runtime.engine import Engine

Mode: TypeAlias = Literal["real", "virtual", "wall"]
MODES: tuple[Mode, ...] = ("real", "virtual", "wall")

Instant: TypeAlias = "datetime | float"
"""A point in time: a datetime (a naive one is UTC), or seconds since the epoch."""

Heartbeats: TypeAlias = Literal["lenient", "strict"]

# How long new clients may finish their handshake before time moves past its timeout, in real seconds.
_MOMENT = 0.5

_MAKE_IT_VIRTUAL = (
    "create the broker with clock='virtual' (in pytest: use the fixture amqp_clock, "
    "or mark the test with @pytest.mark.amqp(clock='virtual'); fakeamqp serve: --clock virtual)"
)
_MOVE_THE_WALL = (
    "move the wall clock instead, with freezegun's tick() or move_to(), or time-machine's shift()"
)


@dataclass(frozen=True)
class TimerView:
    """One pending timer.

    Attributes:
        due_in: seconds of the broker's time until it runs.
        words: what it does, such as "q 'retry.5s' expires 3 messages".
        housekeeping: whether it recurs as long as clients are connected, as heartbeats do. `advance_to_next`
            and `autojump` skip such timers.
    """

    due_in: float
    words: str
    housekeeping: bool = False

    def __str__(self) -> str:
        return f"{self.words} in {seconds_in_words(self.due_in)} s"


class Clock:
    """A broker's clock: `broker.clock`. Its mode determines what the test can do.

    - "real": the machine's time, even if the test has frozen it. It is read-only. - "virtual": stands still
    until the test moves it with the methods of this class. - "wall": follows what `datetime.now()` returns in
    the code under test; freezegun and time-machine move it.

    Any thread may use it.
    """

    if not TYPE_CHECKING:
        __getattr__ = raise_if_renamed

    def __init__(self, engine: Engine, mode: Mode) -> None:
        self._engine = engine
        self._mode: Mode = mode

    # --- reading ---------------------------------------------------------------------------------------

    @property
    def mode(self) -> Mode:
        """The mode: "real", "virtual" or "wall"."""
        return self._mode

    def time(self) -> float:
        """The broker's time, in seconds since the epoch."""
        with self._engine:
            return self._engine.clock.time()

    def now(self) -> datetime:
        """The broker's time, as an aware datetime in UTC."""
        return datetime.fromtimestamp(self.time(), timezone.utc)

    @property
    def elapsed(self) -> float:
        """Seconds of the broker's time since it was created or reset.

        Raises:
            ClockError: the clock is real.
        """
        with self._engine:
            return self._stepped("elapsed", "use time() or a stopwatch").elapsed

    @property
    def timers(self) -> tuple[TimerView, ...]:
        """The pending timers, soonest first: expiries, timeouts, heartbeats and others."""
        engine = self._engine
        with engine:
            now = engine.clock.now()
            return tuple(_view(timer, now) for timer in engine.timers.pending())

    def __repr__(self) -> str:
        engine = self._engine
        with engine:
            moved = "" if engine.stepped is None else f" +{seconds_in_words(engine.stepped.elapsed)} s"
            timer = next((each for each in engine.timers.pending() if not each.housekeeping), None)
            following = "" if timer is None else f", next: {_view(timer, engine.clock.now())}"
        return f"<Clock {self._mode}{moved}{following}>"

    # --- moving ----------------------------------------------------------------------------------------

    @blocking
    def advance(self, seconds: float | timedelta, *, heartbeats: Heartbeats | None = None) -> None:
        """Move time forward.

        The broker first processes what clients have sent, at the old time. Then all due timers run in order,
        each at its own due time. Their output has been sent when this returns. If that takes long, what
        clients send meanwhile is processed between two timers, at the time of the former.

        Args:
            seconds: 0 or more, or a timedelta.
            heartbeats: "strict" disconnects clients that have been silent for two to three heartbeat
                intervals of this clock. "lenient" does not, since clients run on real time. Default: the
                attribute `heartbeats`.

        Clients that are connecting get a moment of real time to finish before time moves past the timeout of
        their handshake; those that do not finish are disconnected.

        Raises:
            ClockError: the clock is not virtual, `seconds` is negative, or the time is after the year 9999.
        """
        if isinstance(seconds, timedelta):
            seconds = seconds.total_seconds()
        distance = finite(seconds, "seconds")
        with self._engine, self._moving("advance()", heartbeats) as clock:
            check_year(clock.time() + distance, f"advance({seconds_in_words(distance)})")
            self._move(clock, clock.now() + distance)

    @blocking
    def advance_to(self, when: Instant, *, heartbeats: Heartbeats | None = None) -> None:
        """`advance` to a point in time: a datetime (a naive one is UTC), or seconds since the epoch.

        Raises:
            ClockError: the clock is not virtual, `when` has passed, or is after the year 9999.
        """
        wall = seconds_since_epoch(when, "when")
        with self._engine, self._moving("advance_to()", heartbeats) as clock:
            # A float of this size is exact to half a microsecond, and that must not make time fall short.
            distance = round(wall - clock.time(), 6)
            if distance < 0:
                raise ClockError(
                    f"advance_to({when!r}): time cannot go back, and it is {self.now().isoformat()} already"
                )
            self._move(clock, clock.now() + distance)

    @blocking
    def advance_to_next(self, *, heartbeats: Heartbeats | None = None) -> float:
        """`advance` to the next timer, and run all timers that are due then. Returns the seconds that passed.

        Heartbeats and other housekeeping timers of connections are skipped, unless `heartbeats` is "strict".

        Raises:
            NothingPending: no timer is pending.
            ClockError: the clock is not virtual, or the timer is due after the year 9999.
        """
        with self._engine, self._moving("advance_to_next()", heartbeats) as clock:
            timer = clock.awaited(housekeeping=clock.strict)
            if timer is None:
                raise NothingPending(self._nothing_pending(clock))
            before = clock.now()
            check_year(clock.time() + timer.due - before, f"advance_to_next(): {timer.words!r}")
            self._move(clock, timer.due)
            return round(clock.now() - before, 9)

    @advance.coroutine
    async def _advance_coroutine(
        self, seconds: float | timedelta, *, heartbeats: Heartbeats | None = None
    ) -> None:
        """`advance` for coroutines: it does not block the event loop.

        If the broker runs in the event loop, what clients have sent is processed before, and what came of it
        has reached them when this returns.
        """
        await self._engine.call_async(lambda: self.advance(seconds, heartbeats=heartbeats))

    @advance_to.coroutine
    async def _advance_to_coroutine(self, when: Instant, *, heartbeats: Heartbeats | None = None) -> None:
        await self._engine.call_async(lambda: self.advance_to(when, heartbeats=heartbeats))

    @advance_to_next.coroutine
    async def _advance_to_next_coroutine(self, *, heartbeats: Heartbeats | None = None) -> float:
        return await self._engine.call_async(lambda: self.advance_to_next(heartbeats=heartbeats))

    @contextmanager
    def _moving(self, method: str, heartbeats: Heartbeats | None) -> Iterator[VirtualClock]:
        """For use inside the engine: all input is processed first. Heartbeats are strict or lenient."""
        clock = self._virtual(method)
        strict = clock.strict if heartbeats is None else _is_strict(heartbeats)
        self._engine.take_input()
        before, clock.strict = clock.strict, strict
        try:
            yield clock
        finally:
            clock.strict = before

    def _move(self, clock: VirtualClock, instant: float) -> None:
        engine = self._engine
        if self._awaited_peers(instant):
            engine.give_peers_time(lambda: not self._awaited_peers(instant), _MOMENT)
        clock.by_hand = True
        try:
            with engine.in_slices() as between:
                clock.step_to(instant, between)
        finally:
            clock.by_hand = False
        clock.moved()
        engine.flush()

    def _awaited_peers(self, instant: float) -> bool:
        """Whether a timer before this instant waits for a client."""
        soon = takewhile(lambda timer: timer.due <= instant + MARGIN, self._engine.timers.pending())
        return any(timer.awaits_peer for timer in soon)

    def _nothing_pending(self, clock: SteppedClock) -> str:
        housekeeping = [timer.words for timer in self._engine.timers.pending()]
        text = f"no timer is pending: nothing in the broker waits for time to pass. {clock.state_in_words()}"
        if not housekeeping:
            return f"{text}."
        more = f" and {len(housekeeping) - 1} more" if len(housekeeping) > 1 else ""
        left = f"Only housekeeping timers are left ({housekeeping[0]}{more})"
        return f"{text}. {left}; heartbeats='strict' goes to these."

    # --- running by itself -----------------------------------------------------------------------------

    @property
    def rate(self) -> float:
        """Seconds that pass per real second. It can be set on a virtual clock; 0 stops the time.

        Raises:
            ClockError: set to a negative number, or on a clock that is not virtual.
        """
        with self._engine:
            stepped = self._engine.stepped
            return 1.0 if stepped is None else stepped.rate

    @rate.setter
    def rate(self, rate: float) -> None:
        clock = self._virtual("rate")
        value = finite(rate, "rate")
        with self._engine:
            clock.rate = value

    @property
    def autojump(self) -> float | None:
        """Real seconds of idleness after which a virtual clock jumps to its next timer; None for never.

        The broker is idle if it has no input, no pending output and no due timer. The clock does not jump to
        heartbeats and other housekeeping timers.

        Raises:
            ClockError: set to a negative number, or on a clock that is not virtual.
        """
        stepped = self._engine.stepped
        return None if stepped is None else stepped.autojump

    @autojump.setter
    def autojump(self, seconds: float | None) -> None:
        clock = self._virtual("autojump")
        value = None if seconds is None else finite(seconds, "autojump")
        with self._engine:
            clock.autojump = value
            clock.note_activity()

    @property
    def heartbeats(self) -> Heartbeats:
        """Whether heartbeat timeouts use this clock ("strict") or only real time ("lenient").

        On a real clock they are always strict. On other clocks the default is "lenient".

        Raises:
            ClockError: set to another value, or on a real clock.
        """
        stepped = self._engine.stepped
        return "strict" if stepped is None or stepped.strict else "lenient"

    @heartbeats.setter
    def heartbeats(self, heartbeats: Heartbeats) -> None:
        strict = _is_strict(heartbeats)
        with self._engine:
            self._stepped("heartbeats", _MAKE_IT_VIRTUAL).strict = strict

    # --- modes -----------------------------------------------------------------------------------------

    def _stepped(self, what: str, remedy: str) -> SteppedClock:
        stepped = self._engine.stepped
        if stepped is None:
            raise ClockError(f"clock.{what} has no meaning on real time; {remedy}")
        return stepped

    def _virtual(self, what: str) -> VirtualClock:
        if self._mode == "virtual":
            return cast("VirtualClock", self._engine.stepped)
        if self._mode == "wall":
            raise ClockError(f"clock.{what}: this broker follows the wall clock; {_MOVE_THE_WALL}")
        raise ClockError(f"clock.{what}: this broker uses real time; {_MAKE_IT_VIRTUAL}")


def _view(timer: Timer, now: float) -> TimerView:
    return TimerView(max(0.0, timer.due - now), timer.words, timer.housekeeping)


def _is_strict(heartbeats: str) -> bool:
    if heartbeats not in ("lenient", "strict"):
        raise ClockError(f"heartbeats={heartbeats!r} must be 'lenient' or 'strict'")
    return heartbeats == "strict"


def clock_of(mode: str, now: Instant | None = None) -> RealClock | SteppedClock:
    """A clock of this mode; `now` is the initial time of a virtual clock. Raises ClockError."""
    if mode not in MODES:
        near = nearest(mode, MODES)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, MODES))}"
        raise ClockError(f"unknown clock {mode!r}; {hint}")
    if now is not None and mode != "virtual":
        raise ClockError(f"now={now!r} sets a virtual clock, and this one is {mode}; add clock='virtual'")
    if mode == "virtual":
        from fakeamqp.runtime.clock.virtual import VirtualClock

        return VirtualClock(None if now is None else seconds_since_epoch(now, "now"))
    if mode == "wall":
        from fakeamqp.runtime.clock.wall import WallClock

        return WallClock()
    return RealClock()


def check_year(wall: float, what: str) -> None:
    """Raise ClockError for a time that no datetime can hold; `what` leads to it, for the error."""
    if wall > LATEST:
        raise ClockError(f"{what} leads beyond the year 9999, which is the last one of a datetime")


def seconds_since_epoch(instant: Instant, name: str) -> float:
    """A point in time in seconds since the epoch. `name` is the argument's, for a ClockError."""
    if isinstance(instant, datetime):
        if instant.tzinfo is None:
            instant = instant.replace(tzinfo=timezone.utc)
        return instant.timestamp()
    seconds = finite(instant, name)
    check_year(seconds, f"{name}={instant!r}")
    return seconds


def finite(number: float, name: str) -> float:
    """The number as a float. Raises ClockError if it is not a number, not finite, or negative."""
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0 <= number < float("inf"):
        raise ClockError(f"{name}={number!r} must be a number, 0 or more")
    try:
        return float(number)
    except OverflowError:
        raise ClockError(f"{name} is too large for a number of seconds") from None
