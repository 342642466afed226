"""Brokers on the wall clock's time, and the wall clock in the hand of time-machine."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import aio_pika
import pytest
import time_machine

from compat_tests.time.conftest import Connect, retry_queues
from fakeamqp import Broker

SECONDS = 20
"""How long a test that waits in vain waits."""

NEW_YEAR = datetime(2024, 1, 1, tzinfo=timezone.utc)
METHODS = [
    (time_machine.travel, "start"),
    (time_machine.travel, "stop"),
    (type(time_machine.travel(0).start()), "shift"),
    (type(time_machine.travel(0).start()), "move_to"),
]
time_machine.travel(0).stop()
time_machine.travel(0).stop()


@pytest.fixture
def minute(wall_broker: Broker, connect: Connect) -> Any:
    """A channel to a broker that has a queue `minute`, from which messages go to queue `dead`."""
    channel = connect(wall_broker, heartbeat=0).channel()
    retry_queues(channel, ("minute", 60), back_to="dead")
    channel.queue_declare("dead")
    return channel


@pytest.fixture
def counts(wall_broker: Broker) -> Callable[[], tuple[int, int]]:
    """How many messages are in `minute` and in `dead`."""
    return lambda: (wall_broker.queue("minute").ready, wall_broker.queue("dead").ready)


@pytest.mark.parametrize("tick", [False, True], ids=["still", "tick"])
@pytest.mark.parametrize("turn", range(10))
def test_shift_dead_letters_messages_published_just_before_it(minute: Any, tick: bool, turn: int) -> None:
    with time_machine.travel(NEW_YEAR, tick=tick) as traveller:
        for number in range(20):
            minute.basic_publish("", "minute", b"%d" % number)
        traveller.shift(61)
        for number in range(20):
            _method, properties, body = minute.basic_get("dead", auto_ack=True)
            assert body == b"%d" % number
            death = properties.headers["x-death"][0]["time"]
            assert death.replace(tzinfo=timezone.utc) == NEW_YEAR + timedelta(minutes=1)


def test_shift_expires_a_message_exactly_at_its_ttl(
    minute: Any, counts: Callable[[], tuple[int, int]]
) -> None:
    with time_machine.travel(NEW_YEAR, tick=False) as traveller:
        minute.basic_publish("", "minute", b"x")
        traveller.shift(59.999)
        assert counts() == (1, 0)
        traveller.shift(timedelta(milliseconds=1))
        assert counts() == (0, 1)


@pytest.mark.parametrize("tick", [False, True], ids=["still", "tick"])
def test_move_to(minute: Any, counts: Callable[[], tuple[int, int]], tick: bool) -> None:
    with time_machine.travel(NEW_YEAR, tick=tick) as traveller:
        minute.basic_publish("", "minute", b"x")
        traveller.move_to(NEW_YEAR + timedelta(days=1))
        assert counts() == (0, 1)


@time_machine.travel(NEW_YEAR, tick=False)
def test_as_a_decorator(minute: Any, counts: Callable[[], tuple[int, int]]) -> None:
    minute.confirm_delivery()
    minute.basic_publish("", "minute", b"x")
    assert counts() == (1, 0)
    with time_machine.travel(NEW_YEAR + timedelta(seconds=61), tick=False):
        assert counts() == (0, 1)


@pytest.mark.time_machine(NEW_YEAR, tick=False)
def test_as_a_fixture(time_machine: Any, minute: Any, counts: Callable[[], tuple[int, int]]) -> None:
    minute.basic_publish("", "minute", b"x")
    time_machine.shift(60)
    assert counts() == (0, 1)


@pytest.mark.asyncio
@time_machine.travel(NEW_YEAR, tick=False)
async def test_asyncio(wall_broker: Broker) -> None:
    async with await aio_pika.connect(wall_broker.url) as connection:
        channel = await connection.channel()
        dead = await channel.declare_queue("dead")
        arguments = {
            "x-message-ttl": 60_000,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": "dead",
        }
        await channel.declare_queue("minute", arguments=arguments)
        await channel.default_exchange.publish(aio_pika.Message(b"x"), routing_key="minute")
        with time_machine.travel(NEW_YEAR + timedelta(seconds=61), tick=False):
            message = await dead.get(timeout=SECONDS)
            assert message.body == b"x"
            await message.ack()


def test_broker_clock_shows_the_time_of_the_traveller(wall_broker: Broker) -> None:
    clock = wall_broker.clock
    with time_machine.travel(NEW_YEAR, tick=False) as traveller:
        assert clock.now() == NEW_YEAR
        assert clock.rate == 0
        traveller.shift(0.5)
        assert clock.now() == datetime.now(timezone.utc)
        traveller.move_to(datetime(1999, 12, 31, tzinfo=timezone.utc))
        assert clock.now() == datetime(1999, 12, 31, tzinfo=timezone.utc)
    assert clock.rate == 1
    assert abs(clock.now() - datetime.now(timezone.utc)) < timedelta(seconds=SECONDS)


def test_broker_clock_does_not_start_a_ticking_journey(minute: Any, wall_broker: Broker) -> None:
    """A journey that ticks begins with the first question; the test shall be the one who asks it."""
    minute.queue_declare("q", arguments={"x-expires": 3_600_000})
    with time_machine.travel(NEW_YEAR, tick=True):
        for _ in range(10):
            assert wall_broker.clock.now() == NEW_YEAR
        assert time.time() == NEW_YEAR.timestamp()
        assert wall_broker.clock.now() > NEW_YEAR


def test_a_broker_sees_a_journey_that_ticks(wall_broker: Broker) -> None:
    with time_machine.travel(NEW_YEAR, tick=True):
        ran = threading.Event()
        wall_broker._reader.read(lambda state: state.timers.call_at(state.clock.now() + 0.05, ran.set))
        time.time()
        assert ran.wait(SECONDS)


def test_shift_to_the_past_does_not_change_the_remaining_ttl(
    minute: Any, counts: Callable[[], tuple[int, int]]
) -> None:
    with time_machine.travel(NEW_YEAR, tick=False) as traveller:
        minute.basic_publish("", "minute", b"x")
        traveller.shift(30)
        traveller.shift(-1_000_000)
        assert counts() == (1, 0)
        traveller.shift(29.9)
        assert counts() == (1, 0)
        traveller.shift(0.1)
        assert counts() == (0, 1)


@pytest.mark.usefixtures("patient")
def test_travelling_twice(minute: Any, counts: Callable[[], tuple[int, int]]) -> None:
    with time_machine.travel(NEW_YEAR, tick=False):
        minute.basic_publish("", "minute", b"x")
    with time_machine.travel(NEW_YEAR + timedelta(seconds=59), tick=False):
        assert counts() == (1, 0)
    with time_machine.travel(NEW_YEAR + timedelta(seconds=60), tick=False):
        assert counts() == (0, 1)


def test_waiting_in_vain_says_that_time_stands_still(minute: Any, wall_broker: Broker) -> None:
    with time_machine.travel(NEW_YEAR, tick=False):
        minute.basic_publish("", "minute", b"x")
        wall_broker.wait_until_idle()
        with pytest.raises(AssertionError) as caught:
            wall_broker.queue("dead").wait_for(ready=1, timeout=0.001)
    [hint] = [each for each in str(caught.value).splitlines() if "holds still" in each]
    assert hint.startswith("The broker follows the wall clock, which time-machine holds still; ")
    assert hint.endswith(" in 60 s: time_machine.shift(60)")


def test_stop_of_the_broker_restores_the_methods_of_time_machine() -> None:
    before = [owner.__dict__[name] for owner, name in METHODS]
    with Broker(clock="wall"):
        assert not set(before) & {owner.__dict__[name] for owner, name in METHODS}
    assert [owner.__dict__[name] for owner, name in METHODS] == before
