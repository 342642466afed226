"""Streams for tests of their readers, on any broker, and readers driven in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pika

from compat_tests.unit.spark.micro_batches import Limit, table
from fakeamqp.spark.options import read_options
from fakeamqp.spark.rows.columns import chosen_columns
from fakeamqp.spark.stream import StreamMicroBatchReader, batch_reader as batch_reader_of
from fakeamqp.spark.stream.offsets import from_json
from fakeamqp.spark.stream.readers import StreamBatchReader

__all__ = [
    "EVERYTHING",
    "Publisher",
    "batch_reader",
    "options",
    "positions",
    "publisher",
    "rows",
    "stream_reader",
]

EVERYTHING = Limit(10_000)


class Publisher:
    """Publishes, and knows that the broker has what was published."""

    def __init__(self, connection: pika.BlockingConnection) -> None:
        self.channel = connection.channel()
        self.channel.confirm_delivery()

    def declare(self, stream: str, **arguments: Any) -> None:
        """A new stream; `max_length_bytes=5` is `x-max-length-bytes`."""
        table = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
        self.channel.queue_declare(stream, durable=True, arguments={"x-queue-type": "stream", **table})

    def publish(self, stream: str, *numbers: int, **properties: Any) -> None:
        for number in numbers:
            given = pika.BasicProperties(message_id=f"m{number}", delivery_mode=2, **properties)
            self.channel.basic_publish("", stream, str(number).encode(), given)


@contextmanager
def publisher(url: str) -> Iterator[Publisher]:
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        yield Publisher(connection)


def options(url: str, *, streaming: bool = False, **given: object) -> Any:
    if not given.keys() & {"superStream", "streamPattern"}:
        given = {"stream": "log", **given}
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in given.items()}
    return read_options({"amqp.url": url, "idleTimeout": "50ms", **texts}, streaming=streaming)


def batch_reader(url: str, **given: object) -> StreamBatchReader:
    found = options(url, **given)
    return batch_reader_of(found, chosen_columns(found))


def stream_reader(url: str, **given: object) -> StreamMicroBatchReader:
    found = options(url, streaming=True, **given)
    return StreamMicroBatchReader(found, chosen_columns(found))


def positions(offset: dict[str, Any]) -> dict[str, int]:
    """The numbers of an offset, without marks."""
    return {stream: place.next for stream, place in from_json(offset).items()}


def rows(reader: Any, *offsets: Any) -> list[dict[str, Any]]:
    """What executors read of a batch, or between two offsets of a stream."""
    return table(reader, reader.partitions(*offsets)).to_pylist()
