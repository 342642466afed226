"""Brokers on real time do not care what a test does to its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import aio_pika
import pytest
import time_machine
from freezegun import freeze_time

from compat_tests.time.conftest import SECONDS, Connect, retry_queues
from fakeamqp import Broker


@pytest.fixture(params=["real", "virtual"])
def immune(request: pytest.FixtureRequest) -> Any:
    """A broker that does not follow the wall clock."""
    with Broker(clock=request.param) as broker:
        yield broker


def check(broker: Broker, channel: Any, move: Callable[[], object]) -> None:
    """Messages neither expire nor does the broker's clock jump when the test moves its own time."""
    retry_queues(channel, ("minute", 60), back_to="dead")
    channel.queue_declare("dead")
    channel.basic_publish("", "minute", b"x")
    broker.wait_until_idle()
    before = broker.clock.time()
    move()
    broker.wait_until_idle()
    assert (broker.queue("minute").ready, broker.queue("dead").ready) == (1, 0)
    assert broker.clock.time() - before < 60


@pytest.mark.threads_only
def test_freezegun_is_not_followed(immune: Broker, connect: Connect) -> None:
    with freeze_time("2024-01-01") as freezer:
        check(immune, connect(immune, heartbeat=0).channel(), lambda: freezer.tick(3600))
        assert immune.clock.now().year > 2024


@pytest.mark.threads_only
@freeze_time("2024-01-01")
def test_freezegun_as_a_decorator_is_not_followed(immune: Broker, connect: Connect) -> None:
    later = freeze_time("2024-01-02")
    try:
        check(immune, connect(immune, heartbeat=0).channel(), later.start)
    finally:
        later.stop()


@time_machine.travel(datetime(2024, 1, 1, tzinfo=timezone.utc), tick=False)
def test_time_machine_is_not_followed(immune: Broker, connect: Connect) -> None:
    later = time_machine.travel(datetime(2024, 1, 2, tzinfo=timezone.utc))
    try:
        check(immune, connect(immune, heartbeat=0).channel(), later.start)
    finally:
        later.stop()


@pytest.mark.asyncio
@freeze_time("2024-01-01", real_asyncio=True)
async def test_asyncio(connect: Connect) -> None:
    with Broker() as broker:
        async with await aio_pika.connect(broker.url) as connection:
            channel = await connection.channel()
            queue = await channel.declare_queue("q", arguments={"x-message-ttl": 60_000})
            await channel.default_exchange.publish(aio_pika.Message(b"x"), routing_key="q")
            with freeze_time("2024-01-02", real_asyncio=True):
                message = await queue.get(timeout=SECONDS)
            await message.ack()
            await asyncio.sleep(0)


@pytest.mark.threads_only
@pytest.mark.parametrize("freeze", [freeze_time("2024-01-01"), time_machine.travel(0, tick=False)])
def test_real_time_passes_in_a_frozen_world(freeze: Any, connect: Connect) -> None:
    with freeze, Broker() as broker:
        channel = connect(broker, heartbeat=0).channel()
        retry_queues(channel, ("instant", 0.02), back_to="dead")
        channel.queue_declare("dead")
        channel.basic_publish("", "instant", b"x")
        broker.queue("dead").wait_for(ready=1, timeout=SECONDS)


@pytest.mark.threads_only
def test_the_brokers_thread_sees_real_time_at_any_depth() -> None:
    """What freezegun answers depends on how deep in the stack the question is asked."""

    def deep(depth: int, ask: Callable[[], object]) -> object:
        return ask() if depth == 0 else deep(depth - 1, ask)

    seen: list[tuple[str, float]] = []
    done = threading.Event()
    with Broker() as broker, freeze_time("2024-01-01"):

        def look(state: Any) -> None:
            for depth in range(12):

                def ask() -> None:
                    seen.append((threading.current_thread().name, state.clock.time()))

                due = state.clock.now()
                state.timers.call_at(due, lambda depth=depth, ask=ask: deep(depth, ask))
            state.timers.call_at(state.clock.now(), done.set)

        broker._reader.read(look)
        assert done.wait(SECONDS)
    assert {name for name, _time in seen} == {"fakeamqp"}
    now = datetime.now(timezone.utc)
    for _name, moment in seen:
        assert abs(datetime.fromtimestamp(moment, timezone.utc) - now) < timedelta(minutes=1)
    assert len(seen) == 12
