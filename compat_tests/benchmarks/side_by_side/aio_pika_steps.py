"""What aio-pika does in each case: asynchronous generators like the generators in `pika_steps`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import aio_pika

from compat_tests.benchmarks.side_by_side.pika_steps import PREFETCH, name
from fakeamqp import Broker, simulation

__all__ = [
    "acknowledged",
    "broker_per_test",
    "confirmed",
    "consumed",
    "conversations",
    "declared",
    "got",
    "published",
    "simulated",
]


@asynccontextmanager
async def connected(url: str, *, confirms: bool = False) -> AsyncIterator[tuple[Any, Any]]:
    """A channel and a queue."""
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel(publisher_confirms=confirms)
        yield channel, await channel.declare_queue(name(), exclusive=True)


async def publish(channel: Any, queue: Any, count: int, body: bytes) -> None:
    for _ in range(count):
        await channel.default_exchange.publish(aio_pika.Message(body), queue.name)


async def messages(channel: Any, queue: Any) -> int:
    declared = await channel.declare_queue(queue.name, passive=True)
    return int(declared.declaration_result.message_count)


async def fill(channel: Any, queue: Any, count: int, body: bytes) -> None:
    """Publish, and wait until all messages are in the queue."""
    await publish(channel, queue, count, body)
    while await messages(channel, queue) < count:
        pass


async def consume(queue: Any, count: int, batch: int = 0) -> None:
    """Consume so many messages; acknowledge after each `batch` of them, or never."""
    left, done = count, asyncio.Event()

    async def handle(message: Any) -> None:
        nonlocal left
        left -= 1
        if batch and left % batch == 0:
            await message.ack(multiple=batch > 1)
        if not left:
            done.set()

    tag = await queue.consume(handle, no_ack=not batch)
    await done.wait()
    await queue.cancel(tag)


async def published(url: str, count: int, body: bytes) -> AsyncIterator[None]:
    async with connected(url) as (channel, queue):
        yield
        await publish(channel, queue, count, body)
        await messages(channel, queue)  # The answer shows that the broker has read everything.
        yield


async def consumed(url: str, count: int, body: bytes) -> AsyncIterator[None]:
    async with connected(url) as (channel, queue):
        yield
        await publish(channel, queue, count, body)
        await consume(queue, count)
        yield


async def acknowledged(url: str, count: int, body: bytes, batch: int = 1) -> AsyncIterator[None]:
    async with connected(url) as (channel, queue):
        await channel.set_qos(prefetch_count=PREFETCH)
        await fill(channel, queue, count, body)
        yield
        await consume(queue, count, batch)
        yield


async def confirmed(url: str, count: int, body: bytes, window: int = 1) -> AsyncIterator[None]:
    """As many tasks as the window is wide publish, and each waits for its own confirms."""
    async with connected(url, confirms=True) as (channel, queue):
        left = iter(range(count))

        async def publish_some() -> None:
            for _ in left:
                await publish(channel, queue, 1, body)

        yield
        await asyncio.gather(*(publish_some() for _ in range(window)))
        yield


async def declared(url: str, count: int, _body: bytes) -> AsyncIterator[None]:
    async with connected(url) as (channel, queue):
        yield
        for _ in range(count):
            await channel.declare_queue(queue.name, exclusive=True)
        yield


async def got(url: str, count: int, body: bytes) -> AsyncIterator[None]:
    async with connected(url) as (channel, queue):
        await fill(channel, queue, count, body)
        yield
        for _ in range(count):
            await queue.get(no_ack=True)
        yield


async def converse(url: str, body: bytes) -> None:
    """Connect, declare, publish with a confirm, get, close."""
    async with connected(url, confirms=True) as (channel, queue):
        await publish(channel, queue, 1, body)
        assert (await queue.get(no_ack=True)).body == body


async def conversations(url: str, count: int, body: bytes) -> AsyncIterator[None]:
    yield
    for _ in range(count):
        await converse(url, body)
    yield


async def broker_per_test(_url: str, count: int, body: bytes) -> AsyncIterator[None]:
    yield
    for _ in range(count):
        async with Broker(runtime="asyncio") as broker:
            await converse(broker.url, body)
    yield


def simulated(_url: str, count: int, body: bytes) -> Iterator[None]:
    """So many schedules of a test with 20 messages."""

    async def test() -> None:
        async with (
            Broker(runtime="asyncio") as broker,
            connected(broker.url, confirms=True) as (channel, queue),
        ):
            consuming = asyncio.create_task(consume(queue, 20, 1))
            await publish(channel, queue, 20, body)
            await consuming

    yield
    simulation.check(test, seeds=count)
    yield
