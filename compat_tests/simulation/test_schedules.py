"""Seeded schedules: what may deviate, what may not, and how they are repeated."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from compat_tests.simulation.schedule_program import program
from fakeamqp import Broker, simulation
from fakeamqp.model.races import RaceKind
from fakeamqp.simulation.schedule import CUTS, DELAYS, KINDS, LATENCIES, Schedule

SEEDS = 40


def runs(main, seeds=SEEDS, **settings):
    """The results of a coroutine function under several seeds."""
    return [simulation.run(main(), schedule=Schedule(seed, **settings)) for seed in range(seeds)]


# -- the same in every process


def test_a_seed_gives_the_same_run_in_every_process():
    root = Path(__file__).parents[2]
    outputs = []
    for hash_seed in ("0", "1", "4711"):
        done = subprocess.run(
            [sys.executable, str(Path(__file__).with_name("schedule_program.py")), "6"],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        outputs.append(done.stdout)
    assert outputs[0].count("\n") > 300
    assert outputs[0] == outputs[1] == outputs[2]


def test_the_random_values_of_the_code_come_from_the_seed():
    def values():
        async def main():
            return os.urandom(8), random.random()

        return main()

    assert simulation.run(values(), seed=3) == simulation.run(values(), seed=3)
    assert simulation.run(values(), seed=3) != simulation.run(values(), seed=4)
    real_urandom, state = os.urandom, random.getstate()
    simulation.run(values(), seed=3)
    assert os.urandom is real_urandom
    assert random.getstate() == state


def test_hashes_of_tasks_and_futures_do_not_depend_on_addresses():
    async def main():
        loop = asyncio.get_running_loop()
        tasks = [asyncio.create_task(asyncio.sleep(0)) for _ in range(3)]
        assert [hash(task) for task in tasks] == [2, 3, 4]
        return hash(loop.create_future())

    assert simulation.run(main(), seed=1) == simulation.run(main(), seed=1)


def test_aio_pika_restores_channels_in_the_order_of_their_creation():
    aio_pika = pytest.importorskip("aio_pika")

    async def restored():
        async with Broker(runtime="asyncio") as broker:
            connection = await aio_pika.connect_robust(broker.url, reconnect_interval=1)
            channels = [await connection.channel() for _ in range(12)]
            for number, channel in enumerate(channels):
                await channel.declare_queue(f"q{number}", auto_delete=True)
            before = len(broker.trace.events)
            broker.faults.network.reset()
            await asyncio.sleep(10)
            events = list(broker.trace.events)[before:]
            await connection.close()
        return [event.method.queue for event in events if event.name == "queue.declare"]

    for seed in range(4):
        assert simulation.run(restored(), seed=seed) == [f"q{number}" for number in range(12)]


def test_no_garbage_is_collected_during_a_seeded_run():
    async def main():
        return gc.isenabled()

    assert not simulation.run(main(), seed=1)
    assert simulation.run(main())
    assert gc.isenabled()


def test_a_run_is_repeated_from_its_deviations():
    for seed in range(10):
        schedule = Schedule(seed)
        happened = simulation.run(program(), schedule=schedule)
        again = Schedule(seed, deviations=schedule.deviations)
        assert simulation.run(program(), schedule=again) == happened
        assert again.deviations == schedule.deviations


def test_seed_0_makes_first_come_choices():
    schedule = Schedule(0)
    happened = simulation.run(program(), schedule=schedule)
    assert schedule.decisions
    assert schedule.deviations == {}
    assert simulation.run(program())[4:] == happened[4:]


def test_kinds_of_decisions_can_be_left_out():
    for left in set(KINDS) - set(get_args(RaceKind)):  # Those of brokers; see test_races.py.
        kinds = set()
        for seed in range(20):
            schedule = Schedule(seed, kinds=[left])
            simulation.run(program(), schedule=schedule)
            kinds |= {key[0] for key in schedule.deviations}
        assert kinds == {left}, left
    with pytest.raises(ValueError, match="unknown kinds of decisions"):
        Schedule(1, kinds=["delays"])


def test_decisions_in_words():
    texts = set()
    for seed in range(30):
        schedule = Schedule(seed)
        simulation.run(program(), schedule=schedule)
        texts |= {(decision.kind, decision.text) for decision in schedule.decisions if decision.chosen}
    way = "127.0.0.1:40001 -> 127.0.0.1:5672"
    assert ("delay", f"bytes {way} are under way for 2 more iterations") in texts
    assert ("delay", f"bytes {way} are under way for 10 ms") in texts
    assert ("latency", f"everything {way} takes 100 ms") in texts
    assert any(kind == "cut" and text.endswith(" are received half first") for kind, text in texts)
    assert any(kind == "pause" and "the process is held up; the timer" in text for kind, text in texts)
    assert any(kind == "task" and " goes on before program.<locals>.client " in text for kind, text in texts)


# -- what may come in any order


def test_connections_overtake_each_other_in_every_order():
    async def main():
        order = []

        async def serve(reader, writer):
            order.append(await reader.readline())
            writer.close()

        await asyncio.start_server(serve, "localhost", 1)
        writers = [(await asyncio.open_connection("localhost", 1))[1] for _ in range(3)]
        for number, writer in enumerate(writers):
            writer.write(b"%d\n" % number)
        await asyncio.sleep(10)
        for writer in writers:
            writer.close()
        return b"".join(order).decode().split()

    orders = {tuple(order) for order in runs(main, kinds=["delay", "latency"])}
    assert len(orders) == 6
    assert {tuple(order) for order in runs(main, kinds=["pause"])} == {("0", "1", "2")}


def test_bytes_of_one_direction_keep_their_order():
    sent = b"".join(b"%d," % number for number in range(100))

    async def main():
        received = []

        async def serve(reader, writer):
            while data := await reader.read(1000):
                received.append(data)
            writer.close()

        await asyncio.start_server(serve, "localhost", 1)
        _, writer = await asyncio.open_connection("localhost", 1)
        for number in range(100):
            writer.write(b"%d," % number)
            if number % 7 == 0:
                await asyncio.sleep(0.01)
        writer.close()
        await asyncio.sleep(10)
        return received

    results = runs(main)
    assert {b"".join(received) for received in results} == {sent}
    assert len({tuple(received) for received in results}) > 10


def test_a_direction_of_a_connection_may_be_slow():
    async def main():
        arrivals = []

        async def serve(reader, writer):
            while await reader.readline():
                arrivals.append(asyncio.get_running_loop().time())
            writer.close()

        await asyncio.start_server(serve, "localhost", 1)
        _, writer = await asyncio.open_connection("localhost", 1)
        for second in range(1, 4):
            await asyncio.sleep(second - asyncio.get_running_loop().time())
            writer.write(b"line\n")
        writer.close()
        await asyncio.sleep(1)
        return [round(time % 1, 6) for time in arrivals]

    assert {tuple(times) for times in runs(main, 60, kinds=["latency"])} == {
        (latency, latency, latency) for latency in LATENCIES
    }


def test_bytes_may_be_received_in_parts():
    async def main():
        parts = []

        async def serve(reader, writer):
            while data := await reader.read(100):
                parts.append(data)
            writer.close()

        await asyncio.start_server(serve, "localhost", 1)
        _, writer = await asyncio.open_connection("localhost", 1)
        writer.write(b"0123456789")
        writer.close()
        await asyncio.sleep(1)
        return tuple(parts)

    cut = ("cut", "127.0.0.1:40001 -> 127.0.0.1:1", 1)
    assert [
        simulation.run(main(), schedule=Schedule(0, deviations={cut: chosen})) for chosen in range(len(CUTS))
    ] == [(b"0123456789",), (b"01234", b"56789"), (b"0", b"123456789"), (b"012345678", b"9")]


def test_ready_tasks_interleave_in_any_order_but_keep_their_own_step_order():
    async def main():
        steps = []

        async def task(name):
            for number in range(3):
                steps.append((name, number))
                await asyncio.sleep(0)

        await asyncio.gather(*map(task, "abc"))
        return steps

    results = runs(main)
    assert len({tuple(steps) for steps in results}) > 5
    for steps in results:
        for name in "abc":
            assert [number for of, number in steps if of == name] == [0, 1, 2]
    first_come = [(name, number) for number in range(3) for name in "abc"]
    assert all(steps == first_come for steps in runs(main, kinds=[k for k in KINDS if k != "task"]))


def test_callbacks_run_in_the_order_of_their_calls():
    async def main():
        loop = asyncio.get_running_loop()
        order = []

        async def task(name):
            order.append(name)

        future = loop.create_future()
        future.add_done_callback(lambda _: order.append("callback of a future"))
        for number in range(3):
            loop.call_soon(order.append, number)
        before = asyncio.create_task(task("before"))
        loop.call_soon(order.append, "between")
        after = asyncio.create_task(task("after"))
        future.set_result(None)
        loop.call_soon(order.append, "last")
        await asyncio.wait([before, after])
        return order

    expected = [0, 1, 2, "before", "between", "after", "callback of a future", "last"]
    assert all(order == expected for order in runs(main))


def test_timers_keep_their_order():
    async def main():
        order = []

        async def sleeper(seconds, name):
            await asyncio.sleep(seconds)
            order.append(name)

        await asyncio.gather(*(sleeper(0.01 * number, number) for number in range(10)))
        return order

    assert all(order == list(range(10)) for order in runs(main, kinds=["pause", "delay"]))


def test_a_timeout_can_strike_when_the_answer_has_just_come():
    async def main():
        outcomes = []

        async def serve(reader, writer):
            await reader.readline()
            await asyncio.sleep(0.05)
            writer.write(b"answer\n")
            writer.close()

        await asyncio.start_server(serve, "localhost", 1)
        reader, writer = await asyncio.open_connection("localhost", 1)
        answered = asyncio.get_running_loop().create_future()

        async def read():
            answered.set_result(await reader.readline())

        reading = asyncio.create_task(read())
        writer.write(b"question\n")
        try:
            await asyncio.wait_for(asyncio.shield(answered), 0.051)
        except asyncio.TimeoutError:
            outcomes.append("late, but there" if answered.done() else "late")
        else:
            outcomes.append("in time")
        await reading
        writer.close()
        return outcomes[0]

    assert set(runs(main, 200)) == {"in time", "late", "late, but there"}


def test_tables_of_choices_begin_with_the_first_come_choice():
    assert DELAYS[0] == (0, 0.0)
    assert LATENCIES[0] == 0.0
    assert len(set(DELAYS)) == len(DELAYS)
