"""The caller's side: calls go to the server's queue, answers come back to a queue of the caller's own."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import Any

import aio_pika
from aio_pika.abc import AbstractConnection, AbstractIncomingMessage
from calculator_server import QUEUE


class CalculationFailed(Exception):
    """The server answered that it could not calculate this."""


class NoServer(Exception):
    """No server is there to take the call."""


class Calculator:
    """`await calculator.call("add", 1, 2)`; any number of calls may be on their way."""

    def __init__(self, connection: AbstractConnection) -> None:
        self._connection = connection
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}

    async def __aenter__(self) -> Calculator:
        # A call that no queue takes comes back at once, as an error of the publish.
        self._channel = await self._connection.channel(on_return_raises=True)
        self._answers = await self._channel.declare_queue(exclusive=True)
        self._consumer_tag = await self._answers.consume(self._on_answer, no_ack=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._answers.cancel(self._consumer_tag)
        await self._channel.close()

    async def call(self, operation: str, *arguments: float) -> float:
        call_id = str(uuid.uuid4())
        answer = self._waiting[call_id] = asyncio.get_running_loop().create_future()
        request = aio_pika.Message(
            json.dumps({"operation": operation, "arguments": arguments}).encode(),
            content_type="application/json",
            correlation_id=call_id,
            reply_to=self._answers.name,
        )
        try:
            await self._channel.default_exchange.publish(request, routing_key=QUEUE)
            result = await answer
        except aio_pika.exceptions.DeliveryError as error:
            raise NoServer(f"nobody listens on {QUEUE!r}") from error
        finally:
            del self._waiting[call_id]
        if "error" in result:
            raise CalculationFailed(result["error"])
        number: float = result["result"]
        return number

    async def _on_answer(self, message: AbstractIncomingMessage) -> None:
        waiting = self._waiting.get(message.correlation_id or "")
        if waiting is not None and not waiting.done():
            waiting.set_result(json.loads(message.body))
