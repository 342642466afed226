"""A broker in a loop of uvloop, which makes its connections itself: clients use sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import aio_pika
import pytest

from fakeamqp import Broker

uvloop = pytest.importorskip("uvloop")


def run(main: Coroutine[Any, Any, None]) -> None:
    loop = uvloop.new_event_loop()
    try:
        loop.run_until_complete(main)
    finally:
        loop.close()


@pytest.mark.parametrize("tls", [False, True])
def test_client_in_uvloop_publishes_and_gets_messages(tls: bool) -> None:
    async def main() -> None:
        async with Broker(runtime="asyncio", tls=tls) as broker:
            context = broker.tls.client_context if tls else None
            async with await aio_pika.connect(broker.url, ssl_context=context) as connection:
                channel = await connection.channel()
                queue = await channel.declare_queue("orders")
                for number in range(100):
                    await channel.default_exchange.publish(aio_pika.Message(b"%d" % number), "orders")
                for number in range(100):
                    message = await queue.get()
                    assert message is not None and message.body == b"%d" % number
                    await message.ack()
            assert broker.queue("orders").ready == 0
        assert broker.failures == ()

    run(main())


def test_broker_in_uvloop_restarts_refuses_connections_and_expires_messages() -> None:
    async def main() -> None:
        async with Broker(runtime="asyncio", clock="virtual") as broker:
            connection = await aio_pika.connect(broker.url)
            broker.restart()
            await broker.wait_for_async(lambda: not broker.connections)
            await connection.close()
            with broker.faults.network.refuse(), pytest.raises(ConnectionError):
                await aio_pika.connect(broker.url)
            async with await aio_pika.connect(broker.url) as again:
                channel = await again.channel()
                await channel.declare_queue("short", arguments={"x-message-ttl": 60_000})
                await channel.default_exchange.publish(aio_pika.Message(b""), "short")
                await broker.clock.advance_async(60)
                assert broker.queue("short").ready == 0

    run(main())


def test_connected_socket_in_uvloop_gets_connection_start() -> None:
    async def main() -> None:
        async with Broker(runtime="asyncio") as broker:
            reader, writer = await asyncio.open_connection(sock=broker.connect())
            writer.write(b"AMQP\0\0\x09\x01")
            assert await reader.readexactly(1) == b"\x01"
            writer.close()
            await writer.wait_closed()

    run(main())
