"""The states of a connection, whatever it speaks, as a table.

Theory of operation. A connection walks through its handshake in one order only (connection/grammar):
start-ok, perhaps secure-ok several times, tune-ok, open. What goes wrong on the way is not discussed: the
socket is ended, perhaps after a pause (errors/pre-open-error, security/negotiation-pause). Once open, a
connection is so until either peer sends close.
Whoever sends close discards everything but close and close-ok until the answer comes
(connection.close/stability); whoever receives it answers and is done. What a state has no entry for is an
illegal event, and the state stays as it was.

Events are the names of methods or controls that the client sends; those in capitals are the broker's own
doing.
"""

from __future__ import annotations

from enum import Enum, auto

__all__ = ["CONNECTION_TRANSITIONS", "ConnectionState"]


class ConnectionState(Enum):
    """Where a connection is in its life. Which event leads where is in the table of its protocol."""

    STARTING = auto()
    """connection.start has been sent."""
    SECURING = auto()
    """connection.secure has been sent."""
    TUNING = auto()
    """connection.tune has been sent."""
    TUNED = auto()
    """tune-ok has come; connection.open is due."""
    REFUSED = auto()
    """The handshake failed; after a pause the transport ends."""
    OPEN = auto()
    REDIRECTED = auto()
    """connection.redirect has been sent: the client is to close (AMQP 0-9)."""
    CLOSING = auto()
    """connection.close has been sent, close-ok is due."""
    CLOSED = auto()


_C = ConnectionState
CONNECTION_TRANSITIONS: dict[ConnectionState, dict[str, ConnectionState]] = {
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
    _C.CLOSED: {},
}
"""What all protocols have in common; each adds the events that only it has."""
