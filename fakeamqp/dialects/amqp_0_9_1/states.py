"""The states of a connection: as in `amqp_0_9_x.states`, and a new secret at any time while it is open."""

from __future__ import annotations

from fakeamqp.dialects.amqp_0_9_x import states
from fakeamqp.dialects.connection_states import ConnectionState

__all__ = ["CONNECTION_TRANSITIONS"]

CONNECTION_TRANSITIONS = {
    **states.CONNECTION_TRANSITIONS,
    ConnectionState.OPEN: {
        **states.CONNECTION_TRANSITIONS[ConnectionState.OPEN],
        "connection.update-secret": ConnectionState.OPEN,
    },
}
