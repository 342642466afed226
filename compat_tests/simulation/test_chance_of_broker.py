"""What a broker draws in a simulation comes from the seed of the simulation."""

from __future__ import annotations

import asyncio

import aio_pika
import pytest
from aio_pika.exceptions import AMQPError

from fakeamqp import Broker, simulation
from fakeamqp.simulation import Schedule

NO_DEVIATIONS: dict[tuple[str, str, int], int] = {}


def under(seed, test):
    """What a test returns with the seed, in first-come order: only what is drawn by name depends on it."""
    return simulation.run(test(), schedule=Schedule(seed, deviations=NO_DEVIATIONS))


async def work(broker: Broker) -> None:
    """Publish and consume for a while, whatever happens."""
    for _ in range(20):
        try:
            async with await aio_pika.connect(broker.url) as connection:
                channel = await connection.channel()
                queue = await channel.declare_queue("orders")
                for number in range(10):
                    await channel.default_exchange.publish(aio_pika.Message(b"%d" % number), "orders")
                    await queue.get(fail=False, no_ack=True)
        except (AMQPError, ConnectionError, asyncio.TimeoutError, RuntimeError):
            pass


def chaos_with(**settings):
    async def test() -> str:
        async with Broker(runtime="asyncio") as broker:
            with broker.faults.chaos(profile={"nack": 0.1, "late-publish": 0.1}, **settings) as chaos:
                await work(broker)
            return chaos.plan

    return test


def test_chaos_without_a_seed_draws_from_the_seed_of_the_simulation():
    plans = [under(seed, chaos_with()) for seed in (0, 1, 2)]
    assert all(plan.count("\n") > 5 for plan in plans)
    assert len(set(plans)) == 3
    assert plans == [under(seed, chaos_with()) for seed in (0, 1, 2)]
    assert [plan.splitlines()[0].partition(",")[0] for plan in plans] == ["# seed 0", "# seed 1", "# seed 2"]


def test_the_seed_that_chaos_is_given_wins():
    assert under(1, chaos_with(seed=7)) == under(2, chaos_with(seed=7)) == under(7, chaos_with())


def test_chaos_before_the_start_of_the_broker_draws_from_the_simulation():
    async def test() -> str:
        broker = Broker(runtime="asyncio")
        chaos = broker.faults.chaos(profile={"nack": 0.1})
        async with broker:
            await work(broker)
        return chaos.plan

    assert under(1, test) != under(2, test)
    assert under(1, test) == under(1, test)


def test_chaos_without_a_simulation_has_seed_0():
    async def test() -> str:
        async with Broker(runtime="asyncio") as broker:
            return broker.faults.chaos().plan

    assert asyncio.run(test()) == "# seed 0, profile mixed"
    assert Broker().faults.chaos().plan == "# seed 0, profile mixed"
    # Seed None draws nothing.
    assert simulation.run(test()) == "# seed 0, profile mixed"


def names_of(make):
    async def test() -> list[str]:
        broker = make()
        async with broker, await aio_pika.connect(broker.url) as connection:
            channel = await connection.channel()
            return [(await channel.declare_queue("")).name for _ in range(2)]

    return test


def test_names_that_the_broker_generates_come_from_the_seed():
    names = names_of(lambda: Broker(runtime="asyncio"))
    assert under(1, names) == under(1, names)
    assert under(1, names) != under(2, names)
    own = names_of(lambda: Broker(runtime="asyncio", seed=5))
    assert under(1, own) == under(2, own) != under(5, names)[::-1]


def test_broker_made_outside_of_the_simulation_draws_names_from_the_simulation_seed():
    first, second = Broker(runtime="asyncio"), Broker(runtime="asyncio")
    assert under(1, names_of(lambda: first)) == under(1, names_of(lambda: second))


@pytest.mark.parametrize("own_seed", [None, 5])
def test_rules_with_a_probability_draw_from_the_seed(own_seed):
    async def test() -> list[int]:
        async with Broker(runtime="asyncio", seed=own_seed) as broker:
            rule = broker.faults.on("basic.publish").with_probability(0.3).nack()
            hits = []
            async with await aio_pika.connect(broker.url) as connection:
                channel = await connection.channel(publisher_confirms=False)
                await channel.declare_queue("orders")
                for _ in range(40):
                    await channel.default_exchange.publish(aio_pika.Message(b""), "orders")
                    await broker.wait_until_idle.aio()
                    hits.append(rule.hits)
        return hits

    assert under(1, test) == under(1, test)
    assert (under(1, test) == under(2, test)) == (own_seed is not None)
