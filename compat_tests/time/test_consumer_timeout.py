"""The consumer timeout on virtual time: it counts for deliveries that a client holds, and for no others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.time.conftest import NOON, Connect
from fakeamqp import Broker

HALF_AN_HOUR = 1800.0


@pytest.fixture(
    params=[("rabbitmq-4.2", "classic"), ("rabbitmq-4.2", "quorum"), ("rabbitmq-4.3", "quorum")],
    ids=lambda param: " ".join(param),
)
def kind(request: pytest.FixtureRequest) -> tuple[str, str]:
    personality, queue_type = request.param
    return personality, queue_type


@pytest.fixture
def broker(kind: tuple[str, str]) -> Iterator[Broker]:
    with Broker(clock="virtual", now=NOON, personality=kind[0]) as running:
        yield running
    assert running.admin.failures == ()


@pytest.fixture
def channel(broker: Broker, connect: Connect, kind: tuple[str, str]):
    """A channel with the queue "work", which expires after an hour without use."""
    channel = connect(broker, heartbeat=0).channel()
    channel.confirm_delivery()
    arguments = {"x-queue-type": kind[1], "x-expires": 3_600_000}
    channel.queue_declare("work", durable=True, arguments=arguments)
    return channel


def get(channel) -> int:
    channel.basic_publish("", "work", b"x")
    method, _, _ = channel.basic_get("work")
    return method.delivery_tag


def ack(broker: Broker, channel, tag: int) -> None:
    channel.basic_ack(tag)
    broker.wait_until_idle()


def shown(broker: Broker) -> list[tuple[float, bool]]:
    """When each timer is due, and whether it is about unsettled deliveries."""
    return [
        (timer.due_in, "too long" in timer.words or "unsettled" in timer.words)
        for timer in broker.clock.timers
    ]


def test_after_the_ack_time_moves_on_to_the_next_timer(broker: Broker, channel) -> None:
    tag = get(channel)
    assert shown(broker) == [(HALF_AN_HOUR, True), (3600, False)]
    ack(broker, channel, tag)
    assert shown(broker) == [(3600, False)]
    assert "unused" in repr(broker.clock)
    assert broker.clock.advance_to_next() == 3600
    assert not broker.queue("work").exists


def test_an_idle_broker_does_not_jump_to_the_timeout_of_a_settled_delivery(broker: Broker, channel) -> None:
    ack(broker, channel, get(channel))

    def jump(state) -> float:
        state.clock.autojump = 0
        return state.clock.jump()

    assert broker._reader.read(jump) == 3600


def test_the_timeout_is_that_of_the_oldest_delivery_which_is_still_held(broker: Broker, channel) -> None:
    first = get(channel)
    broker.clock.advance(100)
    get(channel)
    assert shown(broker)[0] == (HALF_AN_HOUR - 100, True)
    ack(broker, channel, first)
    assert shown(broker)[0] == (HALF_AN_HOUR, True)
    assert broker.queue("work").unacked == 1
    assert broker.clock.advance_to_next() == HALF_AN_HOUR
    assert broker.queue("work").wait_for(ready=1).unacked == 0


def test_a_delivery_after_the_ack_has_its_whole_time(broker: Broker, channel) -> None:
    ack(broker, channel, get(channel))
    broker.clock.advance(1000)
    get(channel)
    broker.clock.advance(HALF_AN_HOUR - 1)
    assert broker.queue("work").unacked == 1
    assert shown(broker)[0] == (1, True)
    broker.clock.advance(1)
    assert broker.queue("work").wait_for(ready=1).unacked == 0


def test_consumer_timeout_timer_names_the_queue_of_the_unacked_delivery(
    broker: Broker, channel, kind
) -> None:
    tag = get(channel)
    channel.queue_declare("other", durable=True, arguments={"x-queue-type": kind[1]})
    channel.basic_publish("", "other", b"x")
    channel.basic_get("other")
    ack(broker, channel, tag)
    words = [timer.words for timer in broker.clock.timers if timer.due_in == HALF_AN_HOUR]
    assert len(words) == 1
    assert "q 'other'" in words[0]
