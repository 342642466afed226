"""aiormq, used directly. It never reconnects by itself."""

from __future__ import annotations

import asyncio

import aiormq
import aiormq.abc

from compat_tests.faults.drivers.asynchronous import Work
from compat_tests.faults.scenario import QUEUE

TITLE = "aiormq"


class _Work(Work):
    async def connect(self) -> None:
        self.connection = await aiormq.connect(self.url)

    async def declare(self) -> None:
        self.channel = await self.connection.channel()
        self.channel.on_return_callbacks.add(lambda message: self.seen.came_back(message.body))
        if hasattr(self.channel, "on_consumer_cancel_callbacks"):  # Older ones tell nobody.
            self.channel.on_consumer_cancel_callbacks.add(lambda _: self.seen.tell("cancelled"))
        await self.channel.queue_declare(QUEUE, durable=True)

    async def publish(self, body: str) -> None:
        properties = aiormq.spec.Basic.Properties(delivery_mode=2)
        await self.channel.basic_publish(body.encode(), routing_key=QUEUE, properties=properties)

    async def consume(self) -> None:
        failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def take(message: aiormq.abc.DeliveredMessage) -> None:
            self.seen.take(message.body, message.redelivered)
            await self.channel.basic_ack(message.delivery_tag)

        await self.channel.basic_consume(QUEUE, take)
        # What ends the channel is told by its future.
        await asyncio.wait([failed, self.channel.closing], return_when=asyncio.FIRST_COMPLETED)
        await self.channel.closing


run = _Work.run
