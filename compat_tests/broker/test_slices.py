"""Calls of a test in the midst of a client's long operation: nothing is lost, and a test sees it whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from compat_tests.benchmarks.load import Address
from compat_tests.benchmarks.stalls import QUEUE, Talker
from fakeamqp import Broker
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.runtime import turns

NUMBER = 800


@pytest.fixture(autouse=True)
def one_step_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_SLICE_SECONDS", 0.0)


@pytest.fixture(params=["real", "virtual"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker(seed=1, clock=request.param) as running:
        yield running
        assert running.failures == ()


@pytest.fixture
def requeue(broker: Broker) -> Iterator[Callable[[], None]]:
    """Begins to requeue all messages of a queue."""
    talker = Talker(Address("broker", broker.host, broker.port))
    talker.declare(QUEUE)
    talker.consume()
    for number in range(NUMBER):
        broker.publish(b"%d" % number, routing_key=QUEUE, delivery_mode=2)
    talker.take(NUMBER)
    # Without a consumer the messages stay where they return to.
    talker.ask(m.BasicCancel(consumer_tag="0"), m.BasicCancelOk)

    def begin() -> None:
        talker.say(m.BasicNack(delivery_tag=0, multiple=True, requeue=True))
        operations = broker._state.operations
        for _ in range(100_000):
            if operations.pending:
                break

    yield begin
    talker.close()


def bodies(broker: Broker) -> list[bytes]:
    return [message.body for message in broker.queue(QUEUE).messages]


EVERYTHING = [b"%d" % number for number in range(NUMBER)]


@pytest.mark.parametrize("crash", [False, True])
def test_a_restart_in_the_midst_loses_nothing(
    broker: Broker, requeue: Callable[[], None], crash: bool
) -> None:
    requeue()
    broker.restart(crash=crash)
    assert bodies(broker) == EVERYTHING


def test_a_closed_connection_loses_nothing(broker: Broker, requeue: Callable[[], None]) -> None:
    requeue()
    broker.queue(QUEUE).wait_for(ready=NUMBER)
    broker.connections[0].close(320, "enough")
    assert bodies(broker) == EVERYTHING


def test_stop_ends_the_operation(broker: Broker, requeue: Callable[[], None]) -> None:
    requeue()
    broker.stop()
    assert bodies(broker) == EVERYTHING


def test_a_test_sees_all_or_nothing(broker: Broker, requeue: Callable[[], None]) -> None:
    requeue()
    seen = set()
    while NUMBER not in seen:
        seen.add(broker.queue(QUEUE).ready)
    assert seen <= {0, NUMBER}
