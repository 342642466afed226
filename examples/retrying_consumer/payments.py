"""A consumer that tries again: three attempts for each payment, then it is parked for a human.

An attempt that failed is published again, with a header that counts, before the old one is acknowledged. If
the consumer dies between the two, the payment comes twice and none is lost, so the gateway must know payments
by their id.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.spec import Basic

QUEUE = "payments"
PARKED = "payments.parked"
ATTEMPTS = 3

ATTEMPT_HEADER = "x-attempt"
REASON_HEADER = "x-reason"


class GatewayDown(Exception):
    """The payment may succeed later."""


def declare(channel: BlockingChannel) -> None:
    channel.queue_declare(QUEUE, durable=True)
    channel.queue_declare(PARKED, durable=True)


def request_payment(channel: BlockingChannel, payment_id: str, cents: int) -> None:
    channel.basic_publish(
        exchange="",
        routing_key=QUEUE,
        body=json.dumps({"id": payment_id, "cents": cents}).encode(),
        properties=pika.BasicProperties(message_id=payment_id, delivery_mode=2),
    )


class PaymentConsumer:
    """Consumes payments and hands them to `charge(payment_id, cents)`."""

    def __init__(self, channel: BlockingChannel, charge: Callable[[str, int], None]) -> None:
        self._channel = channel
        self._charge = charge

    def start(self) -> None:
        declare(self._channel)
        self._channel.confirm_delivery()  # A publish now returns when the broker has taken the message.
        self._channel.basic_qos(prefetch_count=1)
        self._channel.basic_consume(QUEUE, self._on_payment)

    def _on_payment(
        self, channel: BlockingChannel, method: Basic.Deliver, properties: pika.BasicProperties, body: bytes
    ) -> None:
        headers = dict(properties.headers or {})
        attempt = headers.get(ATTEMPT_HEADER, 1)
        try:
            payment = json.loads(body)
            self._charge(payment["id"], payment["cents"])
        except GatewayDown as error:
            if attempt < ATTEMPTS:
                self._publish(QUEUE, body, properties, {**headers, ATTEMPT_HEADER: attempt + 1})
            else:
                self._publish(PARKED, body, properties, {**headers, REASON_HEADER: f"gave up: {error}"})
        except (ValueError, TypeError, KeyError) as error:
            self._publish(PARKED, body, properties, {**headers, REASON_HEADER: f"unreadable: {error!r}"})
        channel.basic_ack(method.delivery_tag)

    def _publish(
        self, queue: str, body: bytes, properties: pika.BasicProperties, headers: dict[str, object]
    ) -> None:
        properties.headers = headers
        self._channel.basic_publish("", queue, body, properties)


def main() -> None:
    url = os.environ.get("AMQP_URL", "amqp://guest:guest@localhost:5672/")
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        PaymentConsumer(channel, lambda payment_id, cents: print(f"charged {payment_id}: {cents}")).start()
        channel.start_consuming()


if __name__ == "__main__":
    main()
