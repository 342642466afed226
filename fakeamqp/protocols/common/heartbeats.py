"""Signs of life, in both directions, on the broker's clock (0-9-1/heartbeat/*)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.timers import Timer
    from fakeamqp.protocols.common.outbox import Outbox

__all__ = ["HeartbeatConnection", "Heartbeats"]

_MARGIN = 1e-6
"""Sums of instants are not exact: less than a microsecond is no time."""


class HeartbeatConnection(Protocol):
    """A connection that gives signs of life and expects them."""

    broker: BrokerState
    outbox: Outbox

    @property
    def reading(self) -> bool:
        """Whether it is read from; where it is not, its silence is no wonder."""

    def abort(self, why: str) -> None:
        """End the transport now, without a word."""

    def after(self, delay: float, callback: Callable[[], None], what: str, *, chore: bool = False) -> Timer:
        """Have something done in `delay` seconds on the broker's clock."""


class Heartbeats:
    """Sends them and expects them on one connection, from `start` to `stop`.

    Where a test moves the broker's time, the client lives by another. Then heartbeats are sent on both, and
    silence counts only where the clock says that clients are held to it.

    Args:
        connection: whose they are.
        frame: the bytes of one heartbeat, a whole frame.
    """

    __slots__ = (
        "_check",
        "_connection",
        "_frame",
        "_held_since",
        "_interval",
        "_peer_send",
        "_send",
        "heard_at",
        "heard_before",
    )

    def __init__(self, connection: HeartbeatConnection, frame: bytes) -> None:
        self.heard_at = 0.0
        """When the last byte came, of whatever (heartbeat/any-octet-counts)."""
        self.heard_before = 0.0
        """When the bytes before those came."""
        self._held_since: float | None = None
        self._connection = connection
        self._frame = frame
        self._interval = 0
        self._send: Timer | None = None
        self._peer_send: Timer | None = None
        self._check: Timer | None = None

    def start(self, interval: int) -> None:
        """Begin, every `interval` seconds; 0 means never (heartbeat/zero-disables)."""
        self._interval = interval
        if interval:
            self.heard_at = self._connection.broker.clock.now()
            self._send = self._set(interval / 2, self._send_if_idle, "sends a heartbeat")
            self._check = self._set(2 * interval, self._check_silence, "expects a sign of life")
            self._send_if_idle_by_peer_clock(send=False)

    def stop(self) -> None:
        """End for good."""
        for timer in (self._send, self._peer_send, self._check):
            if timer is not None:
                timer.cancel()

    def ignore_last(self) -> None:
        """What came last was no sign of life."""
        self.heard_at = self.heard_before

    def hold(self) -> None:
        """From now on silence counts, whatever clock the client lives by."""
        if self._held_since is None:
            self._held_since = self._connection.broker.clock.now()

    @property
    def timers(self) -> tuple[Timer, ...]:
        """What is due next on the broker's clock."""
        return tuple(timer for timer in (self._send, self._check) if timer is not None)

    def _send_if_idle(self) -> None:
        """Send a sign of life when nothing was sent since the last look, half an interval ago.

        So silence never lasts longer than an interval, and one heartbeat is sent in each idle one. RabbitMQ
        does the same. Source: heartbeat/interval. A leap of time over several looks sends one heartbeat.
        """
        outbox = self._connection.outbox
        leap = self._clock_leap(self._interval / 2)
        if outbox.used and not leap:
            outbox.used = False
        else:
            outbox.write(self._frame)
        self._send = self._set(self._interval / 2 + leap, self._send_if_idle, "sends a heartbeat")

    def _send_if_idle_by_peer_clock(self, *, send: bool = True) -> None:
        """The same on the time that the client lives by, where the broker's is another."""
        timers = self._connection.broker.peer_timers
        if timers is self._connection.broker.timers:
            return
        outbox = self._connection.outbox
        if send and not outbox.used:
            outbox.write(self._frame)
        else:
            outbox.used = False
        self._peer_send = timers.call_at(
            timers.clock.now() + self._interval / 2, self._send_if_idle_by_peer_clock, chore=True
        )

    def _check_silence(self) -> None:
        """Two intervals without a byte are the end (heartbeat/missed-two), unless we do not read."""
        clock = self._connection.broker.clock
        now = clock.now()
        held_since = clock.held_since() if self._held_since is None else self._held_since
        if not clock.holds_peers and self._held_since is None:
            left = 2 * self._interval + self._clock_leap(self._interval)
        elif not self._connection.reading:
            self.heard_at = now
            left = self._interval
        else:
            left = max(self.heard_at, held_since) + 2 * self._interval - now
        if left <= _MARGIN:
            self._connection.abort(f"missed heartbeats from client, timeout: {self._interval}s")
        else:
            self._check = self._set(left, self._check_silence, "expects a sign of life")

    def _clock_leap(self, period: float) -> float:
        """How much of a leap of time that is under way can be passed over: a multiple of `period`, or 0."""
        clock = self._connection.broker.clock
        return max(0.0, clock.heading() - clock.now()) // period * period

    def _set(self, delay: float, callback: Callable[[], None], what: str) -> Timer:
        return self._connection.after(delay, callback, what, chore=True)
