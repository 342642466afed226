"""What classes file and stream share: consumers with prefetch windows, and contents.

One window limits all consumers of a class on a channel, another all of them on a connection
(file.qos/global, stream.qos/global). Each class defines which messages its windows count.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from fakeamqp.model.deliveries.subscription import ConsumerTerms, Gate, Subscription, Window
from fakeamqp.model.errors import ResourceLocked
from fakeamqp.model.messages.staging import publish_content
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.codec.properties import (
    FILE_ENCODING,
    STREAM_ENCODING,
    FileMessageProperties,
    StreamMessageProperties,
)
from fakeamqp.protocols.amqp_0_9_1.replies import short_text
from fakeamqp.protocols.amqp_0_9_1.states import ChannelState

if TYPE_CHECKING:
    from typing import TypeAlias

    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.routing import Outcome
    from fakeamqp.model.transactions import Transaction
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

    Publish: TypeAlias = m.FilePublish | m.StreamPublish

# --- consumers ---------------------------------------------------------------------------------------


class Consumers:
    """The consumers of one class on one channel; subclasses add the other channel state of the class.

    See `Amqp09Channel.class_state`.
    """

    class_name: str

    def __init__(self, channel: Amqp09Channel) -> None:
        self.channel = channel
        self.window: Window | None = None
        """The window of the channel, if one is set."""

    @property
    def windows(self) -> tuple[Window, ...]:
        """The windows that limit deliveries: the channel's and the connection's."""
        shared = self.channel.connection.windows.get(self.class_name)
        return tuple(each for each in (self.window, shared) if each is not None)

    def all(self) -> list[ClassConsumer]:
        """Return all consumers."""
        subscribers = (each.subscriber for each in self.channel.consumers.values())
        return [each for each in subscribers if isinstance(each, ClassConsumer) and each.consumers is self]

    def consumable(self, method: m.FileConsume | m.StreamConsume) -> tuple[Queue, str]:
        """Check a consume method; return the queue and the tag of the new consumer.

        Raises:
            ProtocolError, AccessRefused, NotFound: see `Amqp09Channel.readable_queue`.
            NotAllowed: the tag is in use on the connection.
            ResourceLocked: an exclusive consumer prevents it (file.consume/exclusive-01).
        """
        channel = self.channel
        name = channel.named_queue(method.queue)
        tag = channel.new_tag(method.consumer_tag)
        queue = channel.readable_queue(method.ticket, name)
        if queue.exclusive_subscription is not None or (method.exclusive and queue.subscriptions):
            raise ResourceLocked(
                f"queue '{name}' in vhost '{channel.virtual_host.name}' has an exclusive consumer, or has "
                "consumers and cannot get an exclusive one"
            )
        return queue, tag

    def cancel(self, tag: str) -> ClassConsumer | None:
        """Remove a consumer from the channel, and return it for the caller to end; None if unknown."""
        subscription = self.channel.consumers.get(tag)
        subscriber = None if subscription is None else subscription.subscriber
        if not isinstance(subscriber, ClassConsumer) or subscriber.consumers is not self:
            return None
        del self.channel.consumers[tag]
        return subscriber

    def set_window(self, count: int, size: int, rate: int, *, for_connection: bool) -> Window:
        """Set the prefetch window of the channel, or that of all consumers of the class on the connection.

        It limits messages, body bytes and body bytes per second; 0 is no limit. Existing consumers and
        messages in flight to them are included (file.qos-ok/confirm). The caller resumes it after it has
        answered the client.
        """
        connection = self.channel.connection
        window = connection.windows.get(self.class_name) if for_connection else self.window
        if window is None:
            window = Window(connection.broker.timers, self.class_name)
            sharing = [self]
            if for_connection:
                connection.windows[self.class_name] = window
                sharing = [each.class_state(type(self)) for each in connection.channels.values()]
            else:
                self.window = window
            for each in sharing:
                for consumer in each.all():
                    consumer.depend()
                each.count(window)
        window.resize(count=count, size=size, rate=rate)
        return window

    def count(self, window: Window) -> None:
        """Count the messages in flight to the consumers in a new window."""

    def interrupted(self) -> tuple[int, int, int] | None:
        """Return the limits of the channel's window."""
        if self.window is None:
            return None
        credit = self.window.credit
        return credit.message_limit, credit.byte_limit, self.window.rate.bytes_per_second

    def resumed(self, kept: tuple[int, int, int]) -> None:
        """Set a window with these limits."""
        self.set_window(*kept, for_connection=False)

    def released(self) -> None:
        """Stop deliveries to all consumers, because the channel is closing."""
        for each in self.all():
            each.shut()
        for window in self.windows:
            if not window.rate.subscriptions:
                window.rate.stop()


class ClassConsumer:
    """One consumer, and the subscriber of its subscription; see `model.subscription.Subscriber`.

    With `acknowledges` the queue keeps messages until they are settled. With `windowed` the windows apply.
    """

    consumers: Consumers

    def __init__(
        self,
        consumers: Consumers,
        queue: Queue,
        tag: str,
        method: m.FileConsume | m.StreamConsume,
        *,
        acknowledges: bool,
        windowed: bool,
    ) -> None:
        self.consumers = consumers
        channel = consumers.channel
        self.channel: Amqp09Channel = channel
        self.tag = tag
        self.windowed = windowed
        self.subscription: Subscription = Subscription(
            tag,
            queue,
            self,
            owner=channel.connection,
            group=channel,
            terms=ConsumerTerms(
                no_ack=not acknowledges,
                no_local=method.no_local,
                exclusive=method.exclusive,
                arguments=method.filter,
                options=queue.consumer_options(method.filter),
                content_class=consumers.class_name,
            ),
        )
        self.depend()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.tag!r} on queue {self.subscription.queue.name!r}>"

    def depend(self) -> None:
        """Make the subscription depend on the gates and the current windows."""
        channel, subscription = self.channel, self.subscription
        windows = self.consumers.windows if self.windowed else ()
        credits = tuple(window.credit for window in windows)
        rates = tuple(window.rate for window in windows)
        shared = any(credit.limits for credit in credits)
        subscription.shares_window = shared and subscription.queue.shares_windows
        subscription.depend_on(
            (channel.connection.gate, channel.gate, *credits, *rates), () if subscription.no_ack else credits
        )

    def shut(self) -> None:
        """Stop deliveries for good."""
        closed = Gate()
        closed.shut()
        self.subscription.depend_on((closed,), ())

    @abstractmethod
    def deliver(
        self, subscription: Subscription, message: Message, redelivered: bool, delivery: Delivery | None
    ) -> None:
        pass

    def cancelled(self, subscription: Subscription) -> None:
        """The queue was deleted; 0-9 has no method to report it."""
        self.channel.cancelled(subscription)

    def held_too_long(self, subscription: Subscription | None) -> None:
        self.channel.held_too_long(subscription)


# --- contents ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ContentClass:
    """How the contents of a class are published, encoded and returned."""

    number: int
    encoding: str
    properties: type[FileMessageProperties | StreamMessageProperties]
    returns: type[m.FileReturn | m.StreamReturn]

    def send(self, channel: Amqp09Channel, method: Method, message: Message, body: bytes) -> None:
        """Send a method with a content: the properties as received, or converted from another protocol's."""
        if message.encoding != self.encoding:
            properties = message.properties
            if not isinstance(properties, self.properties):
                properties = self.properties.of(properties)
            message.properties_bytes, message.encoding = properties.encode(), self.encoding
        channel.send_content(method, self.number, message.properties_bytes, body, message.children)

    def publish(
        self, channel: Amqp09Channel, method: Publish, message: Message, transaction: Transaction | None
    ) -> None:
        """Route a message, now or when the transaction is committed, and return it if necessary."""
        message.published_at = channel.connection.broker.clock.time()
        publish_content(
            channel.virtual_host,
            message,
            mandatory=method.mandatory,
            immediate=method.immediate,
            on_outcome=partial(self._return_if_needed, channel, method, message),
            transaction=transaction,
        )

    def _return_if_needed(
        self, channel: Amqp09Channel, method: Publish, message: Message, outcome: Outcome
    ) -> None:
        """Return a message if its flags ask for it, and a file that a full queue refused (file/02)."""
        if outcome.unconsumed:
            self._return(channel, message, "no-consumers", "no consumer can take the message immediately")
        elif method.mandatory and not outcome.routed:
            self._return(channel, message, "no-route", "the message is not routed to any queue")
        elif outcome.refused and message.content_class == "file":
            self._return(channel, message, "content-too-large", str(outcome))

    def _return(self, channel: Amqp09Channel, message: Message, condition: str, text: str) -> None:
        """Return a message to its publisher, if the channel is still open (file.return/content)."""
        if channel.state is not ChannelState.OPEN:
            return
        code = channel.connection.REPLIES.code(condition)
        channel.virtual_host.message_outcomes.returned(message, code, text, channel.number)
        method = self.returns(
            reply_code=code,
            reply_text=short_text(text),
            exchange=message.exchange,
            routing_key=message.routing_key,
        )
        self.send(channel, method, message, message.body)


FILE = ContentClass(m.FilePublish.CLASS_ID, FILE_ENCODING, FileMessageProperties, m.FileReturn)
STREAM = ContentClass(m.StreamPublish.CLASS_ID, STREAM_ENCODING, StreamMessageProperties, m.StreamReturn)
