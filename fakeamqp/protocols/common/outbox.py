"""Bytes on their way to the client, and what happens when it does not take them.

A client that does not read is first sent no further deliveries, so that messages wait in their queues
and not here; if other answers pile up all the same, nothing more is read from it either.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from fakeamqp.model.credit import Gate
from fakeamqp.model.tap import Tapped

if TYPE_CHECKING:
    from fakeamqp.model.state import BrokerState

__all__ = ["Outbox", "OutboxConnection"]

_DELIVERY_LIMIT = 1024 * 1024
"""Bytes waiting to be written beyond which a connection is sent no further deliveries."""
_READ_LIMIT = 8 * _DELIVERY_LIMIT
"""Bytes waiting to be written beyond which nothing more is read from a connection either."""


class OutboxConnection(Tapped, Protocol):
    """A connection that has something to send."""

    broker: BrokerState


class Outbox:
    """What one connection has to send.

    Args:
        connection: whose it is.
        notify: called when there is something to send, or when `backlogged` has changed.
    """

    __slots__ = (
        "_callbacks",
        "_connection",
        "_notified",
        "_notify",
        "_octets",
        "_sent_bytes",
        "gate",
        "unsent",
        "used",
    )

    def __init__(self, connection: OutboxConnection, notify: Callable[[], None]) -> None:
        self.gate = Gate()
        """Shut while the connection takes no deliveries."""
        self.used = False
        """Whether anything was written since somebody set it to False."""
        self._connection = connection
        self._notify = notify
        self._octets: list[bytes] = []
        self.unsent = 0
        """Bytes that the transport has not taken yet."""
        self._sent_bytes = 0
        """Bytes that it has taken."""
        self._callbacks: deque[tuple[int, Callable[[], None]]] = deque()
        """What is to be done when so many are gone."""
        self._notified = False

    @property
    def backlogged(self) -> bool:
        """Whether so much waits that the client is not to be listened to."""
        return self.unsent >= _READ_LIMIT

    def write(self, octets: bytes, *, past_tap: bool = False) -> None:
        """Add whole frames, or what the tap makes of them."""
        tap = self._connection.broker.tap
        if tap is not None and not past_tap:
            octets = tap.sending(self._connection, octets)
            if not octets:
                return
        self._octets.append(octets)
        self.used = True
        self.unsent += len(octets)
        if self.unsent > _DELIVERY_LIMIT and self.gate.open:
            self.gate.shut()
        if not self._notified:
            self.notify()

    def put(self, octets: bytes) -> None:
        """Add bytes as they are."""
        # The rare case is the one that pays for another call.
        self.write(octets, past_tap=True)

    def take(self) -> list[bytes]:
        """Everything to send, in order; it is the caller's from now on."""
        octets, self._octets = self._octets, []
        self._notified = False
        return octets

    def sent(self, count: int) -> None:
        """So many bytes have gone. Below half of what is too much, deliveries go on."""
        was_backlogged = self.backlogged
        self.unsent -= count
        self._sent_bytes += count
        while self._callbacks and self._callbacks[0][0] <= self._sent_bytes:
            self._callbacks.popleft()[1]()
        if was_backlogged and not self.backlogged:
            self.notify()
        if not self.gate.open and self.unsent < _DELIVERY_LIMIT // 2:
            self.gate.reopen()

    def when_sent(self, act: Callable[[], None]) -> None:
        """Do something once the transport has taken all that is there now; there must be something."""
        self._callbacks.append((self._sent_bytes + self.unsent, act))

    def notify(self) -> None:
        """Have the runtime look at this connection when the turn ends."""
        self._notified = True
        self._notify()
