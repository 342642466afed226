"""The states of a connection: as in `connection_states`, and a redirect in place of open-ok.

Who is sent elsewhere has no more to say than close; see connection.redirect/usage.
"""

from __future__ import annotations

from fakeamqp.protocols.common import connection_states
from fakeamqp.protocols.common.connection_states import ConnectionState

__all__ = ["CONNECTION_TRANSITIONS"]

CONNECTION_TRANSITIONS = {
    **connection_states.CONNECTION_TRANSITIONS,
    ConnectionState.OPEN: {
        **connection_states.CONNECTION_TRANSITIONS[ConnectionState.OPEN],
        "REDIRECT": ConnectionState.REDIRECTED,
    },
    ConnectionState.REDIRECTED: {
        "connection.close": ConnectionState.CLOSED,
        "CLOSE": ConnectionState.CLOSING,
        "LOST": ConnectionState.CLOSED,
    },
}
