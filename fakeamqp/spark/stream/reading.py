"""Reads ranges of streams in executors: every message of a range once, or an error.

Nothing is taken on trust. An offset that does not follow the one before may be a note of the broker's own, a
message that `streamFilter` leaves out, or one that retention has dropped. Where the stream begins by then
tells the last case from the others.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Any

from fakeamqp.spark.errors import BrokerUnreachable, ConnectionLost, DataLoss, OptionError, QueueRefused
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.rows.identity import stream_offset
from fakeamqp.spark.rows.record_batches import DeliveredRow, fill_a_batch
from fakeamqp.spark.stream.offsets import StreamMark, mark_of
from fakeamqp.spark.stream.ranges import Range
from fakeamqp.spark.stream.tail import Tail, consume, first_message, first_offset
from fakeamqp.spark.wire.attended import with_heartbeat
from fakeamqp.spark.wire.connection import WireConnection
from fakeamqp.spark.wire.pool import lend
from fakeamqp.spark.wire.queue_types import not_a_stream
from fakeamqp.spark.wire.retries import RetryBudget

log: logging.Logger = logging.getLogger("fakeamqp.spark.stream")

# RabbitMQ 3.10 reads a whole window of a stream before it sends its first message. Measured time to that
# message: 0.03 s for a window of 1 000, 0.3 s for 5 000, 3.6 s for 20 000, 18 s for 50 000.
_WINDOW = 1000
# Seconds: a task answers no heartbeats while Spark processes a record batch.
_HEARTBEAT = 600
_HAS_FILTERS = 3, 13
# Seconds without a message until the broker is asked whether a filter has left out the rest of a range.
_ASKED_AFTER = 0.02


def read_range(options: ReadOptions, wanted: Range) -> Iterator[list[DeliveredRow]]:
    """The messages of a range, in lists of about 10 000 messages or 8 MiB. A lost connection is replaced.

    Raises:
        OptionError: if it is no stream, or the broker has no filters.
        QueueRefused: if there is no such stream, or the user may not read it.
        BrokerUnreachable, ConnectionLost: if there is no connection for as long as `reconnectTimeout`.
        DataLoss: if messages of the range are gone, and that is an error.
    """
    options = with_heartbeat(options, _HEARTBEAT)
    reading = _Reading(options, wanted)
    retries = RetryBudget(options.reconnect_timeout)
    while True:
        before = reading.next
        try:
            with lend(options.connection) as connection:
                yield from reading.read(connection)
                reading.check_identity()
            return
        except (ConnectionLost, BrokerUnreachable, QueueRefused) as error:
            if isinstance(error, QueueRefused) and not reading.served:
                raise
            if reading.next != before:
                retries.succeeded()
            pause = retries.pause(error)
            log.warning("%s; connecting again", error)
            time.sleep(pause)


class _Reading:
    """The reading of one range.

    Attributes:
        next: the first offset that has not been read.
        served: True once the broker has accepted a consumer.
    """

    def __init__(self, options: ReadOptions, wanted: Range) -> None:
        self._options = options
        self._connection: WireConnection
        self._stream = wanted.stream
        self._stop = wanted.stop
        self._mark = wanted.mark
        self._at_mark: StreamMark | None = None
        self._filter: dict[str, Any] = {}
        if options.stream_filter:
            self._filter["x-stream-filter"] = [*options.stream_filter]
            self._filter["x-stream-match-unfiltered"] = options.stream_match_unfiltered
        self.next = wanted.start
        self.served = False
        self._messages: list[DeliveredRow] = []
        self._size = 0
        # The offsets before and behind each gap that is not explained yet.
        self._gaps: list[tuple[int, int]] = []
        self._last_tag: int
        self._stop_is_reached: bool

    def read(self, connection: WireConnection) -> Iterator[list[DeliveredRow]]:
        """The unread rest of the range."""
        self._connection = connection
        if self.next < self._stop:
            yield from self._consume()
        self._look_into_gaps()  # Or into those of a connection that was lost before.
        if self._messages:
            yield self._take()

    def _consume(self) -> Iterator[list[DeliveredRow]]:
        """Consume to the end of the range; the last messages stay for `_take`."""
        connection, idle_timeout = self._connection, self._options.idle_timeout
        if self._filter and connection.broker_version < _HAS_FILTERS:
            raise OptionError("option 'streamFilter' needs RabbitMQ 3.13 or later; this is another broker")
        channel = connection.channel()
        window = min(self._options.prefetch, _WINDOW, self._stop - self.next)
        self._last_tag, self._stop_is_reached = 0, False
        consume(channel, self._stream, self.next, window, self._receive, **self._filter)
        self.served = True
        if self._filter:
            consume(channel, self._stream, self._stop - 1, 1, self._reach_stop)
        moved_at = looked_at = time.monotonic()
        acked = seen = 0
        while self.next < self._stop:
            channel.check()
            # The window covers the range only, so that the broker sends no later messages.
            acks = self._last_tag - acked - max(window - (self._stop - self.next), 0)
            if 2 * (self._last_tag - acked) >= window and acks > 0:
                acked += acks
                channel.ack(acked, multiple=True)
            if fill_a_batch(len(self._messages), self._size):
                yield self._take()
                seen = 0  # Spark was busy, so this was no wait for messages.
            now = time.monotonic()
            if self._last_tag != seen:
                moved_at = looked_at = now
                seen = self._last_tag
            elif self._stop_is_reached:
                # With an empty window the broker sends what it has up to the end, and then the answer.
                if acked != seen:
                    acked = seen
                    channel.ack(acked, multiple=True)
                channel.settle(self._stream)
                if self._last_tag == seen:
                    self._skip_to(self._stop)
                continue
            elif looked_at + idle_timeout <= now:
                self._look_whether_it_comes(now - moved_at)
                looked_at = time.monotonic()
                continue
            due = _ASKED_AFTER if self._stop_is_reached else looked_at + idle_timeout - now
            connection.turn(max(due, 0.0))
        channel.close()

    def _receive(self, tag: int, redelivered: bool, route: bytes, properties: bytes, body: bytes) -> None:
        """The receiver of messages. It runs for every message, so it calls little."""
        self._last_tag = tag
        offset, properties = stream_offset(properties)
        if offset is None:
            raise not_a_stream(self._stream)
        if offset != self.next:
            if offset < self.next:
                return
            self._skip_to(offset)
        if offset >= self._stop:
            return
        self.next = offset + 1
        self._size += len(body) + len(properties)
        self._messages.append(
            DeliveredRow(
                tag, redelivered, route, properties, body, self._stream, offset, self._connection.received_at
            )
        )

    def _skip_to(self, offset: int) -> None:
        if self.next < self._stop:
            self._gaps.append((self.next, offset))
            self.next = min(offset, self._stop)

    def _reach_stop(self, *_: object) -> None:
        """The receiver of a consumer without a filter, which begins with the last offset of the range.

        The other consumer has got everything before that offset that fits into its window: see
        `fakeamqp.spark.stream.tail.first_message`.
        """
        self._stop_is_reached = True

    def check_identity(self) -> None:
        """Check that the stream still is the one of the plan. It is done last: streams do not come back."""
        if self._mark is None:
            return
        at, connection = self._mark.offset, self._connection
        found = self._at_mark or first_message(connection, self._stream, at, self._options.idle_timeout)
        if found is None:
            tail = Tail(connection, self._stream, self._options.connection.connect_timeout)
            found = None if tail.ask() is None else tail.mark(at)
            tail.close()
        if found is None or (found.offset == at and found != self._mark):
            self._mark = None  # Once is enough, should the connection end now.
            self._lost(
                f"stream {self._stream!r} has another message at {at} than before: it was deleted and "
                "declared anew",
                "keeping what is in it now",
            )

    def _take(self) -> list[DeliveredRow]:
        self._look_into_gaps()
        messages, self._messages, self._size = self._messages, [], 0
        last = messages[-1]
        if self._mark is not None and self._mark.offset == last.offset:
            self._at_mark = mark_of(last.offset, last.properties, last.body)
        return messages

    def _look_into_gaps(self) -> None:
        """Distinguish offsets without a message from lost messages, before messages behind them are given."""
        while self._gaps:
            missing, found = self._gaps[0]
            looked_into = len(self._gaps)
            patience = self._options.connection.connect_timeout
            first = first_offset(self._connection, self._stream, patience)
            del self._gaps[:looked_into]
            if first > missing:
                self._lost(
                    f"messages of stream {self._stream!r} are gone: {missing} was wanted, and it now begins "
                    f"with {first}",
                    f"reading on at {found}",
                )

    def _look_whether_it_comes(self, idle: float) -> None:
        """No message has arrived for a while: wait on, unless the stream ends before the range."""
        patience = self._options.connection.connect_timeout
        tail = Tail(self._connection, self._stream, patience)
        end = tail.ask()
        tail.close()
        if end is None and idle >= patience:  # Before, the broker may not have counted its messages yet.
            end = 0
        if end is not None and end < self._stop and (end <= self.next or self._filter):
            self._lost(
                f"stream {self._stream!r} ends before {end}, and messages up to {self._stop} were in it: "
                "it was deleted and declared anew, or has lost what it had",
                "leaving the rest out",
            )
            self.next = self._stop
        elif idle >= patience:
            raise ConnectionLost(
                f"stream {self._stream!r} has messages from {self.next} on, and gave none for {idle:.1f} s"
            )

    def _lost(self, what: str, instead: str) -> None:
        if self._options.fail_on_data_loss:
            raise DataLoss(f"{what}; say failOnDataLoss=false to go on without them")
        log.warning("%s; %s", what, instead)
