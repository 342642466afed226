"""Hints for waits that time out: the broker's clock stands still, or the memory alarm blocks publishers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.model.state import BrokerState

__all__ = ["time_hint"]


def time_hint(state: BrokerState) -> str:
    """Lines to add to the error of a wait that timed out: what holds the broker or its clients up; or ""."""
    text = state.clock.hint(state.timers)
    lines = f"\n{text}" if text else ""
    if not state.memory.alarm:
        return lines
    from fakeamqp.inspect.memory import memory_hint  # Imported only for alarms.

    return lines + memory_hint(state)
