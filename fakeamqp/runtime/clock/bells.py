"""Bells on freezegun and time-machine: they ring when a test freezes, moves or thaws the wall clock.

A broker would notice by itself, but later. What a client sent just before `freezer.tick(61)` may still lie in
a socket when time has moved, and would then count as sent after it. So the methods with which tests move time
are wrapped for as long as a broker follows the wall clock: before time moves, brokers deal with what has
arrived; afterwards they follow. When `tick` returns, what was due has happened.

Time that `auto_tick_seconds` moves at each look does not ring: whoever looks may hold any lock.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Any, NamedTuple

__all__ = ["hang", "hang_up", "missing", "take_down"]


class _Bell(NamedTuple):
    """A method that moves time. After leaving a frozen world nobody is in a hurry to follow."""

    module: str
    owner: str
    method: str
    follow: bool = True


_BELLS = (
    _Bell("freezegun.api", "FrozenDateTimeFactory", "tick"),
    _Bell("freezegun.api", "FrozenDateTimeFactory", "move_to"),
    _Bell("freezegun.api", "TickingDateTimeFactory", "tick"),
    _Bell("freezegun.api", "TickingDateTimeFactory", "move_to"),
    _Bell("freezegun.api", "StepTickTimeFactory", "move_to"),
    _Bell("freezegun.api", "_freeze_time", "start"),
    _Bell("freezegun.api", "_freeze_time", "stop", follow=False),
    _Bell("time_machine", "Traveller", "shift"),
    _Bell("time_machine", "Traveller", "move_to"),
    _Bell("time_machine", "Coordinates", "shift"),  # The same before version 3.
    _Bell("time_machine", "Coordinates", "move_to"),
    _Bell("time_machine", "travel", "start"),
    _Bell("time_machine", "travel", "stop", follow=False),
)

_lock = Lock()
_listeners: list[Callable[[], None]] = []
_hung: dict[_Bell, tuple[type, Any, Any]] = {}
"""The bells that hang: the class, its method, and what stands in its place."""
_looked_at: set[str] = set()
"""The modules whose bells have been hung."""


def hang_up(listener: Callable[[], None]) -> None:
    """From now on call `listener` whenever a test moves the wall clock: before it does, and after."""
    with _lock:
        _listeners.append(listener)
    hang()


def take_down(listener: Callable[[], None]) -> None:
    """Undo `hang_up`. The last one leaves both libraries as they were."""
    with _lock:
        if listener in _listeners:
            _listeners.remove(listener)
        if _listeners:
            return
        for bell, (owner, original, stand_in) in _hung.items():
            if owner.__dict__.get(bell.method) is stand_in:
                setattr(owner, bell.method, original)
        _hung.clear()
        _looked_at.clear()


def missing() -> bool:
    """Whether a library has been loaded that has no bells yet."""
    return any(name in sys.modules and name not in _looked_at for name in ("freezegun.api", "time_machine"))


def hang() -> None:
    """Hang bells on what has been loaded by now."""
    with _lock:
        if not _listeners:
            return
        for bell in _BELLS:
            owner = getattr(sys.modules.get(bell.module), bell.owner, None)
            if owner is None or bell in _hung:
                continue
            original = owner.__dict__.get(bell.method)
            if original is not None:
                stand_in = _ringing(original, follow=bell.follow)
                _hung[bell] = (owner, original, stand_in)
                setattr(owner, bell.method, stand_in)
        _looked_at.update(name for name in ("freezegun.api", "time_machine") if name in sys.modules)


def _ringing(method: Callable[..., Any], *, follow: bool) -> Callable[..., Any]:
    @wraps(method)
    def ring(*args: Any, **kwargs: Any) -> Any:
        _ring()
        try:
            return method(*args, **kwargs)
        finally:
            if follow:
                _ring()

    return ring


def _ring() -> None:
    for listener in tuple(_listeners):
        listener()
