"""Class basic: qos, consume, cancel, get, publish, and the settlement of deliveries.

basic.deliver, get-ok and return are in `amqp_0_9_1.delivering`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fakeamqp.model.deliveries.delivery import accept_all
from fakeamqp.model.errors import PreconditionFailed
from fakeamqp.model.messages.message import Message, StructuredMessage
from fakeamqp.model.transactions import PlannedPublish
from fakeamqp.protocols.amqp_0_9.access import use_ticket
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
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.delivering import ENCODING
from fakeamqp.protocols.amqp_0_9_1.publishing import (
    PublishTarget,
    examine,
    needs_examination,
    return_if_needed,
    too_large,
)

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.subscription import Credit
    from fakeamqp.model.routing import Outcome
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel, CompleteContent

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
    queue = channel.readable_queue(method.ticket, name)
    # A stream refuses consumers without acknowledgements, but checks their prefetch first.
    counted = not method.no_ack or queue.keeps_delivered
    windows: tuple[Credit, ...] = ()
    if counted and shares_windows(channel, queue):
        windows = tuple(each for each in (channel.credit, channel.connection.credit) if each is not None)
    channel.subscribe(queue, tag, channel, method, windows)
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
    queue = channel.readable_queue(method.ticket, method.queue)
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
    _check_recover(channel)
    send_again(release_kept(channel), method.requeue)


def recover_sync(channel: Amqp09Channel, method: m.BasicRecoverSync) -> None:
    """Like `recover`, after recover-sync-ok (Apache: documented extension)."""
    _check_recover(channel)
    channel.send(m.BasicRecoverSyncOk())
    send_again(release_kept(channel), method.requeue)


def _check_recover(channel: Amqp09Channel) -> None:
    if channel.transaction is not None:  # basic.recover/02
        raise PreconditionFailed("basic.recover is not allowed on a transactional channel")


# --- publish -----------------------------------------------------------------------------------------


def publish(channel: Amqp09Channel, method: m.BasicPublish) -> None:
    """Handle basic.publish; its content follows."""
    use_ticket(channel, method.ticket, "write", "exchange", method.exchange)
    # The properties have the same bytes as in 0-9-1: see `ENCODING`.
    channel.expect_content(
        m.BasicPublish, BasicProperties, partial(publish_content, channel, PublishTarget(method))
    )


def publish_content(
    channel: Amqp09Channel, target: PublishTarget, content: CompleteContent[BasicProperties]
) -> None:
    """Route a complete content, now or at commit, and return it if the client asked for that.

    Raises:
        NotFound: the exchange does not exist (basic.publish/missing-exchange).
        AccessRefused: the exchange is internal, or the user may not write to it.
        PreconditionFailed: a property is not acceptable, or the message is too large.
    """
    largest = channel.personality.largest_message
    if largest and len(content.body) > largest:
        raise too_large(channel, len(content.body))
    properties = content.properties
    meaningful = content.octets != b"\0\0" and needs_examination(properties)
    fresh = target.checked != channel.access.version
    if fresh:
        target.authorise(channel, key=not meaningful)
    make = StructuredMessage if content.children else Message
    message = make(
        target.exchange,
        target.routing_key,
        properties,
        content.body,
        ENCODING,
        content.octets,
        channel.connection.identity,
    )
    if isinstance(message, StructuredMessage):
        message.children = content.children
    if meaningful:
        examine(channel, message, properties, fresh)
    virtual_host = channel.virtual_host
    if channel.transaction is None:
        outcome = virtual_host.publish(message, target.immediate, target.mandatory, True)
        _return_if_needed(channel, target, message, outcome)
        return
    message, plan = virtual_host.routing.plan(message)
    channel.transaction.publish(
        PlannedPublish(
            virtual_host,
            message,
            plan,
            immediate=target.immediate,
            mandatory=target.mandatory,
            on_outcome=partial(_return_if_needed, channel, target, message),
        )
    )


def _return_if_needed(
    channel: Amqp09Channel, target: PublishTarget, message: Message, outcome: Outcome
) -> None:
    if target.mandatory or outcome.unconsumed:
        return_if_needed(channel, target, message, outcome, unconsumed=outcome.unconsumed)
