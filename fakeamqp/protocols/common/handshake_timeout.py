"""How long a client may take for what it has to do next."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.timers import Timer

__all__ = ["HandshakeTimeout"]


class HandshakeTimeout:
    """Runs out after `seconds` of the time that the client lives by, unless cancelled.

    Where the broker's time is another, it runs out on that as well, but only where the clock says that
    newcomers are held to it.

    Args:
        state: the broker.
        seconds: how long.
        label: what happens then, in words that "in 10 s" can follow.
        on_expiry: what happens then.
    """

    __slots__ = ("_label", "_on_expiry", "_peer_timer", "_seconds", "_state", "_timer")

    def __init__(
        self, state: BrokerState, seconds: float, label: str, on_expiry: Callable[[], object]
    ) -> None:
        self._state = state
        self._seconds = seconds
        self._label = label
        self._on_expiry = on_expiry
        self._timer = self._set_timer(state.clock.now() + seconds)
        timers = state.peer_timers
        self._peer_timer = None
        if timers is not state.timers:
            due = timers.clock.now() + seconds
            self._peer_timer = timers.call_at(due, self._expire, label, chore=True)

    @property
    def due(self) -> float | None:
        """When it runs out on the broker's clock; None once it is over."""
        return self._timer.due if self._timer.active else None

    def cancel(self) -> None:
        """The client has done it."""
        self._timer.cancel()
        if self._peer_timer is not None:
            self._peer_timer.cancel()

    def _on_timer(self) -> None:
        clock = self._state.clock
        if clock.holds_newcomers:
            self._expire()
        else:
            self._timer = self._set_timer(clock.heading() + self._seconds)

    def _set_timer(self, due: float) -> Timer:
        timers = self._state.timers
        return timers.call_at(due, self._on_timer, self._label, chore=True, awaits_peer=True)

    def _expire(self) -> None:
        self.cancel()
        self._on_expiry()
