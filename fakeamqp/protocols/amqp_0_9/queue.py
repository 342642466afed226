"""Class queue: declare, bind, unbind, purge, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.model.errors import NotAllowed, NotFound, ResourceLocked
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.protocols.amqp_0_9.access import assign_realm, use_ticket
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.replies import ProtocolError, stripped

if TYPE_CHECKING:
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.queues import Queue
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel


# --- declare -----------------------------------------------------------------------------------------


def declare(channel: Amqp09Channel, method: m.QueueDeclare) -> None:
    """Create a queue, or confirm that it exists.

    Flags and arguments of an existing queue are not compared (queue.declare/durable-pre-existence).
    """
    name = stripped(method.queue)
    if method.passive:
        use_ticket(channel, method.ticket, "passive", "queue", name)
        channel.authorise_passive("queue", name)
        queue = _declarable(channel, name)
        queue.asked_for()
    else:
        queue = _create(channel, method, name)
    channel.current_queue = queue.name
    if not method.no_wait:
        channel.send(
            m.QueueDeclareOk(
                queue=queue.name,
                message_count=len(queue.ready),
                consumer_count=channel.consumer_count(queue),
            )
        )


def _create(channel: Amqp09Channel, method: m.QueueDeclare, name: str) -> Queue:
    virtual_host = channel.virtual_host
    use_ticket(channel, method.ticket, "active", "queue", name)
    auto_delete = method.auto_delete
    if method.exclusive and channel.choices.exclusive_implies_auto_delete:
        auto_delete = True
    declaration = QueueDeclaration(
        owner=channel.connection,
        durable=method.durable,
        exclusive=method.exclusive,
        auto_delete=auto_delete,
        arguments=method.arguments,
        priorities=True,  # basic/06, file/03, stream/02, message/06
    )
    server_named = not name
    if server_named:
        name = virtual_host.queues.server_name(declaration)
    channel.authorise("configure", "queue", name)
    if not server_named:
        if name in virtual_host.queues:
            queue = _declarable(channel, name)
            queue.asked_for()
            return queue
        if name.startswith("amq."):
            raise NotAllowed(f"queue name '{name}' contains reserved prefix 'amq.*'")
        virtual_host.queues.check_name(name)
    target = method.arguments.get("x-dead-letter-exchange")
    if isinstance(target, str):
        channel.authorise("read", "queue", name)
        channel.authorise("write", "exchange", target)
    queue = virtual_host.queues.declare(name, declaration, reserved=server_named)
    assign_realm(channel, method.ticket, "queue", queue.name)
    return queue


def _declarable(channel: Amqp09Channel, name: str) -> Queue:
    """Return the existing queue that a client declares, unless it is locked (queue.declare/exclusive-02)."""
    try:
        return channel.virtual_host.queues.require(name, channel.connection)
    except ResourceLocked as problem:
        raise ProtocolError(channel.choices.declaring_locked_queue, str(problem)) from None


# --- bindings ----------------------------------------------------------------------------------------


def bind(channel: Amqp09Channel, method: m.QueueBind) -> None:
    """Bind a queue to an exchange; the default exchange accepts bindings too."""
    queue_name, exchange_name, key = _binding_names(channel, method)
    exchange, queue = _find_both(channel, exchange_name, queue_name)
    if exchange.internal:  # queue.bind/internal-exchange
        raise NotAllowed(f"exchange '{exchange_name}' is internal: queues cannot be bound to it")
    if queue.durable and not exchange.durable:  # queue.bind/transient-exchange
        raise NotAllowed(
            f"queue '{queue_name}' is durable and exchange '{exchange_name}' is not: they cannot be bound"
        )
    channel.virtual_host.bindings.bind(exchange_name, queue, key, method.arguments, permits_default=True)
    if not method.no_wait:
        channel.send(m.QueueBindOk())


def unbind(channel: Amqp09Channel, method: m.QueueUnbind) -> None:
    """Remove a binding made by `bind`."""
    queue_name, exchange_name, key = _binding_names(channel, method)
    # A missing queue or exchange closes the channel only (queue.unbind/queue-02, exchange-03).
    exchange = channel.virtual_host.exchanges.require(exchange_name)
    queue = channel.virtual_host.queues.require(queue_name, channel.connection)
    strict = channel.personality.unbinding_missing_is_an_error
    if strict and exchange.binding(queue, key, method.arguments) is None:
        raise _failure(channel, f"queue '{queue_name}' is not bound to exchange '{exchange_name}' by '{key}'")
    channel.virtual_host.bindings.unbind(
        exchange_name, queue, key, method.arguments, owner=channel.connection, permits_default=True
    )
    channel.send(m.QueueUnbindOk())


def _binding_names(channel: Amqp09Channel, method: m.QueueBind | m.QueueUnbind) -> tuple[str, str, str]:
    """Return the names of queue and exchange and the key, after checking that the user may bind them."""
    queue = channel.named_queue(stripped(method.queue))
    exchange = stripped(method.exchange)
    # queue.bind/routing-key-shortcut
    key = queue if not method.queue and not method.routing_key else method.routing_key
    use_ticket(channel, method.ticket, "active", "queue", queue)
    channel.authorise("write", "queue", queue)
    channel.authorise_binding(exchange, key)
    return queue, exchange, key


def _find_both(channel: Amqp09Channel, exchange: str, queue: str) -> tuple[Exchange, Queue]:
    """Return exchange and queue of a new binding (queue.bind/queue-queue-existence, queue.bind/failure)."""
    virtual_host = channel.virtual_host
    try:
        return virtual_host.exchanges.require(exchange), virtual_host.queues.require(
            queue, channel.connection
        )
    except NotFound as problem:
        raise _failure(channel, str(problem)) from None


def _failure(channel: Amqp09Channel, text: str) -> NotFound:
    """The error for a failed binding; the personality chooses its scope (queue.bind/failure)."""
    return NotFound(text, ends_connection=channel.choices.failed_bindings_end_connections)


# --- purge and delete --------------------------------------------------------------------------------


def purge(channel: Amqp09Channel, method: m.QueuePurge) -> None:
    """Drop all ready messages of a queue."""
    name = channel.named_queue(method.queue)
    use_ticket(channel, method.ticket, "read", "queue", name)
    channel.authorise("read", "queue", name)
    count = channel.purge(name)
    if not method.no_wait:
        channel.send(m.QueuePurgeOk(message_count=count))


def delete(channel: Amqp09Channel, method: m.QueueDelete) -> None:
    """Delete a queue, which must exist (queue.delete/queue-02), and its messages."""
    name = channel.named_queue(stripped(method.queue))
    use_ticket(channel, method.ticket, "active", "queue", name)
    channel.authorise("configure", "queue", name)
    channel.virtual_host.queues.require(name, channel.connection)

    def confirm(count: int) -> None:
        if not method.no_wait:
            channel.send(m.QueueDeleteOk(message_count=count))

    channel.virtual_host.queues.delete(
        name, channel.connection, if_unused=method.if_unused, if_empty=method.if_empty, confirm=confirm
    )
