"""What type checkers accept and refuse of the public face. `make lint` checks this file; nothing runs it.

Under `mypy --strict` an ignored error that does not occur is an error itself, so each `type: ignore` below
asserts that mypy refuses its line.
"""

from __future__ import annotations

from typing_extensions import assert_type

import fakeamqp
from fakeamqp import Broker, Clock, Personality, Proxy
from fakeamqp.inspect import (
    ChannelView,
    Collection,
    ConnectionHandle,
    ConsumerView,
    ExchangeView,
    MessageView,
    Published,
    QueueView,
)
from pytest_plugin import MakeBroker, MakeProxy

misspelled = fakeamqp.Brokr  # type: ignore[attr-defined]


def arguments(make_amqp_broker: MakeBroker, make_amqp_proxy: MakeProxy) -> None:
    Broker(
        clock="virtual", personality=Personality("rabbitmq-4.3").with_(heartbeat=0, largest_message=1 << 20)
    )
    Broker(hartbeat=0)  # type: ignore[arg-type]
    Broker(heartbeat=0)  # type: ignore[arg-type]
    Broker(personality="rabbitmq-4.9")  # type: ignore[arg-type]
    Personality("rabbitmq-4.9")  # type: ignore[arg-type]
    Personality("spec").with_(hartbeat=0)  # type: ignore[call-arg]
    Broker(personality=Personality("rabbitmq-4.3").with_(heartbeat="none"))  # type: ignore[arg-type]
    Broker(clock="virtul")  # type: ignore[arg-type]
    make_amqp_broker(personality=Personality("spec").with_(heartbeat=0))
    make_amqp_broker(persnality="spec")  # type: ignore[call-arg]
    assert_type(make_amqp_proxy(["amqp://rabbit/"], trace=0, runtime="asyncio"), Proxy)
    make_amqp_proxy(traec=0)  # type: ignore[call-arg]


def attributes(broker: Broker) -> None:
    broker.quue("orders")  # type: ignore[attr-defined]
    assert_type(broker.clock, Clock)
    assert_type(broker.queues.of("/"), Collection[QueueView])
    assert_type(broker.exchanges, Collection[ExchangeView])
    assert_type(broker.consumers[0], ConsumerView)
    assert_type(broker.published, Published)
    assert_type("orders" in broker.queues, bool)
    assert_type(broker.exchange("events").type, str)
    assert_type(broker.consumer("billing").unacked, int)
    assert_type(broker.wait_for(lambda: len(broker.queues)), int)
    assert_type(broker.start(), Broker)
    broker.queues()  # type: ignore[operator]
    assert_type(broker.queue("orders").ready, int)
    assert_type(broker.queue("orders").wait_for(ready=1).messages, tuple[MessageView, ...])
    broker.queue("orders").wait_for(count=1)  # type: ignore[arg-type]
    broker.queue("orders").wait_for(1)  # type: ignore[arg-type]
    broker.queue("orders").wait_for(ready="1")  # type: ignore[arg-type]


async def coroutines(broker: Broker) -> None:
    assert_type(await broker.start.aio(), Broker)
    assert_type(await broker.wait_for.aio(lambda: "yes"), str)
    assert_type(await broker.queue("orders").wait_for.aio(ready=1), QueueView)
    await broker.queue("orders").wait_for.aio(count=1)  # type: ignore[arg-type]
    await broker.expect_published.aio(routing_key="orders", count=1)
    await broker.expect_published.aio(routing_kee="orders")  # type: ignore[call-arg]
    await broker.clock.advance.aio("60")  # type: ignore[arg-type]
    broker.expect_no_findings.during("lost", alow="expired")  # type: ignore[call-arg]


def connections(connection: ConnectionHandle) -> None:
    assert_type(connection.name, str)
    assert_type(connection.heartbeat, int)
    assert_type(connection.channels, tuple[ChannelView, ...])
    print(connection.hartbeat)  # type: ignore[attr-defined]
    connection.name = "other"  # type: ignore[misc]


def messages(broker: Broker) -> None:
    broker.publish(b"1", routing_key="orders", headers={"shop": "north"}, priority=3)
    broker.publish(b"1", routing_key="orders", priorty=3)  # type: ignore[call-arg]
    broker.expect_published(routing_key="orders", count=1)
    broker.expect_published(json={"id": 1, "items": [{"count": lambda count: count > 1}]})
    broker.expect_published(routing_kee="orders")  # type: ignore[call-arg]
    broker.wait_for(lambda: not broker.connections)
    broker.wait_for(lambda state: True)  # type: ignore[arg-type, misc]


def faults(broker: Broker) -> None:
    broker.faults.on("basic.publish", queue="orders", routing_key="order.*", content_type="text/plain").once()
    broker.faults.on("queue.*", "*.declare", direction="received", protocol="0-10").nack()
    broker.faults.on("confirm").hold().release(multiple=True)
    broker.faults.on("basic.pubish")  # type: ignore[arg-type]
    broker.faults.on("basic.publish", routing_ky="orders")  # type: ignore[call-arg]
    broker.faults.on("basic.publish", protocol="0-9-2")  # type: ignore[arg-type]
    broker.faults.on("basic.publish", direction="recieved")  # type: ignore[arg-type]
