"""A server-side connection of 0-9-1: a `FramedConnection` with RabbitMQ's extensions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from fakeamqp.protocols.amqp_0_9_1 import connection as connection_class
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.constants import PROTOCOL_HEADER
from fakeamqp.protocols.amqp_0_9_1.fault_port import Amqp091FaultPort
from fakeamqp.protocols.amqp_0_9_1.replies import REPLIES
from fakeamqp.protocols.amqp_0_9_1.server_channel import Amqp091Channel, BoundedChannel
from fakeamqp.protocols.amqp_0_9_1.states import CONNECTION_TRANSITIONS
from fakeamqp.protocols.framed.codec.frames import (
    FRAME_BODY,
    FRAME_CONTENT_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
)
from fakeamqp.protocols.framed.server_connection import FramedConnection

if TYPE_CHECKING:
    from fakeamqp.connection import Connection, PeerAddress
    from fakeamqp.model.state import BrokerState
    from fakeamqp.protocols.common.connection_states import ConnectionTransitions
    from fakeamqp.protocols.framed.codec.method import Method

__all__ = ["Amqp091Connection"]


class Amqp091Connection(FramedConnection[Amqp091Channel]):
    """A server-side connection of 0-9-1, without its transport. See `fakeamqp.connection.Connection`."""

    protocol = "0-9-1"

    TRANSITIONS: ClassVar[ConnectionTransitions] = CONNECTION_TRANSITIONS
    frame_types: frozenset[int] = frozenset((FRAME_METHOD, FRAME_CONTENT_HEADER, FRAME_BODY, FRAME_HEARTBEAT))
    REPLIES = REPLIES

    def __init__(
        self,
        state: BrokerState,
        peer: PeerAddress,
        notify: Callable[[Connection], None],
        protocol_header: bytes = PROTOCOL_HEADER,
    ) -> None:
        super().__init__(
            state,
            peer,
            notify,
            vocabulary=m,
            protocol_header=protocol_header,
            personality=state.personality,
        )
        connection_class.start(self)

    @cached_property
    def fault_port(self) -> Amqp091FaultPort:
        """The fault port of this connection."""
        return Amqp091FaultPort(self)

    def receive_on_zero(self, method: Method) -> None:
        """See the base class."""
        connection_class.receive(self, method)

    def begin_channel(self, number: int, method: Method) -> None:
        """See the base class."""
        self.channels[number] = self.make_channel(number)
        self.send(number, m.ChannelOpenOk())

    def make_channel(self, number: int) -> Amqp091Channel:
        """See the base class."""
        if self.personality.sends_oversized_headers:
            return Amqp091Channel(self, number)
        return BoundedChannel(self, number)

    def notify_blocked(self, reason: str | None) -> None:
        """See the base class (RabbitMQ: documented extension)."""
        connection_class.notify_blocked(self, reason)

    def end_turn(self) -> None:
        """See the base class: sends the queued confirms."""
        for channel in self.channels.values():
            if channel.unconfirmed:
                channel.confirm_now()
