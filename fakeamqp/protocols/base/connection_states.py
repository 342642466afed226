"""The states of a connection of any protocol, as a table.

Theory of operation. The handshake has one order (connection/grammar): start-ok, any number of secure-ok,
tune-ok, open. After an error in the handshake the broker sends no close: it closes the transport, after a
pause where one is configured (errors/pre-open-error, security/negotiation-pause). An open connection stays
open until one peer sends close.
The peer that sends close discards everything but close and close-ok until the answer arrives
(connection.close/stability). The peer that receives close answers and is closed. An event without an entry
in a state is illegal, and the state does not change.

Event names in lower case are methods or controls that the client sends. Event names in capitals are actions
of the broker.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping


class ConnectionState(Enum):
    """The state of a connection; the table of its protocol has the transitions."""

    STARTING = auto()
    """connection.start has been sent."""
    SECURING = auto()
    """connection.secure has been sent."""
    TUNING = auto()
    """connection.tune has been sent."""
    TUNED = auto()
    """tune-ok was received; connection.open is expected."""
    REFUSED = auto()
    """The handshake failed; the broker closes the transport after a pause."""
    OPEN = auto()
    REDIRECTED = auto()
    """connection.redirect has been sent; the client must close (AMQP 0-9)."""
    CLOSING = auto()
    """connection.close has been sent; close-ok is expected."""
    CLOSED = auto()


_C = ConnectionState
ConnectionTransitions: TypeAlias = "Mapping[ConnectionState, Mapping[str, ConnectionState]]"
CONNECTION_TRANSITIONS: ConnectionTransitions = {
    _C.STARTING: {
        "CHALLENGE": _C.SECURING,
        "AUTHENTICATED": _C.TUNING,
        "REFUSE": _C.REFUSED,
        "connection.start-ok": _C.STARTING,
        "CLOSE": _C.CLOSING,
        "LOST": _C.CLOSED,
    },
    _C.SECURING: {
        "CHALLENGE": _C.SECURING,
        "AUTHENTICATED": _C.TUNING,
        "REFUSE": _C.REFUSED,
        "connection.secure-ok": _C.SECURING,
        "CLOSE": _C.CLOSING,
        "LOST": _C.CLOSED,
    },
    _C.TUNING: {
        "AGREED": _C.TUNED,
        "REFUSE": _C.REFUSED,
        "connection.tune-ok": _C.TUNING,
        "CLOSE": _C.CLOSING,
        "LOST": _C.CLOSED,
    },
    _C.TUNED: {
        "REFUSE": _C.REFUSED,
        "connection.open": _C.OPEN,
        "CLOSE": _C.CLOSING,
        "LOST": _C.CLOSED,
    },
    _C.REFUSED: {
        "LOST": _C.CLOSED,
    },
    _C.OPEN: {
        "connection.close": _C.CLOSED,
        "CLOSE": _C.CLOSING,
        "LOST": _C.CLOSED,
    },
    _C.CLOSING: {
        "connection.close": _C.CLOSING,
        "connection.close-ok": _C.CLOSED,
        "LOST": _C.CLOSED,
    },
    # A client may repeat its close as long as the transport is open.
    _C.CLOSED: {
        "connection.close": _C.CLOSED,
        "connection.close-ok": _C.CLOSED,
    },
}
"""The transitions that all protocols share; each protocol adds its own events."""
