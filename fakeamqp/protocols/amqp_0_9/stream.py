"""Class stream: messages without acknowledgements (stream/unreliable).

A delivered message is settled at once (stream/03). Windows count the messages that the transport has not
accepted yet, since 0-9 has no other sign of their arrival (stream.qos/prefetch). So a client that does not
read gets one window of messages, and the others wait in the queue. The rate limit uses the broker's clock.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fakeamqp.model.errors import ContentTooLarge, NotImplementedHere
from fakeamqp.model.messages.message import StreamMessage
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.codec.properties import StreamMessageProperties
from fakeamqp.protocols.amqp_0_9.content_classes import STREAM, ClassConsumer, Consumers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.deliveries.subscription import Credit, Subscription
    from fakeamqp.model.messages.message import Message
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel, CompleteContent

# --- consumers ---------------------------------------------------------------------------------------


class Streams(Consumers):
    """Class stream on one channel. See `Amqp09Channel.class_state`."""

    class_name = "stream"

    def take(self, message: Message) -> None:
        """Count a written message in the windows until the transport has accepted it."""
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


class StreamConsumer(ClassConsumer):
    """One consumer of class stream."""

    consumers: Streams

    def deliver(
        self, subscription: Subscription, message: Message, redelivered: bool, delivery: Delivery | None
    ) -> None:
        """See `model.subscription.Subscriber` (stream.deliver/fields)."""
        channel, queue = self.channel, subscription.queue.name
        tag = channel.ledger.next_tag()
        channel.note_delivered(message, queue, self.tag, tag, redelivered)
        method = m.StreamDeliver(self.tag, tag, message.exchange, queue)
        STREAM.send(channel, method, message, message.body)
        self.consumers.take(message)


def qos(channel: Amqp09Channel, method: m.StreamQos) -> None:
    """Set the prefetch and rate limits of the channel, or of the whole connection (stream.qos/*)."""
    window = channel.class_state(Streams).set_window(
        method.prefetch_count, method.prefetch_size, method.consume_rate, for_connection=method.global_
    )
    channel.send(m.StreamQosOk())
    window.resume()


def consume(channel: Amqp09Channel, method: m.StreamConsume) -> None:
    """Start a consumer; send consume-ok before the first delivery, unless no_wait is set."""
    streams = channel.class_state(Streams)
    queue, tag = streams.consumable(method)
    if queue.keeps_delivered:
        raise NotImplementedHere(
            f"queue '{queue.name}' in vhost '{channel.virtual_host.name}' requires acknowledgements, which "
            "class stream does not have",
            ends_connection=False,
        )
    consumer = StreamConsumer(streams, queue, tag, method, acknowledges=False, windowed=True)
    channel.enter_consumer(consumer.subscription, no_ack=True)
    if not method.no_wait:
        channel.send(m.StreamConsumeOk(consumer_tag=tag))
    queue.dispatch()


def cancel(channel: Amqp09Channel, method: m.StreamCancel) -> None:
    """Cancel a consumer; a tag unknown in this class is confirmed too, as in class basic."""
    consumer = channel.class_state(Streams).cancel(method.consumer_tag)
    if not method.no_wait:
        channel.send(m.StreamCancelOk(consumer_tag=method.consumer_tag))
    if consumer is not None:
        channel.end_consumer(consumer.subscription)


# --- publishing --------------------------------------------------------------------------------------


def publish(channel: Amqp09Channel, method: m.StreamPublish) -> None:
    """Handle stream.publish; its content follows."""
    channel.authorise_publish(method.ticket, method.exchange, method.routing_key)
    channel.expect_content(m.StreamPublish, StreamMessageProperties, partial(_publish, channel, method))


def _publish(
    channel: Amqp09Channel, method: m.StreamPublish, content: CompleteContent[StreamMessageProperties]
) -> None:
    """Publish at once, also on a transactional channel (stream.publish/not-transactional)."""
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
        channel.connection.identity,
    )
    message.children = content.children
    STREAM.publish(channel, method, message, None)
