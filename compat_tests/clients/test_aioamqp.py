"""aioamqp, which opens with the header of 0-9 and expects RabbitMQ's 0-9-1."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aioamqp
import pytest
import pytest_asyncio
from aioamqp.exceptions import ChannelClosed

from fakeamqp import Broker

SECONDS = 20

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(60)]


@pytest_asyncio.fixture
async def protocol(broker: Broker) -> AsyncIterator[Any]:
    transport, protocol = await aioamqp.connect(broker.host, broker.port, login_method="PLAIN")
    assert broker.connections[0].protocol == "0-9"
    yield protocol
    if protocol.state == aioamqp.protocol.OPEN:
        await protocol.close()
    transport.close()


@pytest_asyncio.fixture
async def channel(protocol: Any) -> Any:
    return await protocol.channel()


async def test_aioamqp_gets_rabbitmq_server_properties(protocol: Any) -> None:
    assert protocol.server_properties["product"] == "RabbitMQ"
    assert protocol.server_properties["capabilities"]["publisher_confirms"] is True


async def test_aioamqp_publishes_consumes_requeues_and_acks_a_message(channel: Any, broker: Broker) -> None:
    await channel.exchange_declare("events", "topic", durable=True)
    await channel.queue_declare("orders", durable=True)
    await channel.queue_bind("orders", "events", "order.*")
    await channel.basic_qos(prefetch_count=1)
    came: asyncio.Queue[Any] = asyncio.Queue()

    async def take(channel: Any, body: bytes, envelope: Any, properties: Any) -> None:
        await came.put((body, envelope, properties))

    await channel.basic_consume(take, "orders")
    body = bytes(range(256)) * 1024
    await channel.basic_publish(body, "events", "order.created", {"headers": {"n": 1}, "delivery_mode": 2})
    got, envelope, properties = await asyncio.wait_for(came.get(), SECONDS)
    assert (got, envelope.routing_key) == (body, "order.created")
    assert (properties.headers, properties.delivery_mode) == ({"n": 1}, 2)
    await channel.basic_client_nack(envelope.delivery_tag, requeue=True)
    _, again, _ = await asyncio.wait_for(came.get(), SECONDS)
    assert again.is_redeliver
    await channel.basic_client_ack(again.delivery_tag)
    await asyncio.to_thread(broker.queue("orders").wait_for, ready=0, unacked=0)


async def test_confirms(channel: Any, broker: Broker) -> None:
    await channel.confirm_select()
    await channel.queue_declare("orders", durable=True)
    await asyncio.wait_for(channel.publish(b"x", "", "orders"), SECONDS)
    assert [message.body for message in broker.queue("orders").messages] == [b"x"]


async def test_exchanges_are_bound_to_exchanges(channel: Any, broker: Broker) -> None:
    for name in ("one", "two"):
        await channel.exchange_declare(name, "fanout")
    await channel.exchange_bind(exchange_destination="two", exchange_source="one", routing_key="")
    assert [str(each.destination) for each in broker.exchange("one").bindings] == ["two"]
    await channel.exchange_unbind(exchange_destination="two", exchange_source="one", routing_key="")
    assert not broker.exchange("one").bindings


async def test_aioamqp_consumer_is_cancelled_when_its_queue_is_deleted(channel: Any) -> None:
    cancelled: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def take(*_: Any) -> None:
        raise AssertionError("nothing was published")

    async def note(_channel: Any, tag: str) -> None:
        cancelled.set_result(tag)

    channel.add_cancellation_callback(note)
    await channel.queue_declare("orders", durable=True)
    started = await channel.basic_consume(take, "orders")
    await channel.queue_delete("orders")
    assert await asyncio.wait_for(cancelled, SECONDS) == started["consumer_tag"]


async def test_recover(channel: Any) -> None:
    assert await channel.basic_recover(requeue=True)
    await channel.basic_recover_async(requeue=True)


async def test_errors_have_rabbitmqs_texts(channel: Any) -> None:
    with pytest.raises(ChannelClosed) as error:
        await channel.queue_declare("unknown", passive=True)
    assert (error.value.code, error.value.message) == (404, "NOT_FOUND - no queue 'unknown' in vhost '/'")
