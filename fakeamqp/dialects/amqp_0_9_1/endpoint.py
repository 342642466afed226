"""The broker's end of one 0-9-1 connection. See `amqp_0_9_x.endpoint`; here is what RabbitMQ adds."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from fakeamqp.dialects.amqp_0_9_1 import connection
from fakeamqp.dialects.amqp_0_9_1.channel_end import ChannelEnd
from fakeamqp.dialects.amqp_0_9_1.line import Line
from fakeamqp.dialects.amqp_0_9_1.replies import REPLIES
from fakeamqp.dialects.amqp_0_9_1.states import CONNECTION_TRANSITIONS
from fakeamqp.dialects.amqp_0_9_x.endpoint import FramedEnd
from fakeamqp.wire.amqp_0_9_1 import methods as m
from fakeamqp.wire.amqp_0_9_1.constants import PROTOCOL_HEADER
from fakeamqp.wire.amqp_0_9_x.frames import FRAME_BODY, FRAME_CONTENT_HEADER, FRAME_HEARTBEAT, FRAME_METHOD

if TYPE_CHECKING:
    from fakeamqp.dialects.interface import Connection, PeerAddress
    from fakeamqp.model.state import BrokerState
    from fakeamqp.wire.amqp_0_9_x.method import Method

__all__ = ["Endpoint"]


class Endpoint(FramedEnd[ChannelEnd]):
    """One 0-9-1 connection, without its transport. See `dialects.interface.Connection`."""

    dialect = "0-9-1"

    TRANSITIONS = CONNECTION_TRANSITIONS
    frame_types = frozenset((FRAME_METHOD, FRAME_CONTENT_HEADER, FRAME_BODY, FRAME_HEARTBEAT))
    REPLIES = REPLIES

    def __init__(self, state: BrokerState, peer: PeerAddress, notify: Callable[[Connection], None]) -> None:
        super().__init__(
            state,
            peer,
            notify,
            vocabulary=m,
            protocol_header=PROTOCOL_HEADER,
            personality=state.personality,
        )
        connection.start(self)

    @cached_property
    def line(self) -> Line:
        """What faults may do to this connection."""
        return Line(self)

    def receive_on_zero(self, method: Method) -> None:
        """See the base class."""
        connection.receive(self, method)

    def begin_channel(self, number: int, method: Method) -> None:
        """See the base class."""
        self.channels[number] = ChannelEnd(self, number)
        self.send(number, m.ChannelOpenOk())

    def tell_blocked(self, reason: str | None) -> None:
        """See the base class (RabbitMQ: documented extension)."""
        if self.has_capability("connection.blocked"):
            self.send(0, m.ConnectionUnblocked() if reason is None else m.ConnectionBlocked(reason=reason))

    def end_turn(self) -> None:
        """See the base class: publishes are confirmed."""
        for channel in self.channels.values():
            if channel.unconfirmed:
                channel.confirm_now()
