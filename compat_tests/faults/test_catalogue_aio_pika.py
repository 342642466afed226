"""What docs/fault-injection.md shows with pika, with aio-pika: what the app sees, and what the broker has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import aio_pika
import aio_pika.exceptions as errors
import pytest

from fakeamqp import Broker
from fakeamqp.faults import Faults, Rule

# Python 3.10 has aio-pika 9, which answers to some faults in another way.
pytestmark = pytest.mark.skipif(
    aio_pika.__version__.startswith("9."), reason="the catalogue is of aio-pika 10"
)

_SHORT = 0.2
"""Seconds after which nothing is expected any more."""
_GONE = (errors.AMQPError, errors.ChannelInvalidStateError, ConnectionError)
"""What aio-pika raises when connection or channel is no more, depending on who notices first."""

PUBLISHES: list[tuple[str, Callable[[Faults], Rule], Any, int]] = [
    ("nack", lambda f: f.on("basic.publish").nack(), errors.DeliveryError, 0),
    ("nack though it is there", lambda f: f.on("confirm").nack(), errors.DeliveryError, 1),
    ("lost", lambda f: f.on("basic.publish").drop(), asyncio.TimeoutError, 0),
    ("lost confirm", lambda f: f.on("confirm").drop(), asyncio.TimeoutError, 1),
    ("held confirm", lambda f: f.on("confirm").hold(), asyncio.TimeoutError, 1),
    ("returned", lambda f: f.on("basic.publish").return_message(), errors.PublishError, 0),
    ("late", lambda f: f.on("basic.publish").delay(0.01), None, 1),
    ("late confirm", lambda f: f.on("confirm").delay(0.01, jitter=0.01), None, 1),
    ("twice", lambda f: f.on("basic.publish").duplicate(), None, 2),
    ("channel closed instead", lambda f: f.on("basic.publish").close_channel(406), _GONE, 0),
    ("channel closed before", lambda f: f.on("basic.publish").close_channel(404, when="before"), _GONE, 1),
    ("connection closed", lambda f: f.on("basic.publish").close_connection(541), _GONE, 0),
    ("connection closed before", lambda f: f.on("basic.publish").close_connection(when="before"), _GONE, 1),
    ("fin before the confirm", lambda f: f.on("basic.publish").disconnect(when="before"), _GONE, 1),
    ("reset before the confirm", lambda f: f.on("basic.publish").disconnect("reset", "before"), _GONE, 1),
    ("silence", lambda f: f.on("basic.publish").disconnect("silence"), asyncio.TimeoutError, 0),
    ("between header and body", lambda f: f.on("basic.publish", part="header").disconnect(), _GONE, 0),
    ("crash before the confirm", lambda f: f.on("basic.publish").crash().once(), _GONE, 0),
    ("crash instead of the confirm", lambda f: f.on("confirm").crash("instead").once(), _GONE, 1),
]


@asynccontextmanager
async def connected(broker: Broker, **options: Any) -> AsyncIterator[Any]:
    """A connection that does not come back by itself; its end is nobody's concern."""
    connection = await aio_pika.connect(broker.url, timeout=5, **options)
    try:
        yield connection
    finally:
        with suppress(asyncio.TimeoutError, *_GONE):
            await asyncio.wait_for(connection.close(), _SHORT)
        # A connection that was not told of its end counts as open, and would be closed again by `__del__`.
        await connection.close()


async def queue_on(connection: Any, **options: Any) -> tuple[Any, Any]:
    """A channel, and the queue "orders" on it."""
    channel = await connection.channel(**options)
    return channel, await channel.declare_queue("orders", durable=True)


async def publish(channel: Any, body: bytes = b"1", timeout: float = _SHORT) -> None:
    message = aio_pika.Message(body, delivery_mode=2)
    await channel.default_exchange.publish(message, "orders", timeout=timeout)


@pytest.fixture
def broker() -> Any:
    with Broker(seed=1) as running:
        yield running
        running.faults.clear()
        assert running.admin.failures == ()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("make", "error", "stored"), [row[1:] for row in PUBLISHES], ids=[row[0] for row in PUBLISHES]
)
async def test_aio_pika_publish_raises_the_expected_error_under_each_fault(
    broker: Broker, make: Any, error: Any, stored: int
) -> None:
    rule = make(broker.faults)
    async with connected(broker) as connection:
        channel, _ = await queue_on(connection, on_return_raises=True)
        if error is None:
            await publish(channel, timeout=5)
        else:
            with pytest.raises(error):
                await publish(channel)
        await rule.wait.aio()
        rule.remove()
    # The next client finds a broker in order.
    async with connected(broker) as connection:
        channel, _ = await queue_on(connection)
        assert broker.queue("orders").ready == stored
        await publish(channel, timeout=5)


DELIVERIES: list[tuple[str, Callable[[Faults], Rule], list[tuple[bytes, bool]]]] = [
    (
        "twice",
        lambda f: f.on("basic.deliver").duplicate().once(),
        [(b"1", False), (b"1", False), (b"2", False)],
    ),
    (
        "redelivered",
        lambda f: f.on("basic.deliver").replace(redelivered=True).once(),
        [(b"1", True), (b"2", False)],
    ),
    ("another order", lambda f: f.on("basic.deliver").delay(0.02).once(), [(b"2", False), (b"1", False)]),
    ("lost", lambda f: f.on("basic.deliver").drop().once(), [(b"2", False)]),
    (
        "another body",
        lambda f: f.on("basic.deliver").replace(body=b"?").once(),
        [(b"?", False), (b"2", False)],
    ),
]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("make", "expected"), [row[1:] for row in DELIVERIES], ids=[row[0] for row in DELIVERIES]
)
async def test_aio_pika_consumer_gets_the_deliveries_changed_by_a_fault(
    broker: Broker, make: Any, expected: list[tuple[bytes, bool]]
) -> None:
    make(broker.faults)
    async with connected(broker) as connection:
        _, queue = await queue_on(connection)
        for body in (b"1", b"2"):
            broker.publish(body, routing_key="orders")
        got: list[tuple[bytes, bool]] = []
        done = asyncio.Event()

        async def take(message: Any) -> None:
            await message.ack()
            got.append((message.body, message.redelivered))
            if len(got) == len(expected):
                done.set()

        await queue.consume(take)
        await asyncio.wait_for(done.wait(), 5)
        assert got == expected
