"""Class connection: what `amqp_0_9_x.connection` leaves to 0-9-1, and RabbitMQ's update-secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.dialects.amqp_0_9_x import connection
from fakeamqp.wire.amqp_0_9_1 import methods as m
from fakeamqp.wire.amqp_0_9_1.constants import VERSION_MAJOR, VERSION_MINOR

if TYPE_CHECKING:
    from fakeamqp.dialects.amqp_0_9_1.endpoint import Endpoint
    from fakeamqp.wire.amqp_0_9_x.method import Method

__all__ = ["receive", "start"]


def start(endpoint: Endpoint) -> None:
    """Send connection.start, with what RabbitMQ's clients look for (RabbitMQ: documented capabilities)."""
    capabilities = dict.fromkeys(endpoint.personality.capabilities, True)
    properties = {"capabilities": capabilities, **connection.server_properties(endpoint)}
    connection.start(endpoint, properties, (VERSION_MAJOR, VERSION_MINOR))


def receive(endpoint: Endpoint, method: Method) -> None:
    """A method on channel 0."""
    connection.receive(endpoint, method, _HANDLERS)


def _open(endpoint: Endpoint, method: m.ConnectionOpen) -> None:
    virtual_host = connection.open_virtual_host(endpoint, method.virtual_host)
    endpoint.send(0, m.ConnectionOpenOk())
    endpoint.opened(virtual_host)


def _update_secret(endpoint: Endpoint, method: m.ConnectionUpdateSecret) -> None:
    """A new secret for the session's user (RabbitMQ: documented extension).

    The identity was proved at login; passwords do not expire here, so the new one is only acknowledged.
    What the user may do now is looked at where the personality does so.
    """
    assert endpoint.user is not None and endpoint.virtual_host is not None
    if endpoint.personality.new_secret_is_checked:
        endpoint.user = endpoint.broker.access.users.get(endpoint.user.name, endpoint.user)
        endpoint.broker.access.check_virtual_host(endpoint.user, endpoint.virtual_host.name)
        for channel in list(endpoint.channels.values()):
            channel.check_consumers(endpoint.user)
    endpoint.send(0, m.ConnectionUpdateSecretOk())


_HANDLERS: connection.Handlers = {
    **connection.HANDLERS,
    "connection.open": _open,
    "connection.update-secret": _update_secret,
}
