"""What the fault ports of all protocols have in common.

`fakeamqp.faults.port` declares what a fault port is; its methods are documented there. Nothing here is loaded
unless a test has installed a fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.faults.port import FaultPort
from fakeamqp.protocols.base.connection_states import ConnectionState

if TYPE_CHECKING:
    from fakeamqp.protocols.base.server_connection import ServerConnection

_ENDED = frozenset((ConnectionState.CLOSED, ConnectionState.REFUSED))


class ConnectionFaultPort(FaultPort):
    """The fault port of one connection."""

    __slots__ = ("_connection",)

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection

    @property
    def name(self) -> str:
        return self._connection.name

    @property
    def virtual_host(self) -> str | None:
        return self._connection.virtual_host_name

    @property
    def open(self) -> bool:
        """False once the connection is closed or its transport is going away."""
        connection = self._connection
        return not (connection.finished or connection.aborted or connection.state in _ENDED)

    def receive(self, frames: bytes) -> None:
        """Process frames, whatever the connection does now."""
        self._connection.take(frames)

    def pause(self, paused: bool) -> None:
        self._connection.pause(paused)

    def send(self, octets: bytes) -> None:
        self._connection.outbox.put(octets)

    def disconnect(self, *, reset: bool) -> None:
        self._connection.break_off(reset=reset)

    def drop_heartbeat(self) -> None:
        """The bytes that arrived last do not count."""
        heartbeats = self._connection.heartbeats
        heartbeats.heard_at = heartbeats.heard_before

    def enforce_heartbeats(self) -> None:
        self._connection.heartbeats.hold()

    def exchange_type(self, name: str) -> str | None:
        virtual_host = self._connection.virtual_host
        exchange = None if virtual_host is None else virtual_host.exchanges.get(name)
        return None if exchange is None else exchange.type_name

    def __repr__(self) -> str:
        return f"<fault port of {self.name}>"
