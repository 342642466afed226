"""Brokers on the wall clock's time, and the wall clock in the hand of freezegun or of time-machine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import aio_pika
import pytest
import time_machine
from freezegun import freeze_time
from freezegun.api import FrozenDateTimeFactory, StepTickTimeFactory, TickingDateTimeFactory

from compat_tests.time.conftest import NEW_YEAR, SECONDS
from fakeamqp import Broker

Counts = Callable[[], tuple[int, int]]

STILL, TICKING, AUTO = {"tick": False}, {"tick": True}, {"auto_tick_seconds": 1}


@dataclass(frozen=True)
class Library:
    """A library that holds the wall clock: `at` holds it at a moment, and its handle moves it."""

    name: str
    at: Callable[..., AbstractContextManager[Any]]
    forward: str
    """Which method of the handle moves time by seconds; the hint of a wait in vain names it."""
    hint: str
    patched: list[tuple[type, str]]
    """The methods in whose place a broker on the wall clock's time puts its own."""

    def move(self, handle: Any, seconds: float | timedelta) -> None:
        getattr(handle, self.forward)(seconds)


FREEZEGUN = Library(
    "freezegun",
    freeze_time,
    "tick",
    "freezer.tick",
    [
        (FrozenDateTimeFactory, "tick"),
        (FrozenDateTimeFactory, "move_to"),
        (TickingDateTimeFactory, "tick"),
        (TickingDateTimeFactory, "move_to"),
        (StepTickTimeFactory, "move_to"),
        (type(freeze_time(NEW_YEAR)), "start"),
        (type(freeze_time(NEW_YEAR)), "stop"),
    ],
)
_TRAVELLER = type(time_machine.travel(0).start())
time_machine.travel(0).stop()

TIME_MACHINE = Library(
    "time-machine",
    time_machine.travel,
    "shift",
    "time_machine.shift",
    [
        (time_machine.travel, "start"),
        (time_machine.travel, "stop"),
        (_TRAVELLER, "shift"),
        (_TRAVELLER, "move_to"),
    ],
)


@pytest.fixture(params=[FREEZEGUN, TIME_MACHINE], ids=lambda library: library.name)
def library(request: pytest.FixtureRequest) -> Library:
    held: Library = request.param
    return held


def options(*rows: tuple[Library, dict[str, Any]]) -> pytest.MarkDecorator:
    """Runs the test for each library with each way to hold time."""
    ids = [
        f"{library.name}-{'-'.join(f'{key}={value}' for key, value in how.items())}" for library, how in rows
    ]
    return pytest.mark.parametrize(("library", "how"), rows, ids=ids)


@options((FREEZEGUN, STILL), (TIME_MACHINE, STILL), (TIME_MACHINE, TICKING))
@pytest.mark.parametrize("turn", range(20))
def test_moved_clock_dead_letters_messages_published_just_before(
    minute: Any, library: Library, how: dict[str, Any], turn: int
) -> None:
    with library.at(NEW_YEAR, **how) as handle:
        for number in range(20):
            minute.basic_publish("", "minute", b"%d" % number)  # Nobody confirms it.
        library.move(handle, 61)
        for number in range(20):
            _method, properties, body = minute.basic_get("dead", auto_ack=True)
            assert body == b"%d" % number
            death = properties.headers["x-death"][0]["time"]
            assert death.replace(tzinfo=timezone.utc) == NEW_YEAR + timedelta(minutes=1)


@pytest.mark.parametrize("last", [0.001, timedelta(milliseconds=1)], ids=["seconds", "timedelta"])
def test_moved_clock_expires_message_exactly_at_its_ttl(
    minute: Any, counts: Counts, library: Library, last: float | timedelta
) -> None:
    with library.at(NEW_YEAR, **STILL) as handle:
        minute.basic_publish("", "minute", b"x")
        library.move(handle, 59.999)
        assert counts() == (1, 0)
        library.move(handle, last)
        assert counts() == (0, 1)


@options(
    (FREEZEGUN, STILL),
    (FREEZEGUN, TICKING),
    (FREEZEGUN, AUTO),
    (TIME_MACHINE, STILL),
    (TIME_MACHINE, TICKING),
)
def test_clock_moved_to_a_later_day_expires_message(
    minute: Any, counts: Counts, library: Library, how: dict[str, Any]
) -> None:
    with library.at(NEW_YEAR, **how) as handle:
        minute.basic_publish("", "minute", b"x")
        handle.move_to(NEW_YEAR + timedelta(days=1))
        assert counts() == (0, 1)


@freeze_time(NEW_YEAR)
def test_message_expires_in_test_decorated_with_freeze_time(minute: Any, counts: Counts) -> None:
    minute.basic_publish("", "minute", b"x")
    with freeze_time(timedelta(seconds=61)):
        assert counts() == (0, 1)


@freeze_time(NEW_YEAR, as_kwarg="freezer")
def test_message_expires_by_handle_given_to_decorated_test(
    minute: Any, counts: Counts, **handed: Any
) -> None:
    minute.basic_publish("", "minute", b"x")
    handed["freezer"].tick(timedelta(minutes=1))
    assert counts() == (0, 1)


@time_machine.travel(NEW_YEAR, tick=False)
def test_message_expires_in_test_decorated_with_travel(minute: Any, counts: Counts) -> None:
    minute.confirm_delivery()
    minute.basic_publish("", "minute", b"x")
    assert counts() == (1, 0)
    with time_machine.travel(NEW_YEAR + timedelta(seconds=61), tick=False):
        assert counts() == (0, 1)


def test_message_expires_by_fixture_freezer(freezer: Any, minute: Any, counts: Counts) -> None:
    minute.basic_publish("", "minute", b"x")
    freezer.tick(60)
    assert counts() == (0, 1)


@pytest.mark.time_machine(NEW_YEAR, tick=False)
def test_message_expires_by_fixture_time_machine(time_machine: Any, minute: Any, counts: Counts) -> None:
    minute.basic_publish("", "minute", b"x")
    time_machine.shift(60)
    assert counts() == (0, 1)


async def through_a_minute(broker: Broker, pass_time: Callable[[], object]) -> None:
    """Publish with aio-pika, let a minute pass, and get what was dead-lettered."""
    async with await aio_pika.connect(broker.url) as connection:
        channel = await connection.channel()
        dead = await channel.declare_queue("dead")
        arguments = {
            "x-message-ttl": 60_000,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": "dead",
        }
        await channel.declare_queue("minute", arguments=arguments)
        await channel.default_exchange.publish(aio_pika.Message(b"x"), routing_key="minute")
        assert await dead.get(fail=False) is None
        pass_time()
        message = await dead.get(timeout=SECONDS)
        assert message.body == b"x"
        await message.ack()


@pytest.mark.asyncio
async def test_tick_expires_message_of_aio_pika(wall_broker: Broker) -> None:
    with freeze_time(NEW_YEAR, real_asyncio=True) as freezer:
        await through_a_minute(wall_broker, lambda: freezer.tick(61))


@pytest.mark.asyncio
@freeze_time(NEW_YEAR, real_asyncio=True)
async def test_message_of_aio_pika_expires_in_coroutine_decorated_with_freeze_time(
    wall_broker: Broker,
) -> None:
    later = freeze_time("2024-01-01 00:01:01", real_asyncio=True)
    try:
        await through_a_minute(wall_broker, later.start)
    finally:
        later.stop()


@pytest.mark.asyncio
@time_machine.travel(NEW_YEAR, tick=False)
async def test_message_of_aio_pika_expires_in_coroutine_decorated_with_travel(wall_broker: Broker) -> None:
    later = time_machine.travel(NEW_YEAR + timedelta(seconds=61), tick=False)
    try:
        await through_a_minute(wall_broker, later.start)
    finally:
        later.stop()


def test_broker_clock_shows_the_time_that_the_test_holds(wall_broker: Broker, library: Library) -> None:
    clock = wall_broker.clock
    assert (clock.mode, clock.rate) == ("wall", 1)
    moment = datetime(2030, 5, 6, 7, 8, 9, 123456, tzinfo=timezone.utc)
    with library.at(moment, **STILL) as handle:
        assert clock.now() == moment
        assert clock.rate == 0
        library.move(handle, 0.5)
        assert clock.now() == datetime.now(timezone.utc)
        handle.move_to(datetime(1999, 12, 31, tzinfo=timezone.utc))
        assert clock.now() == datetime(1999, 12, 31, tzinfo=timezone.utc)
        with library.at("1969-07-20", **STILL):
            assert clock.time() == datetime(1969, 7, 20, tzinfo=timezone.utc).timestamp()
    assert clock.rate == 1
    assert abs(clock.now() - datetime.now(timezone.utc)) < timedelta(seconds=SECONDS)


def test_clock_moved_to_the_past_does_not_change_the_remaining_ttl(
    minute: Any, counts: Counts, library: Library
) -> None:
    with library.at(NEW_YEAR, **STILL) as handle:
        minute.basic_publish("", "minute", b"x")
        library.move(handle, 30)
        handle.move_to(NEW_YEAR - timedelta(days=1461))
        assert counts() == (1, 0)
        library.move(handle, 29.9)
        assert counts() == (1, 0)
        library.move(handle, 0.1)
        assert counts() == (0, 1)


def test_negative_shift_does_not_change_the_remaining_ttl(minute: Any, counts: Counts) -> None:
    with time_machine.travel(NEW_YEAR, tick=False) as traveller:
        minute.basic_publish("", "minute", b"x")
        traveller.shift(30)
        traveller.shift(-1_000_000)
        traveller.shift(29.9)
        assert counts() == (1, 0)
        traveller.shift(0.1)
        assert counts() == (0, 1)


@pytest.mark.usefixtures("patient")
def test_moment_of_the_present_between_two_blocks_does_not_expire_message(
    minute: Any, counts: Counts, library: Library
) -> None:
    with library.at(NEW_YEAR, **STILL):
        minute.basic_publish("", "minute", b"x")
    with library.at(NEW_YEAR + timedelta(seconds=59), **STILL):
        assert counts() == (1, 0)
    with library.at(NEW_YEAR + timedelta(seconds=60), **STILL):
        assert counts() == (0, 1)


@pytest.mark.threads_only
def test_wait_in_vain_names_the_library_and_the_call_that_goes_on(
    minute: Any, wall_broker: Broker, library: Library
) -> None:
    with library.at(NEW_YEAR, **STILL) as handle:
        minute.basic_publish("", "minute", b"x")
        wall_broker.wait_until_idle()
        library.move(handle, 55.8)
        with pytest.raises(AssertionError) as caught:
            wall_broker.queue("dead").wait_for(ready=1, timeout=0.001)
    [hint] = [each for each in str(caught.value).splitlines() if "holds still" in each]
    assert hint.startswith(f"The broker follows the wall clock, which {library.name} holds still; ")
    assert ". Next, q 'minute' " in hint
    assert hint.endswith(f" in 4.2 s: {library.hint}(4.2)")


def methods(library: Library) -> list[Any]:
    return [owner.__dict__[name] for owner, name in library.patched]


def test_stop_of_the_last_broker_restores_the_methods_of_the_library(library: Library) -> None:
    before = methods(library)
    with Broker(clock="wall") as first:
        during = methods(library)
        assert not set(before) & set(during)
        with Broker(clock="wall"):
            assert methods(library) == during
        assert methods(library) == during
        first.stop()
        assert methods(library) == before
        first.start()
        assert not set(before) & set(methods(library))
    assert methods(library) == before


@pytest.mark.parametrize("mode", ["real", "virtual"])
def test_broker_on_other_time_replaces_no_method_of_the_library(mode: Any, library: Library) -> None:
    before = methods(library)
    with Broker(clock=mode):
        assert methods(library) == before
