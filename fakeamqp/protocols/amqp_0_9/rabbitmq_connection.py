"""A connection of 0-9 in RabbitMQ, and the choice between it and the letter of 0-9."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from fakeamqp.protocols.amqp_0_9.choices import Amqp09Choices
from fakeamqp.protocols.amqp_0_9.codec import rabbitmq_methods
from fakeamqp.protocols.amqp_0_9.rabbitmq_channel import RabbitMQ09Channel
from fakeamqp.protocols.amqp_0_9.replies import RABBITMQ_REPLIES
from fakeamqp.protocols.amqp_0_9.server_connection import Amqp09Connection
from fakeamqp.protocols.amqp_0_9.states import CONNECTION_TRANSITIONS as TRANSITIONS_0_9
from fakeamqp.protocols.amqp_0_9_1.connection import start
from fakeamqp.protocols.amqp_0_9_1.states import CONNECTION_TRANSITIONS as TRANSITIONS_0_9_1
from fakeamqp.protocols.base.connection_states import ConnectionState

if TYPE_CHECKING:
    from fakeamqp.connection import Connection, PeerAddress
    from fakeamqp.model.personality import Personality
    from fakeamqp.model.state import BrokerState
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
    from fakeamqp.protocols.base.connection_states import ConnectionTransitions

__all__ = ["RabbitMQ09Connection", "connection"]


class RabbitMQ09Connection(Amqp09Connection):
    """A server-side connection, without its transport. See `fakeamqp.connection.Connection`."""

    CHANNEL: ClassVar[type[Amqp09Channel]] = RabbitMQ09Channel
    TRANSITIONS: ClassVar[ConnectionTransitions] = {
        **TRANSITIONS_0_9,
        ConnectionState.OPEN: {
            **TRANSITIONS_0_9_1[ConnectionState.OPEN],
            **TRANSITIONS_0_9[ConnectionState.OPEN],
        },
    }
    REPLIES = RABBITMQ_REPLIES
    EXTENSIONS: ClassVar[bool] = True

    def __init__(
        self,
        state: BrokerState,
        peer: PeerAddress,
        notify: Callable[[Connection], None],
        protocol_header: bytes,
    ) -> None:
        super().__init__(state, peer, notify, protocol_header, vocabulary=rabbitmq_methods)

    def apply_overrides(self, personality: Personality) -> Personality:
        """None, since RabbitMQ makes no difference."""
        return personality

    def start(self) -> None:
        """With RabbitMQ's capabilities, as in 0-9-1."""
        start(self)


def connection(
    state: BrokerState, peer: PeerAddress, notify: Callable[[Connection], None], protocol_header: bytes
) -> Amqp09Connection:
    """Return a server-side connection for the protocol header of 0-9."""
    if state.personality.extension(Amqp09Choices).as_in_rabbitmq:
        return RabbitMQ09Connection(state, peer, notify, protocol_header)
    return Amqp09Connection(state, peer, notify, protocol_header)
