"""Takes so many messages out of a queue and no more, for readers that know how many they want.

The prefetch window of a consumer is what is still wanted. A larger one would take messages away from other
consumers and return them afterwards, which quorum queues count. A window has at most 65 535 messages. Further
consumers follow one after the other: several at once would mix up the order of the queue, and only one could
be its single active consumer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from fakeamqp.spark.errors import ConnectionLost
from fakeamqp.spark.rows.record_batches import DeliveredRow, fill_a_batch
from fakeamqp.spark.wire.refusals import refused

if TYPE_CHECKING:
    from fakeamqp.spark.wire.channel import Receive, WireChannel
    from fakeamqp.spark.wire.connection import WireConnection

_LARGEST_WINDOW = 65535


class ExactConsumer:
    """Consumes at most so many messages of a queue.

    Args:
        connection: used by nothing else meanwhile.
        queue: its name.
        wanted: how many messages.
        priority: the consumer's argument `x-priority`.
        first: the column `offset` of the first message.
        repeats: whether a redelivered message, by its properties and body, is left out of the rows.

    Attributes:
        arrived: how many messages have arrived.
        redelivered: how many of them were redelivered.
        idle: for how many seconds `turn` has waited since a message arrived.
    """

    def __init__(
        self,
        connection: WireConnection,
        queue: str,
        wanted: int = 0,
        *,
        priority: int | None = None,
        first: int = 0,
        repeats: Callable[[bytes, bytes], bool] = lambda *_: False,
    ) -> None:
        self.arrived = self.redelivered = 0
        self.idle: float = 0.0
        self._connection = connection
        self._queue = queue
        self._wanted = wanted
        self._arguments = None if priority is None else {"x-priority": priority}
        self._next_offset = first
        self._repeats = repeats
        self._asked_for = 0
        self._consumer: str | None = None
        # The channels that have the messages, each with the last delivery tag.
        self._channels: dict[WireChannel, int] = {}
        self._rows: list[DeliveredRow] = []
        self._bytes = 0

    @property
    def missing(self) -> int:
        """How many messages have not arrived."""
        return self._wanted - self.arrived

    @property
    def has_batch(self) -> bool:
        """Whether there are as many rows as should be in memory at once."""
        return fill_a_batch(len(self._rows), self._bytes)

    def take(self) -> list[DeliveredRow]:
        """The rows since the last call."""
        rows, self._rows, self._bytes = self._rows, [], 0
        return rows

    def turn(self, seconds: float) -> int | None:
        """Wait for messages, at most so long.

        Returns:
            None if some arrived; otherwise how many are ready in the queue.

        Raises:
            QueueRefused: the broker refuses a consumer, or has closed a channel that has messages.
            ConnectionLost: the broker has cancelled the consumer, or the connection has ended.
        """
        before = self.arrived
        try:
            if self.arrived == self._asked_for:
                self._consume()
            began = time.monotonic()
            while self.arrived == before and (left := began + seconds - time.monotonic()) > 0:
                self._check()
                self._connection.turn(left)
            self._check()
            ready = self._channel.settle(self._queue) if self.arrived == before else None
        except ConnectionLost as error:
            raise refused(f"cannot read queue {self._queue!r}", error) from None
        if self.arrived != before:
            self.idle = 0.0
            return None
        self.idle += time.monotonic() - began
        return ready

    def cancel(self) -> None:
        """End the consumer. The channel has its messages, and no more of them arrive.

        Raises:
            ConnectionLost: the broker has ended it before, or the connection has ended.
        """
        tag, self._consumer = self._consumer, None
        if tag is not None:
            self._channel.cancel(tag)
            # RabbitMQ may send messages after its answer that a quorum queue has delivered before.
            self._channel.discard()

    def acknowledge(self) -> None:
        """Acknowledge the messages that have arrived. The broker knows it when `close` returns."""
        for channel, tag in self._channels.items():
            if tag:
                channel.ack(tag, multiple=True)

    def close(self) -> None:
        """Close the channels. Messages that are not acknowledged are in the queue when this returns.

        Raises:
            ConnectionLost: the broker has ended a channel or the connection before.
        """
        for channel in self._channels:
            channel.close()
            if channel.lost is not None:
                channel.check()
        self._connection.check()

    @property
    def _channel(self) -> WireChannel:
        """The last channel, which has the consumer."""
        return next(reversed(self._channels))

    def _check(self) -> None:
        for channel in self._channels:
            channel.check()

    def _consume(self) -> None:
        self.cancel()
        window = min(self._wanted - self._asked_for, _LARGEST_WINDOW)
        self._asked_for += window
        channel = self._open()
        channel.qos(window)
        self._consumer = channel.consume(self._queue, self._receiver(channel), self._arguments)

    def _open(self) -> WireChannel:
        channel = self._connection.channel()
        self._channels[channel] = 0
        return channel

    def _receiver(self, channel: WireChannel) -> Receive:
        """The callback for deliveries. It runs for every message, so it calls little."""
        connection, queue, tags = self._connection, self._queue, self._channels

        def receive(tag: int, redelivered: bool, route: bytes, properties: bytes, body: bytes) -> None:
            tags[channel] = tag
            self.arrived += 1
            if redelivered:
                self.redelivered += 1
                if self._repeats(properties, body):
                    return
            offset = self._next_offset
            self._next_offset = offset + 1
            self._bytes += len(properties) + len(body)
            self._rows.append(
                DeliveredRow(tag, redelivered, route, properties, body, queue, offset, connection.received_at)
            )

        return receive
