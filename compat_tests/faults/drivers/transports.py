"""What py-amqp opens, closed in the end.

It connects anew, unasked, where a connection is used after it has ended, and forgets that transport.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import amqp.transport

__all__ = ["all_transports_closed"]


@contextmanager
def all_transports_closed() -> Iterator[None]:
    """Close every transport and every pair of sockets that is made meanwhile."""
    made: list[Any] = []
    connect, pair = amqp.transport.TCPTransport.connect, socket.socketpair

    def noted(transport: amqp.transport.TCPTransport) -> None:
        made.append(transport)
        connect(transport)

    def noted_pair(*args: Any) -> tuple[socket.socket, socket.socket]:
        both = pair(*args)
        made.extend(both)
        return both

    with (
        mock.patch.object(amqp.transport.TCPTransport, "connect", noted),
        mock.patch.object(socket, "socketpair", noted_pair),
    ):
        try:
            yield
        finally:
            for each in made:
                each.close()
