"""Checks of the arguments of `Network`'s methods. All raise `FaultError`."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite

from fakeamqp.errors import near_match
from fakeamqp.faults.errors import FaultError

__all__ = ["check_count", "check_number", "check_word", "directions_of"]

_DIRECTIONS = {
    "both": ("received", "sent"),
    "received": ("received",),
    "sent": ("sent",),
}


def directions_of(direction: str) -> tuple[str, ...]:
    """The directions that "received", "sent" or "both" stands for."""
    check_word("direction", direction, _DIRECTIONS)
    return _DIRECTIONS[direction]


def check_word(name: str, value: object, known: Iterable[str]) -> None:
    """Check that an argument is one of the known words."""
    known = tuple(known)
    if value not in known:
        words = " or ".join(map(repr, known))
        hint = near_match(value, known)
        raise FaultError(f"{name} is {words}, not {value!r}{hint if 'mean' in hint else ''}")


def check_number(call: str, name: str, value: object, least: float, *, open_: bool = False) -> None:
    """Check that an argument is a finite number from `least` on, or (`open_`) above it."""
    fits = (
        isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and value >= least
    )
    if not fits or (open_ and value == least):
        above = f"above {least:g}" if open_ else f"from {least:g} on"
        raise FaultError(f"{call}() takes {name} as a number {above}, not {value!r}")


def check_count(call: str, name: str, value: object, least: int) -> None:
    """Check that an argument is a whole number from `least` on."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise FaultError(f"{call}() takes {name} as a whole number from {least} on, not {value!r}")
