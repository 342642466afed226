"""aio-pika's `connect`: it never reconnects by itself."""

from __future__ import annotations

from typing import Any

import aio_pika
import aiormq.abc

from compat_tests.faults.drivers.asynchronous import Work
from compat_tests.faults.scenario import QUEUE

TITLE = "aio-pika `connect`"


class Plain(Work):
    queue: Any = None

    async def connect(self) -> None:
        self.connection = await aio_pika.connect(self.url, timeout=self.stage.patience * 0.75)

    async def declare(self) -> None:
        self.channel = await self.connection.channel()
        self.queue = await self.channel.declare_queue(QUEUE, durable=True)

    async def publish(self, body: str) -> None:
        message = aio_pika.Message(body.encode(), delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
        answer = await self.channel.default_exchange.publish(message, QUEUE)
        if isinstance(
            answer, aiormq.abc.DeliveredMessage
        ):  # Without `on_return_raises` this is all that tells.
            self.seen.came_back(answer.body)

    async def consume(self) -> None:
        async with self.queue.iterator() as messages:
            async for message in messages:
                self.seen.take(message.body, message.redelivered)
                await message.ack()


run = Plain.run
