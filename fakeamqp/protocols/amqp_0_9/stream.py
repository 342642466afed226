"""Class stream: messages that nobody acknowledges (stream/unreliable).

To deliver one is to be rid of it (stream/03). Windows count what the transport has not taken yet, since
nothing else in 0-9 tells that a message has gone (stream.qos/prefetch): a client that does not read is sent
so much in advance, and the rest waits in its queue. A rate holds deliveries back on the broker's clock.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fakeamqp.model.errors import ContentTooLarge, NotImplementedHere
from fakeamqp.model.message import StreamMessage
from fakeamqp.protocols.amqp_0_9 import consuming, contents
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.codec.message_properties import StreamMessageProperties
from fakeamqp.protocols.amqp_0_9.consuming import Consumer, Consumers
from fakeamqp.protocols.amqp_0_9.contents import STREAM

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fakeamqp.model.credit import Credit
    from fakeamqp.model.delivery import Delivery
    from fakeamqp.model.message import Message
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.subscription import Subscription
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel, Content

__all__ = ["HANDLERS", "StreamConsumer", "Streams"]


# --- consumers ---------------------------------------------------------------------------------------


class Streams(Consumers):
    """Class stream on one channel. See `Amqp09Channel.class_state`."""

    class_name = "stream"

    def take(self, message: Message) -> None:
        """A message was written: windows are smaller by it until the transport has taken it."""
        windows = self.windows
        outbox = self.channel.connection.outbox
        if not windows or not outbox.unsent:
            return
        for window in windows:
            window.take(message)
        outbox.when_sent(partial(_sent, message, [window.credit for window in windows]))


def _sent(message: Message, credits: Sequence[Credit]) -> None:
    for credit in credits:
        credit.refill(message)
    for credit in credits:
        credit.resume()


class StreamConsumer(Consumer):
    """One consumer of a stream."""

    def __init__(self, streams: Streams, queue: Queue, tag: str, method: m.StreamConsume) -> None:
        self._streams = streams
        super().__init__(streams, queue, tag, method, acknowledges=False, windowed=True)

    def deliver(
        self, subscription: Subscription, message: Message, redelivered: bool, delivery: Delivery | None
    ) -> None:
        """See `model.subscription.Subscriber` (stream.deliver/fields)."""
        channel, queue = self.channel, subscription.queue.name
        tag = channel.ledger.next_tag()
        tap = channel.connection.broker.tap
        if tap is not None:
            tap.delivered(message, queue, self.tag, channel.connection, channel.number, tag, redelivered)
        channel.send_content(
            m.StreamDeliver(consumer_tag=self.tag, delivery_tag=tag, exchange=message.exchange, queue=queue),
            STREAM.number,
            contents.octets(STREAM, message),
            message.body,
            message.children,
        )
        self._streams.take(message)


def qos(channel: Amqp09Channel, method: m.StreamQos) -> None:
    """Limit what is sent ahead and how fast, on this channel or the whole connection (stream.qos/*)."""
    window = consuming.set_window(
        channel.class_state(Streams),
        count=method.prefetch_count,
        size=method.prefetch_size,
        rate=method.consume_rate,
        for_connection=method.global_,
    )
    channel.send(m.StreamQosOk())
    window.resume()


def consume(channel: Amqp09Channel, method: m.StreamConsume) -> None:
    """Start a consumer; consume-ok goes before the first delivery, unless it is not wanted.

    Raises:
        ProtocolError, NotAllowed, AccessRefused, NotFound, ResourceLocked: see `consuming.consumable`.
        NotImplementedHere: the queue cannot go without acknowledgements.
    """
    streams = channel.class_state(Streams)
    queue, tag = consuming.consumable(streams, method)
    if queue.keeps_delivered:
        raise NotImplementedHere(
            f"queue '{queue.name}' in vhost '{channel.virtual_host.name}' wants acknowledgements, which "
            "class stream has not",
            ends_connection=False,
        )
    consuming.start(StreamConsumer(streams, queue, tag, method), no_ack=True)
    if not method.no_wait:
        channel.send(m.StreamConsumeOk(consumer_tag=tag))
    queue.dispatch()


def cancel(channel: Amqp09Channel, method: m.StreamCancel) -> None:
    """End a consumer; a tag that is none of this class is confirmed as well, as in class basic."""
    consumer = consuming.cancel(channel.class_state(Streams), method.consumer_tag)
    if not method.no_wait:
        channel.send(m.StreamCancelOk(consumer_tag=method.consumer_tag))
    if consumer is not None:
        channel.end_consumer(consumer.subscription)


# --- publishing --------------------------------------------------------------------------------------


def publish(channel: Amqp09Channel, method: m.StreamPublish) -> None:
    """stream.publish has come; its content follows.

    Raises:
        NotFound, AccessRefused, NotAllowed: see `contents.authorise`.
    """
    contents.authorise(channel, method)
    channel.expect_content(m.StreamPublish, StreamMessageProperties, partial(_publish, channel, method))


def _publish(
    channel: Amqp09Channel, method: m.StreamPublish, content: Content[StreamMessageProperties]
) -> None:
    """Publish at once, also on a transactional channel (stream.publish/not-transactional).

    Raises:
        ContentTooLarge: the message is larger than the broker takes.
    """
    largest = channel.personality.largest_message
    if largest and len(content.body) > largest:
        raise ContentTooLarge(
            f"message size {len(content.body)} is larger than configured max size {largest}"
        )
    message = StreamMessage(
        method.exchange,
        method.routing_key,
        content.properties,
        content.body,
        STREAM.encoding,
        content.octets,
        channel.connection,
    )
    message.children = content.children
    contents.publish(channel, STREAM, method, message, None)


HANDLERS = {
    m.StreamQos: qos,
    m.StreamConsume: consume,
    m.StreamCancel: cancel,
    m.StreamPublish: publish,
}
