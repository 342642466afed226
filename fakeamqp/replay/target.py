"""The broker that a recording is replayed on: a fresh one in this process, or one at a URL."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from fakeamqp.broker import Broker, BrokerError
from fakeamqp.errors import without_login
from fakeamqp.replay.outcome import NoBroker, ReplayError
from fakeamqp.replay.peer import ReplayLogin
from fakeamqp.replay.recording import MECHANISMS, accounts
from fakeamqp.trace import Trace

__all__ = ["ReplayTarget", "fresh_broker", "remote_broker"]

_IDLE_TIMEOUT = 0.05
"""The time to wait for the broker in this process to become idle, in seconds."""


@dataclass
class ReplayTarget:
    """The broker under test.

    Args:
        connect: returns a connected socket.
        login: replaces recorded logins.
        advance: advances the broker's clock by this number of seconds.
        idle: returns True once the broker sends nothing more; None if that cannot be known.
    """

    connect: Callable[[], socket.socket]
    login: ReplayLogin
    advance: Callable[[float], None] = lambda seconds: None
    idle: Callable[[], bool] | None = None


@contextmanager
def fresh_broker(trace: Trace, personality: str, definitions: Any, timeout: float) -> Iterator[ReplayTarget]:
    """Run a broker with virtual time that has the users and virtual hosts of the recording."""
    users, virtual_hosts, unreadable = accounts(trace.events)
    more = {} if definitions is None else {"definitions": definitions}
    broker = Broker(
        personality=personality,
        clock="virtual",
        now=trace.wall_time,
        users=users,
        virtual_hosts=[name for name in virtual_hosts if name != "/"],
        history=0,
        trace=0,
        **more,
    )
    user, password = next(iter(users.items()))
    login = ReplayLogin(user, password, keeps=MECHANISMS) if unreadable else ReplayLogin()

    def connect() -> socket.socket:
        connection = broker.connect()
        connection.settimeout(timeout)
        return connection

    def idle() -> bool:
        try:
            broker.wait_until_idle(_IDLE_TIMEOUT)
        except BrokerError:  # For example, the broker has more to send than the socket takes.
            return False
        return True

    with broker:
        yield ReplayTarget(connect, login, broker.clock.advance, idle)


def remote_broker(url: str, timeout: float) -> ReplayTarget:
    """The broker at a URL.

    Raises:
        ReplayError: it is not a URL of AMQP.
    """
    try:
        parts = urlsplit(url)
        tls = parts.scheme == "amqps"
        host, port = parts.hostname, parts.port or (5671 if tls else 5672)
    except ValueError:
        host = None
    if not host or parts.scheme not in ("amqp", "amqps"):
        raise ReplayError(
            f"{without_login(url)!r} is not a URL of a broker; an example is amqp://guest:guest@localhost:5672/"
        )

    def connect() -> socket.socket:
        try:
            connection = socket.create_connection((host, port), timeout)
            if tls:
                import ssl

                connection = ssl.create_default_context().wrap_socket(connection, server_hostname=host)
        except OSError as problem:
            raise NoBroker(f"no broker at {host}:{port}: {problem}") from problem
        return connection

    user, password = unquote(parts.username or "guest"), unquote(parts.password or "guest")
    return ReplayTarget(connect, ReplayLogin(user, password, unquote(parts.path[1:]) or None))
