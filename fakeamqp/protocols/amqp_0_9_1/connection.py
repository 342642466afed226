"""Class connection: start, open, and RabbitMQ's update-secret. The rest is in `framed.connection`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.constants import VERSION_MAJOR, VERSION_MINOR
from fakeamqp.protocols.framed import connection as connection_class

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9_1.server_connection import Amqp091Connection
    from fakeamqp.protocols.framed.codec.method import Method

__all__ = ["receive", "start"]


def start(connection: Amqp091Connection) -> None:
    """Send connection.start with the capabilities of the personality (RabbitMQ: documented)."""
    capabilities = dict.fromkeys(connection.personality.capabilities, True)
    properties = {"capabilities": capabilities, **connection_class.server_properties(connection)}
    connection_class.start(connection, properties, (VERSION_MAJOR, VERSION_MINOR))


def receive(connection: Amqp091Connection, method: Method) -> None:
    """Process a method on channel 0."""
    connection_class.receive(connection, method, _HANDLERS)


def _open(connection: Amqp091Connection, method: m.ConnectionOpen) -> None:
    virtual_host = connection_class.open_virtual_host(connection, method.virtual_host)
    connection.send(0, m.ConnectionOpenOk())
    connection.opened(virtual_host)


def _update_secret(connection: Amqp091Connection, method: m.ConnectionUpdateSecret) -> None:
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


_HANDLERS: connection_class.Handlers = {
    **connection_class.HANDLERS,
    "connection.open": _open,
    "connection.update-secret": _update_secret,
}
