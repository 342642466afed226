"""The timeout for the next step of a handshake."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.timers import Timer

__all__ = ["HandshakeTimeout"]


class HandshakeTimeout:
    """Expires after `seconds` on the client's clock, unless cancelled.

    The broker's clock can differ from the client's (virtual time). The timeout then also expires on the
    broker's clock, if that clock holds new connections to it (`Clock.holds_newcomers`). On the client's clock
    the time does not count in which the broker was too busy to serve the client.

    Args:
        state: the broker.
        seconds: the length of the timeout.
        label: a description of the expiry that can precede "in 10 s".
        on_expiry: called when the timeout expires.
    """

    __slots__ = ("_busy", "_label", "_on_expiry", "_peer_timer", "_seconds", "_state", "_timer")

    def __init__(
        self, state: BrokerState, seconds: float, label: str, on_expiry: Callable[[], object]
    ) -> None:
        self._state = state
        self._seconds = seconds
        self._label = label
        self._on_expiry = on_expiry
        self._busy = state.operations.busy_seconds
        self._timer = self._set_timer(state.clock.now() + seconds)
        timers = state.peer_timers
        self._peer_timer = None
        if timers is not state.timers:
            self._peer_timer = self._set_peer_timer(seconds)

    @property
    def due(self) -> float | None:
        """The instant of expiry on the broker's clock; None after expiry or cancellation."""
        return self._timer.due if self._timer.active else None

    def cancel(self) -> None:
        """Stop both timers."""
        self._timer.cancel()
        if self._peer_timer is not None:
            self._peer_timer.cancel()

    def _on_timer(self) -> None:
        clock = self._state.clock
        if not clock.holds_newcomers:
            self._timer = self._set_timer(clock.heading() + self._seconds)
        elif self._peer_timer is None and (busy := self._busy_meanwhile()):
            self._timer = self._set_timer(clock.now() + busy)
        else:
            self._expire()

    def _on_peer_timer(self) -> None:
        if busy := self._busy_meanwhile():
            self._peer_timer = self._set_peer_timer(busy)
        else:
            self._expire()

    def _busy_meanwhile(self) -> float:
        """How long the broker was too busy to serve the client, since the last call."""
        before, self._busy = self._busy, self._state.operations.busy_seconds
        return self._busy - before

    def _set_peer_timer(self, seconds: float) -> Timer:
        timers = self._state.peer_timers
        due = timers.clock.now() + seconds
        return timers.call_at(due, self._on_peer_timer, self._label, housekeeping=True)

    def _set_timer(self, due: float) -> Timer:
        timers = self._state.timers
        return timers.call_at(due, self._on_timer, self._label, housekeeping=True, awaits_peer=True)

    def _expire(self) -> None:
        self.cancel()
        self._on_expiry()
