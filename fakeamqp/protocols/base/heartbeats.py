"""Heartbeats in both directions, on the broker's clock (0-9-1/heartbeat/*)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.model.timers import Timer
    from fakeamqp.protocols.base.server_connection import ServerConnection

_MARGIN = 1e-6
"""Seconds. Sums of instants are not exact, so a remainder below this counts as elapsed."""


class Heartbeats:
    """Sends and expects heartbeats on one connection, from `start` to `stop`.

    If a test moves the broker's clock, the client runs on another clock. Then heartbeats are sent on both
    clocks, and the silence of the client counts only if the clock says so (`Clock.holds_peers`). `frame` are
    the bytes of one heartbeat; `ticks` sends and expects them as `Personality.heartbeat_ticks` says.
    """

    def __init__(self, connection: ServerConnection, frame: bytes, *, ticks: bool = False) -> None:
        self.heard_at: float = 0.0
        """When the last bytes of any kind arrived (heartbeat/any-octet-counts)."""
        self.heard_before: float = 0.0
        """When the bytes before those arrived."""
        self._held_since: float | None = None
        self._busy = 0.0
        """How long the broker had been busy in all when the silence began."""
        self._connection = connection
        self._frame = frame
        self._interval = 0
        self._sends: float = 0
        """What the client expects to be sent; it can be another interval (AMQP 1.0)."""
        self._ticks = ticks
        self._steady = ticks
        """Whether a heartbeat to the client does not put off the next one."""
        self._first = ticks
        """With ticks: the first heartbeat is still to be sent; it is sent whatever else was."""
        self._missed = 0
        """With ticks: how many looks in a row found no new bytes."""
        self._seen: float | None = None
        """With ticks: what `heard_at` was at the last look."""
        self._taken = 0
        """How many bytes the transport had accepted at the last look."""
        self._send: Timer | None = None
        self._peer_send: Timer | None = None
        self._check: Timer | None = None

    def start(self, interval: int, *, sends: float | None = None) -> None:
        """Start heartbeats every `interval` seconds; 0 disables them (heartbeat/zero-disables).

        `sends` is the interval of those to the client, if it is another one; then one is sent in each idle
        half of it.
        """
        self._interval = interval
        self._sends = interval if sends is None else sends
        self._steady = self._ticks or sends is not None
        self._busy = self._connection.broker.operations.busy_seconds
        if self._sends:
            self._send = self._set(self._sends / 2, self._send_if_idle, "sends a heartbeat")
        if interval:
            self.heard_at = self._connection.broker.clock.now()
            first = interval if self._ticks else 2 * interval
            self._check = self._set(first, self._check_silence, "checks for received bytes")
        if self._sends:
            self._send_if_idle_by_peer_clock(send=False)

    def stop(self) -> None:
        for timer in (self._send, self._peer_send, self._check):
            if timer is not None:
                timer.cancel()

    def hold(self) -> None:
        """Count silence from now on, also if the client runs on another clock."""
        if self._held_since is None:
            self._held_since = self._connection.broker.clock.now()

    @property
    def timers(self) -> tuple[Timer, ...]:
        """The timers on the broker's clock."""
        return tuple(timer for timer in (self._send, self._check) if timer is not None)

    def _send_if_idle(self) -> None:
        """Send a heartbeat if nothing was sent since the last check, half an interval ago.

        So the broker is never silent for longer than an interval, and sends one heartbeat per idle interval,
        or with ticks one per idle half. Source: heartbeat/interval. If the clock leaps over several checks,
        one heartbeat is sent.
        """
        leap = self._clock_leap(self._sends / 2)
        if self._connection.outbox.used and not leap and not self._first:
            self._connection.outbox.used = False
        else:
            self._send_heartbeat()
        self._send = self._set(self._sends / 2 + leap, self._send_if_idle, "sends a heartbeat")

    def _send_if_idle_by_peer_clock(self, *, send: bool = True) -> None:
        """Do the same on the client's clock, if the broker's differs."""
        connection = self._connection
        if connection.broker.peer_timers is connection.broker.timers:
            return
        if send and (self._first or not connection.outbox.used):
            self._send_heartbeat()
        else:
            connection.outbox.used = False
        self._peer_send = connection.after_by_peer_clock(
            self._sends / 2, self._send_if_idle_by_peer_clock, "sends a heartbeat"
        )

    def _send_heartbeat(self) -> None:
        outbox = self._connection.outbox
        outbox.write(self._frame)
        self._first = False
        if self._steady:
            outbox.used = False  # A heartbeat does not put off the next one.

    def _check_silence(self) -> None:
        """Abort after two intervals without a byte (heartbeat/missed-two).

        While the broker does not read from the client, the client's silence means nothing. If the broker
        stopped because the client takes no output, every byte that it takes is a sign of life (RabbitMQ
        resets such a connection as well: measured).
        """
        clock = self._connection.broker.clock
        now = clock.now()
        held_since = clock.held_since() if self._held_since is None else self._held_since
        heard_at = max(self.heard_at, held_since)
        outbox = self._connection.outbox
        taken, self._taken = self._taken, outbox.sent_bytes
        if not clock.holds_peers and self._held_since is None:
            self._missed = 0
            left = (1 if self._ticks else 2) * self._interval + self._clock_leap(self._interval)
        elif not self._connection.reading and not (outbox.backlogged and outbox.sent_bytes == taken):
            self.heard_at = now
            self._missed = 0
            left = self._interval
        elif self._ticks:
            self._missed = 0 if heard_at != self._seen else self._missed + 1
            self._seen = heard_at
            left = 0 if self._missed == 2 else self._interval
        else:
            left = heard_at + 2 * self._interval - now
        broker = self._connection.broker
        busy = broker.operations.busy_seconds
        if left > _MARGIN:
            self._busy = self._busy if self._missed else busy
        elif busy > self._busy and broker.peer_timers is broker.timers:
            # The broker read little meanwhile: what the client has sent may still wait.
            left, self._busy = busy - self._busy, busy
            self._missed = min(self._missed, 1)
        if left <= _MARGIN:
            self._connection.silent_too_long(f"missed heartbeats from client, timeout: {self._interval}s")
        else:
            self._check = self._set(left, self._check_silence, "checks for received bytes")

    def _clock_leap(self, period: float) -> float:
        """Seconds of a clock leap in progress that can be skipped: a multiple of `period`, or 0."""
        clock = self._connection.broker.clock
        return max(0.0, clock.heading() - clock.now()) // period * period

    def _set(self, delay: float, callback: Callable[[], None], what: str) -> Timer:
        return self._connection.after(delay, callback, what, housekeeping=True)
