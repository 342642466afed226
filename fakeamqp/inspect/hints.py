"""Hints for waits that time out.

The broker's clock stands still, the memory alarm blocks publishers, or the wait itself blocks the clients.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.model.state import BrokerState

__all__ = ["loop_hint", "time_hint"]


def loop_hint(awaitable: str) -> str:
    """What to do about a wait that has blocked the event loop of its caller; "" outside of a coroutine.

    Args:
        awaitable: the coroutine to use instead, such as "wait_for_async".
    """
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or asyncio._get_running_loop() is None:
        return ""
    return (
        "The test waited inside a coroutine, and so blocked the event loop: clients in this loop could not "
        f"go on. Use `await ...{awaitable}(...)`"
    )


def time_hint(state: BrokerState, awaitable: str = "") -> str:
    """Lines to add to the error of a wait that timed out: what holds the broker or its clients up; or "".

    Args:
        state: of the broker.
        awaitable: see `loop_hint`; "" for a call that has not waited.
    """
    texts = (loop_hint(awaitable) if awaitable else "", state.clock.hint(state.timers))
    lines = "".join(f"\n{text}" for text in texts if text)
    if not state.memory.alarm:
        return lines
    from fakeamqp.inspect.memory import memory_hint  # Imported only for alarms.

    return lines + memory_hint(state)
