"""What pika does in each case.

Each function is a generator: it prepares a connection up to the first `yield`, does what is measured up to
the second, and then closes the connection.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pika

from fakeamqp import Broker

__all__ = [
    "PREFETCH",
    "acknowledged",
    "broker_per_test",
    "confirmed",
    "confirmed_in_a_window",
    "consumed",
    "conversations",
    "declared",
    "got",
    "name",
    "published",
]

PREFETCH = 100


def name() -> str:
    """Of a new queue: one that a broker has named cannot be declared again."""
    return secrets.token_hex(4)


@contextmanager
def connected(url: str) -> Iterator[tuple[Any, str]]:
    """A channel, and the name of a queue."""
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        yield channel, channel.queue_declare(name(), exclusive=True).method.queue


def publish(channel: Any, queue: str, count: int, body: bytes) -> None:
    for _ in range(count):
        channel.basic_publish("", queue, body)


def fill(channel: Any, queue: str, count: int, body: bytes) -> None:
    """Publish, and wait until all messages are in the queue."""
    publish(channel, queue, count, body)
    while channel.queue_declare(queue, passive=True).method.message_count < count:
        pass


def consume(channel: Any, queue: str, count: int, batch: int = 0) -> None:
    """Consume so many messages; acknowledge after each `batch` of them, or never."""
    left = count

    def handle(channel: Any, method: Any, _properties: Any, _body: bytes) -> None:
        nonlocal left
        left -= 1
        if batch and left % batch == 0:
            channel.basic_ack(method.delivery_tag, multiple=batch > 1)
        if not left:
            channel.stop_consuming()

    channel.basic_consume(queue, handle, auto_ack=not batch)
    channel.start_consuming()


def published(url: str, count: int, body: bytes) -> Iterator[None]:
    with connected(url) as (channel, queue):
        yield
        publish(channel, queue, count, body)
        channel.queue_declare(queue, passive=True)  # The answer shows that the broker has read everything.
        yield


def consumed(url: str, count: int, body: bytes) -> Iterator[None]:
    with connected(url) as (channel, queue):
        yield
        publish(channel, queue, count, body)
        consume(channel, queue, count)
        yield


def acknowledged(url: str, count: int, body: bytes, batch: int = 1) -> Iterator[None]:
    with connected(url) as (channel, queue):
        channel.basic_qos(prefetch_count=PREFETCH)
        fill(channel, queue, count, body)
        yield
        consume(channel, queue, count, batch)
        yield


def confirmed(url: str, count: int, body: bytes) -> Iterator[None]:
    with connected(url) as (channel, queue):
        channel.confirm_delivery()
        yield
        publish(channel, queue, count, body)
        yield


def confirmed_in_a_window(url: str, count: int, body: bytes, window: int) -> Iterator[None]:
    """With a `SelectConnection`: a blocking one waits for each confirm."""
    sent = 0
    queue = ""

    def opened(channel: Any) -> None:
        channel.queue_declare(
            name(), exclusive=True, callback=lambda frame: queue_declared(channel, frame.method.queue)
        )

    def queue_declared(channel: Any, name: str) -> None:
        nonlocal queue
        queue = name
        channel.confirm_delivery(lambda frame: go_on(frame.method.delivery_tag), lambda _: loop.stop())
        channels.append(channel)

    def go_on(settled: int) -> None:
        nonlocal sent
        if settled == count:
            loop.stop()
        while sent < min(count, settled + window):
            sent += 1
            channels[0].basic_publish("", queue, body)

    channels: list[Any] = []
    connection = pika.SelectConnection(
        pika.URLParameters(url),
        on_open_callback=lambda connection: connection.channel(on_open_callback=opened),
        on_close_callback=lambda *_: loop.stop(),
    )
    loop = connection.ioloop
    loop.start()
    yield
    go_on(0)
    loop.start()
    yield
    connection.close()
    loop.start()
    loop.close()


def declared(url: str, count: int, _body: bytes) -> Iterator[None]:
    with connected(url) as (channel, queue):
        yield
        for _ in range(count):
            channel.queue_declare(queue, exclusive=True)
        yield


def got(url: str, count: int, body: bytes) -> Iterator[None]:
    with connected(url) as (channel, queue):
        fill(channel, queue, count, body)
        yield
        for _ in range(count):
            assert channel.basic_get(queue, auto_ack=True)[0] is not None
        yield


def converse(url: str, body: bytes) -> None:
    """Connect, declare, publish with a confirm, get, close."""
    with connected(url) as (channel, queue):
        channel.confirm_delivery()
        channel.basic_publish("", queue, body, mandatory=True)
        assert channel.basic_get(queue, auto_ack=True)[2] == body


def conversations(url: str, count: int, body: bytes) -> Iterator[None]:
    yield
    for _ in range(count):
        converse(url, body)
    yield


def broker_per_test(_url: str, count: int, body: bytes) -> Iterator[None]:
    yield
    for _ in range(count):
        with Broker() as broker:
            converse(broker.url, body)
    yield
