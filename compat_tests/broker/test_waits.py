"""Waits of both runtimes: how often and where a predicate is called, cancelled waits, stopped brokers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from compat_tests.tools.matrix import rows
from fakeamqp import Broker
from fakeamqp.inspect import WaitTimeout, inspection

SECONDS = 60


# The tests in event loops make their own.
pytestmark = pytest.mark.threads_only


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The threads in which `never` is called, which is not called at intervals."""
    monkeypatch.setattr(inspection, "_OFTEN", SECONDS)
    return []


def never(calls: list[str]) -> Callable[[], bool]:
    def note() -> bool:
        calls.append(threading.current_thread().name)
        return False

    return note


def test_a_predicate_is_called_at_once_after_turns_and_at_the_end(calls: list[str]) -> None:
    with Broker() as broker:
        broker.wait_until_idle()
        turns = broker._engine.turns
        with pytest.raises(WaitTimeout):
            broker.wait_for(never(calls), timeout=0.01)
        assert 2 <= len(calls) <= 2 + broker._engine.turns - turns


def test_the_predicate_of_a_coroutine_is_called_in_turns_of_the_broker(calls: list[str]) -> None:
    async def main() -> None:
        with Broker() as broker:
            broker.wait_until_idle()
            turns = broker._engine.turns
            with pytest.raises(WaitTimeout):
                await broker.wait_for.aio(never(calls), timeout=0.01)
            assert 2 <= len(calls) <= broker._engine.turns - turns
            assert set(calls) == {broker._engine._thread.name}  # type: ignore[union-attr, attr-defined]

    asyncio.run(main())


def test_in_an_event_loop_a_predicate_is_called_at_once_and_at_the_end(calls: list[str]) -> None:
    async def main() -> None:
        async with Broker(runtime="asyncio") as broker:
            turns = broker._engine.turns
            with pytest.raises(WaitTimeout):
                await broker.wait_for.aio(never(calls), timeout=0.01)
            assert 2 <= len(calls) <= 2 + broker._engine.turns - turns

    asyncio.run(main())
    assert set(calls) == {threading.current_thread().name}


class Ticking:
    """A clock on which a second passes whenever it is read."""

    seconds = 0.0

    @classmethod
    def now(cls) -> float:
        cls.seconds += 1
        return cls.seconds


def test_a_slow_predicate_does_not_prolong_a_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(inspection, "_OFTEN", 0.001)
    with Broker() as broker:
        monkeypatch.setattr("fakeamqp.runtime.thread.engine.RealClock", Ticking)
        with pytest.raises(WaitTimeout):
            broker.wait_for(never(calls), timeout=10)
        assert len(calls) < 20


def test_cancelled_wait_ends_at_once_and_leaves_no_waiter_or_timer() -> None:
    async def main() -> None:
        with Broker() as broker:
            threads = {*threading.enumerate()}
            asked = asyncio.Event()
            loop = asyncio.get_running_loop()

            def predicate() -> bool:
                loop.call_soon_threadsafe(asked.set)
                return False

            waiting = asyncio.ensure_future(broker.wait_for.aio(predicate, timeout=SECONDS))
            await asked.wait()
            assert {*threading.enumerate()} <= threads
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                await waiting
            assert waiting.cancelled()
            engine: Any = broker._engine
            await broker.wait_for.aio(lambda: len(engine._loop.waiters) == 1)
            assert [each.words for each in broker.clock.timers] == []

    asyncio.run(main())


Wait = Callable[[Broker], Awaitable[object]]


@pytest.mark.parametrize("runtime", ["thread", "asyncio"])
@rows(
    "wait",
    lambda broker: broker.wait_for.aio(lambda: False, timeout=SECONDS),
    lambda broker: broker.queue("q").wait_for.aio(ready=1, timeout=SECONDS),
    lambda broker: broker.faults.on("basic.publish").drop().optional().wait.aio(timeout=SECONDS),
    lambda broker: broker.admin.add_service("s", lambda _: None).wait.aio(timeout=SECONDS),
    ids=["predicate", "queue", "fault", "service"],
)
def test_wait_ended_by_a_stop_reports_less_than_its_timeout(wait: Wait, runtime: str) -> None:
    async def main() -> None:
        async with Broker(runtime=runtime) as broker:
            waiting = asyncio.ensure_future(wait(broker))  # type: ignore[arg-type]
            engine: Any = broker._engine
            while not engine._loop.waiters:
                await asyncio.sleep(0)
            await broker.stop.aio()
            with pytest.raises(WaitTimeout, match=r"less than 60 s \(the broker is stopped\)"):
                await waiting

    asyncio.run(main())
