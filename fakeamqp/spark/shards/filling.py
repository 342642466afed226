"""Takes messages from one shard into a segment, in an executor.

The order is: lease, deliveries, file, commit, note, acknowledgement. A crash before the commit leaves a
temporary file; one after it leaves messages that are redelivered, and that the next segments leave out by
their ids. The note says that a segment was complete, so that one that is lost later is not filled again.

A message that is delivered and not stored returns to its queue, which quorum queues count. So the window of
the consumer is exactly the number of messages that fit into the segment.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from fakeamqp.spark.columns import SOURCE_COLUMNS, Column, arrow_schema
from fakeamqp.spark.connection import Link
from fakeamqp.spark.errors import BrokerUnreachable, ConnectionLost, DataLoss, OptionError
from fakeamqp.spark.lease import LeaseTaken, lease_name, take_lease
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.property_lists import value_of
from fakeamqp.spark.queue_types import is_stream, settle, taken_offset
from fakeamqp.spark.records import DeliveredRow, record_batch
from fakeamqp.spark.retries import RetryBudget

if TYPE_CHECKING:
    from pika.channel import Channel

    from fakeamqp.spark.incoming import Receive
    from fakeamqp.spark.shards.folder import SharedFolder

log: logging.Logger = logging.getLogger("fakeamqp.spark")

#: The segments before the present one that may have messages which are redelivered.
KEPT = 8

#: More rows than a segment has. The column `offset` is the number of the segment times this, plus the row.
ROWS = 1 << 32

_LARGEST_WINDOW = 65535
_BATCH_ROWS, _BATCH_OCTETS = 10_000, 16 << 20
# Seconds without a delivery after which the queue is asked whether it is empty.
_QUIET = 0.02


def stored_columns(options: ReadOptions, columns: Sequence[Column]) -> tuple[Column, ...]:
    """The columns of segments: the chosen ones, and the message id if redelivered messages are left out."""
    names = {column.name for column in columns}
    more = (each for each in SOURCE_COLUMNS if each.name == "message_id" and options.dedupe)
    return (*columns, *(each for each in more if each.name not in names))


def fill(
    options: ReadOptions,
    folder: SharedFolder,
    spool: str,
    shard: str,
    number: int,
    most: int,
    columns: Sequence[Column],
) -> bool:
    """Complete segment `number` of a shard with at most `most` messages, unless it is complete already.

    Returns:
        False if it was complete before and is gone, and that is no error.

    Raises:
        DataLoss: it was complete before and is gone.
        OptionError: the shard is a stream.
        BrokerUnreachable, ConnectionLost: there is no connection for as long as `reconnectTimeout`, or the
            lease is not free for so long.
        SpoolError: the segment cannot be written.
    """
    retries = RetryBudget(options.reconnect_timeout)
    while True:
        there = folder.contents(shard)
        if number in there.sizes:
            if number not in there.filled:  # The attempt that completed it ended before it noted that.
                folder.note(shard, number, sum(batch.num_rows for batch in folder.read(shard, number)), 0)
            return True
        if number in there.filled:
            what = f"segment {number} of shard {shard!r} was complete, and is gone from {folder.path}"
            if options.fail_on_data_loss:
                raise DataLoss(f"{what}; set failOnDataLoss=false to continue without its messages")
            log.warning("%s; continuing without its messages (failOnDataLoss=false)", what)
            return False
        try:
            with Link(options.connection) as link:
                take_lease(link, lease_name(spool, shard), options.reconnect_timeout)
                if not folder.has(shard, number):  # The task that had the lease before may have completed it.
                    SegmentFiller(link, options, folder, shard, number, most, columns).run()
        except (ConnectionLost, BrokerUnreachable) as error:
            if folder.has(shard, number):
                log.warning("%s; segment %d of %r is complete, and may be redelivered", error, number, shard)
                continue
            if isinstance(error, LeaseTaken):
                raise
            pause = retries.pause(error)
            log.warning("%s; connecting again", error)
            time.sleep(pause)


class SegmentFiller:
    """Takes the messages of one segment from the queue, writes them to the file, and acknowledges them."""

    def __init__(
        self,
        link: Link,
        options: ReadOptions,
        folder: SharedFolder,
        shard: str,
        number: int,
        most: int,
        columns: Sequence[Column],
    ) -> None:
        self._link = link
        self._options = options
        self._folder = folder
        self._shard = shard
        self._number = number
        self._most = most
        self._columns = stored_columns(options, columns)
        self._known: set[str] | None = None
        self._buffer: list[DeliveredRow] = []
        self._octets = self._rows = self._asked_for = self._arrived = self._redelivered = 0
        self._consumers: list[tuple[Channel, str]] = []
        self._last_tags: dict[int, int] = {}

    def run(self) -> None:
        segment = self._folder.new(self._shard, self._number, arrow_schema(self._columns))
        try:
            ready = 0
            asked_at = time.monotonic()
            while self._arrived < self._most:
                if self._arrived == self._asked_for:
                    self._consume()
                    asked_at = time.monotonic()  # Idle is the queue, not the link that opens a consumer.
                before = self._arrived
                self._link.check()
                self._link.turn(_QUIET)
                if len(self._buffer) >= _BATCH_ROWS or self._octets >= _BATCH_OCTETS:
                    segment.write(self._take())
                if self._arrived != before:
                    asked_at, ready = time.monotonic(), 0
                else:
                    ready = settle(self._link, self._consumers[-1][0], self._shard)
                    idle = time.monotonic() - asked_at >= self._options.idle_timeout
                    if self._arrived == before and (not ready or idle):
                        break
            self._cancel()
            if ready:
                self._check_is_no_stream()
            if ready and not self._arrived:
                log.warning(
                    "queue %r has %d ready messages, and the broker delivers none: another consumer may be "
                    "the single active consumer",
                    self._shard,
                    ready,
                )
            if self._buffer:
                segment.write(self._take())
            if segment.commit():
                self._folder.note(self._shard, self._number, self._arrived, self._redelivered)
                self._acknowledge()
            else:
                log.warning(
                    "another task has completed segment %d of %r: %d messages return to the queue",
                    self._number,
                    self._shard,
                    self._arrived,
                )
        finally:
            segment.discard()

    def _consume(self) -> None:
        """Open a consumer for as many messages as a window has.

        Further ones follow one after the other: several at once would mix up the order of the queue.
        """
        window = min(self._most - self._asked_for, _LARGEST_WINDOW)
        self._asked_for += window
        channel = self._link.channel()
        channel.add_on_cancel_callback(self._deleted)
        try:
            self._link.call(channel.basic_qos, prefetch_count=window)
            tag = self._link.consume(channel, self._shard, self._receiver(channel.channel_number))
        except ConnectionLost as error:
            raise ConnectionLost(f"cannot consume from queue {self._shard!r}: {error}") from None
        self._consumers.append((channel, tag))

    def _receiver(self, channel: int) -> Receive:
        """The callback for deliveries. It runs for every message, so it calls little."""
        buffer, link = self._buffer, self._link
        first = self._number * ROWS

        def receive(tag: int, redelivered: bool, route: bytes, properties: bytes, body: bytes) -> None:
            self._last_tags[channel] = tag
            self._arrived += 1
            self._redelivered += redelivered
            if redelivered and self._stored_before(value_of(properties, "message_id")):
                return
            self._octets += len(body) + len(properties)
            offset = first + self._rows
            self._rows += 1
            message = (tag, redelivered, route, properties, body, self._shard, offset, link.received_at)
            buffer.append(DeliveredRow(*message))

        return receive

    def _take(self) -> object:
        if taken_offset(self._buffer[0].properties)[0] is not None:  # An app may have copied the header.
            self._check_is_no_stream()
        batch = record_batch(self._buffer, self._columns)
        self._buffer.clear()
        self._octets = 0
        return batch

    def _cancel(self) -> None:
        """End the consumers, so that no message is delivered that is not stored."""
        for channel, tag in self._consumers:
            self._link.call(channel.basic_cancel, tag)

    def _acknowledge(self) -> None:
        for channel, _ in self._consumers:
            tag = self._last_tags.get(channel.channel_number)
            if tag is not None:
                channel.basic_ack(tag, multiple=True)
            # The answer to a request after it says that the broker has it.
            self._link.call(channel.basic_qos, prefetch_count=1)

    def _stored_before(self, message_id: bytes | None) -> bool:
        """True if one of the last segments has a message of this id."""
        if not self._options.dedupe or not message_id:
            return False
        if self._known is None:
            self._known = set()
            for number in self._folder.contents(self._shard).sizes:
                if self._number - KEPT <= number < self._number:
                    for batch in self._folder.read(self._shard, number):
                        with suppress(KeyError):
                            self._known.update(batch.column("message_id").drop_null().to_pylist())
        return message_id.decode("utf-8", "replace") in self._known

    def _check_is_no_stream(self) -> None:
        """Check that the queue, which was none when the query began, was not declared again as a stream."""
        if is_stream(self._link, self._shard):
            raise OptionError(f"shard {self._shard!r} is a stream: set option 'superStream' or 'stream'")

    def _deleted(self, _frame: object) -> None:
        self._link.lost = self._link.lost or f"queue {self._shard!r} was deleted during the read"
