"""Class basic: qos, consume, cancel, get, and the settling of what was delivered.

basic.publish is in `publishing`, basic.deliver, get-ok and return are in `delivering`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from fakeamqp.dialects.amqp_0_9_1 import publishing
from fakeamqp.dialects.amqp_0_9_x import delivering
from fakeamqp.dialects.amqp_0_9_x.replies import ProtocolError
from fakeamqp.model.credit import Credit, Limit
from fakeamqp.model.delivery import accept_all, reject_all, release_all
from fakeamqp.model.errors import AccessRefused, NotAllowed, PreconditionFailed
from fakeamqp.model.queues import ClassicQueue
from fakeamqp.model.reply_to import PSEUDO_QUEUE
from fakeamqp.model.subscription import Subscription
from fakeamqp.wire.amqp_0_9_1 import methods as m

if TYPE_CHECKING:
    from typing import TypeAlias

    from fakeamqp.dialects.amqp_0_9_1.channel_end import ChannelEnd
    from fakeamqp.model.delivery import Delivery, Ending
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.tap import Settlement

    Act: TypeAlias = Callable[[Sequence[Delivery]], None]

__all__ = ["HANDLERS"]


# --- qos ---------------------------------------------------------------------------------------------


def qos(channel: ChannelEnd, method: m.BasicQos) -> None:
    """Limit what is sent in advance; what `global` means is the personality's (basic.qos/*).

    What a wider window lets through comes after qos-ok (RabbitMQ: measured).
    """
    changed: Credit | None
    if method.prefetch_size and not channel.personality.honours_prefetch_size:
        raise ProtocolError("not-implemented", f"prefetch_size!=0 ({method.prefetch_size})")
    if not channel.personality.prefetch_is_per_consumer:
        changed = _set_documented_window(channel, method)
    elif method.global_ and _may_share(channel):
        changed = channel.credit = _set_window(channel.credit, method.prefetch_count, 0, [channel])
    else:
        channel.prefetch = (method.prefetch_count, 0)
        changed = channel.credit
        if changed is not None:
            # A limit for each consumer lifts the one for all of them together (RabbitMQ: measured).
            changed.resize(0, 0)
    channel.send(m.BasicQosOk())
    if changed is not None and changed.open:
        changed.resume()


def _may_share(channel: ChannelEnd) -> bool:
    """Whether all consumers of a channel can have one limit together.

    Raises:
        InternalError: they cannot, and are not to take a limit for each of them for it.
    """
    features = channel.endpoint.broker.features
    if channel.personality.refuses_denied_global_qos:
        features.require("global_qos")
    return features.permitted("global_qos")


def _set_documented_window(channel: ChannelEnd, method: m.BasicQos) -> Credit:
    """Without global for this channel, with it for the connection; running consumers are included."""
    count, size = method.prefetch_count, method.prefetch_size
    if method.global_:
        endpoint = channel.endpoint
        endpoint.credit = _set_window(endpoint.credit, count, size, list(endpoint.channels.values()))
        return endpoint.credit
    channel.credit = _set_window(channel.credit, count, size, [channel])
    return channel.credit


def _set_window(credit: Credit | None, count: int, size: int, channels: list[ChannelEnd]) -> Credit:
    """Set a shared window; a new one begins with what the channels have outstanding."""
    if credit is None:
        credit = Credit(count, size)
        for channel in channels:
            for subscription in channel.consumers.values():
                if not subscription.no_ack and _shares_windows(channel, subscription.queue):
                    credits = (*subscription.credits, credit)
                    subscription.depend_on((*subscription.limits, credit), credits)
            for delivery in channel.ledger.outstanding.values():
                if delivery.holder is not None and _shares_windows(channel, delivery.queue):
                    delivery.credits = (*delivery.credits, credit)
                    credit.take(delivery.queued.message)
    else:
        credit.resize(count, size)
    return credit


def _shares_windows(channel: ChannelEnd, queue: Queue) -> bool:
    """Whether the consumers of a queue depend on shared windows; where there are no others, all do."""
    return queue.shares_windows or not channel.personality.prefetch_is_per_consumer


# --- consumers ---------------------------------------------------------------------------------------


def consume(channel: ChannelEnd, method: m.BasicConsume) -> None:
    """Start a consumer; consume-ok goes before the first delivery (basic.consume/consume-ok-first)."""
    name = channel.queue_name(method.queue)
    tag = _new_tag(channel, method.consumer_tag)
    if channel.personality.direct_reply_to and name == PSEUDO_QUEUE:
        _consume_replies(channel, method, tag)
        return
    channel.authorise("read", "queue", name)
    queue = channel.virtual_host.queue(name, channel.endpoint)
    limits: list[Limit] = [channel.endpoint.gate]
    credits: list[Credit] = []
    if channel.personality.honours_client_flow:
        limits.append(channel.gate)
    # A stream would refuse to go without acknowledgements, but looks for its prefetch first.
    counted = not method.no_ack or queue.keeps_delivered
    prefetch = channel.prefetch if channel.prefetch[0] else (queue.default_prefetch, 0)
    if counted and prefetch[0]:
        credits.append(Credit(*prefetch))
    shares = counted and _shares_windows(channel, queue)
    if shares:
        credits += [each for each in (channel.credit, channel.endpoint.credit) if each is not None]
    subscription = Subscription(
        tag,
        queue,
        channel,
        owner=channel.endpoint,
        group=channel,
        no_ack=method.no_ack,
        no_local=method.no_local and channel.personality.honours_no_local,
        exclusive=method.exclusive,
        arguments=method.arguments,
        options=queue.consumer_options(method.arguments),
        shares_window=channel.credit is not None and channel.credit.limits,
        limits=(*limits, *credits),
        credits=tuple(credits),
    )
    queue.subscribe(subscription)
    channel.consumers[tag] = subscription
    channel.note_consumer(
        "consumer added",
        subscription,
        no_ack=method.no_ack,
        prefetch=prefetch[0] if counted else 0,
        shares_prefetch=shares and channel.endpoint.broker.features.permitted("global_qos"),
    )
    if not method.no_wait:
        channel.send(m.BasicConsumeOk(consumer_tag=tag))
    queue.dispatch()


def _new_tag(channel: ChannelEnd, tag: str) -> str:
    if not tag:
        return channel.endpoint.broker.names.consumer_tag()
    if tag in channel.consumers:
        raise NotAllowed(f"attempt to reuse consumer tag '{tag}'")
    return tag


def _consume_replies(channel: ChannelEnd, method: m.BasicConsume, tag: str) -> None:
    """Direct reply-to: one consumer per channel, without acknowledgements (RabbitMQ: documented)."""
    if not method.no_ack:
        raise PreconditionFailed("reply consumer cannot acknowledge")
    if channel.reply_address is not None:
        raise PreconditionFailed("reply consumer already set")
    nowhere = ClassicQueue(channel.virtual_host, PSEUDO_QUEUE)
    subscription = Subscription(
        tag, nowhere, channel, owner=channel.endpoint, group=channel, no_ack=True, arguments=method.arguments
    )
    channel.consumers[tag] = subscription
    channel.reply_address = channel.virtual_host.open_reply_address(subscription, channel.ledger)
    channel.note_consumer("consumer added", subscription, no_ack=True, prefetch=0, shares_prefetch=False)
    if not method.no_wait:
        channel.send(m.BasicConsumeOk(consumer_tag=tag))


def cancel(channel: ChannelEnd, method: m.BasicCancel) -> None:
    """End a consumer; an unknown tag is confirmed as well (basic.cancel/unknown-tag)."""
    subscription = channel.consumers.pop(method.consumer_tag, None)
    if not method.no_wait:
        channel.send(m.BasicCancelOk(consumer_tag=method.consumer_tag))
    if subscription is not None:
        channel.end_consumer(subscription)


def cancel_ok(channel: ChannelEnd, method: m.BasicCancelOk) -> None:
    """End a consumer without an answer, where the personality takes this from a client.

    RabbitMQ: since 4.3; a tag that is not known changes nothing.
    """
    if not channel.personality.takes_cancel_ok:
        raise ProtocolError("command-invalid", "unimplemented method")
    subscription = channel.consumers.pop(method.consumer_tag, None)
    if subscription is not None:
        channel.end_consumer(subscription)


# --- get ---------------------------------------------------------------------------------------------


def get(channel: ChannelEnd, method: m.BasicGet) -> None:
    """Take one message at once, or learn that there is none."""
    name = channel.queue_name(method.queue)
    channel.authorise("read", "queue", name)
    queue = channel.virtual_host.queue(name, channel.endpoint)
    exclusive = queue.exclusive_subscription
    if (
        channel.personality.exclusive_consumer_blocks_get
        and exclusive is not None
        and exclusive.owner is not channel.endpoint
    ):
        raise AccessRefused(f"queue '{name}' in vhost '{channel.virtual_host.name}' in exclusive use")
    taken = queue.get(channel.endpoint, no_ack=method.no_ack, group=channel)
    if taken is None:
        channel.send(m.BasicGetEmpty())
    else:
        delivering.get_ok(channel, queue, *taken)


# --- settling ----------------------------------------------------------------------------------------


def ack(channel: ChannelEnd, method: m.BasicAck) -> None:
    """The messages have been dealt with."""
    _settle(channel, accept_all, "acked", method.delivery_tag, method.multiple)


def nack(channel: ChannelEnd, method: m.BasicNack) -> None:
    """The messages have not been dealt with (RabbitMQ: documented extension)."""
    ending: Ending = "released" if method.requeue else "refused"
    _settle(channel, *_refusal(channel, ending), method.delivery_tag, method.multiple)


def reject(channel: ChannelEnd, method: m.BasicReject) -> None:
    """One message cannot be dealt with."""
    ending: Ending = "failed" if method.requeue else "rejected"
    _settle(channel, *_refusal(channel, ending), method.delivery_tag, multiple=False)


def _refusal(channel: ChannelEnd, ending: Ending) -> tuple[Act, Settlement]:
    if ending in ("rejected", "refused"):
        return partial(reject_all, ending=ending), "rejected"
    if channel.personality.rejected_avoids_same_channel:
        return partial(release_all, ending=ending, avoid=channel), "requeued"
    return partial(release_all, ending=ending), "requeued"


def _settle(channel: ChannelEnd, act: Act, event: Settlement, tag: int, multiple: bool) -> None:
    deliveries = channel.ledger.take(tag, multiple)
    if deliveries is None:
        raise PreconditionFailed(f"unknown delivery tag {tag}")
    if channel.transaction is not None:
        channel.transaction.settle(partial(_carry_out, channel, act, event), deliveries)
        return
    tap = channel.endpoint.broker.tap
    if tap is not None:
        tap.settled(event, deliveries, channel.endpoint, channel.number)
    act(deliveries)


def _carry_out(channel: ChannelEnd, act: Act, event: Settlement, deliveries: Sequence[Delivery]) -> None:
    """A settlement of a transaction, at commit."""
    channel.note_settled(event, deliveries)
    act(deliveries)


def recover(channel: ChannelEnd, method: m.BasicRecover) -> None:
    """Send everything unsettled again, and say so first (basic.recover/synchronous)."""
    _check_recover(channel, method.requeue)
    taken = _release_kept(channel)
    channel.send(m.BasicRecoverOk())
    _recover(taken, method.requeue)


def recover_async(channel: ChannelEnd, method: m.BasicRecoverAsync) -> None:
    """As `recover`, without an answer (basic.recover-async/no-reply)."""
    _check_recover(channel, method.requeue)
    _recover(_release_kept(channel), method.requeue)


def _check_recover(channel: ChannelEnd, requeue: bool) -> None:
    if not requeue and not channel.personality.recovers_to_original_consumer:
        raise ProtocolError("not-implemented", "requeue=false")


def _release_kept(channel: ChannelEnd) -> list[Delivery]:
    """Give back what never left its queue; what that lets through goes before the answer (RabbitMQ).

    Returns:
        The others.
    """
    deliveries = channel.ledger.take_all()
    channel.note_settled("requeued", deliveries)
    release_all([delivery for delivery in deliveries if delivery.queue.keeps_delivered])
    return [delivery for delivery in deliveries if not delivery.queue.keeps_delivered]


def _recover(outstanding: Sequence[Delivery], requeue: bool) -> None:
    if requeue:
        release_all(outstanding)
    else:
        release_all([delivery for delivery in outstanding if not _redelivered(delivery)])


def _redelivered(delivery: Delivery) -> bool:
    """Whether the message could go back to whom it was sent (basic.recover/requeue-false)."""
    return delivery.queue.redeliver(delivery)


HANDLERS = {
    m.BasicQos: qos,
    m.BasicConsume: consume,
    m.BasicCancel: cancel,
    m.BasicCancelOk: cancel_ok,
    m.BasicGet: get,
    m.BasicAck: ack,
    m.BasicNack: nack,
    m.BasicReject: reject,
    m.BasicRecover: recover,
    m.BasicRecoverAsync: recover_async,
    m.BasicPublish: publishing.begin,
}
