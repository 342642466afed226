"""A worker that runs long jobs, and finishes what it has accepted before it stops.

The race is a shutdown that loses a prefetched message. The racy form acknowledges a job as soon as it comes,
and accepts it after it has told so. A job that is between the two when the worker looks for accepted jobs the
last time is not among them, and the broker has forgotten it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import aio_pika
from aio_pika.abc import AbstractIncomingMessage
from typing_extensions import Self

JOBS = "jobs"
REPORTS = "jobs.reports"


class RacyWorker:
    """Calls `run(job)` for one job after the other, for as long as the `async with` block runs."""

    def __init__(self, url: str, run: Callable[[str], Awaitable[None]]) -> None:
        self._url = url
        self._run = run
        self._accepted: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        self._connection = await aio_pika.connect(self._url)
        self._channel = await self._connection.channel()
        await self._channel.set_qos(prefetch_count=10)
        await self._channel.declare_queue(REPORTS, durable=True)
        self._jobs = await self._channel.declare_queue(JOBS, durable=True)
        self._consumer_tag = await self._jobs.consume(self._on_job)
        self._working = asyncio.create_task(self._work())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._jobs.cancel(self._consumer_tag)  # After this, no job comes.
        await self._accepted.join()  # After this, all accepted jobs are done.
        self._working.cancel()
        await self._connection.close()

    async def _on_job(self, message: AbstractIncomingMessage) -> None:
        # At once: a job may take longer than the half hour that RabbitMQ waits for an acknowledgement.
        await message.ack()
        await self._report(message, "accepted")
        self._accepted.put_nowait(message)

    async def _work(self) -> None:
        while True:
            message = await self._accepted.get()
            await self._run(message.body.decode())
            await self._report(message, "done")
            self._accepted.task_done()

    async def _report(self, message: AbstractIncomingMessage, what: str) -> None:
        report = aio_pika.Message(message.body, type=what)
        await self._channel.default_exchange.publish(report, routing_key=REPORTS)


class Worker(RacyWorker):
    """The fix: a job is acknowledged when it is done. If the worker stops before, another one gets it.

    Jobs that take longer than half an hour need a longer `consumer_timeout` in RabbitMQ's configuration.
    """

    async def _on_job(self, message: AbstractIncomingMessage) -> None:
        await self._report(message, "accepted")
        self._accepted.put_nowait(message)

    async def _work(self) -> None:
        while True:
            message = await self._accepted.get()
            await self._run(message.body.decode())
            await self._report(message, "done")
            await message.ack()
            self._accepted.task_done()
