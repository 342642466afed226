"""A warehouse that sells what it has: orders come from a queue, the answer goes where the customer says.

The race is a lost update. The racy form reads the stock when it gets an order, and writes it before it
acknowledges the order. In between it waits for the confirm of its answer. Meanwhile the next order can come:
it reads the old stock, and the same lamp is sold twice.
"""

from __future__ import annotations

import asyncio
import json

import aio_pika
from aio_pika.abc import AbstractIncomingMessage
from typing_extensions import Self

QUEUE = "orders"


class RacyWarehouse:
    """Sells `stock`, pieces by item, for as long as the `async with` block runs."""

    def __init__(self, url: str, stock: dict[str, int]) -> None:
        self.stock = stock
        self._url = url

    async def __aenter__(self) -> Self:
        # RabbitMQ holds up connections that publish too fast, so consuming has a connection of its own.
        self._consuming = await aio_pika.connect(self._url)
        self._publishing = await aio_pika.connect(self._url)
        self._answers = (await self._publishing.channel()).default_exchange
        channel = await self._consuming.channel()
        await channel.set_qos(prefetch_count=10)
        queue = await channel.declare_queue(QUEUE, durable=True)
        await queue.consume(self._on_order)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._consuming.close()
        await self._publishing.close()

    async def _on_order(self, message: AbstractIncomingMessage) -> None:
        async with message.process():
            order = json.loads(message.body)
            left = self.stock[order["item"]] - order["count"]
            if left < 0:
                await self._answer(message, "sold out")
            else:
                await self._answer(message, "sold")
                self.stock[order["item"]] = left  # Nothing is sold if the customer could not be told.

    async def _answer(self, message: AbstractIncomingMessage, text: str) -> None:
        answer = aio_pika.Message(text.encode(), correlation_id=message.correlation_id)
        await self._answers.publish(answer, routing_key=message.reply_to or "")


class Warehouse(RacyWarehouse):
    """The fix: no `await` between reading and writing. What could not be sold is put back."""

    async def _on_order(self, message: AbstractIncomingMessage) -> None:
        async with message.process():
            order = json.loads(message.body)
            if self.stock[order["item"]] < order["count"]:
                await self._answer(message, "sold out")
                return
            self.stock[order["item"]] -= order["count"]
            try:
                await self._answer(message, "sold")
            except BaseException:
                self.stock[order["item"]] += order["count"]
                raise


class Customer:
    """Orders one thing after the other."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._answers: asyncio.Queue[str] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        self._connection = await aio_pika.connect(self._url)
        self._channel = await self._connection.channel()
        self._inbox = await self._channel.declare_queue(exclusive=True)
        await self._inbox.consume(self._on_answer, no_ack=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._connection.close()

    async def buy(self, item: str, count: int) -> str:
        order = aio_pika.Message(
            json.dumps({"item": item, "count": count}).encode(), reply_to=self._inbox.name
        )
        await self._channel.default_exchange.publish(order, routing_key=QUEUE)
        return await self._answers.get()

    async def _on_answer(self, message: AbstractIncomingMessage) -> None:
        self._answers.put_nowait(message.body.decode())
