"""The end of clients that take no output."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.model.timers import Timer
    from fakeamqp.protocols.base.server_connection import ServerConnection

__all__ = ["SendTimeout"]

_LOOKS = 10
"""How often `SendTimeout` looks in each of its periods, so that it ends at most a tenth later."""


class SendTimeout:
    """Aborts a connection whose client takes no output for `Personality.send_timeout` seconds.

    It runs on the client's clock, while so much output waits that deliveries are stopped. The time does not
    count in which the broker was too busy to send.
    """

    __slots__ = ("_busy", "_connection", "_looks", "_taken", "_timer")

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection
        self._timer: Timer | None = None
        self._taken = 0
        """How many bytes the client had taken at the last look."""
        self._looks = 0
        """How many looks in a row found no more."""
        self._busy = 0.0
        """How long the broker had been busy in all when the client took something, or when time was added."""

    def start(self) -> None:
        """Deliveries are stopped. Does nothing while it runs."""
        if self._timer is None and self._connection.personality.send_timeout:
            self._begin()
            self._set_timer()

    def stop(self) -> None:
        """Stop the timer for good."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin(self) -> None:
        self._taken = self._connection.outbox.sent_bytes
        self._looks = 0
        self._busy = self._connection.broker.operations.busy_seconds

    def _set_timer(self, more: float = 0.0) -> None:
        timers = self._connection.broker.peer_timers
        due = timers.clock.now() + (more or self._connection.personality.send_timeout / _LOOKS)
        label = f"connection {self._connection.name} checks for output that its client took"
        self._timer = timers.call_at(due, self._look, label, housekeeping=True)

    def _look(self) -> None:
        self._timer = None
        outbox = self._connection.outbox
        if outbox.gate.open:
            return
        if outbox.sent_bytes != self._taken:
            self._begin()
        else:
            self._looks += 1
        if self._looks < _LOOKS:
            self._set_timer()
        elif busy := self._connection.broker.operations.busy_seconds - self._busy:
            self._busy += busy
            self._set_timer(busy)
        else:
            seconds = self._connection.personality.send_timeout
            self._connection.abort(f"the client took no output for {seconds:g} s")
