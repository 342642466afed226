"""What is special to freezegun or to time-machine when it moves a broker on the wall clock's time."""

from __future__ import annotations

import threading
import time
import unittest
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pika
import pytest
import time_machine
from freezegun import freeze_time
from freezegun.api import FrozenDateTimeFactory

from compat_tests.benchmarks.load import Address
from compat_tests.benchmarks.stalls import PROBED, Talker
from compat_tests.time.conftest import NEW_YEAR, SECONDS, Connect, retry_queues
from compat_tests.tools.runtimes import is_locked
from fakeamqp import Broker
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.runtime.thread.loop import Loop

# --- the ways to freeze ------------------------------------------------------------------------------------


@freeze_time(NEW_YEAR)
class TestAsADecoratorOfAClass(unittest.TestCase):
    def test_it(self) -> None:
        with Broker(clock="wall") as broker:
            assert broker.clock.now() == datetime(2024, 1, 1, tzinfo=timezone.utc)


def test_a_frozen_clock_that_ticks_by_itself(minute: Any, counts: Callable[[], tuple[int, int]]) -> None:
    minute.confirm_delivery()
    with freeze_time(NEW_YEAR, tick=True) as freezer:
        minute.basic_publish("", "minute", b"x")
        assert counts() == (1, 0)
        freezer.tick(61)
        assert counts() == (0, 1)


@pytest.mark.threads_only
def test_a_broker_sees_time_that_ticks_by_itself(wall_broker: Broker) -> None:
    with freeze_time(NEW_YEAR, tick=True):
        ran = threading.Event()
        wall_broker._reader.read(lambda state: state.timers.call_at(state.clock.now() + 0.05, ran.set))
        assert ran.wait(SECONDS)


def test_time_that_ticks_with_every_look(minute: Any, counts: Callable[[], tuple[int, int]]) -> None:
    minute.confirm_delivery()
    with freeze_time(NEW_YEAR, auto_tick_seconds=20) as freezer:
        minute.basic_publish("", "minute", b"x")
        counts()
        before = freezer.time_to_freeze
        counts()
        assert freezer.time_to_freeze == before, "a look of the broker moves nothing"
        later = before + timedelta(minutes=10)  # The client reads the clock, too, and so moves it.
        while datetime.now() < later:
            pass
        assert counts() == (0, 1)


@pytest.mark.threads_only
def test_a_broker_that_sleeps_sees_time_that_ticks_with_every_look(wall_broker: Broker) -> None:
    with freeze_time(NEW_YEAR, auto_tick_seconds=20):
        ran = threading.Event()
        wall_broker._reader.read(lambda state: state.timers.call_at(state.clock.now() + 60, ran.set))
        for _ in range(5):
            datetime.now()
        assert ran.wait(SECONDS)


# --- what the broker makes of it ---------------------------------------------------------------------------


def test_a_local_time_zone_is_not_the_brokers_concern(wall_broker: Broker) -> None:
    with freeze_time(NEW_YEAR, tz_offset=-8):
        assert wall_broker.clock.now() == datetime(2024, 1, 1, tzinfo=timezone.utc)


def test_elapsed_counts_only_moves_forward(wall_broker: Broker) -> None:
    with freeze_time(NEW_YEAR) as freezer:
        wall_broker.reset()
        freezer.tick(10)
        freezer.move_to("2023-01-01")
        freezer.tick(5)
        assert wall_broker.clock.elapsed == 15


def test_message_published_in_frozen_past_is_dead_lettered_after_the_frozen_block(
    minute: Any, counts: Callable[[], tuple[int, int]]
) -> None:
    with freeze_time("2001-01-01"):
        minute.basic_publish("", "minute", b"x")
    assert counts() == (0, 1)


def test_a_sleeping_broker_notices_that_a_frozen_world_was_left(minute: Any, wall_broker: Broker) -> None:
    with freeze_time("2001-01-01"):
        minute.basic_publish("", "minute", b"x")
        wall_broker.wait_until_idle()
    wall_broker._reader.wait_for(lambda state: state.virtual_host("/").queues["dead"].ready, SECONDS)


def test_freezing_in_the_future_lets_time_pass(minute: Any, counts: Callable[[], tuple[int, int]]) -> None:
    minute.basic_publish("", "minute", b"x")
    with freeze_time(timedelta(seconds=59)):
        assert counts() == (1, 0)
    with freeze_time(timedelta(seconds=61)):
        assert counts() == (0, 1)


def test_each_hop_of_a_ladder_has_its_own_time(minute: Any) -> None:
    retry_queues(minute, ("hour", 3600), back_to="minute")
    with freeze_time(NEW_YEAR) as freezer:
        minute.basic_publish("", "hour", b"x")
        freezer.tick(timedelta(days=1))
        _method, properties, _body = minute.basic_get("dead", auto_ack=True)
    # Times of pika 1.3 have no time zone.
    times = {death["queue"]: death["time"].replace(tzinfo=None) for death in properties.headers["x-death"]}
    midnight = datetime(2024, 1, 1)
    assert times == {"hour": midnight + timedelta(hours=1), "minute": midnight + timedelta(seconds=3660)}


def test_dead_letters_caused_by_a_tick_are_delivered_when_it_returns(minute: Any) -> None:
    came: list[bytes] = []
    minute.basic_consume("dead", lambda *delivery: came.append(delivery[-1]), auto_ack=True)
    with freeze_time(NEW_YEAR) as freezer:
        for number in range(50):
            minute.basic_publish("", "minute", b"%d" % number)
            freezer.tick(60)
            minute.connection.process_data_events(0)
            assert came == [b"%d" % each for each in range(number + 1)]


@pytest.mark.parametrize("seconds", [0.1, 1 / 3, 0.7])
def test_many_small_ticks_come_as_far_as_one(
    minute: Any, counts: Callable[[], tuple[int, int]], seconds: float
) -> None:
    with freeze_time(NEW_YEAR) as freezer:
        minute.basic_publish("", "minute", b"x")
        end = datetime(2024, 1, 1, 0, 1)
        while datetime.now() + timedelta(seconds=seconds) < end:
            freezer.tick(seconds)
        assert counts() == (1, 0)
        freezer.move_to(end)
        assert counts() == (0, 1)


def test_broker_clock_is_frozen_in_threads_at_any_stack_depth(wall_broker: Broker) -> None:
    def deep(depth: int) -> float:
        return wall_broker.clock.time() if depth == 0 else deep(depth - 1)

    with freeze_time(NEW_YEAR):
        seen: list[float] = []
        thread = threading.Thread(target=lambda: seen.extend(deep(depth) for depth in range(12)))
        thread.start()
        thread.join()
        assert set(seen) == {datetime(2024, 1, 1, tzinfo=timezone.utc).timestamp()}


def test_a_broker_made_in_a_frozen_world_begins_there(connect: Connect) -> None:
    with freeze_time(NEW_YEAR) as freezer, Broker(clock="wall") as broker:
        channel = connect(broker, heartbeat=0).channel()
        retry_queues(channel, ("minute", 60), back_to="dead")
        channel.basic_publish("", "minute", b"x")
        freezer.tick(60)
        assert broker.queue("minute").ready == 0
        assert broker.clock.elapsed == 60


def test_timer_runs_in_real_time_without_freezegun(wall_broker: Broker) -> None:
    ran = threading.Event()
    wall_broker._reader.read(lambda state: state.timers.call_at(state.clock.now() + 0.01, ran.set))
    assert ran.wait(SECONDS)


# --- clients -----------------------------------------------------------------------------------------------


def test_frozen_days_do_not_cut_clients_off(wall_broker: Broker) -> None:
    """Whose client ticks with the test gets its heartbeats; who does not is spared."""
    parameters = pika.URLParameters(wall_broker.url)
    parameters.heartbeat = 600
    connection = pika.BlockingConnection(parameters)
    with freeze_time(NEW_YEAR) as freezer:
        for _ in range(20):
            freezer.tick(300)
            wall_broker.wait_until_idle()
            connection.process_data_events(0)
    connection.channel().queue_declare("still-served")
    connection.close()


def test_entering_and_leaving_frozen_time_does_not_disconnect_clients(
    wall_broker: Broker, connect: Connect
) -> None:
    channel = connect(wall_broker, heartbeat=60).channel()
    with freeze_time(timedelta(hours=1), ignore=["pika"]):
        wall_broker.wait_until_idle()
    with freeze_time("2001-01-01", ignore=["pika"]):
        wall_broker.wait_until_idle()
    wall_broker.wait_until_idle()
    assert len(wall_broker.connections) == 1
    channel.queue_declare("still-served")


def test_silence_counts_in_a_frozen_world_when_asked(wall_broker: Broker, connect: Connect) -> None:
    with freeze_time(NEW_YEAR) as freezer:
        connect(wall_broker, heartbeat=60)
        wall_broker.clock.heartbeats = "strict"
        for _ in range(3):
            freezer.tick(60)
        assert wall_broker.connections == ()


def test_silence_counts_in_the_present(wall_broker: Broker, connect: Connect) -> None:
    connect(wall_broker, heartbeat=1)
    wall_broker._reader.read(lambda state: None)
    assert wall_broker._reader.read(lambda state: state.clock.holds_peers)
    with freeze_time(NEW_YEAR):
        assert not wall_broker._reader.read(lambda state: state.clock.holds_peers)
    assert not wall_broker._reader.read(lambda state: state.clock.holds_peers), "it has only just come back"
    assert wall_broker._reader.read(lambda state: state.clock.holds_peers)


# --- waiting in vain, and at ease --------------------------------------------------------------------------


def test_wait_timeout_without_frozen_time_does_not_mention_the_clock(
    minute: Any, wall_broker: Broker
) -> None:
    with pytest.raises(AssertionError) as caught:
        wall_broker.queue("dead").wait_for(ready=1, timeout=0.001)
    first, *others = str(caught.value).splitlines()
    assert first.endswith("<queue 'dead' ready=0 unacked=0 consumers=0>")
    assert not any("clock" in each for each in others)


def test_a_frozen_broker_without_timers_sleeps(wall_broker: Broker, connect: Connect) -> None:
    with freeze_time(NEW_YEAR):
        connect(wall_broker, heartbeat=60)
        wall_broker.wait_until_idle()
        assert [timer.housekeeping for timer in wall_broker.clock.timers] == [True, True]
        assert wall_broker._reader.read(lambda state: state.clock.sleep()) is None


def test_a_frozen_broker_with_timers_looks_from_time_to_time(minute: Any, wall_broker: Broker) -> None:
    with freeze_time(NEW_YEAR):
        minute.basic_publish("", "minute", b"x")
        wall_broker.wait_until_idle()
        assert 0.01 <= wall_broker._reader.read(lambda state: state.clock.sleep()) <= 0.02


# --- hooks -------------------------------------------------------------------------------------------------


def test_stop_of_the_broker_keeps_a_later_patch_of_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker(clock="wall"):
        theirs = lambda self, *args: None  # noqa: E731
        monkeypatch.setattr(FrozenDateTimeFactory, "tick", theirs)
    assert FrozenDateTimeFactory.__dict__["tick"] is theirs
    monkeypatch.undo()
    # What was put back is our stand-in, which nobody listens to any more.
    with freeze_time(NEW_YEAR) as freezer:
        assert freezer.tick(5) == datetime(2024, 1, 1, 0, 0, 5)


def test_tick_called_in_the_engine_thread_expires_messages_without_deadlock(
    minute: Any, wall_broker: Broker
) -> None:
    with freeze_time(NEW_YEAR) as freezer:
        minute.basic_publish("", "minute", b"x")
        wall_broker.wait_until_idle()
        wall_broker._reader.read(lambda state: freezer.tick(60))
        assert wall_broker.queue("minute").ready == 0


def test_tick_moves_the_time_of_all_wall_clock_brokers() -> None:
    with freeze_time(NEW_YEAR) as freezer, Broker(clock="wall") as one, Broker(clock="wall") as two:
        freezer.tick(60)
        assert [broker._engine.stepped.elapsed for broker in (one, two)] == [60, 60]


def test_an_error_of_tick_passes_and_time_is_followed(wall_broker: Broker) -> None:
    with freeze_time(NEW_YEAR) as freezer:
        with pytest.raises(TypeError):
            freezer.tick("a minute")
        freezer.tick(60)
        assert wall_broker.clock.now() == datetime(2024, 1, 1, 0, 1, tzinfo=timezone.utc)


@pytest.mark.threads_only
@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("turn", range(20))
def test_broker_woken_between_two_frozen_blocks_does_not_expire_messages(
    minute: Any, wall_broker: Broker, counts: Callable[[], tuple[int, int]], turn: int
) -> None:
    with freeze_time(NEW_YEAR):
        minute.basic_publish("", "minute", b"x")
    engine = wall_broker._engine
    turns = engine.turns
    engine._loop.wake()
    while engine.turns == turns:
        pass
    with freeze_time("2024-01-01 00:00:59"):
        assert counts() == (1, 0)


@pytest.mark.threads_only
@pytest.mark.parametrize("woken", [False, True], ids=["before a look", "after a look"])
def test_a_client_is_answered_between_two_timers_of_a_tick(
    wall_broker: Broker, monkeypatch: pytest.MonkeyPatch, woken: bool
) -> None:
    monkeypatch.setattr("fakeamqp.runtime.turns._SLICE_SECONDS", 0.0)
    happened = []
    goes_on = threading.Event()
    client = Talker(Address("broker", wall_broker.host, wall_broker.port))
    client.declare(PROBED)

    # The thread that ticks runs the timers. The loop follows the clock, too, and may be first: then it would
    # wait for itself in `answered`.
    monkeypatch.setattr(Loop, "_follow", lambda *_: None)

    def asks() -> None:
        loop = wall_broker._engine._loop
        assert loop is not None
        if woken:
            loop.wake()
            while not is_locked(wall_broker._engine._lock._turnstile):
                pass
            look, test = loop._selector.select, threading.current_thread()

            def looks_late(timeout: float | None = None) -> object:
                """The loop looks again once the tick goes on, or waits for it to look."""
                if threading.current_thread() is not test:
                    goes_on.wait(0.2)
                return look(timeout)

            monkeypatch.setattr(loop._selector, "select", looks_late)
        client.say(m.QueueDeclare(queue=PROBED, passive=True))
        while not loop.readable():
            pass

    def answered() -> None:
        goes_on.set()
        client.await_method(m.QueueDeclareOk)
        happened.append("answered")

    with freeze_time(NEW_YEAR) as freezer:
        timers, now = wall_broker._state.timers, wall_broker._state.clock.now()
        timers.call_at(now + 1, asks)
        timers.call_at(now + 2, answered)
        freezer.tick(3)
        assert happened == ["answered"]
        assert wall_broker.clock.elapsed >= 3
    client.close()


# --- time-machine ----------------------------------------------------------------------------------------


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
