"""A calculator that is called over AMQP: requests come from a queue, answers go where the caller said."""

from __future__ import annotations

import asyncio
import json
import os

import aio_pika
from aio_pika.abc import AbstractConnection, AbstractIncomingMessage, AbstractRobustConnection

QUEUE = "calculator"

OPERATIONS = {
    "add": lambda a, b: a + b,
    "divide": lambda a, b: a / b,
    "multiply": lambda a, b: a * b,
}


def calculate(request: bytes) -> dict[str, object]:
    """The answer to one request: `{"result": …}`, or `{"error": "…"}` when there is none."""
    try:
        call = json.loads(request)
        return {"result": OPERATIONS[call["operation"]](*call["arguments"])}
    except (ValueError, TypeError, KeyError, ZeroDivisionError) as error:
        return {"error": f"{type(error).__name__}: {error}"}


class CalculatorServer:
    """Answers requests for as long as the `async with` block runs."""

    def __init__(self, connection: AbstractConnection, at_once: int = 10) -> None:
        self._connection = connection
        self._at_once = at_once

    async def __aenter__(self) -> CalculatorServer:
        self._channel = await self._connection.channel()
        await self._channel.set_qos(prefetch_count=self._at_once)
        self._queue = await self._channel.declare_queue(QUEUE, auto_delete=True)
        self._consumer_tag = await self._queue.consume(self._on_request)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._queue.cancel(self._consumer_tag)
        await self._channel.close()

    async def _on_request(self, message: AbstractIncomingMessage) -> None:
        async with message.process():
            if message.reply_to is None:
                return  # The request has no reply queue.
            answer = aio_pika.Message(
                json.dumps(calculate(message.body)).encode(),
                content_type="application/json",
                correlation_id=message.correlation_id,
            )
            await self._channel.default_exchange.publish(answer, routing_key=message.reply_to)


async def main() -> None:
    url = os.environ.get("AMQP_URL", "amqp://guest:guest@localhost:5672/")
    connection: AbstractRobustConnection = await aio_pika.connect_robust(url)
    async with connection, CalculatorServer(connection):
        await asyncio.Future()


if __name__ == "__main__":
    asyncio.run(main())
