"""The wall clock: what `datetime.now()` returns in the code under test, frozen or not.

`read` reads the wall clock from the state of freezegun and time-machine. Calling `time.time()` would not
work. The result of freezegun depends on the call stack, and a call may move its time (`auto_tick_seconds`);
time-machine begins to tick with the first call. Their state can be read without side effects and is the same
for every thread. If the state has an unexpected form, the function is called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

from fakeamqp.runtime.clock import RealClock
from fakeamqp.runtime.clock.stepped import SteppedClock, seconds_in_words
from fakeamqp.runtime.thread.lock import FairLock

if TYPE_CHECKING:
    from fakeamqp.runtime.clock.stepped import Settle

LIBRARIES = ("freezegun.api", "time_machine")
"""The modules that replace the wall clock."""

_SECOND = 1_000_000_000
_EPOCH_DAY = 719_163  # date(1970, 1, 1).toordinal()


class Reading(NamedTuple):
    """One reading of the wall clock. `runs` says whether time passes by itself."""

    controller: object
    """The object of freezegun or time-machine that controls the clock, or None."""
    wall: int
    """Nanoseconds since the epoch; an integer, because sums of instants must be exact."""
    runs: bool
    library: str


def read() -> Reading:
    """The wall clock as the code under test sees it. Any thread may call it."""
    return _freezegun() or _time_machine() or Reading(None, int(RealClock().time() * _SECOND), True, "")


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


# --- hooks --------------------------------------------------------------------------------------------
#
# Hooks on freezegun and time-machine report when a test freezes, moves or unfreezes the wall clock. A broker
# would notice a move by itself, but later. Input sent just before `freezer.tick(61)` may still be in a
# socket when time moves, and would count as sent after it. So the methods that move time are wrapped while a
# broker follows the wall clock: before time moves, brokers process the input that has arrived; after it they
# follow. When `tick` returns, all due timers have run. Time that `auto_tick_seconds` moves has no hook,
# because the caller may hold any lock.


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


def add_listener(listener: Callable[[], None]) -> None:
    """Call `listener` before and after each move of the wall clock."""
    with _lock:
        _listeners.append(listener)
    _install_hooks()


def remove_listener(listener: Callable[[], None]) -> None:
    """Undo `add_listener`. Removing the last listener restores both libraries."""
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


def _is_hook_missing() -> bool:
    """Whether an imported library has no hooks yet."""
    return any(name in sys.modules and name not in _hooked for name in LIBRARIES)


def _install_hooks() -> None:
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
        _hooked.update(name for name in LIBRARIES if name in sys.modules)


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


# --- the clock ------------------------------------------------------------------------------------------

# The interval at which the loop reads a wall clock that a test may move without a hook, in real seconds.
_POLL_SECONDS = 0.015
# How long frozen time must have ended before the clock follows to the present, unless an access comes first.
_LEFT_SECONDS = 0.25


class WallClock(SteppedClock):
    """Moves forward with the wall clock, which is real or controlled by freezegun or time-machine.

    `time()` is the wall clock's time. If that goes back, no time passes.

    Between two freezes the wall clock is real for a moment. This counts only if the broker is accessed, or if
    it lasts: otherwise a test that freezes twice would see time move to the present and back.
    """

    def __init__(self) -> None:
        self._reading = read()
        self._passed = 0
        """Nanoseconds by which the wall clock has moved forward so far."""
        self._continuous = True
        self._left_at: float | None = None
        self._settle: Settle | None = None
        super().__init__(self._reading.wall / _SECOND)

    @property
    def rate(self) -> float:
        """1.0, or 0.0 while the wall clock stands still."""
        return 1.0 if self._reading.runs else 0.0

    @property
    def holds_peers(self) -> bool:
        """Heartbeat timeouts apply only while the wall clock is the real one, since clients use real time."""
        return self.strict or self._continuous

    def _due_instant(self, noticed: bool) -> float:
        if self._settle is not None and _is_hook_missing():
            _install_hooks()
        reading, former = read(), self._reading
        if (
            reading.controller is None
            and former.controller is not None
            and not noticed
            and not self._left_for_good()
        ):
            return self._now
        self._left_at = None
        self._reading = reading
        self._continuous = reading.controller is None and former.controller is None
        self._passed += max(0, reading.wall - former.wall)
        instant = self._passed / _SECOND
        self._wall = reading.wall / _SECOND - instant
        return instant

    def _left_for_good(self) -> bool:
        now = RealClock.now()
        if self._left_at is None:
            self._left_at = now
        return now - self._left_at >= _LEFT_SECONDS

    def sleep(self) -> float | None:
        due = self.timers.next_due()
        if due is None:
            return None
        timeout = max(0.0, due - self._now) if self._reading.runs else None
        tampering = any(name in sys.modules for name in LIBRARIES)
        if tampering and (timeout is None or timeout > _POLL_SECONDS) and self.awaited() is not None:
            return _POLL_SECONDS
        return timeout

    def attach(self, settle: Settle) -> None:
        self._settle = settle
        add_listener(settle)

    def detach(self) -> None:
        if self._settle is not None:
            remove_listener(self._settle)
            self._settle = None

    # -- hints

    def state_in_words(self) -> str:
        if self._reading.runs:
            return ""
        return (
            f"The broker follows the wall clock, which {self._reading.library} holds still; "
            f"{seconds_in_words(self.elapsed)} s have passed on it so far"
        )

    def way_to_move(self, seconds: float) -> str:
        if self._reading.library == "freezegun":
            return f"freezer.tick({seconds_in_words(seconds)})"
        return f"time_machine.shift({seconds_in_words(seconds)})"
