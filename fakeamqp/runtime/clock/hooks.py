"""Hooks on freezegun and time-machine: they tell when a test freezes, moves or thaws the wall clock.

A broker would notice by itself, but later. What a client sent just before `freezer.tick(61)` may still lie in
a socket when time has moved, and would then count as sent after it. So the methods with which tests move time
are wrapped for as long as a broker follows the wall clock: before time moves, brokers deal with what has
arrived; afterwards they follow. When `tick` returns, what was due has happened.

Time that `auto_tick_seconds` moves at each look has no hook: whoever looks may hold any lock.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Any, NamedTuple

__all__ = ["add", "install", "missing", "remove"]


class _Hook(NamedTuple):
    """A method that moves time. After leaving a frozen world nobody is in a hurry to follow."""

    module: str
    owner: str
    method: str
    follow: bool = True


_HOOKS = (
    _Hook("freezegun.api", "FrozenDateTimeFactory", "tick"),
    _Hook("freezegun.api", "FrozenDateTimeFactory", "move_to"),
    _Hook("freezegun.api", "TickingDateTimeFactory", "tick"),
    _Hook("freezegun.api", "TickingDateTimeFactory", "move_to"),
    _Hook("freezegun.api", "StepTickTimeFactory", "move_to"),
    _Hook("freezegun.api", "_freeze_time", "start"),
    _Hook("freezegun.api", "_freeze_time", "stop", follow=False),
    _Hook("time_machine", "Traveller", "shift"),
    _Hook("time_machine", "Traveller", "move_to"),
    _Hook("time_machine", "Coordinates", "shift"),  # The same before version 3.
    _Hook("time_machine", "Coordinates", "move_to"),
    _Hook("time_machine", "travel", "start"),
    _Hook("time_machine", "travel", "stop", follow=False),
)

_lock = Lock()
_listeners: list[Callable[[], None]] = []
_installed: dict[_Hook, tuple[type, Any, Any]] = {}
"""The hooks that are in place: the class, its method, and what stands in its place."""
_looked_at: set[str] = set()
"""The modules that have been hooked."""


def add(listener: Callable[[], None]) -> None:
    """From now on call `listener` whenever a test moves the wall clock: before it does, and after."""
    with _lock:
        _listeners.append(listener)
    install()


def remove(listener: Callable[[], None]) -> None:
    """Undo `add`. The last one leaves both libraries as they were."""
    with _lock:
        if listener in _listeners:
            _listeners.remove(listener)
        if _listeners:
            return
        for hook, (owner, original, stand_in) in _installed.items():
            if owner.__dict__.get(hook.method) is stand_in:
                setattr(owner, hook.method, original)
        _installed.clear()
        _looked_at.clear()


def missing() -> bool:
    """Whether a library has been loaded that has no hooks yet."""
    return any(name in sys.modules and name not in _looked_at for name in ("freezegun.api", "time_machine"))


def install() -> None:
    """Put hooks on what has been loaded by now."""
    with _lock:
        if not _listeners:
            return
        for hook in _HOOKS:
            owner = getattr(sys.modules.get(hook.module), hook.owner, None)
            if owner is None or hook in _installed:
                continue
            original = owner.__dict__.get(hook.method)
            if original is not None:
                stand_in = _telling(original, follow=hook.follow)
                _installed[hook] = (owner, original, stand_in)
                setattr(owner, hook.method, stand_in)
        _looked_at.update(name for name in ("freezegun.api", "time_machine") if name in sys.modules)


def _telling(method: Callable[..., Any], *, follow: bool) -> Callable[..., Any]:
    @wraps(method)
    def tell(*args: Any, **kwargs: Any) -> Any:
        _tell()
        try:
            return method(*args, **kwargs)
        finally:
            if follow:
                _tell()

    return tell


def _tell() -> None:
    for listener in tuple(_listeners):
        listener()
