"""The simulated loop: a clock that jumps, and asyncio as usual otherwise."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from fakeamqp import simulation
from fakeamqp.errors import FakeAMQPError
from fakeamqp.simulation.loop import START


def test_time_jumps_to_the_next_timer():
    async def main():
        loop = asyncio.get_running_loop()
        assert loop.time() == 0.0
        await asyncio.sleep(3 * 86_400)
        assert loop.time() == 3 * 86_400
        assert loop.wall_time() == START + 3 * 86_400
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 10)
        return loop.time()

    began = time.monotonic()
    assert simulation.run(main()) == 3 * 86_400 + 10
    assert time.monotonic() - began < 3_600


def test_timers_run_in_the_order_of_their_times_then_of_their_calls():
    async def main():
        loop = asyncio.get_running_loop()
        order = []
        for name in range(20):
            loop.call_later(1, order.append, name)
        loop.call_later(0.5, order.append, "early")
        loop.call_later(0.7, order.append, "cancelled").cancel()
        loop.call_at(1.0, order.append, "last")
        await asyncio.sleep(2)
        return order

    assert simulation.run(main()) == ["early", *range(20), "last"]


def test_cancelled_timers_are_dropped():
    async def main():
        loop = asyncio.get_running_loop()
        for _ in range(1000):
            loop.call_later(1e9, print).cancel()
        assert len(loop._timers) < 200
        await asyncio.sleep(1)

    simulation.run(main())


def test_a_task_that_polls_lets_time_pass():
    async def main():
        loop = asyncio.get_running_loop()
        done = asyncio.Event()
        loop.call_later(5, done.set)
        while not done.is_set():
            await asyncio.sleep(0)
        return loop.time()

    assert simulation.run(main()) == 5


def test_the_start_of_the_wall_clock(monkeypatch, request):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    request.addfinalizer(time.tzset)
    request.addfinalizer(monkeypatch.undo)
    time.tzset()

    async def main():
        await asyncio.sleep(60)
        return simulation.current().wall_time()

    from datetime import datetime, timezone

    now = datetime(2030, 5, 1, 12, tzinfo=timezone.utc)
    assert simulation.run(main(), now=now) == now.timestamp() + 60
    assert simulation.run(main(), now=now.replace(tzinfo=None)) == now.timestamp() + 60
    assert simulation.run(main(), now=1000) == 1060


def test_run_cancels_remaining_tasks_and_closes_generators():
    ends = []

    async def forever(name):
        try:
            await asyncio.Event().wait()
        finally:
            ends.append(name)

    async def generator():
        try:
            yield 1
        finally:
            ends.append("generator")

    async def main():
        tasks = [asyncio.create_task(forever(name)) for name in range(5)]
        assert len(tasks) == 5
        left_open = generator()
        await left_open.__anext__()
        await asyncio.sleep(0)
        return asyncio.get_running_loop(), left_open

    loop, _ = simulation.run(main())
    assert loop.is_closed()
    assert ends == [*range(5), "generator"]


def test_run_raises_the_exception_of_the_coroutine():
    async def main():
        await asyncio.sleep(1)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        simulation.run(main())


def test_run_inside_of_a_loop_is_refused():
    async def main():
        return simulation.run(asyncio.sleep(0))

    with pytest.raises(simulation.SimulationError, match="running event loop"):
        asyncio.run(main())
    with pytest.raises(simulation.SimulationError, match="no simulation is running"):
        simulation.current()


def test_the_limit_of_time_names_the_tasks():
    async def retries():
        while True:
            await asyncio.sleep(60)

    async def main():
        await asyncio.gather(retries(), asyncio.Event().wait())

    with pytest.raises(
        simulation.TimeLimit, match=r"after 86400 simulated(?s:.*)gather(?s:.*)retries(?s:.*)asyncio.sleep"
    ):
        simulation.run(main(), limit=86_400)


# -- threads


def test_functions_in_threads_take_no_simulated_time():
    async def main():
        loop = asyncio.get_running_loop()
        loop.call_later(0.001, print)  # Time would jump if the loop did not wait.
        name = await asyncio.to_thread(lambda: threading.current_thread().name)
        assert name != threading.current_thread().name
        with pytest.raises(ZeroDivisionError):
            await loop.run_in_executor(None, lambda: 1 / 0)
        return loop.time()

    assert simulation.run(main()) == 0


def test_a_function_in_a_thread_may_call_into_the_loop():
    async def main():
        loop = asyncio.get_running_loop()

        async def answer():
            await asyncio.sleep(0)
            return 42

        return await asyncio.to_thread(
            lambda: asyncio.run_coroutine_threadsafe(answer(), loop).result(timeout=60)
        )

    assert simulation.run(main()) == 42


def test_simulated_time_advances_while_a_thread_waits_for_a_coroutine():
    async def main():
        loop = asyncio.get_running_loop()
        loop.call_later(7200, print)

        async def answer():
            await asyncio.sleep(3600)
            return loop.time()

        return await asyncio.to_thread(
            lambda: asyncio.run_coroutine_threadsafe(answer(), loop).result(timeout=60)
        )

    assert simulation.run(main()) == 3600


def test_bytes_arrive_that_a_thread_waits_for():
    async def echo(reader, writer):
        writer.write(await reader.readline())
        writer.close()

    async def main():
        loop = asyncio.get_running_loop()
        await asyncio.start_server(echo, "localhost", 7)

        async def ask():
            reader, writer = await asyncio.open_connection("localhost", 7)
            writer.write(b"hello\n")
            answer = await reader.read()
            writer.close()
            return answer

        return await asyncio.to_thread(
            lambda: asyncio.run_coroutine_threadsafe(ask(), loop).result(timeout=60)
        )

    # The bytes are under way for some iterations, or for some time.
    for seed in range(20):
        assert simulation.run(main(), seed=seed) == b"hello\n"


def test_simulated_time_does_not_advance_for_a_thread_after_call_soon_threadsafe():
    async def main():
        loop = asyncio.get_running_loop()
        told = asyncio.Event()
        go_on = threading.Event()

        def work():
            loop.call_soon_threadsafe(told.set)
            # Longer than the loop waits when the thread has given it a coroutine.
            assert not go_on.wait(0.1)
            return loop.time()

        loop.call_later(1, go_on.set)
        return await asyncio.to_thread(work), told.is_set()

    assert simulation.run(main()) == (0, True)


def test_threadsafe_calls_of_the_loops_own_thread():
    async def main():
        future = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon_threadsafe(future.set_result, 1)
        return await future

    assert simulation.run(main()) == 1


# -- what is outside of the loop


@pytest.mark.each_case
@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda loop: asyncio.create_subprocess_exec("true"), "subprocesses"),
        (lambda loop: asyncio.create_subprocess_shell("true"), "subprocesses"),
        (lambda loop: loop.create_datagram_endpoint(asyncio.DatagramProtocol), "sockets"),
        (lambda loop: loop.create_unix_connection(asyncio.Protocol, "path"), "sockets"),
        (lambda loop: loop.sock_recv(None, 1), "sockets"),
        (lambda loop: loop.connect_read_pipe(asyncio.Protocol, None), "pipes"),
    ],
)
def test_subprocesses_sockets_and_pipes_are_refused_in_a_simulation(call, what):
    async def main():
        await call(asyncio.get_running_loop())

    with pytest.raises(simulation.NotSimulated, match=f"no {what}") as refused:
        simulation.run(main())
    assert isinstance(refused.value, FakeAMQPError)
    assert isinstance(refused.value, NotImplementedError)


def test_signals_and_readers_are_refused_at_once():
    async def main():
        loop = asyncio.get_running_loop()
        with pytest.raises(NotImplementedError, match="no signals"):
            loop.add_signal_handler(15, print)
        with pytest.raises(NotImplementedError, match="no sockets"):
            loop.add_reader(0, print)

    simulation.run(main())


@pytest.mark.skipif(not hasattr(asyncio, "Runner"), reason="asyncio.Runner needs Python 3.11")
def test_asyncios_own_runner_can_use_the_loop():
    with asyncio.Runner(loop_factory=simulation.SimulatedLoop) as runner:
        assert runner.run(asyncio.sleep(86_400, "slept")) == "slept"
        assert runner.get_loop().time() == 86_400


def test_sources_of_chance_come_from_the_seed():
    async def main():
        loop = simulation.current()
        return [loop.random("faults").random(), loop.random("other").random()]

    drawn = [simulation.run(main(), seed=seed) for seed in (1, 1, 2, 0, None)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[3] == drawn[4]
    assert len({number for numbers in drawn for number in numbers}) == 6


def test_names_of_tasks_begin_at_one_in_each_loop():
    async def main():
        return [task.get_name() for task in (asyncio.create_task(asyncio.sleep(0)) for _ in range(2))]

    assert simulation.run(main()) == simulation.run(main()) == ["Task-2", "Task-3"]


def test_task_factories_and_debug_mode():
    made = []

    def factory(loop, coro, **settings):
        made.append(coro)
        return asyncio.Task(coro, loop=loop, **settings)

    async def main():
        asyncio.get_running_loop().set_task_factory(factory)
        await asyncio.create_task(asyncio.sleep(1))
        return asyncio.get_running_loop().get_debug()

    assert simulation.run(main(), debug=True, seed=3) is True
    assert made[0].__qualname__ == "sleep"
