"""The messages of a queue, held for a moment and put back.

A message that is delivered and not acknowledged goes back to its place when its channel closes. So a snapshot
consumes with a window of exactly as many messages as it wants: no window at all would take messages from
other consumers that came later, and quorum queues read it as one of 2000. The largest window that AMQP can
say is 65535 messages, so after so many a further channel goes on: the one before is full and gets no more.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fakeamqp.spark.connection import Link
from fakeamqp.spark.errors import ConnectionLost, OptionError, SparkError
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.records import Delivered

if TYPE_CHECKING:
    from pika.channel import Channel
    from pika.spec import Basic, BasicProperties

__all__ = ["snapshot"]

_LARGEST_WINDOW = 65535
_NOT_IMPLEMENTED = "540 "


def snapshot(options: ReadOptions, queue: str, rows: int, octets: int) -> Iterator[list[Delivered]]:
    """The messages that are ready in a queue now, in lists of about `rows` messages or `octets` bytes.

    There are fewer if other consumers take some. In the end all of them are back in the queue.

    Raises:
        OptionError: if the queue is a stream.
        BrokerUnreachable: no connection can be opened.
        ConnectionLost: if it ends before everything is read.
        SparkError: if the broker keeps back messages that it counts.
    """
    with Link(options.connection) as link:
        held = _Held(options, link, queue)
        try:
            held.begin()
            while held.missing:
                if not held.wait_for_more():
                    break
                if len(held.messages) >= rows or held.octets >= octets:
                    yield held.take()
                    held.rested()
            if held.messages:
                yield held.take()
        finally:
            held.put_back()


class _Held:
    """What one connection holds of a queue."""

    def __init__(self, options: ReadOptions, link: Link, queue: str) -> None:
        self._options = options
        self._link = link
        self._queue = queue
        self._channels: list[tuple[Channel, str | None]] = []
        self._not_asked_for = 0
        self._came = 0
        self._moved_at = self._looked_at = time.monotonic()
        self.missing = 0
        self.messages: list[Delivered] = []
        self.octets = 0

    def begin(self) -> None:
        """Take the first message by a get, which says how many there are.

        Streams refuse it, and would let a consumer wait for what is new in them.

        Raises:
            OptionError: if the queue is a stream.
            ConnectionLost: if it cannot be read.
        """
        channel = self._link.channel()
        self._channels.append((channel, None))
        answers: list[bool] = []

        def got(_channel: Channel, deliver: Any, properties: BasicProperties, body: bytes) -> None:
            self.missing = 1 + deliver.message_count
            self._not_asked_for = deliver.message_count
            self._receive(_channel, deliver, properties, body)
            answers.append(True)

        channel.add_callback(lambda _frame: answers.append(False), [_get_empty()])
        channel.basic_get(self._queue, got)
        try:
            self._link.wait_for(
                lambda: bool(answers), self._options.connection.connect_timeout, "answer basic_get"
            )
        except ConnectionLost as error:
            if _NOT_IMPLEMENTED in str(error):
                raise OptionError(
                    f"{self._queue!r} is a stream, which is read by option 'stream', not 'queue' ({error})"
                ) from error
            raise ConnectionLost(f"cannot read queue {self._queue!r}: {error}") from error

    def wait_for_more(self) -> bool:
        """Let messages come in; False if those that are missing went to other consumers.

        Raises:
            ConnectionLost: if the connection or the queue is gone.
            SparkError: if the broker keeps back messages that it counts.
        """
        link, before = self._link, self.missing
        link.check()
        if self._not_asked_for == before:
            self._consume()
        left = self._looked_at + self._options.idle_timeout - time.monotonic()
        if self.missing == before:
            link.turn(max(left, 0.0))
        if self.missing != before:
            self.rested()
            return True
        return left > 0 or self._look()

    def take(self) -> list[Delivered]:
        """The messages that arrived since the last call."""
        messages, self.messages, self.octets = self.messages, [], 0
        return messages

    def rested(self) -> None:
        """Nobody has waited for messages up to now."""
        self._moved_at = self._looked_at = time.monotonic()

    def put_back(self) -> None:
        """Give everything back, in order, and see to it that it is there when this returns.

        RabbitMQ counts how often a message of a quorum queue came back, and drops it when that is more than
        the queue's delivery limit, 20 if nothing else is said. Since 4.3 it does not count a basic.nack, and
        does count a channel that closes with it. Before, it counts both, and a basic.nack moves messages
        behind all others in quorum queues that have no limit, which a closing channel does not.
        """
        with suppress(ConnectionLost):  # Then the broker has everything back already.
            uncounted = self._link.broker_version >= (4, 3)
            for channel, tag in self._channels:
                if channel.is_open and uncounted:
                    if tag is not None:
                        self._link.call(channel.basic_cancel, tag)
                    channel.basic_nack(0, multiple=True, requeue=True)
                    self._link.call(channel.queue_declare, self._queue, passive=True)
                self._link.close_channel(channel)

    def _consume(self) -> None:
        link = self._link
        window = min(self._not_asked_for, _LARGEST_WINDOW)
        channel = link.channel()
        channel.add_on_cancel_callback(self._deleted)
        link.call(channel.basic_qos, prefetch_count=window)
        self._not_asked_for -= window
        answer = link.call(channel.basic_consume, self._queue, self._receive)
        self._channels.append((channel, answer.method.consumer_tag))

    def _receive(
        self, _channel: Channel, deliver: Basic.Deliver, properties: BasicProperties, body: bytes
    ) -> None:
        self.messages.append(
            Delivered(deliver, properties, body, self._queue, self._came, time.time_ns() // 1000)
        )
        self._came += 1
        self.missing -= 1
        self.octets += len(body)

    def _deleted(self, _frame: object) -> None:
        self._link.lost = f"queue {self._queue!r} was deleted while it was read"

    def _look(self) -> bool:
        """True if the task should wait on although no message has arrived for a while."""
        options, missing = self._options, self.missing
        channel = self._channels[-1][0]
        ready = 0
        for _ in range(2):  # RabbitMQ may give the first answer before it sends on what is for this channel.
            answer = self._link.call(channel.queue_declare, self._queue, passive=True)
            ready = answer.method.message_count
        self._looked_at = time.monotonic()
        idle = self._looked_at - self._moved_at
        if self.missing == missing and ready and idle >= options.connection.connect_timeout:
            raise SparkError(
                f"queue {self._queue!r} says that {ready} messages are ready, and nothing came for "
                f"{idle:.1f} s: another consumer may be its single active one; or the "
                "broker is slow, for which there is the option 'amqp.connectionTimeout'"
            )
        if self.missing != missing:
            self.rested()
        return bool(ready) or self.missing != missing


def _get_empty() -> Any:
    from pika.spec import Basic

    return Basic.GetEmpty
