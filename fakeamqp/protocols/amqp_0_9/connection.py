"""Class connection: what `framed.connection` leaves to 0-9. See there for the handshake."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from fakeamqp.model.errors import SyntaxFault
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.framed import connection as connection_class

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9.server_connection import Amqp09Connection
    from fakeamqp.protocols.framed.codec.method import Method

__all__ = ["receive", "start"]

_PRODUCT = "fakeamqp"
_PATH = re.compile(r"/|(/[\w.\-+!=:]*[^\W_][\w.\-+!=:]*)+", re.ASCII)
_LONGEST_PATH = 127
_LONGEST = 255


def start(connection: Amqp09Connection) -> None:
    """Send connection.start.

    Clients of 0-9 that see RabbitMQ's name look for what it does; and of tables they read texts only.
    """
    properties = connection_class.server_properties(connection)
    properties["product"] = _PRODUCT
    connection_class.start(connection, properties, connection.version)


def receive(connection: Amqp09Connection, method: Method) -> None:
    """A method on channel 0."""
    connection_class.receive(connection, method, _HANDLERS)


def _open(connection: Amqp09Connection, method: m.ConnectionOpen) -> None:
    """Open a virtual host.

    Where the broker has moved, clients are sent there that do not insist (connection.open/insist-behaviour);
    the others are told where else there are brokers (connection.open-ok/known-hosts).
    """
    redirect = connection.broker.redirect
    if redirect is not None and not method.insist:
        connection.redirected(redirect.host, _known_hosts(redirect.known_hosts))
        redirect.on_redirect()
        return
    if connection.choices.checks_paths:
        _check_path(method.virtual_host)
    virtual_host = connection_class.open_virtual_host(connection, method.virtual_host)
    others = () if redirect is None else (redirect.host, *redirect.known_hosts)
    connection.send(0, m.ConnectionOpenOk(known_hosts=_known_hosts(others)))
    connection.opened(virtual_host)


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


_HANDLERS: connection_class.Handlers = {**connection_class.HANDLERS, "connection.open": _open}
