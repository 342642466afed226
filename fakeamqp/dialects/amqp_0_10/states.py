"""The states of a connection and of a session, as tables.

Theory of operation. A connection walks through its handshake in one order only (connection/grammar): the
header is answered with the header, then come start-ok, perhaps secure-ok several times, tune-ok, open. What
goes wrong on the way ends the transport. Once open, a connection is so until either peer sends close; whoever
sends it discards everything but close and close-ok until the answer comes.

A session lives apart from its transport. It is attached to a channel of a connection, and may lose that; how
long it is kept then is what the peers have agreed on (session.request-timeout/meaning), and a session that is
not kept has ended. An exception ends a session at once (execution/ends-session); the channel then waits for
the client's detached, and everything else on it is discarded.

Events are the names of controls the client sends; those in capitals are the broker's own doing. What a state
has no entry for is an illegal event, and the state stays as it was.
"""

from __future__ import annotations

from enum import Enum, auto

from fakeamqp.dialects.connection_states import ConnectionState

__all__ = ["CONNECTION_TRANSITIONS", "SESSION_TRANSITIONS", "SessionState"]


class SessionState(Enum):
    """Where a session is in its life."""

    ATTACHED = auto()
    DETACHED = auto()
    """It has no transport, and is kept until its timeout is over."""
    FAILED = auto()
    """An exception has ended it; the client's detached is due."""
    ENDED = auto()


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
    _C.REFUSED: {"LOST": _C.CLOSED},
    _C.OPEN: {
        "REDIRECT": _C.CLOSING,
        "connection.heartbeat": _C.OPEN,
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

_S = SessionState
SESSION_TRANSITIONS: dict[SessionState, dict[str, SessionState]] = {
    _S.ATTACHED: {
        "session.attach": _S.ATTACHED,
        "KEEP": _S.DETACHED,
        "END": _S.ENDED,
        "FAIL": _S.FAILED,
    },
    _S.DETACHED: {
        "session.attach": _S.ATTACHED,
        "END": _S.ENDED,
    },
    _S.FAILED: {
        "session.detach": _S.ENDED,
        "session.detached": _S.ENDED,
        "KEEP": _S.ENDED,
        "END": _S.ENDED,
    },
    _S.ENDED: {},
}
