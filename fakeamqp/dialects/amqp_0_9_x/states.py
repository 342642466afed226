"""The states of a connection and of a channel, as tables.

Theory of operation. A connection walks through its handshake in one order only (connection/grammar):
start-ok, perhaps secure-ok several times, tune-ok, open. What goes wrong on the way is not discussed: the
socket is ended, perhaps after a pause (errors/pre-open-error, security/negotiation-pause). Once open, a
connection is so until either peer sends close.
Whoever sends close discards everything but close and close-ok until the answer comes
(connection.close/stability); whoever receives it answers and is done. A channel is the same without the
handshake. What a state has no entry for is an illegal event, and the state stays as it was.

Events are the names of methods the client sends; those in capitals are the broker's own doing. A dialect adds
the events that only it has.
"""

from __future__ import annotations

from enum import Enum, auto

from fakeamqp.dialects.connection_states import ConnectionState

__all__ = ["CHANNEL_TRANSITIONS", "CONNECTION_TRANSITIONS", "ChannelState"]


class ChannelState(Enum):
    """Where a channel is in its life."""

    OPEN = auto()
    CLOSING = auto()
    """channel.close has been sent, close-ok is due."""
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

CHANNEL_TRANSITIONS: dict[ChannelState, dict[str, ChannelState]] = {
    ChannelState.OPEN: {
        "METHOD": ChannelState.OPEN,
        "channel.close": ChannelState.CLOSED,
        "CLOSE": ChannelState.CLOSING,
        "LOST": ChannelState.CLOSED,
    },
    ChannelState.CLOSING: {
        "channel.close": ChannelState.CLOSING,
        "channel.close-ok": ChannelState.CLOSED,
        "LOST": ChannelState.CLOSED,
    },
    ChannelState.CLOSED: {
        "channel.open": ChannelState.OPEN,
    },
}
