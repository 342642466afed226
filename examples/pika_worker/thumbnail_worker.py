"""A worker that takes thumbnail jobs from a queue: one queue, any number of workers.

A job is acknowledged when its thumbnail is made, so a worker that dies gives its jobs back. A job that can
never succeed is rejected, so that it does not come round for ever.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.spec import Basic

QUEUE = "thumbnails"
PREFETCH = 2


class BadImage(Exception):
    """No thumbnail can be made of this."""


def declare(channel: BlockingChannel) -> None:
    """Declare the queue. Both sides call this, in any order."""
    channel.queue_declare(QUEUE, durable=True)


def submit(channel: BlockingChannel, path: str, width: int) -> None:
    """Ask for a thumbnail."""
    channel.basic_publish(
        exchange="",
        routing_key=QUEUE,
        body=json.dumps({"path": path, "width": width}).encode(),
        properties=pika.BasicProperties(content_type="application/json", delivery_mode=2),
    )


class ThumbnailWorker:
    """Consumes jobs and hands them to `make_thumbnail(path, width)`."""

    def __init__(self, channel: BlockingChannel, make_thumbnail: Callable[[str, int], None]) -> None:
        self._channel = channel
        self._make_thumbnail = make_thumbnail

    def start(self) -> None:
        """Begin to take jobs, never more than PREFETCH at a time."""
        declare(self._channel)
        self._channel.basic_qos(prefetch_count=PREFETCH)
        self._channel.basic_consume(QUEUE, self._on_job)

    def _on_job(
        self, channel: BlockingChannel, method: Basic.Deliver, properties: pika.BasicProperties, body: bytes
    ) -> None:
        try:
            job = json.loads(body)
            self._make_thumbnail(job["path"], job["width"])
        except (ValueError, KeyError, BadImage) as error:
            print(f"dropping job {body!r}: {error!r}")
            channel.basic_reject(method.delivery_tag, requeue=False)
        else:
            channel.basic_ack(method.delivery_tag)


def main() -> None:
    url = os.environ.get("AMQP_URL", "amqp://guest:guest@localhost:5672/")
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        ThumbnailWorker(channel, lambda path, width: print(f"{path} -> {width} px")).start()
        channel.start_consuming()


if __name__ == "__main__":
    main()
