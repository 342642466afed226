"""Class stream: messages without acknowledgements.

A delivery settles its message (stream/acknowledgement-support). Windows count deliveries that the client has
not completed, because nothing else tells that it has taken them; a rate delays deliveries by the broker's
clock. A slow consumer drops no message: messages wait in their queue, under its limits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from fakeamqp.model.messages.message import StreamMessage, identity_of
from fakeamqp.protocols.amqp_0_10 import contents
from fakeamqp.protocols.amqp_0_10.codec import commands
from fakeamqp.protocols.amqp_0_10.contents import (
    ContentClass,
    ContentConsumers,
    ContentTarget,
    ServerConsumer,
)
from fakeamqp.protocols.amqp_0_10.properties import STREAM_ENCODING, ContentProperties

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.deliveries.subscription import Credit, Subscription
    from fakeamqp.model.messages.message import Message
    from fakeamqp.protocols.amqp_0_10.server_session import ServerSession


class Streams(ContentConsumers):
    """The state of class stream in one session: its consumers, and what its windows still count."""

    KIND: ClassVar[ContentClass] = ContentClass(
        "stream", STREAM_ENCODING, commands.StreamReturn, commands.StreamQosOk, commands.StreamConsumeOk
    )

    def __init__(self, session: ServerSession) -> None:
        super().__init__(session)
        self._ahead: dict[int, tuple[Message, Sequence[Credit]]] = {}
        """By delivery tag, what the client has not completed and which windows it was taken from."""

    def take(self, tag: int, message: Message) -> Callable[[], None] | None:
        """Charge the windows for a message. Returns what to call after the client has completed it."""
        windows = self.windows
        if not windows:
            return None
        for window in windows:
            window.take(message)
        self._ahead[tag] = message, [window.credit for window in windows]
        return partial(self._completed, tag)

    def _completed(self, tag: int) -> None:
        message, credits = self._ahead.pop(tag)
        for credit in credits:
            credit.refill(message)
        for credit in credits:
            credit.resume()

    def end(self) -> None:
        super().end()
        for tag in list(self._ahead):
            self._completed(tag)


class StreamConsumer(ServerConsumer):
    """One consumer of a stream."""

    consumers: Streams

    def deliver(
        self, subscription: Subscription, message: Message, redelivered: bool, delivery: Delivery | None
    ) -> None:
        """Deliver a message (stream.deliver/fields)."""
        tag = self.consumers.next_delivery_tag()
        self.note_delivered(message, tag, redelivered)
        command = commands.StreamDeliver(
            consumer_tag=self.tag,
            delivery_tag=tag,
            exchange=message.exchange,
            queue=subscription.queue.name,
        )
        contents.send(self.session, Streams.KIND, command, message, self.consumers.take(tag, message))


def qos(session: ServerSession, command: commands.StreamQos) -> None:
    """Limit what is sent in advance and how fast, in this session or on the connection (stream.qos/*)."""
    contents.set_window(Streams.of(session), command)


def consume(session: ServerSession, command: commands.StreamConsume) -> None:
    """Start a consumer; nothing is acknowledged."""
    consumer = StreamConsumer(Streams.of(session), command, acknowledges=False, windowed=True)
    contents.start(consumer, command)


def cancel(session: ServerSession, command: commands.StreamCancel) -> None:
    """End a consumer (stream.cancel/shortly)."""
    contents.cancel(Streams.of(session), command.consumer_tag or "").end()


def publish(
    session: ServerSession, command: commands.StreamPublish, header: bytes | None, body: bytes | None
) -> None:
    """Publish a message; SegmentError if it has no stream-properties."""
    if session.connection is not None:
        session.connection.publish_received()
    target = ContentTarget.of(session, command)
    properties = ContentProperties.decode(STREAM_ENCODING, header)
    message = StreamMessage(
        target.exchange,
        target.routing_key,
        properties,
        body or b"",
        STREAM_ENCODING,
        header or b"",
        identity_of(session.connection),
    )
    contents.publish(session, Streams.KIND, target, message, session.transaction)
