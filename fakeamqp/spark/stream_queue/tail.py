"""The first and the last offset of a stream. Only deliveries tell offsets in AMQP 0-9-1.

A consumer at the end of the stream stays open, so that a check for new messages costs one request and its
answer. It has a small window and acknowledges only when it is asked, so that however much is
published, few messages travel here for nothing; if the window has become full meanwhile, the end is
somewhere else, and the consumer begins anew with the last chunk there is.

How sure is it? What a broker had sent before it answers a question is here when the answer is. This
project's broker sends a message to the consumers of a stream before it confirms it, so the end that is found
is behind every message that was confirmed before. In RabbitMQ, other processes tell the publisher's channel
and the consumer's; it does not document an order. Few of thousands of messages were late by the second
answer, all on a busy machine and among the first ones of a stream: the next question finds them.
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING

from fakeamqp.spark.connection import Link
from fakeamqp.spark.errors import ConnectionLost, QueueRefused
from fakeamqp.spark.incoming import Receive
from fakeamqp.spark.queue_types import OFFSET, not_a_stream, settle, taken_offset
from fakeamqp.spark.stream_queue.offsets import StreamMark, StreamPlace, mark_of

if TYPE_CHECKING:
    from pika.channel import Channel

_WINDOW = 8192
# Seconds between two questions for the number of messages of a stream that delivers none.
_COUNTED_AGAIN = 0.1
# A chunk has at most 65535 entries: after this many windows the last chunk has been delivered.
_ROUNDS = 65535 // _WINDOW + 1


class Tail:
    """The end of one stream, from its own consumer.

    Attributes:
        end: the offset behind the last message that is known; None if none is.
    """

    def __init__(self, link: Link, stream: str, patience: float) -> None:
        self._link = link
        self._stream = stream
        self._patience = patience
        self._open_tag: int
        self._last_tag: int
        self._known: bool
        self._foreign = False
        self._latest = b"", b""
        self.end: int | None = None
        self._channel = self._subscribe()

    def ask(self) -> int | None:
        """The end of the stream now.

        Raises:
            OptionError: if it is no stream.
            ConnectionLost: if the connection or the stream is gone.
        """
        self._listen()
        if self._full:
            self._link.close_channel(self._channel)
            self._channel = self._subscribe()
            self._listen()
            for _ in range(_ROUNDS):
                if not self._full:
                    break
                self.acknowledge()
                self._listen()
        self.acknowledge()
        return self.end

    def mark(self, offset: int) -> StreamMark | None:
        """The first message at an offset or behind it; None if the last answer was that there is none.

        Raises:
            ConnectionLost: if the connection or the stream is gone.
        """
        if self.end is None or self.end <= offset:
            return None
        if offset == self.end - 1:
            return mark_of(offset, *self._latest)
        return first_message(self._link, self._stream, offset, self._patience, sure=True)

    def replaced(self, place: StreamPlace) -> bool:
        """True if the stream is not the one of this place.

        A stream that is known stays the same as long as its consumer: the broker cancels it with the stream.

        Raises:
            ConnectionLost: if the connection or the stream is gone.
        """
        if not self._known and place.mark is not None:
            found = self.mark(place.mark.offset)
            self._known = found is not None and (found == place.mark or found.offset > place.mark.offset)
            return found is not None and not self._known
        return False

    def acknowledge(self) -> None:
        """Acknowledge, so that the broker does not close the channel because of a timeout."""
        if self._last_tag > self._open_tag:
            self._channel.basic_ack(self._last_tag, multiple=True)
            self._open_tag = self._last_tag

    def close(self) -> None:
        """Stop.

        Raises:
            ConnectionLost: if the connection is gone.
        """
        self._link.close_channel(self._channel)

    @property
    def _full(self) -> bool:
        return self._last_tag - self._open_tag >= _WINDOW

    def _subscribe(self) -> Channel:
        self._open_tag = self._last_tag = 0
        self._known = False
        return consume(self._link, self._stream, "last", _WINDOW, self._receive)

    def _receive(self, tag: int, _redelivered: bool, _route: bytes, properties: bytes, body: bytes) -> None:
        self._last_tag = tag
        offset, _ = taken_offset(properties)
        if offset is None:
            self._foreign = True
        elif self.end is None or offset >= self.end:
            self.end = offset + 1
            self._latest = properties, body

    def _listen(self) -> None:
        """Wait until all messages that the broker has sent have arrived."""
        patience = self._patience
        deadline = time.monotonic() + patience
        # A stream with messages delivers some to a consumer that began with the last chunk. RabbitMQ counts
        # them every five seconds, and may count those of a deleted stream of that name until then.
        while settle(self._link, self._channel, self._stream) and not self._last_tag:
            if time.monotonic() >= deadline:
                raise ConnectionLost(f"the broker did not deliver from the stream within {patience:g} s")
            self._link.turn(_COUNTED_AGAIN)
        if self._foreign:
            raise not_a_stream(self._stream)


def first_message(
    link: Link, stream: str, start: str | int | datetime, patience: float, *, sure: bool
) -> StreamMark | None:
    """The first message at `start`: `first`, an offset, or a time; None if there is none.

    Args:
        link: a connection.
        stream: its name.
        start: where to look.
        patience: seconds to wait for it.
        sure: whether there is one, so that it is an error if none comes.

    Raises:
        OptionError: if it is no stream.
        ConnectionLost: if the connection or the stream is gone.
    """
    least = start if isinstance(start, int) else 0
    found: list[StreamMark | None] = []
    early: list[int] = []

    def receive(tag: int, _redelivered: bool, _route: bytes, properties: bytes, body: bytes) -> None:
        offset, _ = taken_offset(properties)
        if offset is not None and offset < least:  # The broker began with the chunk that has the offset.
            early.append(tag)
        else:
            found.append(None if offset is None else mark_of(offset, properties, body))

    def arrived() -> bool:
        if early:
            channel.basic_ack(early.pop())
        return bool(found)

    channel = consume(link, stream, start, 1, receive)
    if not found:
        settle(link, channel, stream)
    if sure:
        link.wait_for(arrived, patience, "deliver from the stream")
    else:
        deadline = time.monotonic() + patience
        while not arrived() and time.monotonic() < deadline:
            link.check()
            link.turn(deadline - time.monotonic())
    link.close_channel(channel)
    if found and found[0] is None:
        raise not_a_stream(stream)
    return found[0] if found else None


def consume(link: Link, stream: str, start: str | int | datetime, window: int, receive: Receive) -> Channel:
    """Open a channel with a consumer, which gets `window` messages before it acknowledges.

    Raises:
        QueueRefused: if the broker refuses.
        ConnectionLost: if the connection ends.
    """
    channel = link.channel()

    def cancelled(_frame: object) -> None:
        link.lost = link.lost or f"the broker cancelled a consumer; was stream {stream!r} deleted?"

    channel.add_on_cancel_callback(cancelled)
    try:
        link.call(channel.basic_qos, prefetch_count=window)
        link.consume(channel, stream, receive, arguments={OFFSET: start})
    except ConnectionLost as error:
        if OFFSET in str(error):  # Other queues refuse the argument.
            raise not_a_stream(stream) from None
        kind = QueueRefused if channel.connection.is_open else ConnectionLost
        raise kind(f"cannot read stream {stream!r}: {error}") from None
    return channel
