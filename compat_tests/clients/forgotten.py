"""What a client library forgets to close, closed for it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any
from unittest import mock

import aio_pika
import amqp.transport

__all__ = ["all_transports_closed", "forgotten_sockets_closed"]


@contextmanager
def all_transports_closed() -> Iterator[None]:
    """Close every transport of py-amqp and every pair of sockets that is made meanwhile.

    py-amqp connects anew, unasked, where a connection is used after it has ended, and forgets that transport.
    A Celery worker that dies of an error forgets its transports, and the pair that wakes its loop.
    """
    made: list[socket.socket | amqp.transport.TCPTransport] = []
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


@asynccontextmanager
async def forgotten_sockets_closed(seconds: float = 20) -> AsyncIterator[None]:
    """Close the connections and sockets that aio-pika and aiormq leave open.

    aiormq 6 never closes the socket of a connection that the broker has ended. aio-pika forgets a connection
    that is refused: if garbage is then collected in a thread without an event loop, such as the broker's, its
    `__del__` makes a coroutine that is never awaited.
    """
    writers: list[asyncio.StreamWriter] = []
    connections: list[aio_pika.Connection] = []
    open_connection, initialize = asyncio.open_connection, aio_pika.Connection.__init__

    async def noted(*args: Any, **options: Any) -> Any:
        reader, writer = await open_connection(*args, **options)
        writers.append(writer)
        return reader, writer

    def noted_connection(connection: aio_pika.Connection, *args: Any, **options: Any) -> None:
        connections.append(connection)
        initialize(connection, *args, **options)

    with (
        mock.patch.object(asyncio, "open_connection", noted),
        mock.patch.object(aio_pika.Connection, "__init__", noted_connection),
    ):
        yield
    for connection in connections:
        if connection.transport is None:
            await connection.close()
    for writer in writers:
        writer.close()
        with suppress(OSError):
            await asyncio.wait_for(writer.wait_closed(), seconds)
