"""One timer that is moved about."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.model.timers import Label, Timer
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["MARGIN", "Alarm"]

MARGIN = 1e-9
"""Seconds by which what is due may be early: instants are sums of floats."""


class Alarm:
    """Goes off at one instant of the broker's clock, `due`, or at none.

    Args:
        virtual_host: whose clock counts.
        callback: what to do then.
    """

    __slots__ = ("_callback", "_timer", "_virtual_host", "due")

    def __init__(self, virtual_host: VirtualHost, callback: Callable[[], None]) -> None:
        self.due: float | None = None
        self._virtual_host = virtual_host
        self._callback = callback
        self._timer: Timer | None = None

    def set(self, due: float | None, label: Label) -> None:
        """Go off then, and not when it was to. Nothing is done where that is the same: ask `due` first."""
        if due == self.due:
            return
        self.stop()
        self.due = due
        self._timer = None if due is None else self._virtual_host.call_at(due, self._goes_off, label)

    def stop(self) -> None:
        """Do not go off."""
        if self._timer is not None:
            self._timer.cancel()

    def _goes_off(self) -> None:
        self._timer = self.due = None
        self._callback()
