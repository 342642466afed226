"""A hint for waits that time out because the broker's clock stands still."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.model.state import BrokerState

__all__ = ["time_hint"]


def time_hint(state: BrokerState) -> str:
    """A line to add to the error of a wait that timed out: says if time stands still; otherwise ""."""
    text = state.clock.hint(state.timers)
    return f"\n{text}" if text else ""
