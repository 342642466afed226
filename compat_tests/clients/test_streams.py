"""Streams through clients as they are: read from where one likes, again and again."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import aio_pika
import pika
import pytest

from fakeamqp import Broker

SECONDS = 20
STREAM = {"x-queue-type": "stream"}


def read(connection: pika.BlockingConnection, offset: Any, count: int) -> list[bytes]:
    """So many messages from there on; each is acknowledged."""
    channel = connection.channel()
    channel.basic_qos(prefetch_count=2)
    bodies = []
    arguments = {"x-stream-offset": offset}
    for method, _, body in channel.consume("log", arguments=arguments, inactivity_timeout=SECONDS):
        assert method is not None, f"nothing came after {bodies}"
        bodies.append(body)
        channel.basic_ack(method.delivery_tag)
        if len(bodies) == count:
            break
    channel.close()
    return bodies


def test_pika_reads_a_stream_from_anywhere() -> None:
    with (
        Broker(clock="virtual") as broker,
        pika.BlockingConnection(pika.ConnectionParameters(broker.host, broker.port)) as connection,
    ):
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("log", durable=True, arguments=STREAM)
        written = []
        for number in range(5):
            written.append(datetime.fromtimestamp(broker.clock.time(), timezone.utc))
            channel.basic_publish("", "log", str(number).encode())
            broker.clock.advance(60)

        assert read(connection, "first", 5) == [b"0", b"1", b"2", b"3", b"4"]
        assert read(connection, "last", 1) == [b"4"]
        assert read(connection, 3, 2) == [b"3", b"4"]
        later = datetime.fromtimestamp(int(written[2].timestamp()) + 1, timezone.utc)
        assert read(connection, later, 2) == [b"3", b"4"]
        assert read(connection, "130s", 2) == [b"3", b"4"]

        assert [message.offset for message in broker.queue("log").messages] == [0, 1, 2, 3, 4]
        assert channel.queue_declare("log", passive=True).method.message_count == 5


@pytest.mark.asyncio
async def test_aio_pika_reads_a_stream_again_and_follows_it(broker: Broker) -> None:
    async with await aio_pika.connect(broker.url) as connection:
        channel = await connection.channel()
        await channel.set_qos(prefetch_count=10)
        queue = await channel.declare_queue("log", durable=True, arguments=STREAM)
        for number in range(3):
            message = aio_pika.Message(str(number).encode(), headers={"number": number})
            await channel.default_exchange.publish(message, "log")

        for start, expected in (("first", [0, 1, 2]), (1, [1, 2]), ("last", [2])):
            seen: list[tuple[Any, Any]] = []
            async with queue.iterator(arguments={"x-stream-offset": start}, timeout=SECONDS) as messages:
                async for incoming in messages:
                    assert not incoming.redelivered
                    seen.append((incoming.headers["x-stream-offset"], incoming.headers["number"]))
                    await incoming.ack()
                    if len(seen) == len(expected):
                        break
            assert seen == [(number, number) for number in expected]

        async with queue.iterator(arguments={"x-stream-offset": "next"}, timeout=SECONDS) as messages:
            await channel.default_exchange.publish(aio_pika.Message(b"new"), "log")
            async for incoming in messages:
                assert incoming.body == b"new"
                await incoming.ack()
                break
        assert broker.queue("log").ready == 4
