"""The race of each app is invisible to plain tests, is found by seeds, and is gone in the fixed form."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import aio_pika
import pytest
from bookings import PAYMENTS, RECEIPTS, Account, Bookings, RacyBookings
from job_runner import JOBS, RacyWorker, Worker
from price_feed import EXCHANGE, PriceFeed, RacyPriceFeed
from print_shop import Desk, Printer, RacyDesk
from stock import Customer, RacyWarehouse, Warehouse

from fakeamqp import Broker, simulation
from fakeamqp.simulation import Schedule

# -- what the apps promise, on any broker and in any form


async def no_lamp_is_sold_twice(broker: Broker, warehouse_type: type[RacyWarehouse]) -> None:
    async with warehouse_type(broker.url, {"lamp": 3}) as warehouse, Customer(broker.url) as customer:
        assert await customer.buy("lamp", 2) == "sold"
        assert await customer.buy("lamp", 2) == "sold out"
        assert warehouse.stock == {"lamp": 1}


async def a_document_is_printed(broker: Broker, desk_type: type[RacyDesk]) -> None:
    async with Printer(broker.url) as printer, desk_type(broker.url) as desk:
        await desk.submit(b"a letter")
        assert await asyncio.wait_for(printer.printed.get(), timeout=10) == b"a letter"


async def prices_come_after_an_interruption(broker: Broker, feed_type: type[RacyPriceFeed]) -> None:
    async with feed_type(broker.url, "ann", keep=0.5) as feed:
        await feed.subscribe("ACME")
        broker.publish(b"12.50", exchange=EXCHANGE, routing_key="price.ACME")
        assert await asyncio.wait_for(feed.prices.get(), timeout=10) == "ACME 12.50"

        broker.faults.network.reset()
        await broker.queue(feed.queue_name).wait_for.aio(consumers=1)
        broker.publish(b"12.80", exchange=EXCHANGE, routing_key="price.ACME")
        assert await asyncio.wait_for(feed.prices.get(), timeout=10) == "ACME 12.80"


async def a_deployment_loses_no_job(broker: Broker, worker_type: type[RacyWorker]) -> None:
    done: list[str] = []

    async def run(job: str) -> None:
        done.append(job)

    async with AsyncExitStack() as old, await aio_pika.connect(broker.url) as connection:
        await old.enter_async_context(worker_type(broker.url, run))
        channel = await connection.channel()
        for job in ("one", "two", "three"):
            await channel.default_exchange.publish(aio_pika.Message(job.encode()), routing_key=JOBS)
        async with worker_type(broker.url, run):
            await old.aclose()  # The new worker runs before the old one stops.
            await broker.queue(JOBS).wait_until_consumed.aio()
    assert sorted(done) == ["one", "three", "two"]


async def a_payment_is_booked_once(broker: Broker, bookings_type: type[RacyBookings]) -> None:
    account = Account()
    received: asyncio.Queue[str | None] = asyncio.Queue()

    async def on_receipt(message: aio_pika.abc.AbstractIncomingMessage) -> None:
        received.put_nowait(message.message_id)

    async with AsyncExitStack() as old, await aio_pika.connect(broker.url) as connection:
        await old.enter_async_context(bookings_type(broker.url, account))
        channel = await connection.channel()
        receipts = await channel.declare_queue(RECEIPTS, durable=True)
        await receipts.consume(on_receipt, no_ack=True)
        for _ in range(2):
            payment = aio_pika.Message(b"100", message_id="p-1")
            await channel.default_exchange.publish(payment, routing_key=PAYMENTS)
            assert await received.get() == "p-1"
        async with bookings_type(broker.url, account):
            await old.aclose()  # The new instance runs before the old one stops.
            await broker.queue(PAYMENTS).wait_until_consumed.aio()
    assert account.balance == 100


# -- the tests


@dataclass(frozen=True)
class Race:
    """An app in two forms, a test of both, and how the racy one fails."""

    promise: Callable[[Broker, Any], Awaitable[None]]
    racy: type
    fixed: type
    error: type[Exception]

    async def racy_test(self) -> None:
        async with Broker(runtime="asyncio") as broker:
            await self.promise(broker, self.racy)


RACES = (
    Race(no_lamp_is_sold_twice, RacyWarehouse, Warehouse, AssertionError),
    Race(a_document_is_printed, RacyDesk, Desk, asyncio.TimeoutError),
    Race(prices_come_after_an_interruption, RacyPriceFeed, PriceFeed, asyncio.TimeoutError),
    Race(a_deployment_loses_no_job, RacyWorker, Worker, AssertionError),
    Race(a_payment_is_booked_once, RacyBookings, Bookings, AssertionError),
)
each = pytest.mark.parametrize("race", RACES, ids=lambda race: race.promise.__name__)


@each
@pytest.mark.asyncio
@pytest.mark.amqp(clock="virtual")
async def test_on_a_broker_in_a_thread_the_racy_form_passes(race: Race, amqp_broker: Broker) -> None:
    await race.promise(amqp_broker, race.racy)


@each
def test_in_first_come_order_the_racy_form_passes(race: Race) -> None:
    simulation.run(race.racy_test())


@each
def test_200_seeds_find_the_race(race: Race) -> None:
    failure = simulation.explore(race.racy_test, seeds=200).failure
    assert failure is not None
    assert isinstance(failure.error, race.error)

    # The seed repeats it, and a few of its decisions are enough.
    with pytest.raises(race.error):
        simulation.run(race.racy_test(), seed=failure.seed, quiet_end=True)
    assert 1 <= len(failure.needed) <= 3
    few = Schedule(failure.seed, deviations=failure.deviations)
    with pytest.raises(race.error):
        simulation.run(race.racy_test(), schedule=few, quiet_end=True)


@each
@pytest.mark.amqp(simulated=True, seeds=200)
async def test_the_fixed_form_passes_under_all_seeds(race: Race, amqp_broker: Broker) -> None:
    await race.promise(amqp_broker, race.fixed)
