"""The states of a connection: as in `base.connection_states`, with a redirect in place of open-ok.

After a redirect only close is legal (connection.redirect/usage).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.protocols.base import connection_states
from fakeamqp.protocols.base.connection_states import ConnectionState

if TYPE_CHECKING:
    from fakeamqp.protocols.base.connection_states import ConnectionTransitions

__all__ = ["CONNECTION_TRANSITIONS"]

CONNECTION_TRANSITIONS: ConnectionTransitions = {
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
