"""Calls functions where an event loop reports what has come over the network."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable
    from contextvars import Context

__all__ = ["Arrivals"]

# In an iteration, the loops of asyncio run what was called soon, then what the selector reports, then timers
# that are due, the oldest first. So a timer that is due for this many seconds comes where the selector does.
_OVERDUE = 86_400.0


class Arrivals:
    """Calls functions in the next iteration of a loop, after all that is called soon in this one.

    That is when a socket becomes readable at the earliest. Code that calls something soon, or wakes a task,
    after it has sent bytes relies on it: an answer cannot come before that.
    """

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._coming: deque[tuple[Callable[[], object], Context]] = deque()

    def call(self, callback: Callable[[], object], *, context: Context) -> None:
        """Call a function, in the order of these calls."""
        if not self._coming:
            self._poll()
        self._coming.append((callback, context))

    def _poll(self) -> None:
        self._loop.call_at(self._loop.time() - _OVERDUE, self._arrive)

    def _arrive(self) -> None:
        coming, self._coming = self._coming, deque()
        try:
            while coming:
                callback, context = coming.popleft()
                context.run(callback)
        finally:
            if coming:  # KeyboardInterrupt, for example, which ends the loop. It may be run again.
                self._coming = coming + self._coming
                self._poll()
