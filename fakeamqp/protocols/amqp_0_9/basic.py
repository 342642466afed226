"""Class basic: qos, consume, cancel, get, and the settlement of deliveries.

basic.publish is in `publishing`; basic.deliver, get-ok and return are in `amqp_0_9_1.delivering`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fakeamqp.model.deliveries.delivery import accept_all
from fakeamqp.model.deliveries.subscription import ConsumerTerms, DeliveryLimits, Subscription
from fakeamqp.model.errors import PreconditionFailed
from fakeamqp.protocols.amqp_0_9 import publishing
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1 import delivering
from fakeamqp.protocols.amqp_0_9_1.basic import (
    refusal,
    release_kept,
    send_again,
    set_documented_window,
    settle,
    shares_windows,
)

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.credit import Credit
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

__all__ = ["HANDLERS"]

_CLASS = "basic"


# --- qos ---------------------------------------------------------------------------------------------


def qos(channel: Amqp09Channel, method: m.BasicQos) -> None:
    """Set the prefetch limit of the channel, or of the whole connection (basic.qos/global-connection).

    Existing consumers are included. Deliveries that a larger window permits follow qos-ok.
    """
    window = set_documented_window(channel, method)
    channel.send(m.BasicQosOk())
    if window.open:
        window.resume()


# --- consumers ---------------------------------------------------------------------------------------


def consume(channel: Amqp09Channel, method: m.BasicConsume) -> None:
    """Start a consumer; send consume-ok before the first delivery (basic.consume/consume-ok-first)."""
    name = channel.named_queue(method.queue)
    tag = channel.new_tag(method.consumer_tag)
    channel.use_ticket(method.ticket, "read", "queue", name)
    channel.authorise("read", "queue", name)
    queue = channel.virtual_host.queues.require(name, channel.connection)
    # A stream refuses consumers without acknowledgements, but checks their prefetch first.
    counted = not method.no_ack or queue.keeps_delivered
    windows: tuple[Credit, ...] = ()
    if counted and shares_windows(channel, queue):
        windows = tuple(each for each in (channel.credit, channel.connection.credit) if each is not None)
    subscription = Subscription(
        tag,
        queue,
        channel,
        owner=channel.connection,
        group=channel,
        terms=ConsumerTerms(
            no_ack=method.no_ack,
            no_local=method.no_local,
            exclusive=method.exclusive,
            arguments=method.filter,
            options=queue.consumer_options(method.filter),
            content_class=_CLASS,
        ),
        limits=DeliveryLimits(
            shared=queue.shares_windows and any(each.limits for each in windows),
            limits=(channel.connection.gate, channel.gate, *windows),
            credits=windows,
        ),
    )
    queue.subscribe(subscription)
    channel.consumers[tag] = subscription
    channel.note_consumer(
        "consumer added",
        subscription,
        no_ack=method.no_ack,
        prefetch=0,
        shares_prefetch=subscription.shares_window,
    )
    if not method.no_wait:
        channel.send(m.BasicConsumeOk(consumer_tag=tag))
    queue.dispatch()


def cancel(channel: Amqp09Channel, method: m.BasicCancel) -> None:
    """Cancel a consumer; a tag unknown in this class is confirmed too (basic.cancel/unknown-tag)."""
    subscription = channel.consumers.get(method.consumer_tag)
    if subscription is not None and subscription.content_class == _CLASS:
        del channel.consumers[method.consumer_tag]
    else:
        subscription = None
    if not method.no_wait:
        channel.send(m.BasicCancelOk(consumer_tag=method.consumer_tag))
    if subscription is not None:
        channel.end_consumer(subscription)


# --- get ---------------------------------------------------------------------------------------------


def get(channel: Amqp09Channel, method: m.BasicGet) -> None:
    """Send one message of class basic with get-ok, or get-empty if the queue has none."""
    name = channel.named_queue(method.queue)
    channel.use_ticket(method.ticket, "read", "queue", name)
    channel.authorise("read", "queue", name)
    queue = channel.virtual_host.queues.require(name, channel.connection)
    channel.check_get(queue)
    taken = queue.get(channel.connection, no_ack=method.no_ack, group=channel, content_class=_CLASS)
    if taken is None:
        channel.send(m.BasicGetEmpty())
    else:
        delivering.get_ok(channel, queue, *taken)


# --- settlement --------------------------------------------------------------------------------------


def ack(channel: Amqp09Channel, method: m.BasicAck) -> None:
    """Acknowledge deliveries."""
    settle(channel, accept_all, "acked", method.delivery_tag, method.multiple)


def reject(channel: Amqp09Channel, method: m.BasicReject) -> None:
    """Reject one delivery, and requeue it if asked."""
    ending = refusal(channel, "failed" if method.requeue else "rejected")
    settle(channel, *ending, method.delivery_tag, multiple=False)


def recover(channel: Amqp09Channel, method: m.BasicRecover) -> None:
    """Redeliver all unacknowledged messages, without an answer (basic.recover/asynchronous)."""
    _recover(channel, method.requeue)


def recover_sync(channel: Amqp09Channel, method: m.BasicRecoverSync) -> None:
    """Like `recover`, after recover-sync-ok (Apache: documented extension)."""
    _check_recover(channel)
    channel.send(m.BasicRecoverSyncOk())
    _recover(channel, method.requeue)


def _recover(channel: Amqp09Channel, requeue: bool) -> None:
    _check_recover(channel)
    send_again(release_kept(channel), requeue)


def _check_recover(channel: Amqp09Channel) -> None:
    if channel.transaction is not None:  # basic.recover/02
        raise PreconditionFailed("basic.recover is not allowed on a transactional channel")


HANDLERS: dict[type[Method], Callable[[Amqp09Channel, Any], None]] = {
    m.BasicQos: qos,
    m.BasicConsume: consume,
    m.BasicCancel: cancel,
    m.BasicGet: get,
    m.BasicAck: ack,
    m.BasicReject: reject,
    m.BasicRecover: recover,
    m.BasicRecoverSync: recover_sync,
    m.BasicPublish: publishing.begin,
}
