"""The acknowledgement timeout: a client that exceeds it loses its channel (RabbitMQ: documented).

Each queue has its timeout (`Queue.acknowledgement_timeout`); most queues have the default of half an hour. So
there is one timer for each timeout in use, set for the oldest delivery that has it. Settling a delivery does
not touch a timer: a timer that runs after its delivery was settled is set for the oldest remaining one. The
list of pending timers shows it for the oldest remaining one before that (`revise` of `Timers.call_at`).
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

        def due() -> float | None:
            oldest = self._oldest(timeout)
            return None if oldest is None else oldest.delivered_at + timeout

        def label() -> str:
            oldest = self._oldest(timeout)
            held = "a delivery" if oldest is None else f"a delivery from q '{oldest.queue.name}'"
            return f"{self._name} has held {held} too long"

        self.running[timeout] = self._timers.call_at(
            delivery.delivered_at + timeout, lambda: self._check(timeout), label, revise=due
        )

    def stop(self) -> None:
        """Cancel the timers: the channel has ended."""
        for timer in self.running.values():
            timer.cancel()
        self.running.clear()

    def _check(self, timeout: float) -> None:
        del self.running[timeout]
        oldest = self._oldest(timeout)
        if oldest is None:
            return
        if oldest.delivered_at + timeout <= self._timers.clock.now():
            self._expired(oldest, timeout)
        else:
            self.start(timeout, oldest)

    def _oldest(self, timeout: float) -> Delivery | None:
        """The oldest unsettled delivery with this timeout."""
        held = self._ledger.outstanding.values()
        return next((each for each in held if each.queue.acknowledgement_timeout == timeout), None)
