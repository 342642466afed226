"""What clients make of the versions of RabbitMQ that personalities are called after."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import aio_pika
import aiormq
import kombu
import pika
import pytest
from aio_pika.patterns import RPC

from compat_tests.clients.celery_app import SECONDS, shop, worker
from fakeamqp import Broker

EVERY = ("rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2", "rabbitmq-4.3")
NOT_PERMITTED = (
    "INTERNAL_ERROR - Feature `transient_nonexcl_queues` is deprecated.\nIts use is not permitted per the "
    "configuration (overriding the default, which is permitted):\n"
    '    "deprecated_features.permit.transient_nonexcl_queues = false"\nIts use will not be permit...'
)


@pytest.fixture
def modern(nothing_is_left: None) -> Iterator[Broker]:
    """A broker as RabbitMQ 4.3 comes."""
    with Broker(personality="rabbitmq-4.3", seed=1) as broker:
        yield broker
        assert broker.admin.failures == ()


@pytest.fixture
def denying(nothing_is_left: None) -> Iterator[Broker]:
    """RabbitMQ 4.3 without transient queues for all."""
    with Broker(personality="rabbitmq-4.3", deny=["transient_nonexcl_queues"], seed=1) as broker:
        yield broker
        assert broker.admin.failures == ()


def connect(broker: Broker) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.ConnectionParameters(broker.host, broker.port))


# --- pika --------------------------------------------------------------------------------------------


def test_definitions_may_contain_a_denied_transient_queue(nothing_is_left: None) -> None:
    queue = {"name": "old", "vhost": "/", "durable": False, "auto_delete": False, "arguments": {}}
    with (
        Broker(
            personality="rabbitmq-4.3", deny=["transient_nonexcl_queues"], definitions={"queues": [queue]}
        ) as broker,
        connect(broker) as connection,
    ):
        channel = connection.channel()
        broker.publish(b"1", routing_key="old")
        assert channel.queue_declare("old").method.message_count == 1  # It is there, and so only compared.


# --- aio-pika ----------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_remote_procedure_calls_need_an_exclusive_queue_without_transient_ones(denying: Broker) -> None:
    """aio-pika's pattern declares its result queue neither durable nor exclusive, unless it is told to."""
    async with await aio_pika.connect(denying.url) as connection:
        with pytest.raises(aiormq.exceptions.ConnectionInternalError) as caught:
            await asyncio.wait_for(RPC.create(await connection.channel()), SECONDS)
        assert NOT_PERMITTED in str(caught.value)
    async with await aio_pika.connect(denying.url) as connection:

        async def multiply(*, x: int, y: int) -> int:
            return x * y

        calls = await RPC.create(await connection.channel(), exclusive=True)
        await calls.register("multiply", multiply, durable=True)
        assert await asyncio.wait_for(calls.proxy.multiply(x=6, y=7), SECONDS) == 42
        await calls.close()


# --- kombu and Celery --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_kombu_uses_spec_qos_semantics_except_on_rabbitmq_3_13(nothing_is_left: None, name: str) -> None:
    """On RabbitMQ 3 it has prefetch count for whole channels, which takes the flag the documents do not."""
    with Broker(personality=name) as broker:
        url = f"pyamqp://guest:guest@{broker.host}:{broker.port}//"
        with kombu.Connection(url, connect_timeout=SECONDS) as connection:
            connection.connect()
            assert connection.qos_semantics_matches_spec is (name != "rabbitmq-3.13")


@pytest.mark.parametrize("name", ["rabbitmq-3.13", "rabbitmq-4.0"])
def test_celery_limits_its_channel_as_the_version_has_it(nothing_is_left: None, name: str) -> None:
    with Broker(personality=name) as broker, shop(broker, worker_prefetch_multiplier=3) as app, worker(app):
        assert app.tasks["shop.add"].delay(1, 2).get(timeout=SECONDS) == 3
        channel = _channel_of(broker, "celery")
        shared = None if channel.credit is None else channel.credit.message_limit
        assert (shared, channel.prefetch[0]) == ((3, 0) if name == "rabbitmq-3.13" else (None, 3))


def test_celery_runs_on_4_3(modern: Broker) -> None:
    """Its queues are durable, or exclusive, since it was taught so."""
    with shop(modern) as app, worker(app):
        assert app.tasks["shop.add"].delay(1, 2).get(timeout=SECONDS) == 3
        with pytest.raises(LookupError):
            app.tasks["shop.fail"].delay().get(timeout=SECONDS)


def _channel_of(broker: Broker, queue: str) -> Any:
    """The channel that consumes from a queue."""
    return broker._reader.read(
        lambda state: next(iter(state.virtual_hosts["/"].queues[queue].subscriptions)).subscriber
    )
