"""Clients that stream are left alone for a moment, and nobody else can tell."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from math import inf
from typing import Any

import pika
import pytest

from compat_tests.tools.coalescing import Always
from fakeamqp import Broker
from fakeamqp.runtime import ThreadEngine, connection_driver
from fakeamqp.runtime.connection_driver import ConnectionDriver
from fakeamqp.runtime.thread import coalescing
from fakeamqp.runtime.thread.coalescing import Coalescing

SECONDS = 30


class Driver:
    """What `Coalescing` sees of a client that sends 20 bytes at a time."""

    def __init__(self) -> None:
        self.unanswered = 0
        self.reads_needed = 0
        self.smallest_read = 20
        self.octets_read = 0
        self.takes_input = True
        self.alone = False
        self.sent = 0
        """Bytes that wait to be read."""

    def leave_alone(self, alone: bool) -> None:
        self.alone = alone
        self.unanswered = 0

    def ready(self, _mask: int) -> None:
        if self.sent:
            self.octets_read += self.sent
            self.sent = 0
            self.unanswered += 1


class Turns:
    """A loop that takes turns by hand, a second of the transports' clock for each moment."""

    def __init__(self) -> None:
        self.coalescing = Coalescing(self)  # type: ignore[arg-type]
        self.now = 0.0

    def turn(self, driver: Driver, octets: int = 0, *, answered: bool = False, allowed: bool = True) -> bool:
        """A turn with input; whether the client is left alone at its end."""
        driver.sent += octets
        if driver.alone:
            self.coalescing.take()
        else:
            driver.ready(1)
            if octets:
                self.coalescing.note(driver, octets)  # type: ignore[arg-type]
        if answered:
            driver.unanswered = 0
        self.coalescing.decide(self.now, allowed=allowed)
        return driver.alone

    def over(self) -> None:
        self.now = max(self.now, self.coalescing.ends if self.coalescing.ends < 1e9 else self.now)


@pytest.fixture
def turns() -> Turns:
    return Turns()


def streaming(turns: Turns) -> Driver:
    driver = Driver()
    while not turns.turn(driver, 20):
        pass
    return driver


def reads_until_alone(turns: Turns, driver: Driver) -> int:
    count = 1
    while not turns.turn(driver, 20):
        count += 1
    return count


def test_client_is_coalesced_after_three_reads_without_an_answer(turns: Turns) -> None:
    driver = Driver()
    assert [turns.turn(driver, 20) for _ in range(3)] == [False, False, True]


def test_client_with_answers_is_never_coalesced(turns: Turns) -> None:
    driver = Driver()
    assert not any(turns.turn(driver, 20, answered=number % 3 == 2) for number in range(300))


def test_client_with_further_input_stays_coalesced(turns: Turns) -> None:
    driver = streaming(turns)
    for _ in range(100):
        turns.over()
        assert turns.turn(driver, 400)


def test_turns_during_the_coalescing_moment_read_input_and_keep_the_client_coalesced(turns: Turns) -> None:
    driver = streaming(turns)
    for _ in range(100):
        assert turns.turn(driver, 1)
    assert not driver.sent
    turns.over()
    assert turns.turn(driver)  # 100 bytes have come in the moment.


@pytest.mark.parametrize(("octets", "answered"), [(20, False), (400, True)], ids=["no more", "an answer"])
def test_client_found_waiting_is_coalesced_after_twice_as_many_reads(
    turns: Turns, octets: int, answered: bool
) -> None:
    driver = streaming(turns)
    needed = []
    for _ in range(10):
        turns.over()
        assert not turns.turn(driver, octets, answered=answered)
        needed.append(reads_until_alone(turns, driver))
    assert needed == [6, 12, 24, 48, 96, 192, 384, 768, 1024, 1024]
    turns.over()
    assert turns.turn(driver, 400)
    turns.over()
    assert not turns.turn(driver)
    assert reads_until_alone(turns, driver) == 3


def test_coalesced_client_without_input_is_released_without_a_penalty(turns: Turns) -> None:
    driver = streaming(turns)
    turns.over()
    assert not turns.turn(driver)
    assert reads_until_alone(turns, driver) == 3


def test_client_with_large_input_is_not_coalesced(turns: Turns) -> None:
    driver = streaming(turns)
    turns.over()
    assert not any(turns.turn(driver, 100_000) for _ in range(10))


def test_no_client_is_coalesced_while_coalescing_is_not_allowed(turns: Turns) -> None:
    driver = streaming(turns)
    assert not turns.turn(driver, 400, allowed=False)
    assert not any(turns.turn(driver, 20, allowed=False) for _ in range(10))


# --- with clients --------------------------------------------------------------------------------------


class FirstAlone(Always):
    """The first client is left alone after all its input, the others never."""

    def streams(self, driver: ConnectionDriver) -> bool:
        return driver is next(iter(self._loop.drivers))


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    monkeypatch.setattr(ThreadEngine, "coalescing", FirstAlone)
    with Broker(clock="virtual", definitions={"queues": [{"name": "q"}, {"name": "r"}]}) as broker:
        yield broker


@pytest.fixture
def alone(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The channel of a client that is left alone for ever, unless something else happens."""
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        with monkeypatch.context() as patch:
            patch.setattr(coalescing, "_SECONDS", 1e6)
            patch.setattr(
                connection_driver, "_LONG_SLICE", inf
            )  # Input is cheap, however busy the machine is.
            channel.basic_publish("", "r", b"input that is not answered")
            left_for_ever(broker)
            yield channel
        engine: Any = broker._engine
        engine._loop.coalescing.ends = 0.0  # The moment is over: the client says goodbye.
        engine._loop.wake()


def left_for_ever(broker: Broker) -> None:
    ends = time.monotonic() + SECONDS
    engine: Any = broker._engine
    # Without `wake`: in a turn that finds no input the loop would watch the client again.
    while not 1e5 < engine._loop.coalescing.ends - engine._loop.transport_clock.now() < inf:
        assert time.monotonic() < ends


def test_call_of_a_test_sees_all_input_of_a_coalesced_client(broker: Broker, alone: Any) -> None:
    for number in range(1, 20):
        alone.basic_publish("", "q", b"x")
        assert broker.queue("q").ready == number


def test_call_of_a_test_sees_expensive_input_of_a_coalesced_client(
    broker: Broker, alone: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        connection_driver, "_LONG_SLICE", -1.0
    )  # Each input is expensive, as on a busy machine.
    for number in range(1, 20):
        alone.basic_publish("", "q", b"x")
        assert broker.queue("q").ready == number


def test_wait_for_sees_input_of_a_coalesced_client_during_the_wait(broker: Broker, alone: Any) -> None:
    engine: Any = broker._engine
    with ThreadPoolExecutor() as pool:
        waits = pool.submit(broker.queue("q").wait_for, ready=1, timeout=SECONDS)
        while not engine._loop.waiters:
            assert not waits.done()
        alone.basic_publish("", "q", b"x")
        waits.result(SECONDS)


def test_another_client_sees_earlier_input_of_a_coalesced_client(broker: Broker, alone: Any) -> None:
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        for number in range(1, 20):
            alone.basic_publish("", "q", b"x")
            assert channel.queue_declare("q", passive=True).method.message_count == number


def test_clock_advances_only_after_input_of_a_coalesced_client(broker: Broker, alone: Any) -> None:
    alone.basic_publish("", "q", b"x", pika.BasicProperties(expiration="1000"))
    broker.clock.advance(2)
    assert broker.queue("q").ready == 0


def test_clock_advances_only_after_large_input_of_a_coalesced_client(broker: Broker, alone: Any) -> None:
    for _ in range(8):
        alone.basic_publish("", "q", bytes(100_000), pika.BasicProperties(expiration="1000"))
    broker.clock.advance(2)
    assert [queue.ready for queue in (broker.queue("q"), broker.queue("r"))] == [0, 1]


def test_broker_with_a_coalesced_client_becomes_idle(broker: Broker, alone: Any) -> None:
    alone.basic_publish("", "q", b"x")
    broker.wait_until_idle(timeout=SECONDS)
    assert broker.queue("q").ready == 1
