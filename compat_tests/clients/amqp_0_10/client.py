"""A blocking client for AMQP 0-10: no threads, no more than a socket and the wire package.

    with connect(broker) as connection:
        session = connection.session(b"orders")
        session.declare("q")
        session.publish(b"hello", key="q")
        session.subscribe("q", "inbox")
        message = session.get("inbox")
        session.accept(message)

It reads when it waits for something, and only then: heartbeats are answered as long as it waits.
"""

from __future__ import annotations

import socket
import ssl
from typing import Any, Protocol

from compat_tests.clients.amqp_0_10.connection import Connection
from compat_tests.clients.amqp_0_10.errors import (
    ClientError,
    ConnectionClosed,
    ConnectionLost,
    LoginFailed,
    Redirected,
    SessionDetached,
    SessionFailed,
    SessionLost,
    TimedOut,
)
from compat_tests.clients.amqp_0_10.line import Line
from compat_tests.clients.amqp_0_10.session import UNLIMITED, Message, Session

__all__ = [
    "UNLIMITED",
    "ClientError",
    "Connection",
    "ConnectionClosed",
    "ConnectionLost",
    "LoginFailed",
    "Message",
    "Redirected",
    "Session",
    "SessionDetached",
    "SessionFailed",
    "SessionLost",
    "TimedOut",
    "connect",
    "connect_over",
]

SECONDS = 20


class Address(Protocol):
    """Where a broker listens: `fakeamqp.Broker`, or whatever else has these two."""

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...


def connect(
    broker: Address | None = None,
    *,
    host: str | None = None,
    port: int | None = None,
    tls: ssl.SSLContext | None = None,
    **login: Any,
) -> Connection:
    """Connect to a broker, given as such or by host and port.

    Args:
        broker: whose `host` and `port` to dial.
        host: what to dial instead.
        port: what to dial instead.
        tls: speak TLS by this context.
        login: see `Connection`.

    Raises:
        ConnectionLost: nobody takes the connection, or it ends before it is open.
        LoginFailed: the broker does not have the mechanism, or ends the connection at the login.
        ConnectionClosed: the broker closes it, for its virtual host perhaps.
        Redirected: the broker sends us elsewhere.
    """
    host = host or (broker.host if broker else "127.0.0.1")
    port = port or (broker.port if broker else 5672)
    try:
        sock = socket.create_connection((host, port), SECONDS)
    except OSError as problem:
        raise ConnectionLost(f"nobody takes connections on {host}:{port}: {problem}") from None
    if tls is not None:
        sock = tls.wrap_socket(sock, server_hostname=host)
    return connect_over(sock, **login)


def connect_over(sock: socket.socket, **login: Any) -> Connection:
    """Open a connection over a socket that is connected, and belongs to the client from now on."""
    line = Line(sock)
    try:
        return Connection(line, **login)
    except BaseException:
        line.close()
        raise
