"""How long a client may take for what it has to do next."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.timers import Timer

__all__ = ["Patience"]


class Patience:
    """Runs out after `seconds` of the time that the client lives by, unless cancelled.

    Where the broker's time is another, it runs out on that as well, but only where the clock says that
    newcomers are held to it.

    Args:
        state: the broker.
        seconds: how long.
        label: what happens then, in words that "in 10 s" can follow.
        run_out: what happens then.
    """

    __slots__ = ("_by_clock", "_by_peers_time", "_label", "_run_out", "_seconds", "_state")

    def __init__(self, state: BrokerState, seconds: float, label: str, run_out: Callable[[], object]) -> None:
        self._state = state
        self._seconds = seconds
        self._label = label
        self._run_out = run_out
        self._by_clock = self._wait_until(state.clock.now() + seconds)
        timers = state.peer_timers
        self._by_peers_time = None
        if timers is not state.timers:
            due = timers.clock.now() + seconds
            self._by_peers_time = timers.call_at(due, self._end, label, housekeeping=True)

    @property
    def due(self) -> float | None:
        """When it runs out on the broker's clock; None once it is over."""
        return self._by_clock.due if self._by_clock.active else None

    def cancel(self) -> None:
        """The client has done it."""
        self._by_clock.cancel()
        if self._by_peers_time is not None:
            self._by_peers_time.cancel()

    def _is_due(self) -> None:
        clock = self._state.clock
        if clock.holds_newcomers:
            self._end()
        else:
            self._by_clock = self._wait_until(clock.heading() + self._seconds)

    def _wait_until(self, due: float) -> Timer:
        timers = self._state.timers
        return timers.call_at(due, self._is_due, self._label, housekeeping=True, awaits_peer=True)

    def _end(self) -> None:
        self.cancel()
        self._run_out()
