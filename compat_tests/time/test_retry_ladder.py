"""Eleven minutes of retries with a real client, in as long as the client takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timezone
from typing import Any

import pika

from compat_tests.benchmarks.ladder import HOPS, climb
from fakeamqp import Broker


@contextmanager
def broker_connection(broker: Broker) -> Iterator[Any]:
    """A channel of a pika connection."""
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        yield connection.channel()


def test_a_message_climbs_the_ladder_at_the_right_times() -> None:
    with Broker(clock="virtual", now=1_800_000_000) as broker:
        attempts = climb(broker)
    assert [attempt.queue for attempt in attempts] == ["try.0", "try.1", "try.2", "try.3"]
    assert [attempt.time - 1_800_000_000 for attempt in attempts] == [0, 5, 65, 665]


def test_its_deaths_are_told_latest_first_each_with_its_count_and_time() -> None:
    with Broker(clock="virtual", now=1_800_000_000) as broker:
        deaths = climb(broker)[-1].headers["x-death"]
    told = [
        (
            death["queue"],
            death["reason"],
            death["count"],
            death["time"].replace(tzinfo=timezone.utc).timestamp() - 1_800_000_000,
        )
        for death in deaths
    ]
    assert told == [
        ("wait.10m", "expired", 1, 665),
        ("try.2", "rejected", 1, 65),
        ("wait.1m", "expired", 1, 65),
        ("try.1", "rejected", 1, 5),
        ("wait.5s", "expired", 1, 5),
        ("try.0", "rejected", 1, 0),
    ]


def test_the_same_ladder_climbed_again_counts_up() -> None:
    """A message that is sent round is known by its deaths."""
    with Broker(clock="virtual") as broker, broker_connection(broker) as channel:
        again = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "wait"}
        channel.queue_declare("work", arguments=again)
        back = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "work", "x-message-ttl": 5000}
        channel.queue_declare("wait", arguments=back)
        channel.basic_publish("", "work", b"order 1")
        for _ in range(3):
            method, _properties, _body = channel.basic_get("work")
            channel.basic_reject(method.delivery_tag, requeue=False)
            broker.queue("wait").wait_for(ready=1)
            broker.clock.advance(5)
        _method, properties, _body = channel.basic_get("work", auto_ack=True)
    counts = [(death["queue"], death["count"]) for death in properties.headers["x-death"]]
    assert counts == [("wait", 3), ("work", 3)]


def test_pending_timers_are_described_with_queue_message_count_and_seconds() -> None:
    with Broker(clock="virtual") as broker, broker_connection(broker) as channel:
        for name, seconds in HOPS.items():
            channel.queue_declare(f"retry.{name}", arguments={"x-message-ttl": seconds * 1000})
        for _ in range(3):
            broker.publish(b"m", routing_key="retry.5s")
        broker.publish(b"m", routing_key="retry.1m")
        broker.clock.advance(0.8)
        shown = [str(timer) for timer in broker.clock.timers if not timer.housekeeping]
        assert shown == [
            "q 'retry.5s' expires 3 messages in 4.2 s",
            "q 'retry.1m' expires 1 message in 59.2 s",
        ]
