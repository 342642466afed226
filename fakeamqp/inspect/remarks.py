"""What the broker's time has to do with it that somebody waited in vain."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.model.state import BrokerState

__all__ = ["remark"]


def remark(state: BrokerState) -> str:
    """The end of an error about a wait in vain: a line that says so if time stands still, otherwise ""."""
    text = state.clock.remark(state.timers)
    return f"\n{text}" if text else ""
