"""Class exchange: declare, delete, and the bindings between exchanges (RabbitMQ: documented extension)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.model.errors import AccessRefused
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.replies import stripped

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9_1.server_channel import Amqp091Channel


def declare(channel: Amqp091Channel, method: m.ExchangeDeclare) -> None:
    """Create an exchange, or confirm that it exists with the same attributes."""
    virtual_host = channel.virtual_host
    name = stripped(method.exchange)
    if not method.passive:
        virtual_host.exchanges.type_called(method.type)
    if not name:
        raise AccessRefused("operation not permitted on the default exchange")
    if method.passive:
        if method.no_wait and channel.personality.passive_no_wait_is_silent:
            return
        channel.authorise_passive("exchange", name)
        virtual_host.exchanges.require(name)
    else:
        channel.authorise("configure", "exchange", name)
        alternate = method.arguments.get("alternate-exchange")
        if isinstance(alternate, str) and name not in virtual_host.exchanges:
            channel.authorise("read", "exchange", name)
            channel.authorise("write", "exchange", alternate)
        virtual_host.exchanges.declare(
            name,
            method.type,
            durable=method.durable,
            auto_delete=method.auto_delete,
            internal=method.internal,
            arguments=method.arguments,
        )
    if not method.no_wait:
        channel.send(m.ExchangeDeclareOk())


def delete(channel: Amqp091Channel, method: m.ExchangeDelete) -> None:
    """Delete an exchange."""
    name = stripped(method.exchange)
    if name:
        channel.virtual_host.exchanges.check_deletable(name)
        channel.authorise("configure", "exchange", name)
    channel.virtual_host.exchanges.delete(name, if_unused=method.if_unused)
    if not method.no_wait:
        channel.send(m.ExchangeDeleteOk())


def bind(channel: Amqp091Channel, method: m.ExchangeBind) -> None:
    """Bind one exchange to another."""
    name, source = _binding_names(channel, method)
    channel.virtual_host.bindings.bindable(source)
    destination = channel.virtual_host.exchanges.require(name)
    channel.virtual_host.bindings.bind(source, destination, method.routing_key, method.arguments)
    if not method.no_wait:
        channel.send(m.ExchangeBindOk())


def unbind(channel: Amqp091Channel, method: m.ExchangeUnbind) -> None:
    """Remove a binding made by `bind`."""
    name, source = _binding_names(channel, method)
    virtual_host = channel.virtual_host
    if channel.personality.unbinding_missing_is_an_error:
        virtual_host.exchanges.require(name)
    virtual_host.bindings.unbind(
        source, virtual_host.exchanges.get(name), method.routing_key, method.arguments
    )
    if not method.no_wait:
        channel.send(m.ExchangeUnbindOk())


def _binding_names(channel: Amqp091Channel, method: m.ExchangeBind | m.ExchangeUnbind) -> tuple[str, str]:
    """Return the names of destination and source, after checking that the user may bind them."""
    destination, source = stripped(method.destination), stripped(method.source)
    channel.authorise("write", "exchange", destination)
    if not destination:
        raise AccessRefused("operation not permitted on the default exchange")
    channel.authorise_binding(source, method.routing_key)
    return destination, source
