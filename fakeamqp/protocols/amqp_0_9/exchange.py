"""Class exchange: declare, delete, and exchange.bound, a query of bindings (Apache: extension)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.model.equivalence import check_name
from fakeamqp.model.errors import AccessRefused, CommandInvalid, NotAllowed, NotFound, PreconditionFailed
from fakeamqp.protocols.amqp_0_9.access import assign_realm, use_ticket
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.replies import ProtocolError, stripped

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel


def declare(channel: Amqp09Channel, method: m.ExchangeDeclare) -> None:
    """Create an exchange, or confirm that one of this type exists.

    Flags and arguments of an existing exchange are not compared (exchange.declare/durable-sticky).
    """
    name = stripped(method.exchange)
    if method.passive:
        use_ticket(channel, method.ticket, "passive", "exchange", name)
        channel.authorise_passive("exchange", name)
        channel.virtual_host.exchanges.require(name)
    else:
        _create(channel, method, name)
    if not method.no_wait:
        channel.send(m.ExchangeDeclareOk())


def _create(channel: Amqp09Channel, method: m.ExchangeDeclare, name: str) -> None:
    virtual_host = channel.virtual_host
    try:
        virtual_host.exchanges.type_called(method.type)
    except PreconditionFailed as problem:  # 0-9's code, not RabbitMQ 4's (exchange.declare/type-support).
        raise CommandInvalid(str(problem)) from None
    use_ticket(channel, method.ticket, "active", "exchange", name)
    if not name:
        raise AccessRefused(
            "the default exchange cannot be declared: it exists already, and its name is empty"
        )
    channel.authorise("configure", "exchange", name)
    existing = virtual_host.exchanges.get(name)
    if existing is None:
        if name.startswith("amq."):
            condition = channel.choices.reserved_exchange_name
            raise ProtocolError(condition, f"exchange name '{name}' contains reserved prefix 'amq.*'")
        alternate = method.arguments.get("alternate-exchange")
        if isinstance(alternate, str):
            channel.authorise("read", "exchange", name)
            channel.authorise("write", "exchange", alternate)
        check_name(channel.personality, "exchange", name)
        virtual_host.exchanges.create(
            name,
            method.type,
            durable=method.durable,
            auto_delete=method.auto_delete,
            internal=method.internal,
            arguments=method.arguments,
        )
        assign_realm(channel, method.ticket, "exchange", name)
    elif existing.type_name != method.type:
        raise NotAllowed(
            f"exchange '{name}' in vhost '{virtual_host.name}' is of type '{existing.type_name}', "
            f"not '{method.type}'"
        )


def delete(channel: Amqp09Channel, method: m.ExchangeDelete) -> None:
    """Delete an exchange, which must exist (exchange.delete/exchange-exists)."""
    name = stripped(method.exchange)
    virtual_host = channel.virtual_host
    use_ticket(channel, method.ticket, "active", "exchange", name)
    if name:
        virtual_host.exchanges.check_deletable(name)
        channel.authorise("configure", "exchange", name)
        virtual_host.exchanges.require(name)
    virtual_host.exchanges.delete(name, if_unused=method.if_unused)
    if not method.no_wait:
        channel.send(m.ExchangeDeleteOk())


# --- bound -------------------------------------------------------------------------------------------


_BOUND, _NO_EXCHANGE, _NO_QUEUE = 0, 1, 2
_NO_BINDINGS, _QUEUE_NOT_BOUND, _KEY_NOT_BOUND, _QUEUE_NOT_BOUND_BY_KEY = 3, 4, 5, 6
"""The reply codes of exchange.bound-ok, as in Apache's broker."""


def bound(channel: Amqp09Channel, method: m.ExchangeBound) -> None:
    """Answer if a binding exists (Apache: documented extension); a blank queue or key matches any."""
    code, text = _bound(channel, method)
    channel.send(m.ExchangeBoundOk(reply_code=code, reply_text=text))


def _bound(channel: Amqp09Channel, method: m.ExchangeBound) -> tuple[int, str]:
    exchange_name, queue_name, key = method.exchange, method.queue, method.routing_key
    channel.authorise_passive("exchange", exchange_name)
    if queue_name:
        channel.authorise_passive("queue", queue_name)
    virtual_host = channel.virtual_host
    try:
        exchange = virtual_host.exchanges.require(exchange_name)
    except NotFound as problem:
        return _NO_EXCHANGE, str(problem)
    if queue_name and queue_name not in virtual_host.queues:
        return _NO_QUEUE, f"no queue '{queue_name}' in vhost '{virtual_host.name}'"
    pairs = {
        (each.destination.name, each.routing_key)
        for each in exchange.bindings.values()
        if each.destination.kind == "queue"
    }
    if not exchange_name:
        # Every queue is bound to the default exchange by its name, without an entry in `bindings`.
        pairs.update((name, name) for name in virtual_host.queues)
    if any(queue_name in ("", queue) and key in ("", bound_key) for queue, bound_key in pairs):
        return _BOUND, ""
    if queue_name and key:
        return _QUEUE_NOT_BOUND_BY_KEY, f"queue '{queue_name}' is not bound by key '{key}'"
    if queue_name:
        return _QUEUE_NOT_BOUND, f"queue '{queue_name}' is not bound"
    if key:
        return _KEY_NOT_BOUND, f"nothing is bound by key '{key}'"
    return _NO_BINDINGS, "nothing is bound"
