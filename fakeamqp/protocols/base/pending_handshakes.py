"""Connections whose clients have not logged in: anybody can open them, so their number is limited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fakeamqp.model.extensions import Extension
from fakeamqp.protocols.base.limited_log import HandshakeLog

if TYPE_CHECKING:
    from fakeamqp.model.state import BrokerState

__all__ = ["Pending", "PendingHandshakes"]


class Pending(Protocol):
    """A connection that is not open yet."""

    def give_way(self) -> None:
        """Close the transport, since there are too many such connections."""


class PendingHandshakes(Extension):
    """The connections to one broker that are not open yet, the oldest first.

    Beyond `Bounds.pending_handshakes` the oldest is closed: a client that means to log in does so at once.
    RabbitMQ has a timeout for handshakes only, which the broker has as well.
    """

    def __init__(self, owner: BrokerState) -> None:
        self._log = owner.extensions[HandshakeLog]
        self._most = owner.bounds.pending_handshakes
        self._pending: dict[Pending, None] = {}

    def __len__(self) -> int:
        return len(self._pending)

    def begin(self, connection: Pending, name: str) -> None:
        """A handshake begins."""
        self._pending[connection] = None
        if len(self._pending) > self._most:
            oldest = next(iter(self._pending))
            del self._pending[oldest]
            self._log.warning(
                "%s: more than %d connections have not logged in; the oldest is closed", name, self._most
            )
            oldest.give_way()

    def end(self, connection: Pending) -> None:
        """The handshake is complete, or the connection has ended."""
        self._pending.pop(connection, None)
