"""`aio_pika.pool.Pool`, as in the example of its documentation."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import aio_pika
from aio_pika.abc import AbstractRobustChannel, AbstractRobustConnection
from aio_pika.pool import Pool

from compat_tests.simulation.libraries.robust import connect
from compat_tests.simulation.libraries.workload import (
    CONNECTIONS,
    NETWORK,
    Faults,
    Workload,
    broken,
    returns,
    tell,
)
from fakeamqp import Broker

__all__ = ["WORKLOADS"]

_PACKAGES = ("aio-pika", "aiormq")


async def _pool(broker: Broker, faults: Faults, cancels: bool) -> None:
    async def get_connection() -> AbstractRobustConnection:
        return await connect(broker)

    connections: Pool[AbstractRobustConnection] = Pool(get_connection, max_size=2)

    async def get_channel() -> Any:
        async with connections.acquire() as connection:
            return await connection.channel()

    channels: Pool[AbstractRobustChannel] = Pool(get_channel, max_size=4)
    async with channels.acquire() as channel:
        await channel.declare_queue("work", durable=True)
    confirmed: set[bytes] = set()

    async def publish(body: bytes) -> None:
        async with channels.acquire() as channel:
            message = aio_pika.Message(body, delivery_mode=2)
            await channel.default_exchange.publish(message, "work")
            confirmed.add(body)

    with faults.on(broker):
        for number in range(25):
            await asyncio.sleep(0.3)
            tasks = [asyncio.ensure_future(publish(b"%d-%d" % (number, each))) for each in range(6)]
            if cancels:
                await asyncio.sleep(0.01)
                tasks[number % 6].cancel()
            await returns(asyncio.wait(tasks), 300, "publish")
            for task in tasks:
                if not task.cancelled():
                    task.exception()
    await asyncio.sleep(60)
    for number in range(8):
        error = await tell(publish(b"last %d" % number), 60, "publish")
        if error is not None:
            raise broken("publish fails a minute after the faults", repr(error))

    async def acquire_all() -> None:
        async with AsyncExitStack() as stack:
            taken = [await stack.enter_async_context(channels.acquire()) for _ in range(4)]
            if any(channel.is_closed for channel in taken):
                raise broken("the pool hands out a closed channel")

    await returns(acquire_all(), 60, "acquiring all channels")
    if len(broker.connections) > 2:
        raise broken("there are more connections than the pool may have")
    await broker.wait_until_idle.aio()
    lost = confirmed - {message.body for message in broker.queue("work").messages}
    if lost:
        raise broken("a confirmed message is lost", f"{sorted(lost)}")
    await returns(channels.close(), 60, "close")
    await returns(connections.close(), 60, "close")


_PROMISE = (
    "each acquired channel can publish, or raises; a minute after the faults all channels are open "
    "and can be acquired; there are at most max_size connections"
)

WORKLOADS = [
    Workload(
        f"pool, {name}",
        _PACKAGES,
        _PROMISE,
        "documentation of aio-pika, Connection pooling",
        partial(_pool, faults=faults, cancels=cancels),
        faults.words + (", and the task of a publish is cancelled every 0.3 s" if cancels else ""),
    )
    for name, faults, cancels in (
        ("network", NETWORK, False),
        ("connections", CONNECTIONS, False),
        ("cancelled tasks", NETWORK, True),
    )
]
