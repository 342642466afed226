"""Simulations draw the delays of confirms, acks and messages on their way to queues."""

from __future__ import annotations

import asyncio
import re
from typing import get_args

import pytest

from fakeamqp import Broker, simulation
from fakeamqp.model.races import RaceKind
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


async def two_queues_in_turn():
    async with (
        Broker(runtime="asyncio") as broker,
        await aio_pika.connect(broker.url) as connection,
    ):
        channel = await connection.channel()
        await channel.set_qos(prefetch_count=1)
        consumed: asyncio.Queue[aio_pika.IncomingMessage] = asyncio.Queue()
        for name in ("a", "b"):
            queue = await channel.declare_queue(name, durable=True)
            for nth in (1, 2):
                broker.publish(f"{name}{nth}", routing_key=name)
            await queue.consume(consumed.put)
        for message in [await consumed.get(), await consumed.get()]:
            await message.ack()
        assert [(await consumed.get()).body for _ in range(2)] == [b"a2", b"b2"]


async def count_of_dead_letters_after_a_reject():
    async with Broker(runtime="asyncio") as broker, await aio_pika.connect(broker.url) as connection:
        channel = await connection.channel()
        dead = await channel.declare_queue("dead", durable=True)
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        jobs = await channel.declare_queue("jobs", durable=True, arguments=arguments)
        broker.publish(b"job", routing_key="jobs")
        await (await jobs.get()).reject()
        await asyncio.sleep(0.0001)
        assert (await dead.declare()).message_count == 1


async def passive_count_after_a_nack_decides():
    """A worker that returns a job stops once the queue seems to be empty."""
    async with Broker(runtime="asyncio") as broker, await aio_pika.connect(broker.url) as connection:
        channel = await connection.channel()
        jobs = await channel.declare_queue("jobs", durable=True)
        broker.publish(b"job", routing_key="jobs")
        await (await jobs.get()).nack()
        left = await channel.declare_queue("jobs", durable=True, passive=True)
        while left.declaration_result.message_count:
            await (await jobs.get()).ack()
            left = await channel.declare_queue("jobs", durable=True, passive=True)
        assert broker.queue("jobs").ready == 0


async def next_worker_takes_over_when_a_channel_has_closed():
    async with (
        Broker(runtime="asyncio") as broker,
        await aio_pika.connect(broker.url) as one,
        await aio_pika.connect(broker.url) as other,
    ):
        first, second = await one.channel(), await other.channel()
        jobs = await first.declare_queue("jobs", durable=True, arguments={"x-queue-type": "quorum"})
        broker.publish(b"job", routing_key="jobs")
        await jobs.get()
        await first.close()
        again = await (await second.get_queue("jobs")).get(fail=False)
        assert again is not None


async def name_of_an_exclusive_queue_is_free_when_its_connection_has_closed():
    async with Broker(runtime="asyncio") as broker, await aio_pika.connect(broker.url) as other:
        one = await aio_pika.connect(broker.url)
        await (await one.channel()).declare_queue("leader", exclusive=True)
        await one.close()
        await (await other.channel()).declare_queue("leader", exclusive=True)


async def get_on_another_connection_after_an_unconfirmed_publish():
    async with (
        Broker(runtime="asyncio") as broker,
        await aio_pika.connect(broker.url) as one,
        await aio_pika.connect(broker.url) as other,
    ):
        publisher = await one.channel(publisher_confirms=False)
        queue = await (await other.channel()).declare_queue("orders", durable=True)
        await publisher.default_exchange.publish(aio_pika.Message(b"order"), "orders")
        await asyncio.sleep(0.0001)
        assert await queue.get(fail=False) is not None


async def ignore(_message):
    pass


async def queue_is_known_to_be_deleted_before_the_next_step():
    async with Broker(runtime="asyncio") as broker, await aio_pika.connect(broker.url) as connection:
        one, other = await connection.channel(), await connection.channel()
        queue = await one.declare_queue("jobs", durable=True)
        await queue.consume(ignore, consumer_tag="worker")
        await other.queue_delete("jobs")
        text = broker.trace.timeline()
        assert text.index("basic.cancel consumer_tag='worker'") < text.index("queue.delete-ok")


@pytest.mark.parametrize(
    ("test", "said"),
    [
        (count_of_dead_letters_after_a_reject, "dead letter 1 from queue jobs arrives 1 ms late"),
        (
            passive_count_after_a_nack_decides,
            "requeue 1 from channel 1 of c1 to queue jobs arrives 1 ms late",
        ),
        (
            next_worker_takes_over_when_a_channel_has_closed,
            "release 1 from channel 1 of c1 to queue jobs arrives 1 ms late",
        ),
        (
            name_of_an_exclusive_queue_is_free_when_its_connection_has_closed,
            "release 1 from c2 to queue leader arrives 1 ms late",
        ),
        (
            get_on_another_connection_after_an_unconfirmed_publish,
            "message 1 from channel 1 of c1 to queue orders arrives 1 ms late",
        ),
        (
            queue_is_known_to_be_deleted_before_the_next_step,
            "cancel 1 on channel 1 of c1 is sent 1 ms late",
        ),
        (two_queues_in_turn, "ack 1 from channel 1 of c1 to queue a arrives 1 ms late"),
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
def test_race_with_the_broker_is_shrunk_to_a_single_named_decision(test, said):
    failure = simulation.explore(test, SEEDS, kinds=get_args(RaceKind)).failure
    assert failure is not None
    assert [decision.text for decision in failure.needed] == [said]
    assert said in failure.text
    with pytest.raises(type(failure.error)):
        simulation.run(test(), schedule=Schedule(failure.seed, deviations=failure.deviations))


def test_a_simulation_with_all_kinds_finds_a_late_confirm():
    failure = simulation.explore(call_that_registers_its_future_too_late, SEEDS).failure
    assert failure is not None
    assert [decision.kind for decision in failure.needed] == ["confirm"]


@pytest.mark.parametrize(
    "test", [call_that_registers_its_future_too_late, count_after_an_unconfirmed_publish]
)
def test_a_simulation_in_first_come_order_or_without_a_schedule_has_no_late_outcome(test):
    simulation.run(test())
    simulation.run(test(), seed=0)


def test_kinds_of_decisions_about_the_broker_can_be_left_out():
    others = [kind for kind in KINDS if kind not in get_args(RaceKind)]
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
            late.append([str(each) for each in broker.admin.late])

    simulation.run(test())
    simulation.run(test(), seed=5)
    assert late[0]
    assert late[0] == late[1]


# -- names in the report


async def two_publishers(names=("place", "pay"), client_name="billing"):
    """Two tasks publish on connections of their own, in no certain order."""
    published: list[str] = []
    async with Broker(runtime="asyncio") as broker:
        start = asyncio.Event()

        async def publish(name):
            properties = {"connection_name": f"{client_name} {name}"} if client_name else {}
            async with await aio_pika.connect(broker.url, client_properties=properties) as connection:
                channel = await connection.channel()
                await channel.declare_queue("orders", durable=True)
                await start.wait()
                await channel.default_exchange.publish(aio_pika.Message(b""), "orders")
                published.append(name)

        tasks = []
        for number, name in enumerate(("first", "second")):
            tasks.append(asyncio.create_task(publish(name), name=names and names[number]))
            await asyncio.sleep(1)
        start.set()
        await asyncio.gather(*tasks)
        assert published == ["first", "second"]


PUBLISHING = "two_publishers.<locals>.publish"


@pytest.mark.parametrize(
    ("names", "first", "second"),
    [(("place", "pay"), "place", "pay"), (None, f"{PUBLISHING} 1", f"{PUBLISHING} 2")],
)
def test_the_report_names_the_tasks_of_the_app_that_interleave(names, first, second):
    failure = simulation.explore(lambda: two_publishers(names), SEEDS, kinds=("delay",)).failure
    assert failure is not None
    assert failure.text.splitlines()[-1] == (
        f"The task {second} goes on before the task {first}; in the passing schedule, {first} does."
    )


@pytest.mark.parametrize(
    ("client_name", "client"), [("billing", r"c\d \(billing (first|second)\)"), (None, r"c\d")]
)
def test_the_report_names_connections(client_name, client):
    for kind in ("delay", "latency"):
        failure = simulation.explore(
            lambda: two_publishers(client_name=client_name), SEEDS, kinds=(kind,)
        ).failure
        assert failure is not None
        for decision in failure.needed:
            assert re.search(
                rf" ({client} -> broker|broker -> {client}) (are under way|takes) ", decision.text
            )
            assert "127.0.0.1" not in str(decision)
            assert "127.0.0.1" in decision.what


def test_a_decision_about_tasks_has_the_names_that_the_app_gave_them():
    async def test():
        steps: list[str] = []

        async def step(name):
            steps.append(name)

        for name in ("place", "pay"):
            asyncio.create_task(step(name), name=name).add_done_callback(lambda _: None)
        await asyncio.sleep(0)
        assert steps == ["place", "pay"]

    [decision] = simulation.explore(test, SEEDS, kinds=("task",)).failure.needed
    function = "test_a_decision_about_tasks_has_the_names_that_the_app_gave_them.<locals>.test.<locals>.step"
    assert decision.text == f"pay ({function} 2) goes on before place ({function} 1)"


def test_connections_of_several_brokers_have_different_names():
    texts = set()

    async def test():
        async with Broker(runtime="asyncio") as one, Broker(runtime="asyncio") as other:
            for broker in (one, other):
                async with await aio_pika.connect(broker.url):
                    pass

    schedule = Schedule(3)
    simulation.run(test(), schedule=schedule)
    texts = {decision.named for decision in schedule.decisions}
    assert {"c1 -> broker", "broker -> c1", "c1 -> broker 2", "broker 2 -> c1"} <= texts


def test_the_report_names_no_tasks_where_their_order_does_not_matter():
    failure = simulation.explore(count_after_an_unconfirmed_publish, SEEDS, kinds=("enqueue",)).failure
    assert failure is not None
    assert failure.tasks == ""


def test_a_late_confirm_names_the_tasks_of_client_and_server():
    failure = simulation.explore(call_that_registers_its_future_too_late, SEEDS, kinds=("confirm",)).failure
    assert failure is not None
    assert re.fullmatch(r"The task .*(serve|answered) 1 goes on before the task .*; in the .*", failure.tasks)
