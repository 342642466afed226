"""What clients do before it is done again."""

from __future__ import annotations

import asyncio

import aio_pika
import pika
import pytest

from fakeamqp import Broker


def pika_client(broker: Broker, virtual_host: str = "%2F") -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.URLParameters(broker.url.removesuffix("%2F") + virtual_host))


def consume(channel, queue: str, count: int) -> None:
    """Take so many messages, acknowledging each."""
    for method, _, _ in channel.consume(queue, inactivity_timeout=10):
        assert method is not None
        channel.basic_ack(method.delivery_tag)
        count -= 1
        if not count:
            break
    channel.cancel()


def busy(broker: Broker) -> None:
    """Much of what a broker can say."""
    with pika_client(broker) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.exchange_declare("events", "topic")
        channel.queue_bind(queue, "events", "order.#")
        for number in range(3):
            properties = pika.BasicProperties(headers={"n": number}, reply_to=queue)
            channel.basic_publish("events", "order.placed", b"%d" % number, properties)
        channel.basic_publish("", queue, bytes(range(256)) * 1000)
        consume(channel, queue, 4)
        with pytest.raises(pika.exceptions.UnroutableError):
            channel.basic_publish("", "nowhere", b"lost", mandatory=True)
        channel.basic_get(queue)
        with pytest.raises(pika.exceptions.ChannelClosedByBroker):
            channel.queue_declare("missing", passive=True)


def calls(broker: Broker) -> None:
    """Two clients, one of which asks the other over a direct reply-to."""

    async def talk() -> None:
        async with await aio_pika.connect(broker.url) as caller, await aio_pika.connect(broker.url) as server:
            requests = await (await server.channel()).declare_queue("requests")
            answering = await server.channel()

            async def answer(message) -> None:
                reply = aio_pika.Message(message.body * 2)
                await answering.default_exchange.publish(reply, message.reply_to)

            await requests.consume(answer, no_ack=True)
            channel = await caller.channel()
            answers: asyncio.Queue[bytes] = asyncio.Queue()

            async def take(message) -> None:
                answers.put_nowait(message.body)

            replies = await channel.get_queue("amq.rabbitmq.reply-to", ensure=False)
            await replies.consume(take, no_ack=True)
            for body in (b"a", b"b"):
                question = aio_pika.Message(body, reply_to="amq.rabbitmq.reply-to")
                await channel.default_exchange.publish(question, "requests")
                assert await answers.get() == body * 2

    asyncio.run(talk())
