from __future__ import annotations

from fakeamqp.inspect.topology import ConnectionView, connection_view
from fakeamqp.model.state import BrokerState


def connection_views(state: BrokerState) -> tuple[ConnectionView, ...]:
    """All connections, oldest first."""
    return tuple(connection_view(each, state) for each in state.connections)
