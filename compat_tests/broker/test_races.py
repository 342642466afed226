"""`Broker(races=...)`: clients see orders in which RabbitMQ answers, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pika
import pytest

from fakeamqp import Broker, BrokerError

SEEDS = range(1, 41)


def late_of(races: bool | int, **settings: Any) -> tuple[int | None, list[str]]:
    """The seed, and what is late of 20 confirmed publishes."""
    with Broker(races=races, **settings) as broker:
        publish(broker)
        return broker.admin.race_seed, list(map(str, broker.admin.late))


def publish(broker: Broker) -> None:
    """Publish 20 messages, each after the confirm of the one before."""
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        channel.queue_declare("orders", durable=True)
        channel.confirm_delivery()
        for _ in range(20):
            channel.basic_publish("", "orders", b"")


def counts(seed: int) -> Iterator[int]:
    """What a passive declare says right after an unconfirmed publish."""
    with Broker(races=seed) as broker, pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        for nth in range(5):
            channel.queue_declare(f"orders.{nth}", durable=True)
            channel.basic_publish("", f"orders.{nth}", b"")
            yield channel.queue_declare(f"orders.{nth}", passive=True).method.message_count


def test_equal_race_seeds_give_equal_delays() -> None:
    seed, late = late_of(7)
    assert seed == 7
    assert any(text.startswith("confirm ") for text in late)
    assert any("arrives" in text for text in late)
    assert late_of(7) == (7, late)
    assert late_of(8)[1] != late


def test_races_true_draws_a_seed_that_repeats_the_delays() -> None:
    seed, late = late_of(True)
    assert seed is not None
    assert late_of(seed) == (seed, late)


def test_races_true_draws_the_same_seed_from_the_seed_of_the_broker() -> None:
    assert late_of(True, seed=1) == late_of(True, seed=1)
    assert late_of(True, seed=1)[0] != late_of(True, seed=2)[0]


@pytest.mark.parametrize("races", [None, False])
def test_a_broker_without_races_has_no_seed_and_no_late_outcome(races: bool | None) -> None:
    with Broker(races=races) as broker:
        publish(broker)
        assert broker.admin.race_seed is None
        assert broker.admin.late == ()


def test_passive_declare_reports_old_and_new_counts() -> None:
    assert {count for seed in SEEDS for count in counts(seed)} == {0, 1}


def test_late_outcomes_are_the_same_on_a_virtual_clock() -> None:
    assert late_of(7, clock="virtual") == late_of(7)


def test_wait_until_idle_includes_late_messages() -> None:
    with Broker(races=7) as broker, pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        channel.queue_declare("orders", durable=True)
        for ready in range(1, 31):
            channel.basic_publish("", "orders", b"")
            broker.wait_until_idle()
            assert broker.queue("orders").ready == ready
        assert broker.admin.late


def test_reset_restarts_the_race_seed() -> None:
    with Broker(races=7) as broker:
        publish(broker)
        before = list(map(str, broker.admin.late))
        broker.reset()
        assert broker.admin.late == ()
        publish(broker)
        assert list(map(str, broker.admin.late)) == before


def test_trace_checks_report_no_finding_with_races() -> None:
    for seed in (1, 2, 3):
        with Broker(races=seed) as broker, broker.expect_no_findings.during():
            publish(broker)
            assert broker.admin.late


@pytest.mark.parametrize("wrong", ["yes", 1.5, "7", [1]])
def test_races_of_a_wrong_type_are_an_error(wrong: Any) -> None:
    with pytest.raises(BrokerError, match="races must be True, False or a seed, which is a whole number"):
        Broker(races=wrong)
