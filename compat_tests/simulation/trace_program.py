"""Writes the trace of a simulated test under some seeds, for tests that compare processes.

trace_program.py FOLDER SEEDS: FOLDER/0.jsonl and so on.
"""

from __future__ import annotations

import asyncio
import sys
import uuid
from pathlib import Path

import aio_pika
from aio_pika.abc import AbstractIncomingMessage, AbstractRobustConnection

from fakeamqp import Broker, simulation

MESSAGES = 12
COLOURS = ("red", "green", "blue")


async def program(path: Path) -> None:
    """A publisher and a worker that reconnect while the network fails and the broker is restarted."""
    handled: set[str] = set()
    everything = asyncio.Event()

    async def handle(message: AbstractIncomingMessage) -> None:
        await asyncio.sleep(0.2)
        if message.body.endswith(b"0") and not message.redelivered:
            await message.nack()
            return
        assert message.message_id is not None
        handled.add(message.message_id)
        await message.ack()
        if len(handled) == MESSAGES:
            everything.set()

    async with Broker(runtime="asyncio", seed=1) as broker:

        async def connect(name: str) -> AbstractRobustConnection:
            return await aio_pika.connect_robust(
                broker.url, client_properties={"connection_name": name}, heartbeat=10, reconnect_interval=1
            )

        async with await connect("publisher") as publisher, await connect("worker") as worker:
            channel = await worker.channel()
            await channel.set_qos(prefetch_count=3)
            orders = await channel.declare_exchange("orders", aio_pika.ExchangeType.TOPIC, durable=True)
            queue = await channel.declare_queue("work", durable=True)
            for colour in COLOURS:
                await queue.bind(orders, f"*.{colour}")
                await channel.declare_queue(exclusive=True)  # The broker names it.
            await queue.consume(handle)

            # The client opens them again when it reconnects.
            channels = [await publisher.channel() for _ in range(MESSAGES)]

            async def publish(number: int) -> None:
                exchange = await channels[number].get_exchange("orders", ensure=False)
                message = aio_pika.Message(
                    b"order %d" % number,
                    message_id=uuid.uuid4().hex,
                    delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
                )
                colour = COLOURS[number % 3]
                while True:
                    try:
                        await exchange.publish(message, f"order.{colour}", timeout=5)
                        return
                    except (
                        aio_pika.exceptions.AMQPError,
                        ConnectionError,
                        asyncio.TimeoutError,
                        RuntimeError,
                    ):
                        await asyncio.sleep(1)

            half = MESSAGES // 2
            publishing = [asyncio.create_task(publish(number)) for number in range(half)]
            with broker.faults.network.latency(0.05, jitter=0.02):
                await asyncio.sleep(0.3)
            broker.faults.network.on("worker").reset()
            await asyncio.sleep(2)
            broker.restart()
            publishing += [asyncio.create_task(publish(number)) for number in range(half, MESSAGES)]
            await asyncio.gather(*publishing)
            await asyncio.wait_for(everything.wait(), 600)
        broker.trace.jsonl(path, redact=False)


if __name__ == "__main__":
    for number in range(int(sys.argv[2])):
        simulation.run(program(Path(sys.argv[1], f"{number}.jsonl")), seed=number)
