"""Class connection: what `amqp_0_9_x.connection` leaves to 0-9. See there for the handshake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.dialects.amqp_0_9_x import connection
from fakeamqp.wire.amqp_0_9 import methods as m

if TYPE_CHECKING:
    from fakeamqp.dialects.amqp_0_9.endpoint import Endpoint
    from fakeamqp.wire.amqp_0_9_x.method import Method

__all__ = ["receive", "start"]

_PRODUCT = "fakeamqp"


def start(endpoint: Endpoint) -> None:
    """Send connection.start.

    Clients of 0-9 that see RabbitMQ's name look for what it does; and of tables they read texts only.
    """
    properties = connection.server_properties(endpoint)
    properties["product"] = _PRODUCT
    connection.start(endpoint, properties, endpoint.version)


def receive(endpoint: Endpoint, method: Method) -> None:
    """A method on channel 0."""
    connection.receive(endpoint, method, _HANDLERS)


def _open(endpoint: Endpoint, method: m.ConnectionOpen) -> None:
    virtual_host = connection.open_virtual_host(endpoint, method.virtual_host)
    endpoint.send(0, m.ConnectionOpenOk())
    endpoint.opened(virtual_host)


_HANDLERS: connection.Handlers = {**connection.HANDLERS, "connection.open": _open}
