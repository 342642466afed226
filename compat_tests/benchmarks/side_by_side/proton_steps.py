"""What proton does in each case, over AMQP 1.0; the functions are generators like those of `pika_steps`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pika

from compat_tests.benchmarks.side_by_side.pika_steps import name

if TYPE_CHECKING:
    from compat_tests.benchmarks.side_by_side.proton_client import Client

__all__ = ["confirmed", "consumed"]


@contextmanager
def connected(url: str) -> Iterator[Client]:
    """A client of a queue of its own."""
    from compat_tests.benchmarks.side_by_side.proton_client import Client

    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        queue = connection.channel().queue_declare(name(), durable=True).method.queue
        client = Client(url, queue)
        try:
            yield client
        finally:
            client.close()
            connection.channel().queue_delete(queue)


def confirmed(url: str, count: int, body: bytes) -> Iterator[None]:
    with connected(url) as client:
        yield
        client.publish(count, body)
        yield


def consumed(url: str, count: int, body: bytes) -> Iterator[None]:
    with connected(url) as client:
        client.publish(count, body)
        yield
        client.consume(count)
        yield
