"""What the wall clock says to the code under test, read where freezegun and time-machine keep it.

Asking `time.time()` would not do. What freezegun answers depends on who is on the stack and how deep, and a
question may itself move its time (`auto_tick_seconds`); time-machine begins to tick with the first question.
So their state is read, which has no effect and is the same for every thread. Where it is not as expected, the
function itself is asked.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from fakeamqp.runtime.clock.real import RealClock

__all__ = ["LIBRARIES", "Reading", "read"]

LIBRARIES = ("freezegun.api", "time_machine")
"""The modules that tamper with the wall clock."""

_SECOND = 1_000_000_000
_EPOCH_DAY = 719_163  # date(1970, 1, 1).toordinal()
_real = RealClock()


class Reading(NamedTuple):
    """What the wall clock says.

    `world` is who says so: an object of freezegun or time-machine, or None for nobody. `wall` is in
    nanoseconds since the epoch; integers, because sums of instants must be exact. `runs` says whether time
    passes there by itself.
    """

    world: object
    wall: int
    runs: bool
    library: str


def read() -> Reading:
    """The wall clock as the code under test sees it. Any thread."""
    return _freezegun() or _time_machine() or Reading(None, int(_real.time() * _SECOND), True, "")


def _freezegun() -> Reading | None:
    factories = getattr(sys.modules.get("freezegun.api"), "freeze_factories", None)
    if not factories:
        return None
    try:
        factory = factories[-1]
    except IndexError:  # It was thawed this very moment.
        return None
    # Only one that runs by itself has to be called; calling one that ticks at each look would move it.
    runs = hasattr(factory, "start")
    return Reading(factory, _nanoseconds(factory() if runs else factory.time_to_freeze), runs, "freezegun")


def _nanoseconds(utc: Any) -> int:
    """A naive UTC datetime as nanoseconds since the epoch. No help of `datetime`: freezegun replaces it."""
    minutes = ((utc.toordinal() - _EPOCH_DAY) * 24 + utc.hour) * 60 + utc.minute
    nanoseconds: int = (minutes * 60 + utc.second) * _SECOND + utc.microsecond * 1000
    return nanoseconds


def _time_machine() -> Reading | None:
    module = sys.modules.get("time_machine")
    # Before version 3 the stack had another name.
    stack = getattr(module, "traveller_stack", None) or getattr(module, "coordinates_stack", None)
    if not stack:
        return None
    try:
        traveller = stack[-1]
    except IndexError:
        return None
    runs = bool(getattr(traveller, "_tick", True))
    begun = getattr(traveller, "_requested", True)
    wall = traveller.time_ns() if begun or not runs else traveller._destination_timestamp_ns
    return Reading(traveller, int(wall), runs, "time-machine")
