"""Hooks on freezegun and time-machine that report when a test freezes, moves or unfreezes the wall clock.

A broker would notice a move by itself, but later. Input sent just before `freezer.tick(61)` may still be in a
socket when time moves, and would count as sent after it. So the methods that move time are wrapped while a
broker follows the wall clock: before time moves, brokers process the input that has arrived; after it they
follow. When `tick` returns, all due timers have run.

Time that `auto_tick_seconds` moves has no hook, because the caller may hold any lock.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

from fakeamqp.runtime.thread.lock import FairLock

__all__ = ["add", "install", "missing", "remove"]


class _Hook(NamedTuple):
    """A method that moves time. `follow`: brokers follow the clock immediately after the call."""

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

_lock = FairLock()
_listeners: list[Callable[[], None]] = []
_installed: dict[_Hook, tuple[type, Any, Any]] = {}
"""The installed hooks: the class, its original method, and the replacement."""
_hooked: set[str] = set()
"""The modules that have been hooked."""


def add(listener: Callable[[], None]) -> None:
    """Call `listener` before and after each move of the wall clock."""
    with _lock:
        _listeners.append(listener)
    install()


def remove(listener: Callable[[], None]) -> None:
    """Undo `add`. Removing the last listener restores both libraries."""
    with _lock:
        if listener in _listeners:
            _listeners.remove(listener)
        if _listeners:
            return
        _hooked.clear()
        # An interrupt may leave a hook on its method: it tells no listener, and is wrapped by the next one.
        while _installed:
            hook, (owner, original, replacement) = _installed.popitem()
            if owner.__dict__.get(hook.method) is replacement:
                setattr(owner, hook.method, original)


def missing() -> bool:
    """Whether an imported library has no hooks yet."""
    return any(name in sys.modules and name not in _hooked for name in ("freezegun.api", "time_machine"))


def install() -> None:
    """Install the hooks on the libraries imported so far."""
    with _lock:
        if not _listeners:
            return
        for hook in _HOOKS:
            owner = getattr(sys.modules.get(hook.module), hook.owner, None)
            if owner is None or hook in _installed:
                continue
            original = owner.__dict__.get(hook.method)
            if original is not None:
                replacement = _telling(original, follow=hook.follow)
                _installed[hook] = (owner, original, replacement)
                setattr(owner, hook.method, replacement)
        _hooked.update(name for name in ("freezegun.api", "time_machine") if name in sys.modules)


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
