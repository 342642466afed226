"""Connections of a process that wait for their next use, by readers and writers alike.

Spark uses a Python worker for many tasks, one after the other, and a task of a small range takes about as
long as opening its connection. An idle connection answers no heartbeats, so a thread closes it before one is
due.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from fakeamqp.spark.errors import ConnectionLost
from fakeamqp.spark.options import ConnectionOptions
from fakeamqp.spark.wire.connection import WireConnection

# How long connections are kept, in seconds.
_IDLE = 5.0

# The idle connections, each with the time of its last use; the thread that closes them, if there are any.
_idle: dict[WireConnection, float] = {}
_closer: threading.Thread | None = None
_state = threading.Condition()


@contextmanager
def lend(options: ConnectionOptions) -> Iterator[WireConnection]:
    """A connection for the block, which is kept for the next one unless an exception leaves the block.

    Its channels are closed behind the block. A connection that still has a lease then, or is blocked, is not
    kept.

    Raises:
        BrokerUnreachable: no connection can be opened.
    """
    connection = _take(options)
    if connection is None:
        connection = WireConnection(options)
        connection.open()
    try:
        yield connection
    except BaseException:
        connection.close()
        raise
    reusable = connection.blocked is None and not connection.leases
    if reusable:
        with suppress(ConnectionLost):
            for channel in [*connection.channels.values()]:
                channel.close()
    if reusable and not connection.channels:
        _keep(connection)
    else:
        connection.close()


def close_idle(longer_than: float = 0.0) -> None:
    """Close connections that nothing has used for some seconds."""
    before = time.monotonic() - longer_than
    with _state:
        old = [connection for connection, since in _idle.items() if since <= before]
        for connection in old:
            del _idle[connection]
        _state.notify_all()
    for connection in old:
        connection.close()


def _take(options: ConnectionOptions) -> WireConnection | None:
    while True:
        with _state:
            connection = next((each for each in reversed(_idle) if each.options == options), None)
            if connection is None:
                return None
            del _idle[connection]
        connection.turn(0.0)
        if connection.lost is None:
            return connection
        connection.close()


def _keep(connection: WireConnection) -> None:
    global _closer
    with _state:
        _idle[connection] = time.monotonic()
        if _closer is None:
            _closer = threading.Thread(target=_close_when_idle, name="amqp pool", daemon=True)
            _closer.start()


def _close_when_idle() -> None:
    global _closer
    while True:
        with _state:
            if not _idle:
                _closer = None
                return
            _state.wait(min(_idle.values()) + _IDLE - time.monotonic())
        close_idle(_IDLE)


def _forget() -> None:
    """In a forked process: the connections are those of its parent, and the thread is not here."""
    global _closer, _state
    _closer, _state = None, threading.Condition()
    for connection in _idle:
        connection.abandon()
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
