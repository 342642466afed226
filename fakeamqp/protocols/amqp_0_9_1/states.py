"""The states of a connection: as in `common.connection_states`, with update-secret while it is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.protocols.common import connection_states
from fakeamqp.protocols.common.connection_states import ConnectionState

if TYPE_CHECKING:
    from fakeamqp.protocols.common.connection_states import ConnectionTransitions

__all__ = ["CONNECTION_TRANSITIONS"]

CONNECTION_TRANSITIONS: ConnectionTransitions = {
    **connection_states.CONNECTION_TRANSITIONS,
    ConnectionState.OPEN: {
        **connection_states.CONNECTION_TRANSITIONS[ConnectionState.OPEN],
        "connection.update-secret": ConnectionState.OPEN,
    },
}
