"""The limits for clients that have not logged in: their number, their time, and the warnings they cause."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from fakeamqp.model.extensions import Extension

if TYPE_CHECKING:
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.timers import Timer

_log = logging.getLogger("fakeamqp")

#: How many warnings are logged in each period.
MOST_WARNINGS = 50
#: The length of a period, in seconds on the clock of the clients.
PERIOD = 10.0

_HINTS = (
    (b"GET ", "this looks like an HTTP request; this port speaks AMQP"),
    (b"POST", "this looks like an HTTP request; this port speaks AMQP"),
    (b"\x16\x03", "this looks like a TLS hello; this port speaks plain AMQP (make it with tls=True for TLS)"),
    (b"AMQP\x00\x01", "AMQP 1.0 begins with SASL, in personalities of RabbitMQ 4.0 and later"),
    (b"AMQP\x03", "AMQP 1.0 is spoken in personalities of RabbitMQ 4.0 and later"),
)


def no_header(octets: bytes) -> str:
    """What a client has done whose first bytes are no protocol header, and what these may be."""
    hint = next((f": {hint}" for start, hint in _HINTS if octets.startswith(start)), "")
    return f"sent {octets[:8]!r} instead of a protocol header{hint}"


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


class PendingHandshakes(Extension):
    """The connections to one broker that are not open yet, the oldest first.

    Beyond `Bounds.pending_handshakes` the oldest is closed: a client that means to log in does so at once.
    RabbitMQ has a timeout for handshakes only, which the broker has as well.
    """

    def __init__(self, owner: BrokerState) -> None:
        self._log = owner.extensions[HandshakeLog]
        self._most = owner.bounds.pending_handshakes
        self._pending: dict[object, Callable[[str], None]] = {}

    def __len__(self) -> int:
        return len(self._pending)

    def begin(self, connection: object, name: str, give_up: Callable[[str], None]) -> None:
        """A handshake begins; `give_up` ends its transport, for the reason that it gets."""
        self._pending[connection] = give_up
        if len(self._pending) > self._most:
            give_up_oldest = self._pending.pop(next(iter(self._pending)))
            self._log.warning(
                "%s: more than %d connections have not logged in; the oldest is closed", name, self._most
            )
            give_up_oldest("too many connections have not logged in")

    def end(self, connection: object) -> None:
        self._pending.pop(connection, None)


class HandshakeTimeout:
    """Calls `on_expiry` after `seconds` on the client's clock, unless cancelled; `label` says what it does.

    The broker's clock can differ from the client's (virtual time). The timeout then also expires on the
    broker's clock, if that clock holds new connections to it (`Clock.holds_newcomers`). On the client's clock
    the time does not count in which the broker was too busy to serve the client.
    """

    def __init__(
        self, state: BrokerState, seconds: float, label: str, on_expiry: Callable[[], object]
    ) -> None:
        self._state = state
        self._seconds = seconds
        self._label = label
        self._on_expiry = on_expiry
        self._busy = state.operations.busy_seconds
        self._timer = self._set_timer(state.clock.now() + seconds)
        self._peer_timer = None if state.peer_timers is state.timers else self._set_peer_timer(seconds)

    @property
    def due(self) -> float | None:
        """The instant of expiry on the broker's clock; None after expiry or cancellation."""
        return self._timer.due if self._timer.active else None

    def cancel(self) -> None:
        self._timer.cancel()
        if self._peer_timer is not None:
            self._peer_timer.cancel()

    def _on_timer(self) -> None:
        clock = self._state.clock
        if not clock.holds_newcomers:
            self._timer = self._set_timer(clock.heading() + self._seconds)
        elif self._peer_timer is None and (busy := self._busy_meanwhile()):
            self._timer = self._set_timer(clock.now() + busy)
        else:
            self._expire()

    def _on_peer_timer(self) -> None:
        if busy := self._busy_meanwhile():
            self._peer_timer = self._set_peer_timer(busy)
        else:
            self._expire()

    def _busy_meanwhile(self) -> float:
        before, self._busy = self._busy, self._state.operations.busy_seconds
        return self._busy - before

    def _set_peer_timer(self, seconds: float) -> Timer:
        timers = self._state.peer_timers
        due = timers.clock.now() + seconds
        return timers.call_at(due, self._on_peer_timer, self._label, housekeeping=True)

    def _set_timer(self, due: float) -> Timer:
        timers = self._state.timers
        return timers.call_at(due, self._on_timer, self._label, housekeeping=True, awaits_peer=True)

    def _expire(self) -> None:
        self.cancel()
        self._on_expiry()
