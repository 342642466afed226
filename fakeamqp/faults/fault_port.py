"""The fault port: what faults may read of a connection and do to it.

Each protocol implements it in its own `fault_port` module, which holds a static check against this
declaration. Faults know the codec and this port; they do not know the connection behind it.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol, TypeAlias

__all__ = ["Direction", "FaultPort", "TappedConnection"]

Direction: TypeAlias = Literal["received", "sent"]
"""Seen from the broker: "received" is from the client, "sent" is to the client."""


class FaultPort(Protocol):
    """The fault port of one connection.

    The methods keep the protocol's order intact: delivery tags, publish counts and command ids stay as the
    client counts them, whatever a fault does to a frame group.
    """

    # --- the connection ---------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The connection's name: both addresses."""

    @property
    def protocol(self) -> str:
        """What the connection speaks, such as "0-9-1"."""

    @property
    def client_name(self) -> str | None:
        """The name the client gave itself (client property `connection_name`), or None."""

    @property
    def virtual_host(self) -> str | None:
        """The name of the open virtual host; None before the client has opened one."""

    @property
    def open(self) -> bool:
        """True while the connection can still send."""

    @property
    def channels(self) -> tuple[int, ...]:
        """The numbers of the open channels, ascending. In 0-10: of channels with an attached session."""

    @property
    def largest_frame(self) -> int:
        """The negotiated size limit of a frame to the client, in bytes with its overhead; 0 is no limit."""

    def channel_open(self, number: int) -> bool:
        """True while the channel is open; channel 0 of 0-9-x is open as long as its connection."""

    # --- frames -----------------------------------------------------------------------------------------

    def receive(self, frames: bytes) -> None:
        """Process whole frames from the client that a fault has kept."""

    def receive_duplicate(self, number: int, frames: bytes) -> None:
        """Process a duplicate of a received frame group. The duplicate is neither counted nor confirmed."""

    def flush_confirms(self) -> None:
        """Send the confirms, responses or completions that are due."""

    def pause(self, paused: bool) -> None:
        """Stop reading from the client, or continue."""

    def send(self, octets: bytes) -> None:
        """Send bytes unchanged."""

    # --- closing ----------------------------------------------------------------------------------------

    def close_channel(self, number: int, code: int, text: str, method: int) -> None:
        """Close a channel as an error in `method` does; `method` is a class-and-method index, 0 for none."""

    def close_connection(self, code: int, text: str, method: int) -> None:
        """Close the connection as an error in `method` does; see `close_channel`."""

    def disconnect(self, *, reset: bool) -> None:
        """End the transport after pending output, without a close method: with FIN, or with a reset."""

    def refuse_login(self, text: str, client_properties: Any) -> None:
        """Refuse the login as for a wrong password. `client_properties` tell what the client supports."""

    # --- heartbeats -------------------------------------------------------------------------------------

    def drop_heartbeat(self) -> None:
        """Do not count the last received heartbeat as a sign of life."""

    def enforce_heartbeats(self) -> None:
        """Apply the heartbeat timeout from now on, also on a virtual clock."""

    # --- what conditions ask ----------------------------------------------------------------------------

    def destinations(self, number: int, method: Any, properties: Any) -> tuple[str, ...]:
        """The names of the queues that a publish is routed to. Asking changes nothing."""

    def exchange_type(self, name: str) -> str | None:
        """The type of an exchange, or None where there is no such exchange."""

    def consumed_queue(self, number: int, consumer_tag: str) -> str | None:
        """The name of a consumer's queue, or None where there is no such consumer."""

    # --- flow -------------------------------------------------------------------------------------------

    def set_flow(self, number: int, active: bool) -> None:
        """Tell the client to stop publishing on a channel, or to continue."""

    def starve(self, owner: object, queue: str | None, destination: str | None, starved: bool) -> int:
        """Ignore the credit of 0-10 subscriptions, or (`starved=False`) restore it.

        Args:
            owner: the fault that asks. Credit is ignored until every owner has restored it.
            queue: only subscriptions to this queue.
            destination: only the subscription with this destination.
            starved: True ignores the credit.

        Returns:
            The number of subscriptions concerned; 0 in protocols without explicit credit.
        """


class TappedConnection(Protocol):
    """A connection as it passes the tap."""

    name: str
    protocol: str

    @property
    def fault_port(self) -> Any:
        """Its `FaultPort`; the same object each time."""
