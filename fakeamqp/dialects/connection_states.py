"""Where a connection is in its life, whatever it speaks."""

from __future__ import annotations

from enum import Enum, auto

__all__ = ["ConnectionState"]


class ConnectionState(Enum):
    """Where a connection is in its life. Which event leads where is in the table of its dialect."""

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
