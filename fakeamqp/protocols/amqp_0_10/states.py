"""The states of a connection, as in `connection_states` with heartbeats and a redirect, and of a session.

A session is independent of its transport. It is attached to a channel of a connection, and may lose that. The
peers agree how long it is kept then (session.request-timeout/meaning); a session that is not kept has ended.
An exception ends a session at once (execution/ends-session); the channel then waits for the client's
detached, and discards everything else.

Events are the names of the client's controls; those in capitals are the broker's own. An event without an
entry is illegal and does not change the state.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from fakeamqp.protocols.base import connection_states
from fakeamqp.protocols.base.connection_states import ConnectionState

if TYPE_CHECKING:
    from fakeamqp.protocols.base.connection_states import ConnectionTransitions


class SessionState(Enum):
    """The states of a session."""

    ATTACHED = auto()
    DETACHED = auto()
    """It has no transport, and is kept until its timeout is over."""
    FAILED = auto()
    """An exception has ended it; the client's detached is due."""
    ENDED = auto()


_OPEN = ConnectionState.OPEN
CONNECTION_TRANSITIONS: ConnectionTransitions = {
    **connection_states.CONNECTION_TRANSITIONS,
    _OPEN: {
        **connection_states.CONNECTION_TRANSITIONS[_OPEN],
        "REDIRECT": ConnectionState.CLOSING,
        "connection.heartbeat": _OPEN,
    },
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
