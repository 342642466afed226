"""0-9 in RabbitMQ: a connection of 0-9-1 that has the classes of 0-9 as well."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from fakeamqp.protocols.amqp_0_9 import basic, dispatch as letter
from fakeamqp.protocols.amqp_0_9.choices import Amqp09Choices
from fakeamqp.protocols.amqp_0_9.codec import methods as m09
from fakeamqp.protocols.amqp_0_9.codec.constants import HARD_ERRORS, REPLY_NAMES
from fakeamqp.protocols.amqp_0_9.dtx import WORK
from fakeamqp.protocols.amqp_0_9.requests import Requests
from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
from fakeamqp.protocols.amqp_0_9.server_connection import (
    CONNECTION_TRANSITIONS as TRANSITIONS_0_9,
    Amqp09Connection,
)
from fakeamqp.protocols.amqp_0_9_1 import dispatch as rabbitmq
from fakeamqp.protocols.amqp_0_9_1.base_channel import BaseChannel
from fakeamqp.protocols.amqp_0_9_1.codec import constants as of_0_9_1, methods as m091
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.connection import start
from fakeamqp.protocols.amqp_0_9_1.replies import Replies
from fakeamqp.protocols.amqp_0_9_1.server_channel import Amqp091Channel
from fakeamqp.protocols.amqp_0_9_1.states import CONNECTION_TRANSITIONS as TRANSITIONS_0_9_1
from fakeamqp.protocols.base.connection_states import ConnectionState

if TYPE_CHECKING:
    from fakeamqp.connection import Connection, PeerAddress
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.deliveries.subscription import Subscription
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.personality import Personality
    from fakeamqp.model.state import BrokerState
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
    from fakeamqp.protocols.amqp_0_9_1.replies import CloseReply
    from fakeamqp.protocols.base.connection_states import ConnectionTransitions

_OWN = letter.HANDLERS.keys() - rabbitmq.HANDLERS.keys()
"""The methods that only 0-9 has."""
_PUBLISH = m091.BasicPublish.INDEX
_CONSUME = m091.BasicConsume.INDEX


class RabbitMQ09Channel(Amqp09Channel):
    """One channel: `Amqp091Channel` for all that 0-9-1 has, `Amqp09Channel` for the rest.

    Three things that RabbitMQ refuses show a client of 0-9 itself, and get what its specification says:
    methods inside requests, contents inside contents, and publishes in a distributed transaction.
    """

    PAUSES: ClassVar[bool] = True
    CONTENT_CLASS: ClassVar[str | None] = "basic"

    connection: RabbitMQ09Connection

    def receive_method(self, payload: bytes) -> bool:
        """Process a method frame, or the method of a request."""
        index = int.from_bytes(payload[:4], "big")
        if self._follows_letter(index):
            return Amqp09Channel.receive_method(self, payload)
        if index in WORK:
            self.has_worked = True
        return Amqp091Channel.receive_method(self, payload)

    def _follows_letter(self, index: int) -> bool:
        """True if the code of 0-9 handles a method, and reports the errors around it."""
        if self._target is not None:
            return False  # A method within a content of 0-9-1: refused as there.
        if index in _OWN or self.expected is not None:
            return True
        requests = self.class_states.get(Requests)
        if requests is not None and requests.current is not None:
            return index in letter.HANDLERS
        return index == _PUBLISH and self.mode == "dtx"

    def carry_out(self, method: Method) -> None:
        """A channel that is resumed restarts its consumers by this."""
        if method.INDEX == _CONSUME and self.class_states.get(Requests) is None:
            again = m091.METHODS[method.INDEX].decode(method.encode(), self.connection.grammar)
            rabbitmq.HANDLERS[method.INDEX](self, again)
        else:
            super().carry_out(method)

    def receive_header(self, payload: bytes) -> None:
        """Process a content header frame. A content with child contents is one of 0-9."""
        if self._has_children(payload):
            target, self._target = self._target, None
            assert target is not None
            self.expect_content(
                m09.BasicPublish, BasicProperties, partial(basic.publish_content, self, target)
            )
        if self.expected is not None:
            Amqp09Channel.receive_header(self, payload)
        else:
            Amqp091Channel.receive_header(self, payload)

    def _has_children(self, payload: bytes) -> bool:
        """True for the header of a basic.publish whose weight is not 0, unless the publish is confirmed."""
        if payload[2:4] == b"\0\0" or self._target is None or self._properties is not None:
            return False
        return self.mode != "confirm" and payload[:2] == b"\0\x3c"

    def receive_body(self, payload: bytes) -> None:
        """Process a body frame."""
        if self.expected is not None:
            Amqp09Channel.receive_body(self, payload)
        else:
            Amqp091Channel.receive_body(self, payload)

    @property
    def awaits_content(self) -> bool:
        """True while a content is incomplete."""
        return self.expected is not None or self._target is not None

    def close(self, reply: CloseReply, method: int) -> None:
        """After an error in a method that only 0-9 has, its content is ignored.

        RabbitMQ's checks of what arrives on a closing channel know no contents of these classes.
        """
        super().close(reply, method)
        if method in _OWN:
            self._discarded = None

    # --- contents out ---------------------------------------------------------------------------------

    def deliver(
        self, subscription: Subscription, message: Message, redelivered: bool, delivery: Delivery | None
    ) -> None:
        """Only a message with child contents is delivered as in 0-9."""
        kind: type[Any] = Amqp09Channel if message.children else BaseChannel
        kind.deliver(self, subscription, message, redelivered, delivery)

    def _can_be_sent(self, properties: bytes) -> bool:
        """RabbitMQ sends headers whatever the client's frame_max is (measured)."""
        return True

    # --- for handlers ---------------------------------------------------------------------------------

    def take_consumer(self, tag: str) -> Subscription | None:
        """Consumers of the other classes of 0-9 have another subscriber."""
        subscription = self.consumers.get(tag)
        if subscription is None or subscription.subscriber is not self:
            return None
        return self.consumers.pop(tag)


class RabbitMQ09Connection(Amqp09Connection):
    """A server-side connection, without its transport. See `fakeamqp.connection.Connection`."""

    METHODS: ClassVar[Mapping[int, type[Method]]] = m09.RABBITMQ_METHODS
    CHANNEL: ClassVar[type[Amqp09Channel]] = RabbitMQ09Channel
    TRANSITIONS: ClassVar[ConnectionTransitions] = {
        **TRANSITIONS_0_9,
        ConnectionState.OPEN: {
            **TRANSITIONS_0_9_1[ConnectionState.OPEN],
            **TRANSITIONS_0_9[ConnectionState.OPEN],
        },
    }
    REPLIES = Replies({**REPLY_NAMES, **of_0_9_1.REPLY_NAMES}, HARD_ERRORS | of_0_9_1.HARD_ERRORS)
    EXTENSIONS: ClassVar[bool] = True

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
    rabbitmq_speaks = state.personality.extension(Amqp09Choices).as_in_rabbitmq
    kind = RabbitMQ09Connection if rabbitmq_speaks else Amqp09Connection
    return kind(state, peer, notify, protocol_header)
