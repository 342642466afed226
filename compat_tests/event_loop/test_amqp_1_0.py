"""Clients of AMQP 1.0 on a broker in their event loop: real time, virtual time, and simulations."""

from __future__ import annotations

import asyncio

import pytest

from compat_tests.scripted.asynchronous_amqp_1_0 import Client
from fakeamqp import Broker, simulation

DEFINITIONS = {"queues": [{"name": "q", "vhost": "/", "durable": True}]}
in_loop = pytest.mark.asyncio


@in_loop
async def test_messages_pass_through_a_broker_in_the_loop() -> None:
    async with Broker(runtime="asyncio", definitions=DEFINITIONS) as broker:
        async with Client.connect(broker.host, broker.port) as client:
            assert await client.publish("q", b"one", b"two") == ["accepted", "accepted"]
            assert await client.consume("q", 2) == [b"one", b"two"]
            [view] = broker.connections
            assert [link.role for link in view.channels[0].links] == ["sender", "receiver"]
        assert broker.queue("q").ready == 0


@in_loop
async def test_delayed_delivery_comes_when_the_virtual_clock_says_so() -> None:
    async with Broker(runtime="asyncio", clock="virtual", definitions=DEFINITIONS) as broker:
        rule = broker.faults.on("transfer", direction="sent").delay(30).once()
        async with Client.connect(broker.host, broker.port) as client:
            await client.publish("q", b"late")
            consuming = asyncio.create_task(client.consume("q", 1))
            await rule.wait.aio(1)
            assert not consuming.done()
            broker.clock.advance(30)
            assert await consuming == [b"late"]


async def _race() -> str:
    """Two consumers of one queue: the schedule decides which one gets which message."""
    async with Broker(runtime="asyncio", definitions=DEFINITIONS) as broker:

        async def consume(name: str) -> list[bytes]:
            async with Client.connect(broker.host, broker.port, name) as client:
                return await client.consume("q", 3)

        async with Client.connect(broker.host, broker.port, "publisher") as publisher:
            consumers = asyncio.gather(consume("a"), consume("b"))
            await publisher.publish("q", *(b"%d" % number for number in range(6)))
            first, second = await consumers
        assert sorted((*first, *second)) == [b"%d" % number for number in range(6)]
        return broker.trace.timeline()


def test_seed_of_a_simulation_repeats_the_whole_trace() -> None:
    traces = {seed: simulation.run(_race(), seed=seed) for seed in range(4)}
    assert {seed: simulation.run(_race(), seed=seed) for seed in range(4)} == traces
    assert len(set(traces.values())) > 1


def test_chaos_in_a_simulation_loses_no_accepted_message() -> None:
    async def main() -> None:
        async with Broker(runtime="asyncio", definitions=DEFINITIONS) as broker:
            odds = {"late-publish": 0.5, "late-outcome": 0.5, "nack": 0.3, "return": 0.2}
            broker.faults.chaos(profile=odds)
            async with Client.connect(broker.host, broker.port) as client:
                outcomes = await client.publish("q", *(b"%d" % number for number in range(20)))
                accepted = [b"%d" % number for number, name in enumerate(outcomes) if name == "accepted"]
                assert len(accepted) < 20
                assert await client.consume("q", len(accepted)) == accepted

    for seed in range(5):
        simulation.run(main(), seed=seed)
