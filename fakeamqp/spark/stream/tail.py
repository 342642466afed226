"""The first and the last offset of a stream. Only deliveries tell offsets in AMQP 0-9-1.

A consumer at the end of the stream stays open, so that a check for new messages costs one request and its
answer. It has a small window and acknowledges only when it is asked, so that however much is published, few
messages travel here for nothing. If the window has become full meanwhile, the end is somewhere else, and the
consumer begins anew with the last chunk.

What a broker had sent before it answers a question is here when the answer is. RabbitMQ tells a publisher's
channel and a consumer's from different processes and documents no order: few of thousands of messages were
late by the second answer, all on a busy machine and among the first ones of a stream. The next question finds
them.
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

from fakeamqp.spark.errors import ConnectionLost
from fakeamqp.spark.stream.offsets import Position, StreamMark, StreamPlace, mark_of, offset_of
from fakeamqp.spark.wire.channel import Receive, WireChannel
from fakeamqp.spark.wire.connection import WireConnection
from fakeamqp.spark.wire.queue_types import OFFSET, not_a_stream
from fakeamqp.spark.wire.refusals import refused

_WINDOW = 8192
# Seconds between two questions for the number of messages of a stream that delivers none.
_COUNTED_AGAIN = 0.1
# A chunk has at most 65535 entries: after this many windows the last chunk has been delivered.
_ROUNDS = 65535 // _WINDOW + 1


class Tail:
    """The end of one stream, from its own consumer. Each method may find that the stream is gone.

    Attributes:
        end: the offset behind the last message that is known; None if none is.

    Raises:
        OptionError: if it is no stream.
        QueueRefused: if there is no such stream, or the user may not read it.
        ConnectionLost: if the connection ended, or the stream was deleted.
    """

    def __init__(self, connection: WireConnection, stream: str, patience: float) -> None:
        self._connection = connection
        self._stream = stream
        self._patience = patience
        self._channel: WireChannel
        self._open_tag: int
        self._last_tag: int
        self._known: bool
        self._latest = b"", b""
        self.end: int | None = None
        self._subscribe()

    def ask(self) -> int | None:
        """The end of the stream now."""
        self._listen()
        if self._full:
            self._channel.close()
            self._subscribe()
            self._listen()
            for _ in range(_ROUNDS):
                if not self._full:
                    break
                self.acknowledge()
                self._listen()
        self.acknowledge()
        return self.end

    def mark(self, offset: int) -> StreamMark | None:
        """The first message at an offset or behind it; None if the last answer was that there is none."""
        if self.end is None or self.end <= offset:
            return None
        if offset == self.end - 1:
            return mark_of(offset, *self._latest)
        found = first_message(self._connection, self._stream, offset, self._patience, sure=True)
        self._channel.check()  # Otherwise it may be a message of another stream of this name.
        return found

    def replaced(self, place: StreamPlace) -> bool:
        """True if the stream is not the one of this place.

        A stream that is known stays the same as long as its consumer: the broker cancels it with the stream.
        """
        if not self._known and place.mark is not None:
            found = self.mark(place.mark.offset)
            self._known = found is not None and (found == place.mark or found.offset > place.mark.offset)
            return found is not None and not self._known
        return False

    def acknowledge(self) -> None:
        """Acknowledge, so that the broker does not close the channel because of a timeout."""
        self._channel.check()
        if self._last_tag > self._open_tag:
            self._channel.ack(self._last_tag, multiple=True)
            self._open_tag = self._last_tag

    def close(self) -> None:
        """Stop."""
        self._channel.close()

    @property
    def _full(self) -> bool:
        return self._last_tag - self._open_tag >= _WINDOW

    def _subscribe(self) -> None:
        self._open_tag = self._last_tag = 0
        self._known = False
        self._channel = self._connection.channel()
        consume(self._channel, self._stream, "last", _WINDOW, self._receive)

    def _receive(self, tag: int, _redelivered: bool, _route: bytes, properties: bytes, body: bytes) -> None:
        self._last_tag = tag
        offset = offset_of(self._stream, properties)
        if self.end is None or offset >= self.end:
            self.end = offset + 1
            self._latest = properties, body

    def _listen(self) -> None:
        """Wait until all messages that the broker has sent have arrived."""
        patience = self._patience
        deadline = time.monotonic() + patience
        # A stream with messages delivers some to a consumer that began with the last chunk. RabbitMQ counts
        # them every five seconds, and may count those of a deleted stream of that name until then.
        while self._channel.settle(self._stream) and not self._last_tag:
            if time.monotonic() >= deadline:
                raise ConnectionLost(f"the broker did not deliver from the stream within {patience:g} s")
            self._connection.turn(_COUNTED_AGAIN)


def first_offset(connection: WireConnection, stream: str, patience: float) -> int:
    """The offset of the first message of a stream that has some; raises as `first_message`."""
    found = first_message(connection, stream, "first", patience, sure=True)
    assert found is not None
    return found.offset


def first_message(
    connection: WireConnection, stream: str, start: Position, patience: float, *, sure: bool = False
) -> StreamMark | None:
    """The first message at `start`, for which it waits `patience` seconds; None if there is none.

    A broker says nothing if no message is as new as a time. So a second consumer on the channel gets the last
    chunk: a channel of RabbitMQ reads a stream for all its consumers in one step (rabbit_stream_queue.erl,
    3.13 to 4.3; measured on 4.0.5 and 4.3.6), so when that one has a message and a question is answered, the
    first one has its message, or there is none.

    Raises:
        OptionError, QueueRefused, ConnectionLost: as `consume`, or if none comes although one is `sure`.
    """
    found: list[StreamMark] = []
    last: list[int] = []

    def receive(_tag: int, _redelivered: bool, _route: bytes, properties: bytes, body: bytes) -> None:
        found.append(mark_of(offset_of(stream, properties), properties, body))

    channel = connection.channel()
    consume(channel, stream, start, 1, receive)
    if isinstance(start, datetime) and connection.product == "RabbitMQ":
        consume(channel, stream, "last", 1, lambda tag, *_: last.append(tag))
    deadline = time.monotonic() + patience
    while not (found or last) and (left := deadline - time.monotonic()) > 0:
        channel.check()
        connection.turn(left)
    if not found and last:
        channel.settle(stream)
    channel.close()
    if sure and not found:
        raise ConnectionLost(f"the broker did not deliver from stream {stream!r} within {patience:g} s")
    return found[0] if found else None


def consume(
    channel: WireChannel, stream: str, start: Position, window: int, receive: Receive, **arguments: Any
) -> None:
    """Open a consumer on a channel, which gets `window` messages before it acknowledges.

    Raises:
        OptionError: if it is no stream.
        QueueRefused: if there is no such stream, or the user may not read it.
        ConnectionLost: if the connection ends.
    """
    try:
        channel.qos(window)
        channel.consume(stream, receive, {OFFSET: start, **arguments})
    except ConnectionLost as error:
        if OFFSET in str(error):  # Other queues refuse the argument.
            raise not_a_stream(stream) from None
        raise refused(f"cannot read stream {stream!r}", error) from None
