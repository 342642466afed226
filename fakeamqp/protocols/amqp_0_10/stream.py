"""Class stream: messages without acknowledgements.

A delivery settles its message (stream/acknowledgement-support). Windows count deliveries that the client has
not completed, because nothing else tells that it has taken them; a rate delays deliveries by the broker's
clock. A slow consumer drops no message: messages wait in their queue, under its limits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_0_10 import contents
from fakeamqp.protocols.amqp_0_10.codec import commands
from fakeamqp.protocols.amqp_0_10.codec.constants import SegmentType
from fakeamqp.protocols.amqp_0_10.contents import STREAM, ContentConsumers, ContentTarget, ServerConsumer

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.credit import Credit
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.deliveries.subscription import Subscription
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.queues import Queue
    from fakeamqp.protocols.amqp_0_10.codec.packed import Command
    from fakeamqp.protocols.amqp_0_10.server_session import ServerSession

__all__ = ["CONTENT_HANDLERS", "HANDLERS"]


# --- consumers ---------------------------------------------------------------------------------------


class Streams(ContentConsumers):
    """The state of class stream in one session: its consumers, and what its windows still count."""

    class_name = "stream"

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

    def __init__(self, streams: Streams, queue: Queue, command: commands.StreamConsume) -> None:
        self._streams = streams
        super().__init__(streams, queue, command, acknowledges=False, windowed=True)

    def deliver(
        self, subscription: Subscription, message: Message, redelivered: bool, delivery: Delivery | None
    ) -> None:
        """See `model.subscription.Subscriber` (stream.deliver/fields)."""
        session, streams, queue = self.session, self._streams, subscription.queue.name
        tag = streams.next_delivery_tag()
        tap = session.broker.tap
        if tap is not None and session.connection is not None:
            tap.event(
                "delivered", session.connection, message, queue, self.tag, session.channel, tag, redelivered
            )
        command = commands.StreamDeliver(
            consumer_tag=self.tag, delivery_tag=tag, exchange=message.exchange, queue=queue
        )
        session.outgoing.send(
            (
                (SegmentType.COMMAND, command.encode()),
                (SegmentType.HEADER, contents.header(STREAM, message)),
                (SegmentType.BODY, message.body),
            ),
            streams.take(tag, message),
        )


def qos(session: ServerSession, command: commands.StreamQos) -> None:
    """Limit what is sent in advance and how fast, in this session or on the connection (stream.qos/*)."""
    window = contents.set_window(
        Streams.of(session),
        count=command.prefetch_count or 0,
        size=command.prefetch_size or 0,
        rate=command.consume_rate or 0,
        for_connection=command.global_,
    )
    session.send(commands.StreamQosOk())
    window.resume()


def consume(session: ServerSession, command: commands.StreamConsume) -> None:
    """Start a consumer; consume-ok precedes the first delivery, unless the client wants none.

    Raises:
        SessionFault, AccessRefused, NotFound, ResourceLocked: see `contents.consumable`.
    """
    streams = Streams.of(session)
    consumer = StreamConsumer(streams, contents.consumable(streams, command), command)
    contents.start(consumer, no_ack=True)
    if not command.nowait:
        session.send(commands.StreamConsumeOk(consumer_tag=consumer.tag))
    consumer.subscription.queue.dispatch()


def cancel(session: ServerSession, command: commands.StreamCancel) -> None:
    """End a consumer (stream.cancel/shortly).

    Raises:
        NotFound: there is none with this tag.
    """
    contents.cancel(Streams.of(session), command.consumer_tag or "").end()


# --- publishing --------------------------------------------------------------------------------------


def publish(
    session: ServerSession, command: commands.StreamPublish, header: bytes | None, body: bytes | None
) -> None:
    """Publish a message.

    Raises:
        NotFound: there is no such exchange.
        AccessRefused: it is internal, or the user may not write to it.
        SegmentError: there are no stream-properties.
    """
    if session.connection is not None:
        session.connection.publish_received()
    target = ContentTarget.of(command)
    contents.authorise(session, target)
    message = contents.message(session, STREAM, target, header, body or b"")
    contents.publish(session, STREAM, target, message, session.transaction)


HANDLERS: dict[type[Command], Callable[[ServerSession, Any], None]] = {
    commands.StreamQos: qos,
    commands.StreamConsume: consume,
    commands.StreamCancel: cancel,
}

CONTENT_HANDLERS: dict[type[Command], Callable[[ServerSession, Any, bytes | None, bytes | None], None]] = {
    commands.StreamPublish: publish,
}
