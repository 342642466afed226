"""A timer that can be moved."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.model.timers import Label, Timer
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["MARGIN", "Deadline"]

MARGIN = 1e-9
"""Seconds by which a timer may fire early: instants are sums of floats."""


class Deadline:
    """Fires at one instant of the broker's clock, `due`; None means never.

    Args:
        virtual_host: its clock is used.
        callback: called when it fires.
    """

    __slots__ = ("_callback", "_timer", "_virtual_host", "due")

    def __init__(self, virtual_host: VirtualHost, callback: Callable[[], None]) -> None:
        self.due: float | None = None
        self._virtual_host = virtual_host
        self._callback = callback
        self._timer: Timer | None = None

    def set(self, due: float | None, label: Label) -> None:
        """Move the timer to an instant. Does nothing if that is `due` already."""
        if due == self.due:
            return
        self.stop()
        self.due = due
        self._timer = None if due is None else self._virtual_host.call_at(due, self._fire, label)

    def stop(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def _fire(self) -> None:
        self._timer = self.due = None
        self._callback()
