"""A snapshot of the messages of a queue: deliveries that are returned afterwards, each to its old place.

The messages are missing from another snapshot at the same time, so snapshots of a queue take turns.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import closing, suppress

from fakeamqp.spark.browse.delivery_limit import FIRST_UNCOUNTED
from fakeamqp.spark.browse.turns import Turn
from fakeamqp.spark.errors import ChannelClosed, ConnectionLost, SparkError
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.rows.record_batches import DeliveredRow
from fakeamqp.spark.wire.exact import ExactConsumer
from fakeamqp.spark.wire.pool import lend
from fakeamqp.spark.wire.refusals import refused

log: logging.Logger = logging.getLogger("fakeamqp.spark")

_NO_GET = "single active consumer"
# Seconds until a queue counts returned messages as ready, at most.
_RETURN_SECONDS = 1.0


def snapshot(options: ReadOptions, queue: str) -> Iterator[list[DeliveredRow]]:
    """The messages that are ready in a queue now, in lists of limited size.

    Messages that other consumers take meanwhile are missing. All messages are returned before the last list,
    so a read of one list does not keep them while Spark processes it.

    Raises:
        BrokerUnreachable: no connection can be opened.
        QueueRefused: the queue does not exist, or the broker has ended the read.
        ConnectionLost: the connection ended before all messages were read.
        SparkError: the broker does not deliver messages that it counts as ready, or another read of the queue
            does not end in time.
    """
    with lend(options.connection) as connection:
        turn = Turn(connection, queue)
        turn.begin(options.reconnect_timeout)
        messages = _BorrowedMessages(connection, queue)
        try:
            messages.want_all()
            while messages.missing:
                ready = messages.turn(options.idle_timeout)
                if ready == 0:
                    break  # Other consumers took the missing ones.
                if ready and messages.idle >= options.connection.connect_timeout:
                    raise SparkError(
                        f"queue {queue!r} has {ready} ready messages, but no message arrived for "
                        f"{messages.idle:.1f} s: another consumer may be the single active consumer; if the "
                        "broker is slow, set the option 'amqp.connectionTimeout'"
                    )
                if messages.missing and messages.has_batch:
                    turn.waits_for_spark()
                    yield messages.take()
            last = messages.take()  # Before: a message that returns may be delivered once more.
        finally:
            messages.give_back()
            turn.end()
    if last:
        yield last


class _BorrowedMessages(ExactConsumer):
    """Messages of a queue that are returned to it."""

    def want_all(self) -> None:
        """Take the first message with basic.get, whose answer has the number of further ones.

        A passive declaration has it as well, but says 0 while a quorum queue has no leader. It is for quorum
        queues with a single active consumer, which refuse basic.get.

        Raises:
            QueueRefused, ConnectionLost: the queue cannot be read.
        """
        channel = self._open()
        try:
            left = channel.get(self._queue, self._receiver(channel))
        except ConnectionLost as error:
            if not isinstance(error, ChannelClosed) or _NO_GET not in error.reply_text:
                raise refused(f"cannot read queue {self._queue!r}", error) from None
            self._channels.clear()
            left = self._open().settle(self._queue)
        self._asked_for = self.arrived
        self._wanted = self.arrived + (left or 0)

    def give_back(self) -> None:
        """Return all messages, in their order; they are in the queue when this returns.

        From RabbitMQ 4.3 on, basic.nack does not count for the delivery limit of a quorum queue, and closing
        the channel does. Before, both count, and basic.nack moves messages to the tail of quorum queues
        without a limit, which closing the channel does not.
        """
        uncounted = self._connection.broker_version >= FIRST_UNCOUNTED
        with suppress(ConnectionLost):
            self.cancel()  # It would get messages that the other channels return.
        for channel in self._channels:
            # Messages of a channel or connection that has ended are back already.
            with suppress(ConnectionLost), closing(channel):
                channel.discard()
                if uncounted and channel.is_open:
                    channel.nack(0, multiple=True)
                    if channel is self._channel:
                        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        """Wait until the queue counts the returned messages; warn if it does not count all of them in time.

        Counts from RabbitMQ 4.3 right after basic.nack were too small (measured).
        """
        until = time.monotonic() + _RETURN_SECONDS
        while (ready := self._channel.count(self._queue).message_count) < self.arrived:
            if time.monotonic() >= until:
                log.warning(
                    "queue %r has only %d ready messages after this read returned %d: other consumers took "
                    "them, or they expired, or the queue delays returned messages (x-delayed-retry-type). "
                    "Reads do not get delayed messages; use DataFrame.cache()",
                    self._queue,
                    ready,
                    self.arrived,
                )
                return
            self._connection.turn(_RETURN_SECONDS / 100)
