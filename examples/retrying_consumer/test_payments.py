from __future__ import annotations

from collections.abc import Callable, Iterator

import pika
import pytest
from payments import (
    ATTEMPT_HEADER,
    ATTEMPTS,
    PARKED,
    QUEUE,
    REASON_HEADER,
    GatewayDown,
    PaymentConsumer,
    declare,
    request_payment,
)
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

from fakeamqp import Broker


@pytest.fixture(autouse=True)
def payment_queues(amqp_url: str, pika_channel: BlockingChannel) -> Iterator[None]:
    """The queues, made before the test and removed after it: needed only where the broker is a real one."""
    declare(pika_channel)
    yield
    with pika.BlockingConnection(pika.URLParameters(amqp_url)) as connection:
        channel = connection.channel()
        channel.queue_delete(QUEUE)
        channel.queue_delete(PARKED)


class Gateway:
    """A payment gateway that is down for the first calls."""

    def __init__(self, down_for: int = 0) -> None:
        self.down_for = down_for
        self.calls: list[str] = []
        self.charged: list[tuple[str, int]] = []

    def charge(self, payment_id: str, cents: int) -> None:
        self.calls.append(payment_id)
        if len(self.calls) <= self.down_for:
            raise GatewayDown("connection refused")
        self.charged.append((payment_id, cents))


def consume_until(connection: BlockingConnection, done: Callable[[], object]) -> None:
    """Let the consumer work until `done()`; pytest's time limit ends a test in which that never happens."""
    while not done():
        connection.process_data_events(time_limit=0.1)


def waiting_in(channel: BlockingChannel, queue: str) -> int:
    count: int = channel.queue_declare(queue, passive=True).method.message_count
    return count


def test_a_payment_is_charged_at_the_first_attempt(
    pika_connection: BlockingConnection, pika_channel: BlockingChannel
) -> None:
    gateway = Gateway()
    request_payment(pika_channel, "p-1", 1999)
    PaymentConsumer(pika_channel, gateway.charge).start()
    consume_until(pika_connection, lambda: gateway.charged)

    assert gateway.charged == [("p-1", 1999)]
    assert (waiting_in(pika_channel, QUEUE), waiting_in(pika_channel, PARKED)) == (0, 0)


def test_a_gateway_that_is_down_for_a_moment_is_tried_again(
    pika_connection: BlockingConnection, pika_channel: BlockingChannel
) -> None:
    gateway = Gateway(down_for=ATTEMPTS - 1)
    request_payment(pika_channel, "p-1", 1999)
    PaymentConsumer(pika_channel, gateway.charge).start()
    consume_until(pika_connection, lambda: gateway.charged)

    assert gateway.calls == ["p-1"] * ATTEMPTS
    assert waiting_in(pika_channel, PARKED) == 0


def test_a_retry_goes_behind_the_payments_that_wait(
    pika_connection: BlockingConnection, pika_channel: BlockingChannel
) -> None:
    gateway = Gateway(down_for=1)
    for payment_id in ("p-1", "p-2"):
        request_payment(pika_channel, payment_id, 1999)
    PaymentConsumer(pika_channel, gateway.charge).start()
    consume_until(pika_connection, lambda: len(gateway.charged) == 2)

    assert [payment_id for payment_id, _ in gateway.charged] == ["p-2", "p-1"]


def test_after_the_last_attempt_the_payment_is_parked_with_the_reason(
    pika_connection: BlockingConnection, pika_channel: BlockingChannel
) -> None:
    gateway = Gateway(down_for=ATTEMPTS)
    request_payment(pika_channel, "p-1", 1999)
    PaymentConsumer(pika_channel, gateway.charge).start()
    consume_until(pika_connection, lambda: waiting_in(pika_channel, PARKED) == 1)

    _, properties, body = pika_channel.basic_get(PARKED, auto_ack=True)
    assert body == b'{"id": "p-1", "cents": 1999}'
    assert properties.message_id == "p-1"
    assert properties.headers == {ATTEMPT_HEADER: ATTEMPTS, REASON_HEADER: "gave up: connection refused"}
    assert gateway.charged == []


def test_an_unreadable_payment_is_parked_at_once(
    pika_connection: BlockingConnection, pika_channel: BlockingChannel
) -> None:
    gateway = Gateway()
    pika_channel.basic_publish("", QUEUE, b"1999")
    PaymentConsumer(pika_channel, gateway.charge).start()
    pika_channel.basic_publish("", QUEUE, b"{}")
    consume_until(pika_connection, lambda: waiting_in(pika_channel, PARKED) == 2)

    assert gateway.calls == []


def test_a_parked_payment_survives_a_restart_of_the_broker(
    amqp_broker: Broker, pika_connection: BlockingConnection, pika_channel: BlockingChannel
) -> None:
    gateway = Gateway(down_for=ATTEMPTS)
    request_payment(pika_channel, "p-1", 1999)
    PaymentConsumer(pika_channel, gateway.charge).start()
    consume_until(pika_connection, lambda: amqp_broker.queue(PARKED).ready == 1)

    amqp_broker.restart()

    with pika.BlockingConnection(pika.URLParameters(amqp_broker.url)) as connection:
        _, properties, _ = connection.channel().basic_get(PARKED, auto_ack=True)
    assert properties.message_id == "p-1"
