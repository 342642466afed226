"""A print shop: documents wait in a queue, and a printer that is called prints all of them.

The race is a publish before the confirm of another one is awaited. The racy form publishes a document and the
call at once, on two connections. AMQP keeps the order of messages on one channel only: a call that overtakes
its document finds nothing to print, and there is no second call.
"""

from __future__ import annotations

import asyncio

import aio_pika
from aio_pika.abc import AbstractIncomingMessage
from typing_extensions import Self

JOBS = "print.jobs"
CALLS = "print.calls"


class RacyDesk:
    """Takes documents from customers."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def __aenter__(self) -> Self:
        # Documents are large. On their connection, calls to other printers would wait behind them.
        self._large = await aio_pika.connect(self._url)
        self._small = await aio_pika.connect(self._url)
        self._jobs = (await self._large.channel()).default_exchange
        self._calls = (await self._small.channel()).default_exchange
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._large.close()
        await self._small.close()

    async def submit(self, document: bytes) -> None:
        # One round trip instead of two: both confirms are awaited together.
        await asyncio.gather(
            self._jobs.publish(aio_pika.Message(document), routing_key=JOBS),
            self._calls.publish(aio_pika.Message(b""), routing_key=CALLS),
        )


class Desk(RacyDesk):
    """The fix: the confirm says that the document is in its queue. Only then the printer is called."""

    async def submit(self, document: bytes) -> None:
        await self._jobs.publish(aio_pika.Message(document), routing_key=JOBS)
        await self._calls.publish(aio_pika.Message(b""), routing_key=CALLS)


class Printer:
    """Prints into `printed`."""

    def __init__(self, url: str) -> None:
        self.printed: asyncio.Queue[bytes] = asyncio.Queue()
        self._url = url

    async def __aenter__(self) -> Self:
        self._connection = await aio_pika.connect(self._url)
        channel = await self._connection.channel()
        self._jobs = await channel.declare_queue(JOBS, durable=True)
        calls = await channel.declare_queue(CALLS)
        await calls.consume(self._on_call)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._connection.close()

    async def _on_call(self, call: AbstractIncomingMessage) -> None:
        async with call.process():
            while (job := await self._jobs.get(fail=False)) is not None:
                self.printed.put_nowait(job.body)
                await job.ack()
