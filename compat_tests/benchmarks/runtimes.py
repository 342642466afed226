"""aio-pika with a broker in a thread, with one in its event loop, and with RabbitMQ, interleaved in one run.

`python -m compat_tests.benchmarks.runtimes` prints a table, and the time of a test under many schedules.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from statistics import median

import aio_pika

from compat_tests.differential import rabbitmq_node
from compat_tests.tables import table
from fakeamqp import Broker, simulation

__all__ = ["main"]

MESSAGES = 500
CYCLES = 30
BODY = bytes(100)


async def cycles(url: str) -> float:
    """Seconds to connect, declare, publish with a confirm, get and close."""
    started = time.perf_counter()
    for _ in range(CYCLES):
        async with await aio_pika.connect(url) as connection:
            channel = await connection.channel()
            queue = await channel.declare_queue("cycle", exclusive=True)
            await channel.default_exchange.publish(aio_pika.Message(BODY), queue.name)
            await queue.get(no_ack=True)
    return (time.perf_counter() - started) / CYCLES


async def confirmed_publish(url: str) -> float:
    """Seconds for a publish and its confirm, one after the other."""
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        queue = await channel.declare_queue("confirmed", exclusive=True)
        started = time.perf_counter()
        for _ in range(MESSAGES):
            await channel.default_exchange.publish(aio_pika.Message(BODY), queue.name)
        return (time.perf_counter() - started) / MESSAGES


async def consume_with_ack(url: str) -> float:
    """Seconds for a delivery that is acknowledged by itself, with a prefetch of 100."""
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel(publisher_confirms=False)
        await channel.set_qos(prefetch_count=100)
        queue = await channel.declare_queue("consumed", exclusive=True)
        for _ in range(MESSAGES):
            await channel.default_exchange.publish(aio_pika.Message(BODY), queue.name)
        while (
            await channel.declare_queue("consumed", passive=True)
        ).declaration_result.message_count != MESSAGES:
            await asyncio.sleep(0.01)
        done = asyncio.Event()
        left = MESSAGES

        async def handle(message: aio_pika.abc.AbstractIncomingMessage) -> None:
            nonlocal left
            await message.ack()
            left -= 1
            if not left:
                done.set()

        started = time.perf_counter()
        await queue.consume(handle)
        await done.wait()
        return (time.perf_counter() - started) / MESSAGES


CASES: dict[str, Callable[[str], Awaitable[float]]] = {
    "connect, declare, confirmed publish, get, close": cycles,
    "confirmed publish": confirmed_publish,
    "consume with ack": consume_with_ack,
}


async def measure(rounds: int, node: str | None) -> dict[tuple[str, str], list[float]]:
    """Seconds by case and broker: in each round every case on every broker, after one that does not count."""
    found: dict[tuple[str, str], list[float]] = {}
    async with AsyncExitStack() as running:
        thread = await running.enter_async_context(Broker())
        loop = await running.enter_async_context(Broker(runtime="asyncio"))
        urls = {"thread": thread.url, "event loop": loop.url}
        if node is not None:
            urls["RabbitMQ"] = node
        for number in range(rounds + 1):
            for case, run in CASES.items():
                for name, url in urls.items():
                    seconds = await run(url)
                    if number:
                        found.setdefault((case, name), []).append(seconds)
    return found


async def twenty_messages() -> None:
    """The test of which many schedules are run."""
    async with Broker(runtime="asyncio") as broker, await aio_pika.connect(broker.url) as connection:
        channel = await connection.channel()
        queue = await channel.declare_queue("orders")
        left, done = 20, asyncio.Event()

        async def handle(message: aio_pika.abc.AbstractIncomingMessage) -> None:
            nonlocal left
            await message.ack()
            left -= 1
            if not left:
                done.set()

        await queue.consume(handle)
        for _ in range(20):
            await channel.default_exchange.publish(aio_pika.Message(BODY), "orders")
        await done.wait()


def rows(found: dict[tuple[str, str], list[float]]) -> list[list[str]]:
    """A row for each case: medians in microseconds, and ratios to the broker in a thread."""
    names = list(dict.fromkeys(name for _, name in found))
    lines = []
    for case in CASES:
        medians = {name: median(found[case, name]) for name in names}
        shown = [f"{value * 1e6:,.0f}" for value in medians.values()]
        ratio = medians["event loop"] / medians["thread"]
        lines.append([case, *shown, f"{ratio:.2f}"])
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m compat_tests.benchmarks.runtimes", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="(%(default)s)")
    parser.add_argument("--seeds", type=int, default=1000, help="(%(default)s)")
    given = parser.parse_args(arguments)
    if rabbitmq_node.available() is None:
        with rabbitmq_node.RabbitMQNode() as node:
            found = asyncio.run(measure(given.rounds, node.url))
            heading = [f"RabbitMQ {node.version}"]
    else:
        found, heading = asyncio.run(measure(given.rounds, None)), []
    print(table(["Microseconds", "thread", "event loop", *heading, "event loop / thread"], rows(found)))
    started = time.perf_counter()
    simulation.check(twenty_messages, seeds=given.seeds)
    print(f"\n{given.seeds} seeds of a test with 20 messages: {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
