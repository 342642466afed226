"""Sends webhooks, and tries again after 5 seconds, a minute and ten minutes; then the webhook is given up.

Nothing in this program waits. It rejects webhooks that it could not send, and the broker does the rest: each
queue dead-letters to a queue whose message TTL is the wait, and that queue dead-letters to the next one.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.spec import Basic

WAITS = {"5s": 5, "1m": 60, "10m": 600}
"""Seconds between one attempt and the next."""

ATTEMPTS = [f"webhooks.attempt-{number}" for number in range(1, len(WAITS) + 2)]
GIVEN_UP = "webhooks.given-up"


class Unreachable(Exception):
    """The receiver of the webhook does not answer."""


def dead_letters_to(queue: str) -> dict[str, object]:
    return {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue}


def declare(channel: BlockingChannel) -> None:
    following = [f"webhooks.wait-{name}" for name in WAITS]
    for attempt, wait in zip(ATTEMPTS, [*following, GIVEN_UP], strict=True):
        channel.queue_declare(attempt, durable=True, arguments=dead_letters_to(wait))
    for wait, seconds, attempt in zip(following, WAITS.values(), ATTEMPTS[1:], strict=True):
        arguments = {**dead_letters_to(attempt), "x-message-ttl": seconds * 1000}
        channel.queue_declare(wait, durable=True, arguments=arguments)
    channel.queue_declare(GIVEN_UP, durable=True)


class WebhookSender:
    """Consumes every attempt's queue and calls `send(url)`."""

    def __init__(self, channel: BlockingChannel, send: Callable[[str], None]) -> None:
        self._channel = channel
        self._send = send

    def start(self) -> None:
        declare(self._channel)
        for queue in ATTEMPTS:
            self._channel.basic_consume(queue, self._on_webhook)

    def _on_webhook(
        self, channel: BlockingChannel, method: Basic.Deliver, properties: pika.BasicProperties, body: bytes
    ) -> None:
        try:
            self._send(body.decode())
        except Unreachable:
            channel.basic_reject(method.delivery_tag, requeue=False)
        else:
            channel.basic_ack(method.delivery_tag)


def main() -> None:
    url = os.environ.get("AMQP_URL", "amqp://guest:guest@localhost:5672/")
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        WebhookSender(channel, lambda target: print(f"told {target}")).start()
        channel.start_consuming()


if __name__ == "__main__":
    main()
