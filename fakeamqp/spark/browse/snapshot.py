"""A snapshot of the messages of a queue: deliveries that are requeued afterwards.

A message that is delivered and not acknowledged is requeued at its old position when its channel closes. The
prefetch window of a snapshot is exactly the number of messages that it needs. Without a window it would also
take later messages away from other consumers, and quorum queues would use a window of 2000. The largest
window of AMQP is 65535 messages. For more messages the snapshot opens further channels.

The messages are missing from another snapshot at the same time, so snapshots of a queue take turns.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from fakeamqp.spark.browse import delivery_limit
from fakeamqp.spark.browse.turns import Turn
from fakeamqp.spark.connection import Link, quiet
from fakeamqp.spark.errors import ConnectionLost, DeliveryLimit, OptionError, SparkError
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.queue_types import settle
from fakeamqp.spark.records import DeliveredRow

if TYPE_CHECKING:
    from pika.channel import Channel

    from fakeamqp.spark.incoming import Receive

log: logging.Logger = logging.getLogger("fakeamqp.spark")

_LARGEST_WINDOW = 65535
_NOT_IMPLEMENTED = "540 "
_NO_GET = "single active consumer"
# How long a queue may take until it counts returned messages as ready.
_RETURN_SECONDS = 1.0


def snapshot(
    options: ReadOptions, queue: str, rows: int, octets: int, limit: int | None = None
) -> Iterator[list[DeliveredRow]]:
    """The messages that are ready in a queue now, in lists of about `rows` messages or `octets` bytes.

    Messages that other consumers take are missing. All messages are requeued before the last list, so a read
    of one list does not keep them while Spark processes it. `limit` is how often the queue lets messages
    return, if reads count.

    Raises:
        OptionError: the queue is a stream.
        DeliveryLimit: the queue may drop messages that are returned once more.
        BrokerUnreachable: no connection can be opened.
        ConnectionLost: the connection ended before all messages were read.
        SparkError: the broker does not deliver messages that it counts as ready, or another read of the queue
            does not end in time.
    """
    with Link(options.connection) as link:
        turn = Turn(link, queue)
        turn.begin(options.reconnect_timeout)
        held = _Held(options, link, queue, limit)
        try:
            held.begin()
            held.check_limit()
            while held.missing:
                if not held.wait_for_more():
                    break
                held.check_limit()
                if held.missing and (len(held.messages) >= rows or held.octets >= octets):
                    turn.waits_for_spark()
                    yield held.take()
                    held.restart_timeouts()
            last = held.take()  # Another delivery of a message that is requeued first would come into it.
        finally:
            held.requeue()
    if last:
        yield last


class _Held:
    """The messages of a queue that are delivered to one connection, and not yet requeued."""

    def __init__(self, options: ReadOptions, link: Link, queue: str, limit: int | None) -> None:
        self._options = options
        self._link = link
        self._queue = queue
        self._channels: list[tuple[Channel, str | None]] = []
        self._limit = limit
        self._highest = 0
        self._checked = False
        self._doomed: list[tuple[Channel, int, bytes, bytes]] = []
        self._not_asked_for = 0
        self._arrived = 0
        self._moved_at = self._looked_at = time.monotonic()
        self.missing = 0
        self.messages: list[DeliveredRow] = []
        self.octets = 0

    def begin(self) -> None:
        """Take the first message with basic.get, whose answer has the number of messages.

        Streams refuse basic.get; a consumer of a stream would wait for new messages. Quorum queues with a
        single active consumer refuse it too, and a passive declaration tells the number.

        Raises:
            OptionError: the queue is a stream.
            ConnectionLost: the queue cannot be read.
        """
        channel = self._link.channel()
        self._channels.append((channel, None))
        try:
            with quiet():
                left = self._link.get(channel, self._queue, self._receiver(channel))
        except ConnectionLost as error:
            if _NOT_IMPLEMENTED in str(error):
                raise OptionError(
                    f"{self._queue!r} is a stream: set option 'stream' instead of 'queue' ({error})"
                ) from None
            if _NO_GET not in str(error) or not channel.connection.is_open:
                raise ConnectionLost(f"cannot read queue {self._queue!r}: {error}") from None
            left = self._count_again()
        if left is not None:
            self.missing = self._not_asked_for = left

    def _count_again(self) -> int:
        """The number of ready messages, on a channel in place of the one that the broker has closed."""
        self._link.lost = None  # Only that channel was closed.
        channel = self._link.channel()
        self._channels = [(channel, None)]
        return settle(self._link, channel, self._queue)

    def check_limit(self) -> None:
        """Warn of a read that counts, and refuse one that would make the queue drop messages.

        The reserve is for the first check, when usually only the first message was taken.

        Raises:
            DeliveryLimit: the queue may drop messages that are returned once more.
        """
        limit, count = self._limit, self._highest
        if limit is None or not self._arrived:
            return
        first, self._checked = not self._checked, True
        known = f"messages of quorum queue {self._queue!r} were returned up to {count} times"
        spare = delivery_limit.reserve(limit) if first else 0
        if count >= limit - spare and not self._options.allow_delivery_limit:
            raise DeliveryLimit(
                f"{known}, and the queue drops or dead-letters them above {limit}: this read is refused. A "
                "refused read counts too, for the messages that it looked at. Consume the messages, or use "
                "RabbitMQ 4.3, where reads do not count; allowDeliveryLimit=true reads all the same, for "
                "example if a policy sets a higher limit"
            )
        if first:
            log.warning(
                "%s; this read is one more, and above %d the queue drops or dead-letters them (a policy may "
                "set another limit). Use DataFrame.cache(), a higher delivery limit, or RabbitMQ 4.3",
                known,
                limit,
            )

    def wait_for_more(self) -> bool:
        """Wait for messages; False if other consumers took the missing ones.

        Raises:
            ConnectionLost: the connection ended, or the queue was deleted.
            SparkError: the broker does not deliver messages that it counts as ready.
        """
        link, before = self._link, self.missing
        link.check()
        if self._not_asked_for == before:
            self._consume()
        left = self._looked_at + self._options.idle_timeout - time.monotonic()
        if self.missing == before:
            link.turn(max(left, 0.0))
        if self.missing != before:
            self.restart_timeouts()
            return True
        return left > 0 or self._look()

    def take(self) -> list[DeliveredRow]:
        """The messages that arrived since the last call."""
        messages, self.messages, self.octets = self.messages, [], 0
        return messages

    def restart_timeouts(self) -> None:
        """Restart the idle timeouts."""
        self._moved_at = self._looked_at = time.monotonic()

    def requeue(self) -> None:
        """Requeue all messages in order; they are in the queue when this returns.

        RabbitMQ counts how often a message of a quorum queue is requeued, and drops the message above the
        delivery limit of the queue (default 20). From 4.3 on, basic.nack does not count, and closing the
        channel counts. Before 4.3 both count, and basic.nack moves messages to the tail of quorum queues
        without a limit, which closing the channel does not.
        """
        with suppress(ConnectionLost):  # Then the broker has requeued the messages already.
            self._save_doomed()
            uncounted = self._link.broker_version >= (4, 3)
            returned = self._arrived
            for channel, tag in self._channels:
                self._link.discard(channel)
                if channel.is_open and uncounted:
                    if tag is not None:
                        self._link.call(channel.basic_cancel, tag)
                    channel.basic_nack(0, multiple=True, requeue=True)
                    if channel is self._channels[-1][0]:
                        self._wait_until_ready(channel, returned)
                self._link.close_channel(channel)

    def _wait_until_ready(self, channel: Channel, returned: int) -> None:
        """Wait until the queue has the returned messages; warn if it does not have them in time.

        Counts from RabbitMQ 4.3 right after basic.nack were too small (measured).
        """
        until = time.monotonic() + _RETURN_SECONDS
        while (ready := self._ready(channel)) < returned and time.monotonic() < until:
            self._link.turn(_RETURN_SECONDS / 100)
        if ready < returned:
            log.warning(
                "queue %r has only %d ready messages after this read returned %d: other consumers took them, "
                "or they expired, or the queue delays returned messages (x-delayed-retry-type). Reads do not "
                "get delayed messages; use DataFrame.cache()",
                self._queue,
                ready,
                returned,
            )

    def _ready(self, channel: Channel) -> int:
        answer = self._link.call(channel.queue_declare, self._queue, passive=True)
        return int(answer.method.message_count)

    def _save_doomed(self) -> None:
        """Keep messages that the queue would drop, by publishing them again: their return is one too many."""
        for channel, tag, properties, body in self._doomed:
            saved = delivery_limit.save(self._link, self._queue, tag, properties, body, channel)
            log.warning(
                "a message of queue %r was returned %d times, its limit; %s",
                self._queue,
                self._limit,
                "it was published again, and is the last of the queue now"
                if saved
                else "it could not be published again, so the queue drops or dead-letters it",
            )

    def _consume(self) -> None:
        link = self._link
        self._cancel_last()  # Otherwise it would stay the single active consumer.
        window = min(self._not_asked_for, _LARGEST_WINDOW)
        channel = link.channel()
        channel.add_on_cancel_callback(self._deleted)
        link.call(channel.basic_qos, prefetch_count=window)
        self._not_asked_for -= window
        self._channels.append((channel, link.consume(channel, self._queue, self._receiver(channel))))

    def _cancel_last(self) -> None:
        """Cancel the last consumer, which has got its messages. Its channel keeps them."""
        channel, tag = self._channels[-1]
        if tag is not None:
            self._link.call(channel.basic_cancel, tag)
            self._channels[-1] = (channel, None)

    def _receiver(self, channel: Channel) -> Receive:
        def receive(tag: int, redelivered: bool, route: bytes, properties: bytes, body: bytes) -> None:
            if self._limit is not None and redelivered:
                count = delivery_limit.delivery_count(properties)
                self._highest = max(self._highest, count)
                if count >= self._limit and not self._options.allow_delivery_limit:
                    self._doomed.append((channel, tag, properties, body))
            self._receive(tag, redelivered, route, properties, body)

        return receive

    def _receive(self, tag: int, redelivered: bool, route: bytes, properties: bytes, body: bytes) -> None:
        now = self._link.received_at
        self.messages.append(
            DeliveredRow(tag, redelivered, route, properties, body, self._queue, self._arrived, now)
        )
        self._arrived += 1
        self.missing -= 1
        self.octets += self.messages[-1].octets

    def _deleted(self, _frame: object) -> None:
        self._link.lost = f"queue {self._queue!r} was deleted during the read"

    def _look(self) -> bool:
        """True if the task should wait longer although no message has arrived for a while."""
        options, missing = self._options, self.missing
        ready = settle(self._link, self._channels[-1][0], self._queue)
        self._looked_at = time.monotonic()
        idle = self._looked_at - self._moved_at
        if self.missing == missing and ready and idle >= options.connection.connect_timeout:
            raise SparkError(
                f"queue {self._queue!r} has {ready} ready messages, but no message arrived for "
                f"{idle:.1f} s: another consumer may be the single active consumer; if the "
                "broker is slow, set the option 'amqp.connectionTimeout'"
            )
        if self.missing != missing:
            self.restart_timeouts()
        return bool(ready) or self.missing != missing
