"""FastStream with RabbitMQ."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial

from faststream.rabbit import Channel, RabbitBroker, RabbitExchange, RabbitQueue

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

__all__ = ["WORKLOADS"]

_PACKAGES = ("faststream", "aio-pika", "aiormq")


def _app(broker: Broker) -> RabbitBroker:
    return RabbitBroker(broker.url, reconnect_interval=1, logger=None, graceful_timeout=10)


def _acked(broker: Broker) -> dict[bytes, float]:
    """When each message was acknowledged first, by its body."""
    times: dict[bytes, float] = {}
    for event in broker.trace.events:
        if event.name == "acked":
            times.setdefault(event.facts["message"].body, event.time)
    return times


async def _subscriber(broker: Broker, faults: Faults) -> None:
    app = _app(broker)
    handled: dict[str, float] = {}

    @app.subscriber(
        RabbitQueue("work", durable=True),
        RabbitExchange("orders", durable=True),
        channel=Channel(prefetch_count=3),
    )
    async def handle(body: str) -> None:
        await asyncio.sleep(0.02)
        handled.setdefault(body, asyncio.get_running_loop().time())

    await app.start()
    confirmed: set[str] = set()

    async def publish(body: str) -> Exception | None:
        error = await tell(app.publish(body, "work", "orders", persist=True), 120, "publish")
        if error is None:
            confirmed.add(body)
        return error

    with faults.on(broker):
        for number in range(50):
            await asyncio.sleep(0.4)
            await publish(f"order {number}")
    await asyncio.sleep(60)
    error = await publish("last")
    if error is not None:
        raise broken("publish fails a minute after the faults", repr(error))
    await asyncio.sleep(10)
    if "last" not in handled:
        raise broken("the subscriber is not restored")
    if not confirmed <= handled.keys():
        raise broken("a confirmed message is not handled", f"{sorted(confirmed - handled.keys())}")
    await broker.queue("work").wait_until_consumed.aio()
    early = {body for body, time in _acked(broker).items() if time < handled[body.decode()]}
    if early:
        raise broken("a message is acknowledged before it is handled", f"{sorted(early)}")
    await returns(app.stop(), 60, "stop")


async def _request(broker: Broker, faults: Faults) -> None:
    app, client = _app(broker), _app(broker)

    @app.subscriber(RabbitQueue("double", durable=True))
    async def double(number: int) -> int:
        await asyncio.sleep(0.01)
        return 2 * number

    await app.start()
    await client.connect()

    async def request(number: int) -> None:
        message = await client.request(number, "double", timeout=5.0)
        answer = await message.decode()
        if answer != 2 * number:
            raise broken("a request gets the answer of another one", f"2 * {number} = {answer}")

    with faults.on(broker):
        for number in range(20):
            await asyncio.sleep(0.4)
            await asyncio.gather(*(tell(request(3 * number + each), 120, "a request") for each in range(3)))
    await asyncio.sleep(60)
    error = await tell(request(4711), 60, "a request")
    if error is not None:
        raise broken("a request fails a minute after the faults", repr(error))
    await returns(app.stop(), 60, "stop")
    await returns(client.stop(), 60, "stop")


async def _stop(broker: Broker) -> None:
    app = _app(broker)
    started: Counter[str] = Counter()
    ended: Counter[str] = Counter()

    @app.subscriber(RabbitQueue("work", durable=True), channel=Channel(prefetch_count=5))
    async def handle(body: str) -> None:
        started[body] += 1
        await asyncio.sleep(0.1)
        ended[body] += 1

    await app.start()
    published = {f"order {number}" for number in range(30)}
    for body in sorted(published):
        broker.publish(body.encode(), routing_key="work", delivery_mode=2, content_type="text/plain")
    await asyncio.sleep(0.25)
    await returns(app.stop(), 60, "stop")
    if started != ended:
        raise broken("stop ends a handler", f"{started - ended}")
    await broker.wait_until_idle.aio()
    left = {message.body.decode() for message in broker.queue("work").messages}
    if left & ended.keys():
        raise broken("a handled message is still in the queue", f"{sorted(left & ended.keys())}")
    if left | ended.keys() != published:
        raise broken("a message is lost", f"{sorted(published - left - ended.keys())}")


WORKLOADS = [
    *(
        Workload(
            f"FastStream subscriber, {faults.name}",
            _PACKAGES,
            "each confirmed message is handled, and acknowledged afterwards; "
            "a minute after the faults everything works",
            "documentation of FastStream, RabbitMQ, Acknowledgment",
            partial(_subscriber, faults=faults),
            faults.words,
            known,
        )
        for faults, known in (
            (NETWORK, {}),
            (CONNECTIONS, {}),
            (
                CHANNELS,
                {
                    "the subscriber is not restored": "restore-once",
                    "publish fails a minute after the faults": "restore-once",
                },
            ),
        )
    ),
    *(
        Workload(
            f"FastStream request, {faults.name}",
            _PACKAGES,
            "a request returns its own answer or raises; a minute after the faults requests work",
            "documentation of FastStream, RabbitMQ, RPC over RMQ",
            partial(_request, faults=faults),
            faults.words,
        )
        for faults in (NETWORK, CONNECTIONS)
    ),
    Workload(
        "FastStream stop",
        _PACKAGES,
        "stop waits for the handlers; handled messages are acknowledged, the others stay in the queue",
        "docstring of RabbitBroker, graceful_timeout",
        _stop,
    ),
]
