from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiormq
import aiormq.exceptions
import pytest

from compat_tests.clients.reach import Reach
from fakeamqp import Broker

SECONDS = 20

pytestmark = pytest.mark.asyncio


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[Any]:
    connection = await asyncio.wait_for(aiormq.connect(url, **options), SECONDS)
    try:
        yield connection
    finally:
        await connection.close()


async def round_trip(connection: Any, broker: Broker) -> None:
    channel = await connection.channel()
    await channel.exchange_declare(exchange="events", exchange_type="headers")
    await channel.queue_declare("orders")
    await channel.queue_bind("orders", "events", arguments={"x-match": "any", "kind": "order", "size": 3})
    confirmed = await channel.basic_publish(
        b"first",
        exchange="events",
        properties=aiormq.spec.Basic.Properties(headers={"kind": "order"}, message_id="m1"),
    )
    assert isinstance(confirmed, aiormq.spec.Basic.Ack)
    assert broker.queue("orders").ready == 1

    arrived: asyncio.Queue[Any] = asyncio.Queue()
    await channel.basic_consume("orders", arrived.put, consumer_tag="me")
    message = await asyncio.wait_for(arrived.get(), SECONDS)
    assert (message.body, message.header.properties.message_id) == (b"first", "m1")
    await channel.basic_nack(message.delivery.delivery_tag, requeue=True)
    again = await asyncio.wait_for(arrived.get(), SECONDS)
    assert (message.delivery.redelivered, again.delivery.redelivered) == (False, True)
    await channel.basic_ack(again.delivery.delivery_tag)
    await broker.queue("orders").wait_for.aio(ready=0, unacked=0, consumers=1)
    await channel.basic_cancel("me")
    assert broker.queue("orders").consumers == ()


async def test_from_connect_to_ack(reach: Reach) -> None:
    options = {} if reach.context is None else {"context": reach.context}
    async with opened(reach.url, **options) as connection:
        await round_trip(connection, reach.broker)


async def test_over_a_socketpair(broker: Broker) -> None:
    factory = getattr(aiormq.connection, "TransportFactory", None)
    if factory is None:
        pytest.skip("this aiormq opens its own sockets only")

    class Given(factory):  # type: ignore[misc,valid-type]
        def __init__(self, sock: socket.socket) -> None:
            self.sock = sock

        async def create(self, url: Any, **_: Any) -> Any:
            return await asyncio.open_connection(sock=self.sock)

    async with opened("amqp://guest:guest@nobody/", transport_factory=Given(broker.connect())) as connection:
        await round_trip(connection, broker)


async def test_get(broker: Broker) -> None:
    async with opened(broker.url) as connection:
        channel = await connection.channel()
        await channel.queue_declare("orders")
        assert isinstance((await channel.basic_get("orders")).delivery, aiormq.spec.Basic.GetEmpty)
        for body in (b"1", b"2"):
            await channel.basic_publish(body, routing_key="orders")
        first = await channel.basic_get("orders")
        assert (first.body, first.delivery.message_count) == (b"1", 1)
        await channel.basic_reject(first.delivery.delivery_tag, requeue=False)
        second = await channel.basic_get("orders", no_ack=True)
        assert (second.body, second.delivery.redelivered) == (b"2", False)
        await broker.queue("orders").wait_for.aio(ready=0, unacked=0)


async def test_mandatory_messages_come_back(broker: Broker) -> None:
    async with opened(broker.url) as connection:
        channel = await connection.channel()
        with pytest.raises(aiormq.exceptions.PublishError) as caught:
            await channel.basic_publish(b"lost", routing_key="nowhere", mandatory=True)
        assert caught.value.message.body == b"lost"
        assert caught.value.message.delivery.reply_text == "NO_ROUTE"


async def test_refused_publishes(broker: Broker) -> None:
    async with opened(broker.url) as connection:
        channel = await connection.channel()
        arguments = {"x-max-length": 1, "x-overflow": "reject-publish"}
        await channel.queue_declare("small", arguments=arguments)
        await channel.basic_publish(b"fits", routing_key="small")
        with pytest.raises(aiormq.exceptions.DeliveryError):
            await channel.basic_publish(b"does not", routing_key="small")


async def test_mistakes_close_the_channel_only(broker: Broker) -> None:
    async with opened(broker.url) as connection:
        channel = await connection.channel()
        with pytest.raises(aiormq.exceptions.ChannelNotFoundEntity):
            await channel.queue_declare("absent", passive=True)
        channel = await connection.channel()
        with pytest.raises(aiormq.exceptions.ChannelAccessRefused):
            await channel.queue_declare("amq.mine")
        channel = await connection.channel()
        with pytest.raises(aiormq.exceptions.ChannelPreconditionFailed):
            await channel.exchange_declare("amq.direct", exchange_type="topic")
        await (await connection.channel()).queue_declare("orders")


async def test_a_wrong_password(broker: Broker) -> None:
    with pytest.raises(aiormq.exceptions.ProbableAuthenticationError, match="ACCESS_REFUSED"):
        await aiormq.connect(f"amqp://guest:wrong@{broker.host}:{broker.port}/")


@pytest.mark.parametrize("wanted", [0, 13])
async def test_heartbeats_are_negotiated(broker: Broker, wanted: int) -> None:
    async with opened(f"{broker.url}?heartbeat={wanted}"):
        assert broker.connections[0].heartbeat == wanted


async def test_deleting_a_queue_cancels_its_consumers(broker: Broker) -> None:
    async with opened(broker.url) as connection, opened(broker.url) as other:
        channel = await connection.channel()
        if not hasattr(channel, "on_consumer_cancel_callbacks"):
            pytest.skip("this aiormq tells nobody of cancelled consumers")
        await channel.queue_declare("orders")
        cancelled: asyncio.Queue[Any] = asyncio.Queue()
        channel.on_consumer_cancel_callbacks.add(cancelled.put_nowait)
        await channel.basic_consume("orders", cancelled.put, consumer_tag="me")
        await (await other.channel()).queue_delete("orders")
        assert (await asyncio.wait_for(cancelled.get(), SECONDS)).consumer_tag == "me"
        await channel.queue_declare("orders")  # The channel goes on.


async def test_a_blocked_broker_holds_publishers_back(broker: Broker) -> None:
    async with opened(broker.url) as connection:
        channel = await connection.channel()
        await channel.queue_declare("orders")
        alarm = broker.faults.memory_alarm()
        held = asyncio.ensure_future(channel.basic_publish(b"late", routing_key="orders"))
        assert await asyncio.to_thread(
            broker._reader.wait_for, lambda state: any(not each.reading for each in state.connections)
        )
        assert broker.queue("orders").ready == 0 and not held.done()
        alarm.remove()
        await asyncio.wait_for(held, SECONDS)
        assert broker.queue("orders").ready == 1


async def test_the_secret_can_be_updated(broker: Broker) -> None:
    async with opened(broker.url) as connection:
        answer = await connection.update_secret("guest", reason="renewed", timeout=SECONDS)
        assert isinstance(answer, aiormq.spec.Connection.UpdateSecretOk)
