"""A simulation in which nothing can happen any more fails at once, and says who waits for what."""

from __future__ import annotations

import asyncio
import re
import threading
from contextlib import suppress

import pytest

from fakeamqp import simulation


def deadlock(main) -> str:
    with pytest.raises(simulation.Deadlock) as raised:
        simulation.run(main())
    return str(raised.value)


def test_deadlock_error_names_each_task_its_line_and_its_awaited_object():
    async def consume(queue):
        return await queue.get()

    async def wait_for(task):
        await task

    async def third(future):
        await future

    async def main():
        await asyncio.sleep(12.5)
        consumer = asyncio.create_task(consume(asyncio.Queue()), name="consumer")
        waits = asyncio.create_task(wait_for(consumer), name="waits")
        loses = asyncio.create_task(third(asyncio.get_running_loop().create_future()), name="third")
        await asyncio.gather(waits, loses)

    text = deadlock(main)
    assert "deadlock after 12.5 simulated seconds" in text
    heads = re.findall(r"^  (\S.*)$", text, re.MULTILINE)
    prefix = "test_deadlock_error_names_each_task_its_line_and_its_awaited_object.<locals>."
    assert heads == [
        f"Task-1 ({prefix}main) waits for asyncio.gather() of waits, third",
        f"consumer ({prefix}consume) waits for Queue.get()",
        f"waits ({prefix}wait_for) waits for the task consumer",
        f"third ({prefix}third) waits for a future that nothing has set",
    ]
    assert re.search(r"test_deadlock.py:\d+ in consume: return await queue.get\(\)", text)
    assert "threads" not in text


def test_a_deadlock_over_the_network():
    async def silent(reader, writer):
        await asyncio.Event().wait()

    async def main():
        await asyncio.start_server(silent, "localhost", 5672)
        reader, _ = await asyncio.open_connection("localhost", 5672)
        await read(reader)

    async def read(reader):
        await reader.read(1)

    text = deadlock(main)
    assert "waits for StreamReader." in text
    assert "in read: await reader.read(1)" in text
    assert "Event.wait()" in text


def test_locks_that_wait_for_each_other():
    async def take(first, second):
        async with first:
            await asyncio.sleep(1)
            async with second:
                pass

    async def main():
        one, other = asyncio.Lock(), asyncio.Lock()
        await asyncio.gather(take(one, other), take(other, one))

    assert deadlock(main).count("waits for Lock.acquire()") == 2


def test_threads_of_which_the_loop_does_not_know_are_named():
    end = threading.Event()

    async def main():
        await asyncio.to_thread(int)
        future = asyncio.get_running_loop().create_future()
        threading.Thread(target=end.wait, name="worker of the app").start()
        await future

    try:
        text = deadlock(main)
    finally:
        end.set()
    last = text.splitlines()[-1]
    assert last.startswith("Other threads run (worker of the app). ")
    assert "asyncio.to_thread or loop.run_in_executor" in last


def test_cleanup_runs_after_a_deadlock():
    ends = []

    async def main():
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(1)
            ends.append("end")

    deadlock(main)
    assert ends == ["end"]


def test_a_timer_is_no_deadlock():
    async def main():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 1e5)

    simulation.run(main())


async def goes_on():
    """Ignores its cancellation."""
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(5)


def test_a_task_that_ignores_its_cancellation_is_named():
    async def main():
        started = asyncio.create_task(goes_on(), name="stubborn")
        await asyncio.sleep(1)
        return started

    with pytest.raises(simulation.SimulationError, match=r"so asyncio\.run would not end") as raised:
        simulation.run(main(), quiet_end=True)
    assert not isinstance(raised.value, simulation.TimeLimit)
    assert "stubborn (goes_on) waits for asyncio.sleep()" in str(raised.value)


def test_the_error_of_the_coroutine_is_raised_though_a_task_does_not_end():
    async def main():
        started = asyncio.create_task(goes_on())
        await asyncio.sleep(1)
        raise ZeroDivisionError(started.get_name())

    with pytest.raises(ZeroDivisionError):
        simulation.run(main(), quiet_end=True)


def test_tasks_may_take_time_to_end():
    ends = []

    async def slow():
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(3000)
            ends.append(asyncio.get_running_loop().time())

    async def main():
        started = asyncio.create_task(slow())
        await asyncio.sleep(10)
        return started

    simulation.run(main(), limit=11)
    assert ends == [3010]


def test_tasks_started_during_cancellation_are_cancelled():
    ends = []

    async def last():
        try:
            await asyncio.Event().wait()
        finally:
            ends.append("last")

    async def first():
        try:
            await asyncio.Event().wait()
        finally:
            ends.append(asyncio.ensure_future(last()))
            await asyncio.sleep(0)

    async def main():
        started = asyncio.create_task(first())
        await asyncio.sleep(1)
        return started

    simulation.run(main())
    assert ends[1:] == ["last"]
