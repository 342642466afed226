"""The wall clock as the code under test sees it, read from the state of freezegun and time-machine.

Calling `time.time()` would not work. The result of freezegun depends on the call stack, and a call may move
its time (`auto_tick_seconds`); time-machine begins to tick with the first call. Their state can be read
without side effects and is the same for every thread. If the state has an unexpected form, the function is
called.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from fakeamqp.runtime.clock.real import RealClock

__all__ = ["LIBRARIES", "Reading", "read"]

LIBRARIES = ("freezegun.api", "time_machine")
"""The modules that replace the wall clock."""

_SECOND = 1_000_000_000
_EPOCH_DAY = 719_163  # date(1970, 1, 1).toordinal()
_real = RealClock()


class Reading(NamedTuple):
    """One reading of the wall clock.

    Attributes:
        controller: the object of freezegun or time-machine that controls it, or None.
        wall: nanoseconds since the epoch; an integer, because sums of instants must be exact.
        runs: whether time passes by itself.
        library: "freezegun", "time-machine" or "".
    """

    controller: object
    wall: int
    runs: bool
    library: str


def read() -> Reading:
    """The wall clock as the code under test sees it. Any thread may call it."""
    return _freezegun() or _time_machine() or Reading(None, int(_real.time() * _SECOND), True, "")


def _freezegun() -> Reading | None:
    factories = getattr(sys.modules.get("freezegun.api"), "freeze_factories", None)
    if not factories:
        return None
    try:
        factory = factories[-1]
    except IndexError:  # The freeze ended at this moment.
        return None
    # Only a running factory is called: a call would move one with `auto_tick_seconds`.
    runs = hasattr(factory, "start")
    return Reading(factory, _nanoseconds(factory() if runs else factory.time_to_freeze), runs, "freezegun")


def _nanoseconds(utc: Any) -> int:
    """A naive UTC datetime as nanoseconds since the epoch, without `datetime`, which freezegun replaces."""
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
