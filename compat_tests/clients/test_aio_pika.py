from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aio_pika
import aio_pika.exceptions
import pytest
import pytest_asyncio
from aio_pika.patterns import RPC

from compat_tests.clients.forgotten import forgotten_sockets_closed
from compat_tests.clients.reach import Reach
from fakeamqp import Broker

SECONDS = 20

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("connect", [aio_pika.connect, aio_pika.connect_robust])
async def test_from_connect_to_ack(reach: Reach, connect: Any) -> None:
    async with await connect(reach.url, ssl_context=reach.context, timeout=SECONDS) as connection:
        channel = await connection.channel()
        await channel.set_qos(prefetch_count=1)
        exchange = await channel.declare_exchange("events", aio_pika.ExchangeType.TOPIC, durable=True)
        queue = await channel.declare_queue("orders", durable=True)
        await queue.bind(exchange, "order.#")
        for number in range(3):
            message = aio_pika.Message(str(number).encode(), headers={"number": number})
            await exchange.publish(message, "order.created")
        assert reach.broker.queue("orders").ready == 3

        seen: list[tuple[bytes, Any]] = []
        async with queue.iterator(timeout=SECONDS) as messages:
            async for incoming in messages:
                async with incoming.process():
                    seen.append((incoming.body, incoming.headers["number"]))
                if len(seen) == 3:
                    break
        assert seen == [(b"0", 0), (b"1", 1), (b"2", 2)]
        await reach.broker.queue("orders").wait_for.aio(ready=0, unacked=0, consumers=0)


async def test_get_reject_and_requeue(broker: Broker) -> None:
    async with await aio_pika.connect(broker.url) as connection:
        channel = await connection.channel()
        queue = await channel.declare_queue("orders")
        assert await queue.get(fail=False) is None
        await channel.default_exchange.publish(aio_pika.Message(b"1"), "orders")
        first = await queue.get(timeout=SECONDS)
        await first.reject(requeue=True)
        again = await queue.get(timeout=SECONDS)
        assert (first.redelivered, again.redelivered) == (False, True)
        await again.nack(requeue=False)
        await broker.queue("orders").wait_for.aio(ready=0, unacked=0)


async def test_mistakes_close_the_channel(broker: Broker) -> None:
    async with await aio_pika.connect(broker.url) as connection:
        channel = await connection.channel()
        with pytest.raises(aio_pika.exceptions.ChannelNotFoundEntity, match="no queue 'absent' in vhost '/'"):
            await channel.declare_queue("absent", passive=True)
        async with connection.channel() as other:
            await other.declare_queue("orders")


async def test_transactions(broker: Broker) -> None:
    async with await aio_pika.connect(broker.url) as connection:
        channel = await connection.channel(publisher_confirms=False)
        await channel.declare_queue("orders")
        with pytest.raises(LookupError):
            async with channel.transaction():
                await channel.default_exchange.publish(aio_pika.Message(b"dropped"), "orders")
                raise LookupError
        async with channel.transaction():
            await channel.default_exchange.publish(aio_pika.Message(b"kept"), "orders")
        assert [each.body for each in broker.queue("orders").messages] == [b"kept"]


@pytest_asyncio.fixture
async def no_forgotten_sockets() -> AsyncIterator[None]:
    """See `forgotten_sockets_closed`."""
    async with forgotten_sockets_closed(SECONDS):
        yield


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.usefixtures("no_forgotten_sockets")
async def test_a_robust_connection_comes_back_after_a_restart(broker: Broker, crash: bool) -> None:
    connection = await aio_pika.connect_robust(broker.url, reconnect_interval=0.05, timeout=SECONDS)
    async with connection:
        channel = await connection.channel()
        queue = await channel.declare_queue("orders", durable=True)
        fleeting = await channel.declare_queue("fleeting", auto_delete=True)
        arrived: asyncio.Queue[bytes] = asyncio.Queue()

        async def receive(message: aio_pika.abc.AbstractIncomingMessage) -> None:
            await message.ack()
            await arrived.put(message.body)

        await queue.consume(receive)
        await fleeting.consume(receive)
        back = asyncio.Event()
        connection.reconnect_callbacks.add(lambda *_: back.set())
        await asyncio.to_thread(broker.restart, crash=crash)
        await asyncio.wait_for(back.wait(), SECONDS)
        # What was declared and consumed is declared and consumed again.
        await broker.queue("orders").wait_for.aio(consumers=1, timeout=SECONDS)
        await broker.queue("fleeting").wait_for.aio(consumers=1, timeout=SECONDS)
        await channel.default_exchange.publish(aio_pika.Message(b"after"), "orders")
        assert await asyncio.wait_for(arrived.get(), SECONDS) == b"after"


async def test_remote_procedure_calls(broker: Broker) -> None:
    async with (
        await aio_pika.connect_robust(broker.url) as server,
        await aio_pika.connect_robust(broker.url) as client,
    ):

        async def multiply(*, x: int, y: int) -> int:
            return x * y

        serving = await RPC.create(await server.channel())
        await serving.register("multiply", multiply, auto_delete=True)
        calling = await RPC.create(await client.channel())
        assert await asyncio.wait_for(calling.proxy.multiply(x=6, y=7), SECONDS) == 42
        with pytest.raises(aio_pika.exceptions.MessageProcessError):
            await asyncio.wait_for(calling.call("absent", {}), SECONDS)
        await calling.close()
        await serving.close()


async def test_delayed_messages() -> None:
    arrived: asyncio.Queue[Any] = asyncio.Queue()
    with Broker(clock="virtual") as broker:
        async with await aio_pika.connect(broker.url) as connection:
            channel = await connection.channel(on_return_raises=True)
            exchange = await channel.declare_exchange(
                "later", aio_pika.ExchangeType.X_DELAYED_MESSAGE, arguments={"x-delayed-type": "topic"}
            )
            queue = await channel.declare_queue("reminders")
            await queue.bind(exchange, "remind.#")
            await queue.consume(arrived.put, no_ack=True)
            for body, minutes in ((b"second", 10), (b"first", 5)):
                message = aio_pika.Message(body, headers={"x-delay": minutes * 60_000})
                # aio-pika publishes as mandatory, and no queue has it yet.
                with pytest.raises(aio_pika.exceptions.PublishError):
                    await exchange.publish(message, "remind.me")
            assert broker.exchange("later").delayed == 2
            assert [view.delayed_for for view in broker.published] == [600, 300]
            pending = [each.words for each in broker.clock.timers if each.words.startswith("exchange")]
            assert pending == ["exchange 'later' publishes a message"] * 2

            await asyncio.to_thread(broker.clock.advance, 300)
            first = await asyncio.wait_for(arrived.get(), SECONDS)
            assert (first.body, first.headers["x-delay"]) == (b"first", -300_000)
            assert broker.exchange("later").delayed == 1
            await asyncio.to_thread(broker.clock.advance_to_next)
            second = await asyncio.wait_for(arrived.get(), SECONDS)
            assert (second.body, second.headers["x-delay"]) == (b"second", -600_000)


async def test_a_delay_of_up_to_127_milliseconds_is_written_as_a_type_that_does_not_delay() -> None:
    with Broker(clock="virtual") as broker:
        async with await aio_pika.connect(broker.url) as connection:
            channel = await connection.channel()
            exchange = await channel.declare_exchange(
                "later", aio_pika.ExchangeType.X_DELAYED_MESSAGE, arguments={"x-delayed-type": "fanout"}
            )
            queue = await channel.declare_queue("reminders")
            await queue.bind(exchange)
            for delay in (127, 128):
                message = aio_pika.Message(b"%d" % delay, headers={"x-delay": delay})
                await exchange.publish(message, "", mandatory=False)
            assert [message.body for message in broker.queue("reminders").messages] == [b"127"]
            await asyncio.to_thread(broker.clock.advance, 0.128)
            assert [message.body for message in broker.queue("reminders").messages] == [b"127", b"128"]


async def test_hashing_exchanges(broker: Broker) -> None:
    async with await aio_pika.connect(broker.url) as connection:
        channel = await connection.channel()
        hashing = await channel.declare_exchange(
            "customers", aio_pika.ExchangeType.X_CONSISTENT_HASH, arguments={"hash-header": "customer"}
        )
        modulus = await channel.declare_exchange("shards", aio_pika.ExchangeType.X_MODULUS_HASH)
        for number in range(3):
            queue = await channel.declare_queue(f"shard.{number}")
            await queue.bind(hashing, "1")
            await queue.bind(modulus, str(number))
        for number in range(30):
            message = aio_pika.Message(b"%d" % number, headers={"customer": f"customer-{number % 5}"})
            await hashing.publish(message, "any")
        ready = [broker.queue(f"shard.{number}").messages for number in range(3)]
        assert sum(map(len, ready)) == 30
        customers = [{message.headers["customer"] for message in messages} for messages in ready]
        assert sum(map(len, customers)) == 5, "no customer is in two queues"
        await modulus.publish(aio_pika.Message(b"m"), "hello")
        assert [view.queues for view in broker.published[-1:]] == [(f"shard.{106084785 % 3}",)]
        with pytest.raises(aio_pika.exceptions.ChannelPreconditionFailed, match="must be an integer"):
            await queue.bind(hashing, "heavy")
