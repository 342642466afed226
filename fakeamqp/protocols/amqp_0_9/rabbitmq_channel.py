"""A channel of 0-9 in RabbitMQ: a channel of 0-9-1 that has the classes of 0-9 as well."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from fakeamqp.protocols.amqp_0_9 import dispatch as letter, publishing
from fakeamqp.protocols.amqp_0_9.codec import methods as m09
from fakeamqp.protocols.amqp_0_9.dtx import WORK
from fakeamqp.protocols.amqp_0_9.requests import Requests
from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
from fakeamqp.protocols.amqp_0_9_1 import dispatch as rabbitmq
from fakeamqp.protocols.amqp_0_9_1.base_channel import BaseChannel
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m091
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.server_channel import Amqp091Channel

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.deliveries.subscription import Subscription
    from fakeamqp.model.messages.message import Message
    from fakeamqp.protocols.amqp_0_9.rabbitmq_connection import RabbitMQ09Connection
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
    from fakeamqp.protocols.amqp_0_9_1.replies import CloseReply

__all__ = ["RabbitMQ09Channel"]

_OWN = letter.HANDLERS.keys() - rabbitmq.HANDLERS.keys()
"""The methods that only 0-9 has."""
_PUBLISH = m091.BasicPublish.INDEX


class RabbitMQ09Channel(Amqp09Channel):
    """One channel: `Amqp091Channel` for all that 0-9-1 has, `Amqp09Channel` for the rest.

    Three things that RabbitMQ refuses show a client of 0-9 itself, and get what its specification says:
    methods inside requests, contents inside contents, and publishes in a distributed transaction.
    """

    PAUSES: ClassVar[bool] = True
    CONTENT_CLASS: ClassVar[str | None] = "basic"

    connection: RabbitMQ09Connection

    def __init__(self, connection: RabbitMQ09Connection, number: int) -> None:
        super().__init__(connection, number)

    # --- frames in ------------------------------------------------------------------------------------

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
        if index in _OWN or self._expected is not None:
            return True
        requests = self._class_states.get(Requests)
        if requests is not None and requests.current is not None:
            return index in letter.HANDLERS
        return index == _PUBLISH and self.mode == "dtx"

    def carry_out(self, method: Method) -> None:
        """A channel that is resumed restarts its consumers by this."""
        if isinstance(method, m09.BasicConsume) and self._class_states.get(Requests) is None:
            again = m091.METHODS[method.INDEX].decode(method.encode(), self.connection.grammar)
            rabbitmq.HANDLERS[method.INDEX](self, again)
        else:
            super().carry_out(method)

    def receive_header(self, payload: bytes) -> None:
        """Process a content header frame. A content with child contents is one of 0-9."""
        if self._has_children(payload):
            target, self._target = self._target, None
            assert target is not None
            self.expect_content(m09.BasicPublish, BasicProperties, partial(publishing.publish, self, target))
        if self._expected is not None:
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
        if self._expected is not None:
            Amqp09Channel.receive_body(self, payload)
        else:
            Amqp091Channel.receive_body(self, payload)

    @property
    def awaits_content(self) -> bool:
        """True while a content is incomplete."""
        return self._expected is not None or self._target is not None

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
