"""What a broker does late is drawn as well: confirms, and messages on their way to queues."""

from __future__ import annotations

import asyncio

import pytest

from fakeamqp import Broker, simulation
from fakeamqp.simulation.schedule import KINDS, Schedule

aio_pika = pytest.importorskip("aio_pika")

SEEDS = 100


async def call_that_registers_its_future_too_late():
    """An RPC client that registers the future of a call after its publish was confirmed."""
    async with (
        Broker(runtime="asyncio") as broker,
        await aio_pika.connect(broker.url) as one,
        await aio_pika.connect(broker.url) as other,
    ):
        server, client = await one.channel(), await other.channel()
        requests = await server.declare_queue("rpc", durable=True)
        replies = await client.declare_queue(exclusive=True)
        waiting: dict[str, asyncio.Future[bytes]] = {}

        async def serve(message):
            async with message.process():
                reply = aio_pika.Message(b"pong", correlation_id=message.correlation_id)
                await server.default_exchange.publish(reply, message.reply_to)

        async def answered(message):
            if message.correlation_id in waiting:
                waiting.pop(message.correlation_id).set_result(message.body)

        await requests.consume(serve)
        await replies.consume(answered, no_ack=True)
        request = aio_pika.Message(b"ping", correlation_id="1", reply_to=replies.name)
        await client.default_exchange.publish(request, "rpc")
        waiting["1"] = asyncio.get_running_loop().create_future()
        assert await asyncio.wait_for(waiting["1"], 5) == b"pong"


async def count_after_an_unconfirmed_publish(**settings):
    async with (
        Broker(runtime="asyncio", **settings) as broker,
        await aio_pika.connect(broker.url) as connection,
    ):
        channel = await connection.channel(publisher_confirms=False)
        await channel.declare_queue("orders", durable=True)
        await channel.default_exchange.publish(aio_pika.Message(b""), "orders")
        declared = await channel.declare_queue("orders", passive=True)
        assert declared.declaration_result.message_count == 1


async def deliveries_of_two_queues_in_the_order_of_their_publishes():
    async with (
        Broker(runtime="asyncio") as broker,
        await aio_pika.connect(broker.url) as connection,
    ):
        channel = await connection.channel(publisher_confirms=False)
        consumed: list[bytes] = []
        both = asyncio.Event()

        async def keep(message):
            consumed.append(message.body)
            if len(consumed) == 2:
                both.set()

        for name in ("a", "b"):
            queue = await channel.declare_queue(name, durable=True)
            await queue.consume(keep, no_ack=True)
        for name in ("a", "b"):
            await channel.default_exchange.publish(aio_pika.Message(name.encode()), name)
        await both.wait()
        assert consumed == [b"a", b"b"]


@pytest.mark.parametrize(
    ("test", "said"),
    [
        (call_that_registers_its_future_too_late, "confirm 1 on channel 1 of c2 is sent 1 ms late"),
        (
            count_after_an_unconfirmed_publish,
            "message 1 from channel 1 of c1 to queue orders arrives 1 ms late",
        ),
        (
            deliveries_of_two_queues_in_the_order_of_their_publishes,
            "message 1 from channel 1 of c1 to queue a arrives 1 ms late",
        ),
    ],
)
def test_a_race_with_the_broker_is_found_shrinks_to_one_decision_and_is_named(test, said):
    failure = simulation.explore(test, SEEDS, kinds=("enqueue", "confirm")).failure
    assert failure is not None
    assert [decision.text for decision in failure.needed] == [said]
    assert said in failure.text
    with pytest.raises(type(failure.error)):
        simulation.run(test(), schedule=Schedule(failure.seed, deviations=failure.deviations))


def test_all_kinds_together_find_a_late_confirm():
    failure = simulation.explore(call_that_registers_its_future_too_late, SEEDS).failure
    assert failure is not None
    assert [decision.kind for decision in failure.needed] == ["confirm"]


@pytest.mark.parametrize(
    "test", [call_that_registers_its_future_too_late, count_after_an_unconfirmed_publish]
)
def test_nothing_is_late_in_first_come_order_and_without_a_schedule(test):
    simulation.run(test())
    simulation.run(test(), seed=0)


def test_kinds_of_decisions_about_the_broker_can_be_left_out():
    others = [kind for kind in KINDS if kind not in ("enqueue", "confirm")]
    assert simulation.explore(count_after_an_unconfirmed_publish, SEEDS, kinds=others).failure is None


def test_a_broker_without_races_is_not_late_in_a_simulation():
    assert simulation.explore(lambda: count_after_an_unconfirmed_publish(races=False), SEEDS).failure is None


def test_a_seed_of_its_own_makes_a_broker_late_in_a_simulation():
    late = []

    async def test():
        async with Broker(runtime="asyncio", races=3) as broker:
            async with await aio_pika.connect(broker.url) as connection:
                channel = await connection.channel()
                await channel.declare_queue("orders", durable=True)
                for _ in range(20):
                    await channel.default_exchange.publish(aio_pika.Message(b""), "orders")
            late.append([str(each) for each in broker.late])

    simulation.run(test())
    simulation.run(test(), seed=5)
    assert late[0]
    assert late[0] == late[1]
