"""aio-pika's `connect_robust`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import aio_pika
from aio_pika.abc import AbstractIncomingMessage, AbstractRobustConnection

from compat_tests.simulation.libraries.workload import (
    CHANNELS,
    CONNECTIONS,
    NETWORK,
    Faults,
    Workload,
    broken,
    returns,
    tell,
)
from fakeamqp import Broker

__all__ = ["WORKLOADS", "connect", "handling"]

_PACKAGES = ("aio-pika", "aiormq")
_README = "README of aio-pika"
_RECOVERY = "auto-reconnects with complete state recovery (queues, exchanges, consuming state, bindings)"


async def connect(broker: Broker) -> AbstractRobustConnection:
    """A robust connection that tries again every second."""
    return await aio_pika.connect_robust(broker.url, reconnect_interval=1, heartbeat=10)


def handling(bodies: set[bytes], seconds: float = 0.05) -> Callable[[AbstractIncomingMessage], Any]:
    """A callback that handles a message for a while, then acknowledges it if it still can."""

    async def handle(message: AbstractIncomingMessage) -> None:
        await asyncio.sleep(seconds)
        bodies.add(message.body)
        with suppress(Exception):
            await message.ack()

    return handle


async def _consumer(broker: Broker, faults: Faults) -> None:
    connection = await connect(broker)
    channel = await connection.channel()
    await channel.set_qos(prefetch_count=3)
    exchange = await channel.declare_exchange("orders")
    queue = await channel.declare_queue("work")
    await queue.bind(exchange, "key")
    handled: set[bytes] = set()
    await queue.consume(handling(handled))
    with faults.on(broker):
        for number in range(60):
            await asyncio.sleep(0.5)
            _inject(broker, b"%d" % number)
    await asyncio.sleep(60)
    _inject(broker, b"last")
    await asyncio.sleep(5)
    if b"last" not in handled:
        raise broken("the consumer is not restored")
    await broker.queue("work").wait_until_consumed.aio()
    await returns(connection.close(), 60, "close")


async def _several_channels(broker: Broker, faults: Faults) -> None:
    connection = await connect(broker)
    first, *others = [await connection.channel() for _ in range(3)]
    await first.declare_exchange("orders")
    handled: list[set[bytes]] = [set() for _ in others]
    for number, channel in enumerate(others):
        queue = await channel.declare_queue(f"work{number}", exclusive=True)
        await queue.bind("orders", "key")
        await queue.consume(handling(handled[number], 0.01))
    with faults.on(broker):
        for number in range(60):
            await asyncio.sleep(0.4)
            _inject(broker, b"%d" % number)
    await asyncio.sleep(60)
    _inject(broker, b"last")
    await asyncio.sleep(5)
    if not all(b"last" in bodies for bodies in handled):
        raise broken("the consumer is not restored")
    await returns(connection.close(), 60, "close")


async def _publisher(broker: Broker, faults: Faults) -> None:
    connection = await connect(broker)
    channel = await connection.channel()
    exchange = await channel.declare_exchange("orders", durable=True)
    queue = await channel.declare_queue("work", durable=True)
    await queue.bind(exchange, "key")
    confirmed: set[bytes] = set()

    async def publish(body: bytes) -> Exception | None:
        message = aio_pika.Message(body, delivery_mode=2)
        error = await tell(exchange.publish(message, "key"), 120, "publish")
        if error is None:
            confirmed.add(body)
        return error

    with faults.on(broker):
        for number in range(40):
            await asyncio.sleep(0.3)
            await asyncio.gather(*(publish(b"%d-%d" % (number, each)) for each in range(5)))
    await asyncio.sleep(60)
    error = await publish(b"last")
    if error is not None:
        raise broken("publish fails a minute after the faults", repr(error))
    await broker.wait_until_idle.aio()
    lost = confirmed - {message.body for message in broker.queue("work").messages}
    if lost:
        raise broken("a confirmed message is lost", f"{sorted(lost)}")
    await returns(connection.close(), 60, "close")


async def _iterator(broker: Broker, faults: Faults) -> None:
    connection = await connect(broker)
    channel = await connection.channel()
    await channel.set_qos(prefetch_count=3)
    queue = await channel.declare_queue("work", durable=True)
    handled: set[bytes] = set()
    working = asyncio.ensure_future(_work_through(queue, handled, 0.05))
    await broker.queue("work").wait_for.aio(consumers=1)
    await asyncio.sleep(1)
    with faults.on(broker):
        for number in range(60):
            await asyncio.sleep(0.4)
            broker.publish(b"%d" % number, routing_key="work", delivery_mode=2)
    await asyncio.sleep(90)
    await _end_of_iteration(broker, working, handled, {b"%d" % number for number in range(60)})
    await returns(connection.close(), 60, "close")


async def _outage(broker: Broker, seconds: float) -> None:
    connection = await connect(broker)
    channel = await connection.channel()
    await channel.set_qos(prefetch_count=3)
    queue = await channel.declare_queue("work", durable=True)
    handled: set[bytes] = set()
    working = asyncio.ensure_future(_work_through(queue, handled, 1))
    await asyncio.sleep(1)
    for number in range(5):
        broker.publish(b"%d" % number, routing_key="work", delivery_mode=2)
    await asyncio.sleep(0.5)
    refused = broker.faults.network.refuse()
    broker.faults.network.reset()
    await asyncio.sleep(seconds)
    refused.remove()
    await asyncio.sleep(90)
    await _end_of_iteration(broker, working, handled, {b"%d" % number for number in range(5)})
    await returns(connection.close(), 60, "close")


async def _work_through(queue: Any, handled: set[bytes], seconds: float) -> None:
    handle = handling(handled, seconds)
    async with queue.iterator() as messages:
        async for message in messages:
            await handle(message)


async def _end_of_iteration(
    broker: Broker, working: asyncio.Future[None], handled: set[bytes], published: set[bytes]
) -> None:
    broker.publish(b"last", routing_key="work", delivery_mode=2)
    await asyncio.sleep(30)
    if working.done():
        error = working.exception()
        raise (
            broken("the iteration has ended")
            if error is None
            else broken("the iteration raises", repr(error))
        )
    if not {b"last", *published} <= handled:
        raise broken("a message is not handled", f"{sorted(published - handled)}")
    working.cancel()
    await returns(asyncio.wait({working}), 60, "the end of the iteration")


async def _half_open(broker: Broker, seconds: float) -> None:
    connection = await connect(broker)
    channel = await connection.channel()
    exchange = await channel.declare_exchange("orders")
    queue = await channel.declare_queue("work", exclusive=True)
    await queue.bind(exchange, "key")
    handled: set[bytes] = set()
    await queue.consume(handling(handled, 0.01))

    async def publish() -> None:
        while True:
            await asyncio.sleep(0.7)
            message = aio_pika.Message(b"order")
            await tell(exchange.publish(message, "key"), 600, "publish")

    publishing = asyncio.ensure_future(publish())
    for _ in range(3):
        await asyncio.sleep(5)
        silence = broker.faults.network.silence()
        await asyncio.sleep(seconds)
        silence.remove()
    await asyncio.sleep(120)
    if publishing.done():
        publishing.result()
    handled.clear()
    await asyncio.sleep(10)
    if not handled:
        raise broken("no messages come")
    publishing.cancel()
    await returns(connection.close(), 60, "close")


async def _cancelled_at_once(broker: Broker) -> None:
    connection = await connect(broker)
    channel = await connection.channel()
    queue = await channel.declare_queue("work", durable=True)
    handled: set[bytes] = set()

    async def cancel() -> None:
        while not broker.queue("work").consumers:
            await asyncio.sleep(0)
        broker.queue("work").cancel_consumers()

    cancelling = asyncio.ensure_future(cancel())
    await queue.consume(handling(handled))
    await cancelling
    await asyncio.sleep(30)
    broker.publish(b"last", routing_key="work")
    await asyncio.sleep(30)
    if b"last" not in handled:
        raise broken("the consumer is not restored")
    await returns(connection.close(), 60, "close")


async def _end_of_program(broker: Broker) -> None:
    connection = await connect(broker)
    await connection.channel()
    refused = broker.faults.network.refuse()
    broker.faults.network.reset()
    await asyncio.sleep(10)
    # As `asyncio.run` does when the main coroutine has raised an error.
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    _, pending = await asyncio.wait(left, timeout=600)
    refused.remove()
    await connection.close()
    if pending:
        raise broken("a task goes on after its cancellation", repr(pending))


async def _busy_channel(broker: Broker) -> None:
    connection = await aio_pika.connect(broker.url, heartbeat=10)
    busy, other = await connection.channel(), await connection.channel()
    queue = await busy.declare_queue("busy", durable=True)
    quiet = await other.declare_queue("quiet", durable=True)
    for number in range(100):
        broker.publish(b"%d" % number, routing_key="busy", delivery_mode=2)
    go = asyncio.Event()
    handled: set[bytes] = set()

    async def handle(message: AbstractIncomingMessage) -> None:
        await go.wait()
        await message.ack()
        if message.body == b"0":
            await message.channel.basic_ack(message.delivery_tag)  # Twice: 406.

    await queue.consume(handle)
    await quiet.consume(handling(handled))
    await broker.queue("busy").wait_for.aio(unacked=100)
    await asyncio.sleep(0.5)
    go.set()
    await asyncio.sleep(5)
    broker.publish(b"last", routing_key="quiet")
    await asyncio.sleep(5)
    if b"last" not in handled:
        raise broken("another channel of the connection has ended")
    await returns(connection.close(), 60, "close")


def _inject(broker: Broker, body: bytes) -> None:
    """Publish without a client. The exchange may be missing while the client is away."""
    with suppress(Exception):
        broker.publish(body, exchange="orders", routing_key="key")


def _by_faults(
    name: str, promise: str, source: str, program: Callable[..., Any], **known: dict[str, str]
) -> list[Workload]:
    return [
        Workload(
            f"{name}, {faults.name}",
            _PACKAGES,
            promise,
            source,
            partial(program, faults=faults),
            faults.words,
            known[faults.name],
        )
        for faults in (NETWORK, CONNECTIONS, CHANNELS)
        if faults.name in known
    ]


WORKLOADS = [
    *_by_faults(
        "robust consumer",
        f"a minute after the faults, the consumer gets the messages that its exchange gets: {_RECOVERY}",
        _README,
        _consumer,
        network={},
        connections={},
        channels={"the consumer is not restored": "restore-once"},
    ),
    *_by_faults(
        "robust channels",
        "the same for three channels, where queues are bound to an exchange of another channel",
        _README,
        _several_channels,
        network={},
        connections={"the consumer is not restored": "recovery-waits-for-itself"},
    ),
    *_by_faults(
        "robust publisher",
        "each publish returns or raises; confirmed messages are in the queue; later everything works",
        "docstring of Exchange.publish",
        _publisher,
        network={},
        connections={},
        channels={"publish fails a minute after the faults": "restore-once"},
    ),
    *_by_faults(
        "robust iterator",
        "`async for message in queue` goes on, and every message is handled",
        "docstring of RobustQueueIterator: it survives the reconnection of its channel",
        _iterator,
        network={},
        connections={},
    ),
    *(
        Workload(
            f"robust iterator, {seconds} s without broker",
            _PACKAGES,
            "`async for message in queue` goes on, and every message is handled",
            "docstring of RobustQueueIterator",
            partial(_outage, seconds=seconds),
            f"the connection is reset while messages are handled, then refused for {seconds} s",
            known,
        )
        for seconds, known in ((30, {}), (100, {"the iteration has ended": "iteration-ends"}))
    ),
    *(
        Workload(
            f"half-open connection, {seconds} s",
            _PACKAGES,
            "heartbeats find it; publish returns or raises an error; the consumer is restored",
            _README,
            partial(_half_open, seconds=seconds),
            f"three times no bytes pass for {seconds} s; heartbeat 10 s",
            known,
        )
        for seconds, known in (
            (15, {}),
            (
                40,
                {"publish raises CancelledError, though nothing has cancelled it": "publish-cancelled"},
            ),
        )
    ),
    Workload(
        "consumer cancelled at once",
        _PACKAGES,
        "consumers recover after a broker's basic.cancel",
        f"{_README}, Consumer recovery",
        _cancelled_at_once,
        "the broker cancels the consumer when it has just sent consume-ok",
        {"the consumer is not restored": "cancel-with-consume-ok"},
    ),
    Workload(
        "end of the program",
        _PACKAGES,
        "all tasks end when they are cancelled, so that `asyncio.run` ends",
        "asyncio, Task Cancellation",
        _end_of_program,
        "connections are refused for 10 s",
        {"a task goes on after its cancellation": "program-does-not-end"},
    ),
    Workload(
        "busy channel",
        _PACKAGES,
        "an error on one channel of a plain connection leaves the others alone",
        "AMQP 0-9-1, Channel.Close",
        _busy_channel,
        "a message of 100 is acknowledged twice while the others are acknowledged",
        {"another channel of the connection has ended": "other-channels-end"},
    ),
]
