"""Class connection: what `amqp_0_9_x.connection` leaves to 0-9. See there for the handshake."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from fakeamqp.dialects.amqp_0_9_x import connection
from fakeamqp.model.errors import SyntaxFault
from fakeamqp.wire.amqp_0_9 import methods as m

if TYPE_CHECKING:
    from fakeamqp.dialects.amqp_0_9.endpoint import Endpoint
    from fakeamqp.wire.amqp_0_9_x.method import Method

__all__ = ["receive", "start"]

_PRODUCT = "fakeamqp"
_PATH = re.compile(r"/|(/[\w.\-+!=:]*[^\W_][\w.\-+!=:]*)+", re.ASCII)
_LONGEST_PATH = 127
_LONGEST = 255


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
    """Open a virtual host.

    Where the broker has moved, clients are sent there that do not insist (connection.open/insist-behaviour);
    the others are told where else there are brokers (connection.open-ok/known-hosts).
    """
    redirect = endpoint.broker.redirect
    if redirect is not None and not method.insist:
        endpoint.redirected(redirect.host, _known_hosts(redirect.known_hosts))
        redirect.note()
        return
    if endpoint.personality.amqp_0_9.checks_paths:
        _check_path(method.virtual_host)
    virtual_host = connection.open_virtual_host(endpoint, method.virtual_host)
    others = () if redirect is None else (redirect.host, *redirect.known_hosts)
    endpoint.send(0, m.ConnectionOpenOk(known_hosts=_known_hosts(others)))
    endpoint.opened(virtual_host)


def _known_hosts(hosts: Iterable[str]) -> str:
    """As many as fit into the field, without those that do not."""
    known = ""
    for host in hosts:
        longer = f"{known},{host}" if known else host
        if len(longer.encode("utf-8", "surrogateescape")) <= _LONGEST:
            known = longer
    return known


def _check_path(path: str) -> None:
    """Source: domain.path/syntax.

    Raises:
        SyntaxFault: this is no path.
    """
    if not _PATH.fullmatch(path) or len(path) > _LONGEST_PATH:
        raise SyntaxFault(f"'{path}' is no path: each part has a slash before it and a letter or digit in it")


_HANDLERS: connection.Handlers = {**connection.HANDLERS, "connection.open": _open}
