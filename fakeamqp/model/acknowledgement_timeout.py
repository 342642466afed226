"""The acknowledgement timeout: a client that exceeds it loses its channel (RabbitMQ: documented).

Each queue has its timeout (`Queue.acknowledgement_timeout`); most queues have the default of half an hour. So
there is one timer for each timeout in use, due for the oldest delivery that has it. Settling a delivery does
not touch a timer: a timer that is due after its delivery was settled is set for the oldest remaining one.
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
        ledger: the unsettled deliveries.
        timers: those of the broker.
        expired: called with a delivery whose timeout has passed, and the timeout in seconds.
        name: the channel's name, for the timers' labels.
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
        """Watch this delivery, and later ones with the same timeout."""
        label = f"{self._name} has held a delivery from q '{delivery.queue.name}' too long"
        due = delivery.delivered_at + timeout
        self.running[timeout] = self._timers.call_at(due, lambda: self._check(timeout), label)

    def stop(self) -> None:
        """Cancel the timers: the channel has ended."""
        for timer in self.running.values():
            timer.cancel()
        self.running.clear()

    def _check(self, timeout: float) -> None:
        del self.running[timeout]
        held = self._ledger.outstanding.values()
        oldest = next((each for each in held if each.queue.acknowledgement_timeout == timeout), None)
        if oldest is None:
            return
        if oldest.delivered_at + timeout <= self._timers.clock.now():
            self._expired(oldest, timeout)
        else:
            self.start(timeout, oldest)
