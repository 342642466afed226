"""What faults may learn of a connection and do to it, whatever it speaks.

A fault rule decides what becomes of a method or a frame; each protocol's `ConnectionFaultPort` says how that is done without
breaking the order of things. Nothing here is called unless somebody has installed a rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.protocols.common.connection_states import ConnectionState

if TYPE_CHECKING:
    from fakeamqp.protocols.common.server_connection import ServerConnection

__all__ = ["ConnectionFaultPort"]


class ConnectionFaultPort:
    """One connection as fault rules see it."""

    __slots__ = ("_connection",)

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection

    # --- who it is ------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The connection's name: both addresses."""
        return self._connection.name

    @property
    def virtual_host(self) -> str | None:
        """The name of the virtual host the client works in; None before it has opened one."""
        return self._connection.virtual_host_name

    @property
    def open(self) -> bool:
        """Whether anything can still be said on the connection."""
        connection = self._connection
        ended = (ConnectionState.CLOSED, ConnectionState.REFUSED)
        return not (connection.finished or connection.aborted or connection.state in ended)

    # --- bytes ---------------------------------------------------------------------------------------

    def pause(self, paused: bool) -> None:
        """Read no further from the client, since enough of it waits; or go on."""
        self._connection.pause(paused)

    def put(self, octets: bytes) -> None:
        """Send bytes as they are."""
        self._connection.outbox.put(octets)

    def end(self, *, reset: bool) -> None:
        """End the transport without a word, after what is to be sent: in order, or by a reset."""
        self._connection.break_off(reset=reset)

    # --- heartbeats -----------------------------------------------------------------------------------

    def unhear(self) -> None:
        """What has come last was no sign of life."""
        self._connection.heartbeats.ignore_last()

    def hold_to_heartbeats(self) -> None:
        """From now on silence counts, whatever clock the client lives by."""
        self._connection.heartbeats.hold()

    # --- what there is --------------------------------------------------------------------------------

    def exchange_type(self, name: str) -> str | None:
        """The type of an exchange, or None where there is none."""
        virtual_host = self._connection.virtual_host
        exchange = None if virtual_host is None else virtual_host.exchanges.get(name)
        return None if exchange is None else exchange.type_name

    def __repr__(self) -> str:
        return f"<ConnectionFaultPort {self.name}>"
