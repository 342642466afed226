from __future__ import annotations

from collections.abc import Callable

import pytest
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection
from webhooks import ATTEMPTS, GIVEN_UP, Unreachable, WebhookSender

from fakeamqp import Broker, Clock


class Receiver:
    """A receiver of webhooks that does not answer the first calls; it records when it was called."""

    def __init__(self, clock: Clock, deaf_for: int) -> None:
        self.clock = clock
        self.deaf_for = deaf_for
        self.called_after: list[float] = []

    def send(self, url: str) -> None:
        self.called_after.append(self.clock.elapsed)
        if len(self.called_after) <= self.deaf_for:
            raise Unreachable(url)


@pytest.fixture
def told(
    amqp_clock: Clock, amqp_broker: Broker, pika_connection: BlockingConnection, pika_channel: BlockingChannel
) -> Callable[[Receiver], list[float]]:
    """Sends a webhook, lets eleven minutes pass, and says after how many seconds the receiver was called."""

    def told(receiver: Receiver) -> list[float]:
        WebhookSender(pika_channel, receiver.send).start()
        pika_channel.basic_publish("", ATTEMPTS[0], b"https://example.org/hook")
        for seconds in (0, 5, 60, 600):
            amqp_clock.advance(seconds)
            pika_connection.process_data_events(time_limit=0)
        amqp_broker.wait_until_idle()
        return receiver.called_after

    return told


def test_who_answers_is_told_once(amqp_clock: Clock, told: Callable[[Receiver], list[float]]) -> None:
    assert told(Receiver(amqp_clock, deaf_for=0)) == [0]


def test_who_does_not_is_called_again_after_five_seconds(
    amqp_clock: Clock, told: Callable[[Receiver], list[float]]
) -> None:
    assert told(Receiver(amqp_clock, deaf_for=1)) == [0, 5]


def test_then_after_a_minute_and_after_ten(
    amqp_clock: Clock, told: Callable[[Receiver], list[float]]
) -> None:
    assert told(Receiver(amqp_clock, deaf_for=3)) == [0, 5, 65, 665]


def test_in_the_end_it_is_given_up_with_its_history(
    amqp_broker: Broker, amqp_clock: Clock, told: Callable[[Receiver], list[float]]
) -> None:
    told(Receiver(amqp_clock, deaf_for=4))

    [webhook] = amqp_broker.queue(GIVEN_UP).messages
    assert webhook.body == b"https://example.org/hook"
    deaths = webhook.headers["x-death"]
    assert [death["reason"] for death in deaths] == ["rejected", *["expired", "rejected"] * 3]
    assert deaths[0]["queue"] == ATTEMPTS[-1]


def test_what_waits_survives_a_restart(
    amqp_broker: Broker, amqp_clock: Clock, pika_channel: BlockingChannel
) -> None:
    WebhookSender(pika_channel, lambda url: None).start()
    amqp_broker.publish(b"https://example.org/hook", routing_key="webhooks.wait-10m", delivery_mode=2)
    amqp_broker.restart()
    amqp_clock.advance(600)
    assert amqp_broker.queue(ATTEMPTS[-1]).ready == 1
