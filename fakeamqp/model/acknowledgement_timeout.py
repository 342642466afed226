"""How long a client may hold a delivery unsettled before its channel is closed (RabbitMQ: documented).

A queue says how long (`Queue.acknowledgement_timeout`), mostly the same half hour for all. So there is one
timer for each length of time in use, set for the oldest delivery that has it. Settling touches no timer: one
that finds its delivery gone is set anew for the oldest that is left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.model.delivery import Delivery, Ledger
    from fakeamqp.model.timers import Timer, Timers

__all__ = ["AcknowledgementTimeouts"]


class AcknowledgementTimeouts:
    """Watches the deliveries of one ledger.

    Args:
        ledger: what is unsettled.
        timers: of the broker.
        expired: called with the delivery that was held too long, and for how many seconds it might have been.
        name: of the channel, for the timers' labels.
    """

    __slots__ = ("_expired", "_ledger", "_name", "_timers", "running")

    def __init__(
        self, ledger: Ledger, timers: Timers, expired: Callable[[Delivery, float], None], name: str
    ) -> None:
        self.running: dict[float, Timer] = {}
        self._ledger = ledger
        self._timers = timers
        self._expired = expired
        self._name = name

    def start(self, timeout: float, delivery: Delivery) -> None:
        """Watch this delivery, and those after it that may be held as long."""
        label = f"{self._name} has held a delivery from q '{delivery.queue.name}' too long"
        due = delivery.delivered_at + timeout
        self.running[timeout] = self._timers.call_at(due, lambda: self._look(timeout), label)

    def stop(self) -> None:
        """Watch no more: the channel has ended."""
        for timer in self.running.values():
            timer.cancel()
        self.running.clear()

    def _look(self, timeout: float) -> None:
        del self.running[timeout]
        held = self._ledger.outstanding.values()
        oldest = next((each for each in held if each.queue.acknowledgement_timeout == timeout), None)
        if oldest is None:
            return
        if oldest.delivered_at + timeout <= self._timers.clock.now():
            self._expired(oldest, timeout)
        else:
            self.start(timeout, oldest)
