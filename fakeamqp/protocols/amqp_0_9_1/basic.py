"""Class basic: qos, consume, cancel, get, and the settlement of deliveries.

basic.publish is in `publishing`; basic.deliver, get-ok and return are in `delivering`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from fakeamqp.model.deliveries.delivery import accept_all, check_returns, reject_all, release_all
from fakeamqp.model.deliveries.subscription import (
    ConsumerTerms,
    Credit,
    DeliveryLimits,
    InheritedCredit,
    Limit,
    Subscription,
)
from fakeamqp.model.errors import ChannelCrash, NotAllowed, PreconditionFailed
from fakeamqp.model.limits import check_consumer_bound
from fakeamqp.model.queues import ClassicQueue
from fakeamqp.model.routing import PSEUDO_QUEUE
from fakeamqp.model.tap import report_settled
from fakeamqp.protocols.amqp_0_9_1 import delivering, publishing
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.replies import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fakeamqp.model.deliveries.delivery import Delivery, Ending
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.tap import Settlement
    from fakeamqp.protocols.amqp_0_9_1.base_channel import BaseChannel
    from fakeamqp.protocols.amqp_0_9_1.server_channel import Amqp091Channel

    Act: TypeAlias = Callable[[Sequence[Delivery]], None]


# --- qos ---------------------------------------------------------------------------------------------


def qos(channel: Amqp091Channel, method: m.BasicQos) -> None:
    """Set the prefetch limit; the personality decides what `global` means (basic.qos/*).

    Deliveries that a larger window permits follow qos-ok (RabbitMQ: measured).
    """
    changed: Credit | None
    if method.prefetch_size and not channel.personality.honours_prefetch_size:
        raise ProtocolError("not-implemented", f"prefetch_size!=0 ({method.prefetch_size})")
    if not channel.personality.prefetch_is_per_consumer:
        changed = set_documented_window(channel, method)
    elif method.global_ and _may_share(channel):
        changed = _set_shared_limit(channel, method.prefetch_count)
    else:
        channel.prefetch = (method.prefetch_count, 0)
        changed = channel.credit
        if changed is not None:
            # A limit per consumer removes the limit that all consumers share (RabbitMQ: measured).
            changed.resize(0, 0)
    channel.send(m.BasicQosOk())
    if changed is not None and changed.open:
        changed.resume()


def _set_shared_limit(channel: Amqp091Channel, limit: int) -> Credit:
    """Set the limit that the consumers of a channel share; 0 lifts it."""
    begins = channel.credit is None or not channel.credit.limits
    credit = channel.credit = _set_window(channel.credit, limit, 0, [channel])
    if begins and limit and channel.personality.shared_limit_counts_all_held:
        others = [each for each in channel.ledger.outstanding.values() if credit not in each.credits]
        credit.resize(limit, 0, occupied=sum(each.holder is None for each in others))
        for delivery in others:
            if delivery.holder is not None:
                delivery.credits = (*delivery.credits, credit)
                credit.take(delivery.queued.message)
    return credit


def _may_share(channel: Amqp091Channel) -> bool:
    """True if the consumers of a channel can share one limit; otherwise each gets its own.

    Raises:
        InternalError: they cannot, and the personality does not substitute a limit per consumer.
    """
    features = channel.connection.broker.features
    if channel.personality.refuses_denied_global_qos:
        features.require("global_qos")
    return features.permitted("global_qos")


def set_documented_window(channel: BaseChannel, method: m.BasicQos) -> Credit:
    """Set the window of the channel, or with `global` of the connection; existing consumers are included."""
    count, size = method.prefetch_count, method.prefetch_size
    if method.global_:
        connection = channel.connection
        connection.credit = _set_window(connection.credit, count, size, connection.channels.values())
        return connection.credit
    channel.credit = _set_window(channel.credit, count, size, [channel])
    return channel.credit


def _set_window(credit: Credit | None, count: int, size: int, channels: Iterable[BaseChannel]) -> Credit:
    """Set a shared window; a new window counts the unacknowledged deliveries of the channels."""
    if credit is None:
        credit = Credit(count, size)
        for channel in channels:
            for subscription in channel.consumers.values():
                if subscription.subscriber is not channel:
                    continue  # Other AMQP classes have their own windows.
                if not shares_windows(channel, subscription.queue):
                    continue
                if not subscription.no_ack:
                    credits = (*subscription.credits, credit)
                    subscription.depend_on((*subscription.limits, credit), credits)
                elif channel.personality.shared_limit_holds_no_ack:
                    subscription.depend_on((*subscription.limits, credit), subscription.credits)
            for delivery in channel.ledger.outstanding.values():
                if delivery.holder is not None and shares_windows(channel, delivery.queue):
                    delivery.credits = (*delivery.credits, credit)
                    credit.take(delivery.queued.message)
    else:
        credit.resize(count, size)
    return credit


def shares_windows(channel: BaseChannel, queue: Queue) -> bool:
    """True if the consumers of a queue use shared windows; all do unless prefetch is per consumer."""
    return queue.shares_windows or not channel.personality.prefetch_is_per_consumer


# --- consumers ---------------------------------------------------------------------------------------


def consume(channel: Amqp091Channel, method: m.BasicConsume) -> None:
    """Start a consumer; send consume-ok before the first delivery (basic.consume/consume-ok-first)."""
    name = channel.queue_name(method.queue)
    tag = _new_tag(channel, method.consumer_tag)
    if channel.personality.direct_reply_to and name == PSEUDO_QUEUE:
        _consume_replies(channel, method, tag)
        return
    channel.authorise("read", "queue", name)
    queue = channel.virtual_host.queues.require(name, channel.connection)
    limits: list[Limit] = [channel.connection.gate]
    credits: list[Credit] = []
    if channel.personality.honours_client_flow or channel.PAUSES:
        limits.append(channel.gate)
    # A stream refuses consumers without acknowledgements, but checks their prefetch first.
    counted = not method.no_ack or queue.keeps_delivered
    prefetch = channel.prefetch if channel.prefetch[0] else (queue.default_prefetch, 0)
    inherits = channel.personality.tags_are_inherited and not queue.keeps_delivered
    held = channel.ledger.held_for(queue, tag) if inherits else []
    own: Credit | None = None
    if counted and prefetch[0]:
        # Elsewhere what it takes over does not count, but settling it returns credit (RabbitMQ: measured).
        counts = held and queue.inherits_credit
        own = InheritedCredit(*prefetch, len(held)) if counts else Credit(*prefetch)
        credits.append(own)
    windows: list[Credit] = []
    if shares_windows(channel, queue):
        windows = [each for each in (channel.credit, channel.connection.credit) if each is not None]
    if counted:
        credits += windows
    elif channel.personality.shared_limit_holds_no_ack:
        limits += windows
    subscription = Subscription(
        tag,
        queue,
        channel,
        owner=channel.connection,
        group=channel,
        terms=ConsumerTerms(
            no_ack=method.no_ack,
            no_local=method.no_local and channel.personality.honours_no_local,
            exclusive=method.exclusive,
            arguments=method.arguments,
            options=queue.consumer_options(method.arguments),
            content_class=channel.CONTENT_CLASS,
        ),
        limits=DeliveryLimits(
            shared=channel.credit is not None and channel.credit.limits,
            limits=(*limits, *credits),
            credits=tuple(credits),
        ),
    )
    if channel.races is not None:
        channel.races.precede(name)
    queue.subscribe(subscription)
    for delivery in held:
        shared = [credit for credit in delivery.credits if credit in windows]
        delivery.holder = subscription
        # Settling it refills these, whatever it took from.
        delivery.credits = tuple(shared) if own is None else (own, *shared)
    channel.consumers[tag] = subscription
    channel.note_consumer(
        "consumer added",
        subscription,
        no_ack=method.no_ack,
        prefetch=prefetch[0] if counted else 0,
        shares_prefetch=counted
        and shares_windows(channel, queue)
        and channel.connection.broker.features.permitted("global_qos"),
    )
    if not method.no_wait:
        channel.send(m.BasicConsumeOk(consumer_tag=tag))
    queue.dispatch()


def _new_tag(channel: Amqp091Channel, tag: str) -> str:
    check_consumer_bound(channel.connection.broker, len(channel.consumers))
    if not tag:
        return channel.connection.broker.names.consumer_tag()
    if tag in channel.consumers:
        raise NotAllowed(f"attempt to reuse consumer tag '{tag}'")
    return tag


def _consume_replies(channel: Amqp091Channel, method: m.BasicConsume, tag: str) -> None:
    """Direct reply-to: one consumer per channel, without acknowledgements (RabbitMQ: documented)."""
    if not method.no_ack:
        raise PreconditionFailed("reply consumer cannot acknowledge")
    if channel.reply_address is not None:
        raise PreconditionFailed("reply consumer already set")
    nowhere = ClassicQueue(channel.virtual_host, PSEUDO_QUEUE)
    subscription = Subscription(
        tag,
        nowhere,
        channel,
        owner=channel.connection,
        group=channel,
        terms=ConsumerTerms(no_ack=True, arguments=method.arguments),
    )
    channel.consumers[tag] = subscription
    channel.reply_address = channel.virtual_host.open_reply_address(subscription, channel.ledger)
    channel.note_consumer("consumer added", subscription, no_ack=True, prefetch=0, shares_prefetch=False)
    if not method.no_wait:
        channel.send(m.BasicConsumeOk(consumer_tag=tag))


def cancel(channel: Amqp091Channel, method: m.BasicCancel) -> None:
    """Cancel a consumer; an unknown tag is confirmed too (basic.cancel/unknown-tag)."""
    if channel.races is not None and method.consumer_tag in channel.consumers:
        channel.races.precede(channel.consumers[method.consumer_tag].queue.name)
    subscription = channel.take_consumer(method.consumer_tag)
    if not method.no_wait:
        channel.send(m.BasicCancelOk(consumer_tag=method.consumer_tag))
    if subscription is not None:
        channel.end_consumer(subscription)


def cancel_ok(channel: Amqp091Channel, method: m.BasicCancelOk) -> None:
    """Cancel a consumer without an answer, if the personality accepts this method from a client.

    RabbitMQ: since 4.3.

    Raises:
        Crash: the channel has no consumer with this tag.
    """
    if not channel.personality.takes_cancel_ok:
        raise ProtocolError("command-invalid", "unimplemented method")
    subscription = channel.take_consumer(method.consumer_tag)
    if subscription is None:
        raise ChannelCrash(f"basic.cancel-ok for the unknown consumer tag {method.consumer_tag!r}")
    channel.end_consumer(subscription)


# --- get ---------------------------------------------------------------------------------------------


def get(channel: Amqp091Channel, method: m.BasicGet) -> None:
    """Send one message with get-ok, or get-empty if the queue has none."""
    name = channel.queue_name(method.queue)
    channel.authorise("read", "queue", name)
    queue = channel.virtual_host.queues.require(name, channel.connection)
    channel.check_get(queue)
    if channel.races is not None:
        channel.races.precede(name)
    taken = queue.get(
        channel.connection, no_ack=method.no_ack, group=channel, content_class=channel.CONTENT_CLASS
    )
    if taken is None:
        channel.send(m.BasicGetEmpty())
    else:
        delivering.get_ok(channel, queue, *taken)


# --- settlement --------------------------------------------------------------------------------------


def ack(channel: Amqp091Channel, method: m.BasicAck) -> None:
    """Acknowledge deliveries."""
    races = channel.races if channel.transaction is None else None
    act = accept_all if races is None else races.accept
    settle(channel, act, "acked", method.delivery_tag, method.multiple)


def nack(channel: Amqp091Channel, method: m.BasicNack) -> None:
    """Reject deliveries, and requeue them if asked (RabbitMQ: documented extension)."""
    _refuse(channel, "released" if method.requeue else "refused", method.delivery_tag, method.multiple)


def reject(channel: Amqp091Channel, method: m.BasicReject) -> None:
    """Reject one delivery, and requeue it if asked."""
    _refuse(channel, "failed" if method.requeue else "rejected", method.delivery_tag, multiple=False)


def _refuse(channel: Amqp091Channel, ending: Ending, tag: int, multiple: bool) -> None:
    act, event = refusal(channel, ending)
    if channel.races is not None and channel.transaction is None and event == "requeued":
        act = partial(channel.races.requeue, act)
    settle(channel, act, event, tag, multiple)


def recover(channel: Amqp091Channel, method: m.BasicRecover) -> None:
    """Redeliver all unacknowledged messages, after recover-ok (basic.recover/synchronous)."""
    _check_recover(channel, method.requeue)
    taken = release_kept(channel)
    channel.send(m.BasicRecoverOk())
    _send_again(channel, taken, method.requeue)


def recover_async(channel: Amqp091Channel, method: m.BasicRecoverAsync) -> None:
    """Like `recover`, without an answer (basic.recover-async/no-reply)."""
    _check_recover(channel, method.requeue)
    _send_again(channel, release_kept(channel), method.requeue)


def _send_again(channel: Amqp091Channel, deliveries: Sequence[Delivery], requeue: bool) -> None:
    if channel.races is not None and requeue:
        channel.races.requeue(release_all, deliveries)
    else:
        send_again(deliveries, requeue)


def _check_recover(channel: Amqp091Channel, requeue: bool) -> None:
    if not requeue and not channel.personality.recovers_to_original_consumer:
        raise ProtocolError("not-implemented", "requeue=false")


publish: Final = publishing.begin


# --- settlement, in 0-9 as well ------------------------------------------------------------------------


def refusal(channel: BaseChannel, ending: Ending) -> tuple[Act, Settlement]:
    """Return the settlement of a rejected delivery, and its event name; see `deliveries.delivery.Ending`."""
    if ending in ("rejected", "refused"):
        return partial(reject_all, ending=ending), "rejected"
    if channel.personality.rejected_avoids_same_channel:
        return partial(release_all, ending=ending, avoid=channel), "requeued"
    return partial(release_all, ending=ending), "requeued"


def settle(channel: BaseChannel, act: Act, event: Settlement, tag: int, multiple: bool) -> None:
    """Settle the delivery with this tag, or with `multiple` all up to it.

    Raises:
        PreconditionFailed: no unacknowledged delivery has the tag.
        NotImplementedHere: a queue does not take deliveries back.
    """
    deliveries = channel.ledger.take(tag, multiple)
    if deliveries is None:
        raise PreconditionFailed(f"unknown delivery tag {tag}")
    returns = event != "acked"
    if channel.transaction is not None:
        channel.transaction.settle(partial(carry_out, channel, act, event), deliveries, returns)
        return
    tap = channel.connection.broker.tap
    if tap is not None:
        report_settled(tap, event, deliveries, channel.connection, channel.number)
    if returns:
        check_returns(deliveries)
    act(deliveries)


def carry_out(channel: BaseChannel, act: Act, event: Settlement, deliveries: Sequence[Delivery]) -> None:
    """Carry out a settlement of a transaction, at commit."""
    channel.note_settled(event, deliveries)
    act(deliveries)


def release_kept(channel: BaseChannel) -> list[Delivery]:
    """Release the deliveries whose queue keeps delivered messages, and return the others.

    Messages that this makes deliverable go out before the answer to the client (RabbitMQ).
    """
    deliveries = channel.ledger.take_all()
    channel.note_settled("requeued", deliveries)
    release_all([delivery for delivery in deliveries if delivery.queue.keeps_delivered])
    return [delivery for delivery in deliveries if not delivery.queue.keeps_delivered]


def send_again(outstanding: Sequence[Delivery], requeue: bool) -> None:
    """Requeue deliveries, or redeliver them to the same consumer (basic.recover/requeue-false)."""
    if requeue:
        release_all(outstanding)
    else:
        release_all([delivery for delivery in outstanding if not delivery.queue.redeliver(delivery)])
