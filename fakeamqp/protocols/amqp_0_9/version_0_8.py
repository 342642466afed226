"""Connections of 0-8, which is 0-9 with other method and class numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fakeamqp.protocols.amqp_0_9.codec import version_0_8
from fakeamqp.protocols.amqp_0_9.server_connection import Amqp09Connection

if TYPE_CHECKING:
    from fakeamqp.connection import Connection, PeerAddress
    from fakeamqp.model.state import BrokerState

__all__ = ["connection"]


def connection(
    state: BrokerState, peer: PeerAddress, notify: Callable[[Connection], None], protocol_header: bytes
) -> Amqp09Connection:
    """Return a server-side connection of 0-8."""
    return Amqp09Connection(
        state, peer, notify, protocol_header, vocabulary=version_0_8, version=(8, 0), protocol="0-8"
    )
