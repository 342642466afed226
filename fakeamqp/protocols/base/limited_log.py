"""Warnings that peers cause, limited in number."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, ClassVar

from fakeamqp.model.extensions import Extension

if TYPE_CHECKING:
    from fakeamqp.model.state import BrokerState

__all__ = ["MOST_WARNINGS", "PERIOD", "HandshakeLog", "LimitedLog"]

_log = logging.getLogger("fakeamqp")

#: How many warnings are logged in each period.
MOST_WARNINGS = 50
#: The length of a period, in seconds on the clock of the clients.
PERIOD = 10.0


class LimitedLog(Extension):
    """The warnings of one broker about one subject, which `about` names.

    In each period the first `MOST_WARNINGS` are logged. The others are counted, and one warning at the end of
    the period says how many they were.
    """

    about: ClassVar[str]

    def __init__(self, owner: BrokerState) -> None:
        self._timers = owner.peer_timers
        self._ends = 0.0
        self._logged = 0
        self._left_out = 0

    def warning(self, text: str, *arguments: object) -> None:
        """Log a warning, or count it."""
        now = self._timers.clock.now()
        if not self._left_out and now >= self._ends:
            self._ends = now + PERIOD
            self._logged = 0
        if self._logged < MOST_WARNINGS:
            self._logged += 1
            _log.warning(text, *arguments)
            return
        if not self._left_out:
            self._timers.call_at(
                self._ends, self._sum_up, f"counts warnings about {self.about}", housekeeping=True
            )
        self._left_out += 1

    def _sum_up(self) -> None:
        count, self._left_out = self._left_out, 0
        _log.warning("%d more warnings about %s, within %g seconds, were left out", count, self.about, PERIOD)


class HandshakeLog(LimitedLog):
    """The warnings about handshakes."""

    about = "clients that have not logged in"
