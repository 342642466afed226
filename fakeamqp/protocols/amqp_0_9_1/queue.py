"""Class queue: declare, bind, unbind, purge, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.model.errors import AccessRefused, ChannelCrash
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.model.routing import PSEUDO_QUEUE, is_reply_address
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.replies import stripped

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9_1.server_channel import Amqp091Channel


def declare(channel: Amqp091Channel, method: m.QueueDeclare) -> None:
    """Create a queue, or confirm that it exists with the same attributes."""
    name = stripped(method.queue)
    if channel.personality.direct_reply_to and name.startswith(PSEUDO_QUEUE):
        _declare_reply_address(channel, name, method)
        return
    virtual_host = channel.virtual_host
    if method.passive:
        if method.no_wait and channel.personality.passive_no_wait_is_silent:
            return
        channel.authorise_passive("queue", name)
        queue = virtual_host.queues.require(name, channel.connection)
        queue.asked_for()
    else:
        declaration = QueueDeclaration(
            owner=channel.connection,
            durable=method.durable,
            exclusive=method.exclusive,
            auto_delete=method.auto_delete,
            arguments=method.arguments,
        )
        if name:
            virtual_host.queues.check_name(name)
        else:
            name = virtual_host.queues.server_name(declaration)
        channel.authorise("configure", "queue", name)
        target = method.arguments.get("x-dead-letter-exchange")
        if isinstance(target, str) and name not in virtual_host.queues:
            channel.authorise("read", "queue", name)
            channel.authorise("write", "exchange", target)
        queue = virtual_host.queues.declare(name, declaration, reserved=True)
    channel.current_queue = queue.name
    if not method.no_wait:
        channel.send(
            m.QueueDeclareOk(
                queue=queue.name,
                message_count=len(queue.ready),
                consumer_count=channel.consumer_count(queue),
            )
        )


def _declare_reply_address(channel: Amqp091Channel, name: str, method: m.QueueDeclare) -> None:
    """Confirm that a reply address exists; the pseudo-queue always does (RabbitMQ: documented)."""
    if name != PSEUDO_QUEUE and name not in channel.virtual_host.reply_addresses:
        if channel.personality.refuses_bogus_replies and not is_reply_address(name):
            raise ChannelCrash(f"no broker has made the reply address {name!r}")
        raise channel.virtual_host.missing("queue", name)
    channel.current_queue = name
    if not method.no_wait:
        channel.send(m.QueueDeclareOk(queue=name, message_count=0, consumer_count=1))


def bind(channel: Amqp091Channel, method: m.QueueBind) -> None:
    """Bind a queue to an exchange."""
    name, exchange, routing_key = _binding_names(channel, method)
    channel.virtual_host.bindings.bindable(exchange)
    queue = channel.virtual_host.queues.require(name, channel.connection)
    channel.virtual_host.bindings.bind(exchange, queue, routing_key, method.arguments)
    if not method.no_wait:
        channel.send(m.QueueBindOk())


def unbind(channel: Amqp091Channel, method: m.QueueUnbind) -> None:
    """Remove a binding made by `bind`."""
    name, exchange, routing_key = _binding_names(channel, method)
    virtual_host = channel.virtual_host
    if channel.personality.unbinding_missing_is_an_error:
        virtual_host.queues.require(name, channel.connection)
    virtual_host.bindings.unbind(
        exchange, virtual_host.queues.get(name), routing_key, method.arguments, owner=channel.connection
    )
    channel.send(m.QueueUnbindOk())


def _binding_names(channel: Amqp091Channel, method: m.QueueBind | m.QueueUnbind) -> tuple[str, str, str]:
    """The names of queue, exchange and routing key, after checking that the user may bind them."""
    name = channel.queue_name(stripped(method.queue))
    if channel.personality.refuses_binding_replies and name.startswith(f"{PSEUDO_QUEUE}."):
        raise AccessRefused("cannot bind or unbind to a volatile (direct reply-to) queue")
    exchange = stripped(method.exchange)
    # queue.bind/routing-key-shortcut
    routing_key = name if not method.queue and not method.routing_key else method.routing_key
    channel.authorise("write", "queue", name)
    channel.authorise_binding(exchange, routing_key)
    return name, exchange, routing_key


def purge(channel: Amqp091Channel, method: m.QueuePurge) -> None:
    """Drop all ready messages of a queue."""
    name = channel.queue_name(method.queue)
    channel.authorise("read", "queue", name)
    if channel.races is not None:
        channel.races.precede(name)
    count = channel.purge(name)
    if not method.no_wait:
        channel.send(m.QueuePurgeOk(message_count=count))


def delete(channel: Amqp091Channel, method: m.QueueDelete) -> None:
    """Delete a queue and its messages."""
    name = channel.queue_name(stripped(method.queue))
    channel.authorise("configure", "queue", name)
    if channel.races is not None:
        channel.races.precede(name)

    def confirm(count: int) -> None:
        if not method.no_wait:
            channel.send(m.QueueDeleteOk(message_count=count))

    channel.virtual_host.queues.delete(
        name,
        channel.connection,
        if_unused=method.if_unused,
        if_empty=method.if_empty,
        confirm=confirm,
        group=channel,
    )
