"""The fault port of a 0-9-1 connection."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fakeamqp.model.errors import ModelError
from fakeamqp.model.messages.message import Message
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.replies import CloseReply, short_text
from fakeamqp.protocols.amqp_0_9_1.states import ChannelState
from fakeamqp.protocols.base.connection_states import ConnectionState
from fakeamqp.protocols.base.port import ConnectionFaultPort

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakeamqp.model.deliveries.delivery import Ledger
    from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
    from fakeamqp.protocols.amqp_0_9_1.publishing import Publish
    from fakeamqp.protocols.amqp_0_9_1.server_channel import Amqp091Channel
    from fakeamqp.protocols.amqp_0_9_1.server_connection import Amqp091Connection


class Amqp091FaultPort(ConnectionFaultPort):
    """The fault port of one 0-9-1 connection."""

    __slots__ = ()

    protocol: str = "0-9-1"

    _connection: Amqp091Connection[Any]

    # --- the connection ---------------------------------------------------------------------------------

    @property
    def client_name(self) -> str | None:
        name = self._connection.client_properties.get("connection_name")
        return name if isinstance(name, str) else None

    def channel_open(self, number: int) -> bool:
        """Channel 0 is open as long as the connection."""
        return self.open if number == 0 else self._channel(number) is not None

    @property
    def channels(self) -> tuple[int, ...]:
        return tuple(channel.number for channel in self._connection.open_channels)

    @property
    def largest_frame(self) -> int:
        return self._connection.frame_max

    # --- closing ----------------------------------------------------------------------------------------

    def close_channel(self, number: int, code: int, text: str, method: int) -> None:
        channel = self._channel(number)
        if channel is not None:
            channel.close(CloseReply(code, short_text(text), ends_connection=False), method)

    def close_connection(self, code: int, text: str, method: int) -> None:
        self._connection.close_with(code, short_text(text), method)

    def refuse_login(self, text: str, client_properties: Any) -> None:
        """Refuse the login; the capabilities in `client_properties` decide whether the client is told."""
        connection = self._connection
        if connection.state is ConnectionState.STARTING:
            connection.enter("connection.start-ok")
            connection.client_properties = client_properties or {}
        connection.refuse_login(text)

    # --- received publishes -----------------------------------------------------------------------------

    def receive_unsecured(self, number: int, frames: bytes) -> None:
        channel = self._channel(number)
        if channel is not None:
            channel.secures = False
        try:
            self.receive(frames)
        finally:
            if channel is not None:
                channel.secures = True

    def receive_duplicate(self, number: int, frames: bytes) -> None:
        channel = self._channel(number)
        if channel is not None and channel.mode == "confirm":
            channel.mode = None
            try:
                self.receive(frames)
            finally:
                channel.mode = "confirm"
        else:
            self.receive(frames)

    # --- confirms ---------------------------------------------------------------------------------------

    def flush_confirms(self) -> None:
        for channel in list(self._connection.channels.values()):
            channel.confirm_now()

    def next_publish(self, number: int) -> int | None:
        """Publishes are counted in confirm mode only."""
        channel = self._channel(number)
        return None if channel is None or channel.mode != "confirm" else channel.published + 1

    def drop(self, number: int, what: Any) -> None:
        self._count_publish(number, None)

    def nack(self, number: int, what: Any) -> None:
        self._count_publish(number, False)

    def returned(self, number: int, what: Any) -> None:
        self._count_publish(number, True)

    def confirm_singly(self, number: int) -> None:
        channel = self._channel(number)
        if channel is not None:
            channel.confirms_singly = True

    def _count_publish(self, number: int, accepted: bool | None) -> None:
        channel = self._channel(number)
        if channel is not None and channel.mode == "confirm":
            channel.skip_publish(accepted)

    # --- destinations and deliveries --------------------------------------------------------------------

    def destinations(self, number: int, method: Publish, properties: BasicProperties) -> tuple[str, ...]:
        channel = self._channel(number)
        if channel is None:
            return ()
        message = Message(method.exchange, method.routing_key, properties, b"")
        with suppress(ModelError):
            return channel.virtual_host.routing.preview(message)
        return ()

    def consumed_queue(self, number: int, consumer_tag: str) -> str | None:
        channel = self._channel(number)
        consumer = None if channel is None else channel.consumers.get(consumer_tag)
        return None if consumer is None else consumer.queue.name

    def held_messages(self, number: int, settlement: Any) -> tuple[tuple[str, Any], ...]:
        tag, multiple = settlement.delivery_tag, getattr(settlement, "multiple", False)
        channel = self._channel(number)
        if channel is None:
            return ()
        outstanding = self._ledger(channel, settlement).outstanding
        if not multiple:
            found = [outstanding[tag]] if tag in outstanding else []
        else:
            found = [delivery for each, delivery in outstanding.items() if tag == 0 or each <= tag]
        return tuple((delivery.queue.name, delivery.queued.message) for delivery in found)

    def _ledger(self, channel: Amqp091Channel, settlement: Any) -> Ledger:
        return channel.ledger

    def renumber(self, number: int, tags: Mapping[int, int]) -> None:
        channel = self._channel(number)
        if channel is None:
            return
        ledger = channel.ledger
        taken = {new: ledger.take(old, False) for old, new in tags.items()}
        for new, deliveries in taken.items():
            if deliveries is not None and not deliveries:
                ledger.spares.add(new)
            for delivery in deliveries or ():
                ledger.enter(new, delivery)
        ledger.put_back(())  # In the order of the tags again.

    def spare_tag(self, number: int) -> int:
        channel = self._channel(number)
        return 0 if channel is None else channel.ledger.spare_tag()

    # --- flow -------------------------------------------------------------------------------------------

    def set_flow(self, number: int, active: bool) -> None:
        channel = self._channel(number)
        if channel is not None:
            channel.send(m.ChannelFlow(active=active))
            channel.awaited_flow_oks += 1

    def _channel(self, number: int) -> Amqp091Channel | None:
        channel: Amqp091Channel | None = self._connection.channels.get(number)
        return channel if channel is not None and channel.state is ChannelState.OPEN else None
