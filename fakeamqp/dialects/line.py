"""What faults may learn of a connection and do to it, whatever it speaks.

A fault rule decides what becomes of a method or a frame; each dialect's `Line` says how that is done without
breaking the order of things. Nothing here is called unless somebody has installed a rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.dialects.connection_states import ConnectionState

if TYPE_CHECKING:
    from fakeamqp.dialects.connection_end import ConnectionEnd

__all__ = ["Line"]


class Line:
    """One connection as fault rules see it."""

    __slots__ = ("_endpoint",)

    def __init__(self, endpoint: ConnectionEnd) -> None:
        self._endpoint = endpoint

    # --- who it is ------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The connection's name: both addresses."""
        return self._endpoint.name

    @property
    def virtual_host(self) -> str | None:
        """The name of the virtual host the client works in; None before it has opened one."""
        return self._endpoint.virtual_host_name

    @property
    def open(self) -> bool:
        """Whether anything can still be said on the connection."""
        endpoint = self._endpoint
        ended = (ConnectionState.CLOSED, ConnectionState.REFUSED)
        return not (endpoint.finished or endpoint.aborted or endpoint.state in ended)

    # --- octets ---------------------------------------------------------------------------------------

    def pause(self, paused: bool) -> None:
        """Read no further from the client, since enough of it waits; or go on."""
        self._endpoint.pause(paused)

    def put(self, octets: bytes) -> None:
        """Send octets as they are."""
        self._endpoint.outbox.put(octets)

    def end(self, *, reset: bool) -> None:
        """End the transport without a word, after what is to be sent: in order, or by a reset."""
        self._endpoint.break_off(reset=reset)

    # --- heartbeats -----------------------------------------------------------------------------------

    def unhear(self) -> None:
        """What has come last was no sign of life."""
        self._endpoint.heartbeats.unhear()

    def hold_to_heartbeats(self) -> None:
        """From now on silence counts, whatever clock the client lives by."""
        self._endpoint.heartbeats.hold()

    # --- what there is --------------------------------------------------------------------------------

    def exchange_type(self, name: str) -> str | None:
        """The type of an exchange, or None where there is none."""
        virtual_host = self._endpoint.virtual_host
        exchange = None if virtual_host is None else virtual_host.exchanges.get(name)
        return None if exchange is None else exchange.type_name

    def __repr__(self) -> str:
        return f"<Line {self.name}>"
