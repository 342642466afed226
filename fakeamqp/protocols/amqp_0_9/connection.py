"""Class connection: start and open. The rest of the handshake is in `amqp_0_9_1.connection`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from fakeamqp.model.errors import SyntaxFault
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1 import connection as connection_class

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9.server_connection import Amqp09Connection

_PRODUCT = "fakeamqp"
_PATH = re.compile(r"/|(/[\w.\-+!=:]*[^\W_][\w.\-+!=:]*)+", re.ASCII)
_LONGEST_PATH = 127
_LONGEST = 255


def start(connection: Amqp09Connection) -> None:
    """Send connection.start.

    The product is not RabbitMQ's name: some 0-9 clients would then expect RabbitMQ's behaviour. All
    properties are strings, since these clients read nothing else in tables.
    """
    properties = connection_class.server_properties(connection)
    properties["product"] = _PRODUCT
    connection_class.send_start(connection, properties)


def _open(connection: Amqp09Connection, method: m.ConnectionOpen) -> None:
    """Open a virtual host.

    If a redirect is set, clients that do not set `insist` are redirected (connection.open/insist-behaviour).
    The others get the known hosts (connection.open-ok/known-hosts).
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
    """Return a comma-separated list of hosts, without those that do not fit into the field."""
    known = ""
    for host in hosts:
        longer = f"{known},{host}" if known else host
        if len(longer.encode("utf-8", "surrogateescape")) <= _LONGEST:
            known = longer
    return known


def _check_path(path: str) -> None:
    """Check that the name of a virtual host is a path (domain.path/syntax)."""
    if not _PATH.fullmatch(path) or len(path) > _LONGEST_PATH:
        raise SyntaxFault(
            f"'{path}' is not a path: each part must start with a slash and contain a letter or digit"
        )


HANDLERS: connection_class.Handlers = {**connection_class.HANDLERS, "connection.open": _open}
"""Without a redirect, connection.open answers with the same bytes as in 0-9-1."""
