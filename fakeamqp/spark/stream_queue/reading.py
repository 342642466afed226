"""Reads ranges of streams in executors: every message of a range once, or an error.

Nothing is taken on trust. An offset that does not follow the one before may be a note of the broker's own, or
messages that retention has dropped; the two are told apart by where the stream begins by then.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

from fakeamqp.spark.attended import with_heartbeat
from fakeamqp.spark.connection import Link
from fakeamqp.spark.errors import BrokerUnreachable, ConnectionLost, DataLoss, QueueRefused
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.queue_types import not_a_stream, taken_offset
from fakeamqp.spark.records import DeliveredRow
from fakeamqp.spark.retries import RetryBudget
from fakeamqp.spark.stream_queue.offsets import StreamMark, mark_of
from fakeamqp.spark.stream_queue.pool import lend
from fakeamqp.spark.stream_queue.ranges import Range
from fakeamqp.spark.stream_queue.tail import Tail, consume, first_message

log: logging.Logger = logging.getLogger("fakeamqp.spark.stream_queue")

# Messages of a record batch, and their bytes.
_ROWS = 10_000
_OCTETS = 8 << 20
# RabbitMQ 3.10 reads a whole window of a stream before it sends its first message. Measured time to that
# message: 0.03 s for a window of 1 000, 0.3 s for 5 000, 3.6 s for 20 000, 18 s for 50 000.
_WINDOW = 1000
# Seconds: a task answers no heartbeats while Spark processes a record batch.
_HEARTBEAT = 600


def read_range(options: ReadOptions, wanted: Range) -> Iterator[list[DeliveredRow]]:
    """The messages of a range, in lists of about 10 000 messages or 8 MiB. A lost connection is replaced.

    Raises:
        OptionError: if it is no stream.
        BrokerUnreachable, ConnectionLost: if there is no connection for as long as `reconnectTimeout`.
        DataLoss: if messages of the range are gone, and that is an error.
    """
    options = with_heartbeat(options, _HEARTBEAT)
    reading = _Reading(options, wanted)
    retries = RetryBudget(options.reconnect_timeout)
    while True:
        before = reading.next
        try:
            with lend(options.connection) as link:
                yield from reading.read(link)
                reading.check_identity(link)
            return
        except (ConnectionLost, BrokerUnreachable) as error:
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
        self._link: Link
        self._stream = wanted.stream
        self._stop = wanted.stop
        self._mark = wanted.mark
        self._at_mark: StreamMark | None = None
        self.next = wanted.start
        self.served = False
        self._messages: list[DeliveredRow] = []
        self._octets = 0
        self._gap: tuple[int, int] | None = None
        self._foreign = False
        self._last_tag: int

    def read(self, link: Link) -> Iterator[list[DeliveredRow]]:
        """The unread rest of the range.

        Raises:
            OptionError, ConnectionLost, DataLoss: as `read_range`.
        """
        self._link, self._last_tag, acked = link, 0, 0
        if self._gap is not None:  # The connection was lost before the cause was known.
            self._look_into_gap(link)
        if self.next < self._stop:
            # The window covers the range only, so that the broker sends no later messages.
            allowed = window = min(self._options.prefetch, _WINDOW, self._stop - self.next)
            channel = consume(link, self._stream, self.next, window, self._receive)
            self.served = True
            moved_at = looked_at = time.monotonic()
            seen = 0
            while True:
                link.check()
                if self._foreign:
                    raise not_a_stream(self._stream)
                if self._gap is not None:
                    self._look_into_gap(link)
                if self.next >= self._stop:
                    break
                if 2 * (self._last_tag - acked) >= window:
                    acks = min(self._last_tag - acked, self._last_tag + self._stop - self.next - allowed)
                    if acks > 0:
                        acked, allowed = acked + acks, allowed + acks
                        channel.basic_ack(acked, multiple=True)
                if len(self._messages) >= _ROWS or self._octets >= _OCTETS:
                    yield self._take()
                    seen = 0  # Spark was busy, so this was no wait for messages.
                now = time.monotonic()
                if self._last_tag != seen:
                    moved_at = looked_at = now
                    seen = self._last_tag
                elif looked_at + self._options.idle_timeout <= now:
                    self._look_whether_it_comes(link, now - moved_at)
                    looked_at = time.monotonic()
                    continue
                link.turn(max(looked_at + self._options.idle_timeout - now, 0.0))
            link.close_channel(channel)
        if self._messages:
            yield self._take()

    def _receive(self, tag: int, redelivered: bool, route: bytes, properties: bytes, body: bytes) -> None:
        """The receiver of messages. It runs for every message, so it calls little."""
        self._last_tag = tag
        offset, properties = taken_offset(properties)
        if offset is None:
            self._foreign = True
            return
        if offset != self.next:
            if offset < self.next:  # The broker began with the chunk that has the first offset.
                return
            if self._gap is None:
                self._gap = self.next, offset
            if offset >= self._stop:
                self.next = self._stop
                return
        elif offset >= self._stop:
            return
        self.next = offset + 1
        self._octets += len(body) + len(properties)
        self._messages.append(
            DeliveredRow(
                tag, redelivered, route, properties, body, self._stream, offset, self._link.received_at
            )
        )

    def check_identity(self, link: Link) -> None:
        """Check that the stream still is the one of the plan. It is done last: a stream does not come back.

        Raises:
            ConnectionLost, DataLoss: as `read_range`.
        """
        if self._mark is None:
            return
        at = self._mark.offset
        found = self._at_mark or first_message(link, self._stream, at, self._options.idle_timeout, sure=False)
        if found is None:
            tail = Tail(link, self._stream, self._options.connection.connect_timeout)
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
        messages, self._messages, self._octets = self._messages, [], 0
        last = messages[-1]
        if self._mark is not None and self._mark.offset == last.offset:
            self._at_mark = mark_of(last.offset, last.properties, last.body)
        return messages

    def _look_into_gap(self, link: Link) -> None:
        """Distinguish offsets without a message from lost messages."""
        assert self._gap is not None
        missing, found = self._gap
        patience = self._options.connection.connect_timeout
        first = first_message(link, self._stream, "first", patience, sure=True)
        self._gap = None
        if first is not None and first.offset > missing:
            self._lost(
                f"messages of stream {self._stream!r} are gone: {missing} was wanted, and it now begins with "
                f"{first.offset}",
                f"reading on at {found}",
            )

    def _look_whether_it_comes(self, link: Link, idle: float) -> None:
        """No message has arrived for a while: wait on, unless the stream has no more messages.

        Raises:
            ConnectionLost: if the broker has given nothing for as long as it may take to connect.
            DataLoss: if the stream ends before.
        """
        patience = self._options.connection.connect_timeout
        tail = Tail(link, self._stream, patience)
        end = tail.ask()
        tail.close()
        if end is None and idle >= patience:  # Before, the broker may not have counted its messages yet.
            end = 0
        if end is not None and end < self._stop and end <= self.next:
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
