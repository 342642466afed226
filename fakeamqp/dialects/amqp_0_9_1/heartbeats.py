"""Signs of life, in both directions, on the broker's clock (heartbeat/*)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fakeamqp.wire.amqp_0_9_x.frames import HEARTBEAT_FRAME

if TYPE_CHECKING:
    from fakeamqp.dialects.amqp_0_9_1.endpoint import Endpoint
    from fakeamqp.model.timers import Timer

__all__ = ["Heartbeats"]

_MARGIN = 1e-6
"""Sums of instants are not exact: less than a microsecond is no time."""


class Heartbeats:
    """Sends them and expects them on one connection, from `start` to `stop`.

    Where a test moves the broker's time, the client lives by another. Then heartbeats are sent on both, and
    silence counts only where the clock says that clients are held to it.
    """

    __slots__ = (
        "_endpoint",
        "_held_since",
        "_interval",
        "_send",
        "_send_by_peers_time",
        "_watch",
        "heard_at",
        "heard_before",
    )

    def __init__(self, endpoint: Endpoint) -> None:
        self.heard_at = 0.0
        """When the last octet came, of whatever (heartbeat/any-octet-counts)."""
        self.heard_before = 0.0
        """When the octets before those came."""
        self._held_since: float | None = None
        self._endpoint = endpoint
        self._interval = 0
        self._send: Timer | None = None
        self._send_by_peers_time: Timer | None = None
        self._watch: Timer | None = None

    def start(self, interval: int) -> None:
        """Begin, every `interval` seconds; 0 means never (heartbeat/zero-disables)."""
        self._interval = interval
        if interval:
            self.heard_at = self._endpoint.broker.clock.now()
            self._send = self._set(interval / 2, self._look_back, "sends a heartbeat")
            self._watch = self._set(2 * interval, self._listen, "expects a sign of life")
            self._look_back_by_peers_time(send=False)

    def stop(self) -> None:
        """End for good."""
        for timer in (self._send, self._send_by_peers_time, self._watch):
            if timer is not None:
                timer.cancel()

    def unhear(self) -> None:
        """What came last was no sign of life."""
        self.heard_at = self.heard_before

    def hold(self) -> None:
        """From now on silence counts, whatever clock the client lives by."""
        if self._held_since is None:
            self._held_since = self._endpoint.broker.clock.now()

    @property
    def timers(self) -> tuple[Timer, ...]:
        """What is due next on the broker's clock."""
        return tuple(timer for timer in (self._send, self._watch) if timer is not None)

    def _look_back(self) -> None:
        """Send a sign of life when nothing was sent since the last look, half an interval ago.

        So silence never lasts longer than an interval, and one heartbeat is sent in each idle one. RabbitMQ
        does the same. Source: heartbeat/interval. A leap of time over several looks sends one heartbeat.
        """
        outbox = self._endpoint.outbox
        leap = self._leap(self._interval / 2)
        if outbox.used and not leap:
            outbox.used = False
        else:
            outbox.write(HEARTBEAT_FRAME)
        self._send = self._set(self._interval / 2 + leap, self._look_back, "sends a heartbeat")

    def _look_back_by_peers_time(self, *, send: bool = True) -> None:
        """The same on the time that the client lives by, where the broker's is another."""
        timers = self._endpoint.broker.peer_timers
        if timers is self._endpoint.broker.timers:
            return
        outbox = self._endpoint.outbox
        if send and not outbox.used:
            outbox.write(HEARTBEAT_FRAME)
        else:
            outbox.used = False
        self._send_by_peers_time = timers.call_at(
            timers.clock.now() + self._interval / 2, self._look_back_by_peers_time, chore=True
        )

    def _listen(self) -> None:
        """Two intervals without an octet are the end (heartbeat/missed-two), unless we do not read."""
        clock = self._endpoint.broker.clock
        now = clock.now()
        held_since = clock.held_since() if self._held_since is None else self._held_since
        if not clock.holds_peers and self._held_since is None:
            left = 2 * self._interval + self._leap(self._interval)
        elif not self._endpoint.reading:
            self.heard_at = now
            left = self._interval
        else:
            left = max(self.heard_at, held_since) + 2 * self._interval - now
        if left <= _MARGIN:
            self._endpoint.abort(f"missed heartbeats from client, timeout: {self._interval}s")
        else:
            self._watch = self._set(left, self._listen, "expects a sign of life")

    def _leap(self, period: float) -> float:
        """How much of a leap of time that is under way can be passed over: a multiple of `period`, or 0."""
        clock = self._endpoint.broker.clock
        return max(0.0, clock.heading() - clock.now()) // period * period

    def _set(self, delay: float, callback: Callable[[], None], what: str) -> Timer:
        return self._endpoint.after(delay, callback, what, chore=True)
