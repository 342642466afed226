"""Consumers of classes file and stream, and the prefetch windows that they share.

One window limits all consumers of a class on a channel, another all of them on a connection
(file.qos/global, stream.qos/global). Each class defines which messages its windows count.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from fakeamqp.model.deliveries.credit import Gate, Window
from fakeamqp.model.deliveries.subscription import ConsumerTerms, Subscription
from fakeamqp.model.errors import ResourceLocked
from fakeamqp.protocols.amqp_0_9.access import use_ticket

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.queues import Queue
    from fakeamqp.protocols.amqp_0_9.codec import methods as m
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel

__all__ = ["ClassConsumer", "Consumers", "cancel", "consumable", "set_window", "start"]


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

    def depend_anew(self) -> None:
        """Apply a new window to all consumers."""
        for each in self.all():
            each.depend()

    def count(self, window: Window) -> None:
        """Count the messages in flight to the consumers in a new window."""

    def released(self) -> None:
        """Release the state, because the channel is closing."""
        self.stop()

    def interrupted(self) -> tuple[int, int, int] | None:
        """Return the limits of the channel's window. See `resume.Resumable`, also for `resumed`."""
        if self.window is None:
            return None
        credit = self.window.credit
        return credit.message_limit, credit.byte_limit, self.window.rate.bytes_per_second

    def resumed(self, kept: tuple[int, int, int]) -> None:
        """Set a window with these limits."""
        count, size, rate = kept
        set_window(self, count=count, size=size, rate=rate, for_connection=False)

    def stop(self) -> None:
        """Stop deliveries to all consumers, because the channel is closing."""
        for each in self.all():
            each.shut()
        for window in self.windows:
            if not window.rate.subscriptions:
                window.rate.stop()


class ClassConsumer:
    """One consumer, and the subscriber of its subscription; see `model.subscription.Subscriber`.

    Args:
        consumers: the consumers of the class on the channel.
        queue: the queue to consume from.
        tag: the consumer tag.
        method: the consume method.
        acknowledges: True if the queue keeps messages until they are settled.
        windowed: True if the windows apply to this consumer.
    """

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


def consumable(consumers: Consumers, method: m.FileConsume | m.StreamConsume) -> tuple[Queue, str]:
    """Check a consume method; return the queue and the tag of the new consumer.

    Raises:
        ProtocolError: the method names no queue, and the channel has no current queue.
        NotAllowed: the tag is in use on the connection.
        AccessRefused: ticket or permissions do not allow it.
        NotFound: the queue does not exist.
        ResourceLocked: an exclusive consumer prevents it (file.consume/exclusive-01).
    """
    channel = consumers.channel
    name = channel.named_queue(method.queue)
    tag = channel.new_tag(method.consumer_tag)
    use_ticket(channel, method.ticket, "read", "queue", name)
    channel.authorise("read", "queue", name)
    queue = channel.virtual_host.queues.require(name, channel.connection)
    if queue.exclusive_subscription is not None or (method.exclusive and queue.subscriptions):
        raise ResourceLocked(
            f"queue '{name}' in vhost '{channel.virtual_host.name}' has an exclusive consumer, or has "
            "consumers and cannot get an exclusive one"
        )
    return queue, tag


def start(consumer: ClassConsumer, *, no_ack: bool) -> None:
    """Subscribe a new consumer; the caller answers the client, then dispatches the queue."""
    channel, subscription = consumer.channel, consumer.subscription
    subscription.queue.subscribe(subscription)
    channel.consumers[consumer.tag] = subscription
    channel.note_consumer(
        "consumer added",
        subscription,
        no_ack=no_ack,
        prefetch=0,
        shares_prefetch=subscription.shares_window,
    )


def cancel(consumers: Consumers, tag: str) -> ClassConsumer | None:
    """Remove a consumer from the channel, and return it for the caller to end; None for an unknown tag."""
    subscription = consumers.channel.consumers.get(tag)
    subscriber = None if subscription is None else subscription.subscriber
    if not isinstance(subscriber, ClassConsumer) or subscriber.consumers is not consumers:
        return None
    del consumers.channel.consumers[tag]
    return subscriber


def set_window(consumers: Consumers, *, count: int, size: int, rate: int = 0, for_connection: bool) -> Window:
    """Set the prefetch window of a channel, or of the whole connection.

    Existing consumers and messages in flight to them are included (file.qos-ok/confirm). The caller resumes
    the window after it has answered the client.

    Args:
        consumers: the consumers of the channel that received the qos method.
        count: the limit of messages; 0 is no limit.
        size: the limit of body bytes.
        rate: the limit of body bytes per second.
        for_connection: True if all consumers of the class on the connection share the window.
    """
    channel, class_name = consumers.channel, consumers.class_name
    shared = channel.connection.windows
    window: Window | None = shared.get(class_name) if for_connection else consumers.window
    if window is None:
        window = Window(channel.connection.broker.timers, class_name)
        sharing = [consumers]
        if for_connection:
            shared[class_name] = window
            sharing = [each.class_state(type(consumers)) for each in channel.connection.channels.values()]
        else:
            consumers.window = window
        for each in sharing:
            each.depend_anew()
            each.count(window)
    window.resize(count=count, size=size, rate=rate)
    return window
