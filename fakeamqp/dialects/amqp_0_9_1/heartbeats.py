"""Signs of life, in both directions, on the broker's clock (heartbeat/*)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.wire.amqp_0_9_x.frames import HEARTBEAT_FRAME

if TYPE_CHECKING:
    from fakeamqp.dialects.amqp_0_9_1.endpoint import Endpoint
    from fakeamqp.model.timers import Timer

__all__ = ["Heartbeats"]


class Heartbeats:
    """Sends them and expects them on one connection, from `start` to `stop`."""

    __slots__ = ("_endpoint", "_interval", "_send", "_silent_intervals", "_watch", "heard")

    def __init__(self, endpoint: Endpoint) -> None:
        self.heard = False
        """Whether any octet has come in this interval (heartbeat/any-octet-counts)."""
        self._endpoint = endpoint
        self._interval = 0
        self._silent_intervals = 0
        self._send: Timer | None = None
        self._watch: Timer | None = None

    def start(self, interval: int) -> None:
        """Begin, every `interval` seconds; 0 means never (heartbeat/zero-disables)."""
        self._interval = interval
        if interval:
            self.heard = False
            self._send = self._endpoint.after(interval / 2, self._look_back, "sends a heartbeat")
            self._watch = self._endpoint.after(interval, self._listen, "expects a sign of life")

    def stop(self) -> None:
        """End for good."""
        for timer in self.timers:
            timer.cancel()

    @property
    def timers(self) -> tuple[Timer, ...]:
        """What is due next."""
        return tuple(timer for timer in (self._send, self._watch) if timer is not None)

    def _look_back(self) -> None:
        """Send a sign of life when nothing was sent since the last look, half an interval ago.

        So silence never lasts longer than an interval, and one heartbeat is sent in each idle one. RabbitMQ
        does the same. Source: heartbeat/interval.
        """
        outbox = self._endpoint.outbox
        if outbox.used:
            outbox.used = False
        else:
            outbox.write(HEARTBEAT_FRAME)
        self._send = self._endpoint.after(self._interval / 2, self._look_back, "sends a heartbeat")

    def _listen(self) -> None:
        """Two intervals without an octet are the end (heartbeat/missed-two), unless we do not read."""
        silent = not self.heard and self._endpoint.reading
        self._silent_intervals = self._silent_intervals + 1 if silent else 0
        if self._silent_intervals == 2:
            self._endpoint.abort(f"missed heartbeats from client, timeout: {self._interval}s")
            return
        self.heard = False
        self._watch = self._endpoint.after(self._interval, self._listen, "expects a sign of life")
