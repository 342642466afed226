"""Class connection: start, open, and RabbitMQ's update-secret. The rest is in `framed.connection`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.constants import VERSION_MAJOR, VERSION_MINOR
from fakeamqp.protocols.common.absent import is_absent
from fakeamqp.protocols.framed import connection as connection_class

if TYPE_CHECKING:
    from fakeamqp.protocols.framed.codec.method import Method
    from fakeamqp.protocols.framed.server_connection import FramedConnection

__all__ = ["HANDLERS", "notify_blocked", "receive", "start"]


_METHODS_OF_CAPABILITIES = {
    "publisher_confirms": "confirm.select",
    "exchange_exchange_bindings": "exchange.bind",
    "basic.nack": "basic.nack",
}
"""Capability -> the method without which a broker does not announce it."""


def start(connection: FramedConnection[Any]) -> None:
    """Send connection.start with the capabilities of the personality (RabbitMQ: documented)."""
    personality = connection.personality
    absent = personality.not_implemented
    capabilities = {
        name: True
        for name in personality.capabilities
        if not (absent and is_absent(_METHODS_OF_CAPABILITIES.get(name, ""), absent))
    }
    properties = {"capabilities": capabilities, **connection_class.server_properties(connection)}
    connection_class.start(connection, properties, (VERSION_MAJOR, VERSION_MINOR))


def receive(connection: FramedConnection[Any], method: Method) -> None:
    """Process a method on channel 0."""
    connection_class.receive(connection, method, HANDLERS)


def notify_blocked(connection: FramedConnection[Any], reason: str | None) -> None:
    """Send connection.blocked or unblocked to a client with the capability (RabbitMQ: documented)."""
    if connection.has_capability("connection.blocked"):
        connection.send(0, m.ConnectionUnblocked() if reason is None else m.ConnectionBlocked(reason=reason))


def _open(connection: FramedConnection[Any], method: m.ConnectionOpen) -> None:
    virtual_host = connection_class.open_virtual_host(connection, method.virtual_host)
    connection.send(0, m.ConnectionOpenOk())
    connection.opened(virtual_host)


def _update_secret(connection: FramedConnection[Any], method: m.ConnectionUpdateSecret) -> None:
    """Accept a new secret for the connection's user (RabbitMQ: documented extension).

    Secrets do not expire in this broker, so the new one is only acknowledged. Some personalities also check
    the user's permissions again.
    """
    assert connection.user is not None and connection.virtual_host is not None
    if connection.personality.new_secret_is_checked:
        connection.user = connection.broker.access.users.get(connection.user.name, connection.user)
        connection.broker.access.check_virtual_host(connection.user, connection.virtual_host.name)
        for channel in list(connection.channels.values()):
            channel.check_consumers(connection.user)
    connection.send(0, m.ConnectionUpdateSecretOk())


HANDLERS: connection_class.Handlers = {
    **connection_class.HANDLERS,
    "connection.open": _open,
    "connection.update-secret": _update_secret,
}
