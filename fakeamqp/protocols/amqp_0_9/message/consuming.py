"""Destinations, which receive the messages of queues: consume, cancel, get, recover, qos."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.model.deliveries.credit import Credit
from fakeamqp.model.deliveries.delivery import release_all
from fakeamqp.model.deliveries.subscription import ConsumerTerms, DeliveryLimits, Subscription
from fakeamqp.model.errors import NotAllowed, PreconditionFailed
from fakeamqp.model.limits import check_consumer_bound
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.message import delivering
from fakeamqp.protocols.amqp_0_9.message.channel_state import Destination, Messages

if TYPE_CHECKING:
    from fakeamqp.model.queues import Queue
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel

__all__ = ["Destination", "cancel", "consume", "get", "qos", "recover", "subscribe"]

_CONTENT_CLASS = "basic"


def _readable(channel: Amqp09Channel, ticket: int, name: str) -> Queue:
    """Return a queue after checking that the client may read it; a blank name is the current queue.

    Raises:
        NotAllowed: the name is blank, and the channel has no current queue (message.consume/queue-01).
        AccessRefused: ticket or permissions do not allow it (message.consume/ticket-01).
        NotFound, ResourceLocked: see `QueueRegister.require`.
    """
    name = channel.named_queue(name)
    channel.use_ticket(ticket, "read", "queue", name)
    channel.authorise("read", "queue", name)
    return channel.virtual_host.queues.require(name, channel.connection)


def consume(channel: Amqp09Channel, method: m.MessageConsume) -> None:
    """Start a consumer, and answer; raises the errors of `subscribe`."""
    queue = subscribe(channel, method)
    channel.send(m.MessageOk())
    queue.dispatch()


def subscribe(channel: Amqp09Channel, method: m.MessageConsume) -> Queue:
    """Start a consumer without an answer; a blank destination is valid.

    Returns:
        The queue, which the caller must dispatch.

    Raises:
        NotAllowed: a consumer of this connection has the destination (message.consume/destination-01).
        AccessRefused: an exclusive consumer prevents it (message.consume/exclusive-01).
    """
    messages = channel.class_state(Messages)
    queue = _readable(channel, method.ticket, method.queue)
    check_consumer_bound(channel.connection.broker, len(channel.consumers))
    if channel.connection.uses_tag(method.destination):
        raise NotAllowed(f"destination '{method.destination}' is in use")
    credits = () if method.no_ack else messages.credits
    subscription = Subscription(
        method.destination,
        queue,
        Destination(messages, method.destination),
        owner=channel.connection,
        group=channel,
        terms=ConsumerTerms(
            no_ack=method.no_ack,
            no_local=method.no_local,
            exclusive=method.exclusive,
            arguments=method.filter,
            options=queue.consumer_options(method.filter),
            content_class=_CONTENT_CLASS,
        ),
        limits=DeliveryLimits(
            shared=queue.shares_windows and any(each.limits for each in credits),
            limits=(channel.connection.gate, channel.gate, *credits),
            credits=credits,
        ),
    )
    queue.subscribe(subscription)
    channel.consumers[method.destination] = subscription
    channel.note_consumer(
        "consumer added",
        subscription,
        no_ack=method.no_ack,
        prefetch=0,
        shares_prefetch=subscription.shares_window,
    )
    return queue


def cancel(channel: Amqp09Channel, method: m.MessageCancel) -> None:
    """Cancel the consumer of a destination (message.cancel/stops), also after its queue was deleted.

    Messages sent to it can still be acknowledged. An unknown destination is confirmed too.

    Raises:
        NotAllowed: the destination belongs to another consumer of the connection
            (message.consume/destination-02).
    """
    name = method.destination
    subscription = channel.consumers.get(name)
    if subscription is not None and isinstance(subscription.subscriber, Destination):
        del channel.consumers[name]
        channel.end_consumer(subscription)
    elif channel.connection.uses_tag(name):
        raise NotAllowed(f"destination '{name}' is in use by another consumer of the connection")
    channel.send(m.MessageOk())


def get(channel: Amqp09Channel, method: m.MessageGet) -> None:
    """Send one message to a destination, or message.empty if the queue has none (message.get/*)."""
    queue = _readable(channel, method.ticket, method.queue)
    channel.check_get(queue)
    taken = queue.get(channel.connection, no_ack=method.no_ack, group=channel, content_class=_CONTENT_CLASS)
    if taken is None:
        channel.send(m.MessageEmpty())
        return
    channel.send(m.MessageOk())
    queued, delivery = taken
    delivering.transfer(
        channel.class_state(Messages),
        method.destination,
        queue.name,
        queue.as_delivered(queued),
        queued.redelivered,
        delivery,
        consumer=False,
    )


def recover(channel: Amqp09Channel, method: m.MessageRecover) -> None:
    """Redeliver unacknowledged messages to their destination, or requeue them (message.recover/*).

    Redeliveries are new requests. Late answers to the old requests have no effect.

    Raises:
        PreconditionFailed: the channel is transactional (message.recover/02).
    """
    if channel.mode is not None:
        raise PreconditionFailed("message.recover is not allowed on a transactional channel; use tx.rollback")
    outstanding = channel.class_state(Messages).ledger.take_all()
    channel.note_settled("requeued", outstanding)
    channel.send(m.MessageOk())
    if method.requeue:
        release_all(outstanding)
    else:
        release_all([each for each in outstanding if not each.queue.redeliver(each)])


def qos(channel: Amqp09Channel, method: m.MessageQos) -> None:
    """Set the prefetch limit of the channel's destinations, or of all on the connection.

    Existing destinations and their unacknowledged messages are included. 0 means no limit. The limit of bytes
    never stops a message while none is unacknowledged (message.qos/prefetch-size-01).
    """
    connection = channel.connection
    if method.global_:
        sharing = [each.class_state(Messages) for each in connection.channels.values()]
        credit = connection.message_credit
        if credit is None:
            credit = connection.message_credit = Credit()
            _share(credit, sharing)
    else:
        messages = channel.class_state(Messages)
        credit = messages.credit
        if credit is None:
            credit = messages.credit = Credit()
            _share(credit, [messages])
    credit.resize(method.prefetch_count, method.prefetch_size)
    channel.send(m.MessageOk())
    if credit.open:
        credit.resume()


def _share(credit: Credit, sharing: list[Messages]) -> None:
    """Apply a new window to all destinations, and count their unacknowledged messages in it."""
    for messages in sharing:
        for subscription in messages.subscriptions:
            if not subscription.no_ack:
                credits = (*subscription.credits, credit)
                subscription.depend_on((*subscription.limits, credit), credits)
                subscription.shares_window = subscription.queue.shares_windows
        for delivery in messages.ledger.outstanding.values():
            if delivery.holder is not None:
                delivery.credits = (*delivery.credits, credit)
                credit.take(delivery.queued.message)
