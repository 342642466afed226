"""The modes a clock can have, by name."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Literal, TypeAlias

from fakeamqp.runtime.clock.real import RealClock
from fakeamqp.runtime.errors import ClockError

if TYPE_CHECKING:
    from fakeamqp.runtime.clock.stepped import SteppedClock

__all__ = ["LATEST", "MODES", "Instant", "Mode", "check_year", "clock_of", "seconds_since_epoch"]

Mode: TypeAlias = Literal["real", "virtual", "wall"]
MODES: tuple[Mode, ...] = ("real", "virtual", "wall")

Instant: TypeAlias = "datetime | float"
"""A point in time: a datetime (a naive one is UTC), or seconds since the epoch."""


def clock_of(mode: str, now: Instant | None = None) -> RealClock | SteppedClock:
    """A clock of this mode.

    Args:
        mode: "real", "virtual" or "wall".
        now: the initial time of a virtual clock.

    Raises:
        ClockError: the mode does not exist, or `now` is given with another mode than "virtual".
    """
    if mode not in MODES:
        from difflib import get_close_matches

        near = get_close_matches(str(mode), MODES, n=1)
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


LATEST = 253_402_300_799.0
"""The last second of the year 9999, in seconds since the epoch: a datetime cannot be later."""


def check_year(wall: float, what: str) -> None:
    """Refuse a time of a clock that no datetime can hold; `what` leads to it, for the error.

    Raises:
        ClockError: it is after the year 9999.
    """
    if wall > LATEST:
        raise ClockError(f"{what} leads beyond the year 9999, which is the last one of a datetime")


def seconds_since_epoch(instant: Instant, name: str) -> float:
    """A point in time in seconds since the epoch. `name` is the name of the argument, for errors.

    Raises:
        ClockError: it is not a point in time, or after the year 9999.
    """
    if isinstance(instant, datetime):
        if instant.tzinfo is None:
            instant = instant.replace(tzinfo=timezone.utc)
        return instant.timestamp()
    seconds = finite(instant, name)
    check_year(seconds, f"{name}={instant!r}")
    return seconds


def finite(number: float, name: str) -> float:
    """The number as a float.

    Raises:
        ClockError: it is not a number, not finite, or negative.
    """
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0 <= number < float("inf"):
        raise ClockError(f"{name}={number!r} must be a number, 0 or more")
    try:
        return float(number)
    except OverflowError:
        raise ClockError(f"{name} is too large for a number of seconds") from None
