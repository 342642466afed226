"""Calls of a test in the midst of a client's long operation: nothing is lost, and a test sees it whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import pika
import pika.exceptions
import pytest

from fakeamqp import Broker
from fakeamqp.runtime import loop

NUMBER = 800


@pytest.fixture(autouse=True)
def one_step_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "_SLICE_SECONDS", 0.0)


@pytest.fixture(params=["real", "virtual"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker(seed=1, clock=request.param) as running:
        yield running
        assert running.failures == ()


@pytest.fixture
def requeue(broker: Broker) -> Iterator[Callable[[], None]]:
    """Begins to requeue all messages of a queue."""
    parameters = pika.ConnectionParameters(broker.host, broker.port)
    connection = pika.BlockingConnection(parameters)
    channel = connection.channel()
    channel.queue_declare("q", durable=True)
    for number in range(NUMBER):
        broker.publish(b"%d" % number, routing_key="q", delivery_mode=2)
    channel.basic_consume("q", lambda *_: None)
    while broker.queue("q").unacked < NUMBER:
        connection.process_data_events(0.01)

    def begin() -> None:
        channel.basic_nack(0, multiple=True)
        operations = broker._state.operations
        for _ in range(100_000):
            if operations.pending:
                break

    # Without a consumer the messages stay where they return to.
    channel.basic_cancel(channel.consumer_tags[0])
    yield begin
    if connection.is_open:
        with suppress(pika.exceptions.AMQPError):
            connection.close()


def bodies(broker: Broker) -> list[bytes]:
    return [message.body for message in broker.queue("q").messages]


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
    broker.connections[0].close(320, "enough")
    broker.queue("q").wait_for(count=NUMBER)
    assert bodies(broker) == EVERYTHING


def test_stop_ends_the_operation(broker: Broker, requeue: Callable[[], None]) -> None:
    requeue()
    broker.stop()
    assert bodies(broker) == EVERYTHING


def test_a_test_sees_all_or_nothing(broker: Broker, requeue: Callable[[], None]) -> None:
    requeue()
    seen = set()
    while NUMBER not in seen:
        view = broker.queue("q")
        seen.add(view.ready)
        assert view.ready + view.unacked == NUMBER
    assert seen <= {0, NUMBER}
