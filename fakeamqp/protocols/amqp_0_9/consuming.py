"""Consumers of classes file and stream, and the windows they share.

What they are sent in advance is limited for all consumers of a class on a channel together, and for all of
them on a connection (file.qos/global, stream.qos/global). What a window counts is each class's own.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from fakeamqp.model.credit import Gate
from fakeamqp.model.errors import ResourceLocked
from fakeamqp.model.subscription import ConsumerTerms, Subscription
from fakeamqp.model.window import Window
from fakeamqp.protocols.amqp_0_9.access import use_ticket

if TYPE_CHECKING:
    from fakeamqp.model.delivery import Delivery
    from fakeamqp.model.message import Message
    from fakeamqp.model.queues import Queue
    from fakeamqp.protocols.amqp_0_9.codec import methods as m
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel

__all__ = ["Consumer", "Consumers", "cancel", "consumable", "set_window", "start"]


class Consumers:
    """The consumers of one class on one channel; subclasses have what else the class keeps of it.

    See `Amqp09Channel.class_state`.
    """

    class_name: str

    def __init__(self, channel: Amqp09Channel) -> None:
        self.channel = channel
        self.window: Window | None = None
        """That of the channel, once one was asked for."""

    @property
    def windows(self) -> tuple[Window, ...]:
        """What deliveries depend on, the gates not counted: the channel's window and the connection's."""
        shared = self.channel.connection.windows.get(self.class_name)
        return tuple(each for each in (self.window, shared) if each is not None)

    def all(self) -> list[Consumer]:
        """Those that there are."""
        subscribers = (each.subscriber for each in self.channel.consumers.values())
        return [each for each in subscribers if isinstance(each, Consumer) and each.consumers is self]

    def depend_anew(self) -> None:
        """There is a new window."""
        for each in self.all():
            each.depend()

    def count(self, window: Window) -> None:
        """Take what consumers were sent in advance of a window that is new to them."""

    def released(self) -> None:
        """The channel is over."""
        self.stop()

    def interrupted(self) -> tuple[int, int, int] | None:
        """The limits of the channel's window. See `resume.Resumable`, here and below."""
        if self.window is None:
            return None
        credit = self.window.credit
        return credit.message_limit, credit.byte_limit, self.window.rate.bytes_per_second

    def resumed(self, kept: tuple[int, int, int]) -> None:
        """Have a window with these limits."""
        count, size, rate = kept
        set_window(self, count=count, size=size, rate=rate, for_connection=False)

    def stop(self) -> None:
        """The channel is about to end: its consumers take nothing more."""
        for each in self.all():
            each.shut()
        for window in self.windows:
            if not window.rate.subscriptions:
                window.rate.stop()


class Consumer:
    """One consumer. It is also its own subscriber, see `model.subscription.Subscriber`.

    Args:
        consumers: those it is one of.
        queue: what it takes from.
        tag: what the client knows it by.
        method: what was asked for.
        acknowledges: whether messages stay at the queue until they are settled.
        windowed: whether windows hold for it.
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
        self.channel = channel = consumers.channel
        self.tag = tag
        self.windowed = windowed
        self.subscription = Subscription(
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
        """Depend on the gates, and on the windows that hold now."""
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
        """Take nothing any more."""
        closed = Gate()
        closed.shut()
        self.subscription.depend_on((closed,), ())

    @abstractmethod
    def deliver(
        self, subscription: Subscription, message: Message, redelivered: bool, delivery: Delivery | None
    ) -> None:
        """See `model.subscription.Subscriber`."""

    def cancelled(self, subscription: Subscription) -> None:
        """See `model.subscription.Subscriber`: the queue has gone, and 0-9 has no way to say so."""
        self.channel.cancelled(subscription)

    def held_too_long(self, subscription: Subscription | None) -> None:
        """See `model.subscription.Subscriber`."""
        self.channel.held_too_long(subscription)


def consumable(consumers: Consumers, method: m.FileConsume | m.StreamConsume) -> tuple[Queue, str]:
    """The queue that somebody wants to consume from, and the tag of the new consumer.

    Raises:
        ProtocolError: no queue is named, and none was declared on the channel.
        NotAllowed: the tag is in use on the connection.
        AccessRefused: ticket or permissions do not allow it.
        NotFound: there is no such queue.
        ResourceLocked: exclusive access stands in the way (file.consume/exclusive-01).
    """
    channel = consumers.channel
    name = channel.queue_name(method.queue)
    tag = channel.new_tag(method.consumer_tag)
    use_ticket(channel, method.ticket, "read", "queue", name)
    channel.authorise("read", "queue", name)
    queue = channel.virtual_host.queues.require(name, channel.connection)
    if queue.exclusive_subscription is not None or (method.exclusive and queue.subscriptions):
        raise ResourceLocked(
            f"queue '{name}' in vhost '{channel.virtual_host.name}' has a consumer that shuts out others, or "
            "would be shut out"
        )
    return queue, tag


def start(consumer: Consumer, *, no_ack: bool) -> None:
    """Let a new consumer in; who dispatches its queue does so once the client has been told."""
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


def cancel(consumers: Consumers, tag: str) -> Consumer | None:
    """Take a consumer out, which the caller ends; None where none of this class has the tag."""
    subscription = consumers.channel.consumers.get(tag)
    subscriber = None if subscription is None else subscription.subscriber
    if not isinstance(subscriber, Consumer) or subscriber.consumers is not consumers:
        return None
    del consumers.channel.consumers[tag]
    return subscriber


def set_window(consumers: Consumers, *, count: int, size: int, rate: int = 0, for_connection: bool) -> Window:
    """Limit what is sent in advance: to a channel's consumers, or to those of the whole connection.

    Those that are there are included, and what they were sent already is (file.qos-ok/confirm). The caller
    resumes the window once the client has been told.

    Args:
        consumers: those of the channel that asks.
        count: messages; 0 for any number.
        size: bytes of their bodies.
        rate: bytes of their bodies per second.
        for_connection: whether the limit is for all consumers of the class on the connection together.
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
