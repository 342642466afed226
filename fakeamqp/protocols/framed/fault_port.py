"""What faults may learn of a connection of 0-9 or 0-9-1 and do to it.

The order of things does not break: deliveries keep being counted for their tags, and publishes, where they
are confirmed, for that.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fakeamqp.model.errors import ModelError
from fakeamqp.model.message import Message
from fakeamqp.protocols.common import fault_port
from fakeamqp.protocols.common.connection_states import ConnectionState
from fakeamqp.protocols.framed.replies import Reply, short_text
from fakeamqp.protocols.framed.states import ChannelState

if TYPE_CHECKING:
    from fakeamqp.protocols.framed.codec.basic import BasicProperties
    from fakeamqp.protocols.framed.publishing import Publish
    from fakeamqp.protocols.framed.server_channel import FramedChannel
    from fakeamqp.protocols.framed.server_connection import FramedConnection

__all__ = ["FramedFaultPort"]


class FramedFaultPort(fault_port.ConnectionFaultPort):
    """One connection as fault rules see it."""

    __slots__ = ()

    _connection: FramedConnection[Any]

    # --- who it is ------------------------------------------------------------------------------------

    @property
    def client_name(self) -> str | None:
        """The name the client gave itself (client property `connection_name`), or None."""
        name = self._connection.client_properties.get("connection_name")
        return name if isinstance(name, str) else None

    def channel_open(self, number: int) -> bool:
        """Whether the channel is open; channel 0 is as long as the connection is."""
        return self.open if number == 0 else self._channel(number) is not None

    @property
    def channels(self) -> tuple[int, ...]:
        """The numbers of the open channels."""
        return tuple(channel.number for channel in self._connection.open_channels)

    @property
    def largest_frame(self) -> int:
        """Bytes that a frame to the client may have, its overhead included; 0 is no limit."""
        return self._connection.frame_max

    # --- frames ---------------------------------------------------------------------------------------

    def take(self, frames: bytes) -> None:
        """Go on with whole frames that were kept when they came."""
        self._connection.take(frames)

    # --- ends -----------------------------------------------------------------------------------------

    def close_channel(self, number: int, code: int, text: str, method: int) -> None:
        """Close a channel as an error would; `method` is the index of the method to blame, or 0."""
        channel = self._channel(number)
        if channel is not None:
            channel.close(Reply(code, short_text(text), ends_connection=False), method)

    def close_connection(self, code: int, text: str, method: int) -> None:
        """Close the connection as an error would; `method` is the index of the method to blame, or 0."""
        self._connection.close_with(code, short_text(text), method)

    def refuse_login(self, text: str, client_properties: Any) -> None:
        """Refuse the client as one whose password is wrong; its properties say whether it wants to know."""
        connection = self._connection
        if connection.state is ConnectionState.STARTING:
            connection.enter("connection.start-ok")
            connection.client_properties = client_properties or {}
        connection.refuse_login(text)

    # --- publishes ------------------------------------------------------------------------------------

    def destinations(self, number: int, method: Publish, properties: BasicProperties) -> tuple[str, ...]:
        """The names of the queues that a publish goes to. Nothing changes by asking."""
        channel = self._channel(number)
        if channel is None:
            return ()
        message = Message(method.exchange, method.routing_key, properties, b"")
        with suppress(ModelError):
            return channel.virtual_host.routing.preview(message)
        return ()

    # --- deliveries -----------------------------------------------------------------------------------

    def consumed_queue(self, number: int, consumer_tag: str) -> str | None:
        """The name of the queue a consumer takes from, or None where there is no such consumer."""
        channel = self._channel(number)
        consumer = None if channel is None else channel.consumers.get(consumer_tag)
        return None if consumer is None else consumer.queue.name

    def held_messages(self, number: int, tag: int, multiple: bool) -> tuple[tuple[str, Any], ...]:
        """The queue and the message of each delivery that a delivery tag stands for."""
        channel = self._channel(number)
        if channel is None:
            return ()
        outstanding = channel.ledger.outstanding
        if not multiple:
            found = [outstanding[tag]] if tag in outstanding else []
        else:
            found = [delivery for each, delivery in outstanding.items() if tag == 0 or each <= tag]
        return tuple((delivery.queue.name, delivery.queued.message) for delivery in found)

    def spare_tag(self, number: int) -> int:
        """A delivery tag of its own for one more copy of a delivery; settling it changes nothing."""
        channel = self._channel(number)
        return 0 if channel is None else channel.ledger.spare_tag()

    # --- flow -----------------------------------------------------------------------------------------

    def set_flow(self, number: int, active: bool) -> None:
        """Ask the client to stop publishing on a channel, or to go on (channel.flow)."""
        channel = self._channel(number)
        if channel is not None:
            channel.send(self._connection.vocabulary.ChannelFlow(active=active))
            channel.awaited_flow_oks += 1

    def starve(self, who: object, queue: str | None, destination: str | None, starved: bool) -> int:
        """Clients give no credit here that could be kept from their consumers."""
        return 0

    def _channel(self, number: int) -> FramedChannel | None:
        channel: FramedChannel | None = self._connection.channels.get(number)
        return channel if channel is not None and channel.state is ChannelState.OPEN else None
