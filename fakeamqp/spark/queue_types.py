"""Is a queue a stream? AMQP 0-9-1 has no question for that; requests that one type refuses tell.

| request | stream | other queues |
|---|---|---|
| basic.consume with `x-stream-offset` | accepted | refused |
| basic.consume without a prefetch count | refused | accepted |

RabbitMQ 3.10, 4.0 and 4.3 do so. Another broker may ignore the argument, and then has the second answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.spark.connection import Link, quiet
from fakeamqp.spark.errors import ConnectionLost, OptionError, QueueRefused
from fakeamqp.spark.options import ConnectionOptions
from fakeamqp.spark.property_lists import without_header

if TYPE_CHECKING:
    from pika.channel import Channel

OFFSET = "x-stream-offset"


def taken_offset(properties: bytes) -> tuple[int | None, bytes]:
    """The offset of a delivery, None if it is from no stream, and its property list without it."""
    value, rest = without_header(properties, OFFSET.encode())
    return None if value is None else int.from_bytes(value, "big"), rest


def check_is_stream(options: ConnectionOptions, name: str) -> None:
    """Check that an empty queue is a stream.

    Raises:
        OptionError: if it is none.
    """
    with Link(options) as link:
        if not _needs_prefetch(link, name):
            raise not_a_stream(name)


def check_is_no_stream(options: ConnectionOptions, name: str) -> None:
    """Check that a queue is no stream, where a consumer without an offset gets later messages only.

    Raises:
        OptionError: if it is a stream.
        BrokerUnreachable: no connection can be opened.
        ConnectionLost: the connection ended before.
    """
    with Link(options) as link:
        try:
            if not is_stream(link, name):
                return
        except QueueRefused:
            return  # It cannot be consumed, which is for the caller to find out.
    raise OptionError(f"{name!r} is a stream: set option 'stream' instead of 'queue'")


def is_stream(link: Link, name: str) -> bool:
    """True if a queue is a stream.

    Raises:
        QueueRefused: the queue does not exist, or the user may not consume it.
        ConnectionLost: the connection ended before.
    """
    channel = link.channel()
    link.call(channel.basic_qos, prefetch_count=1)
    try:
        with quiet():
            link.consume(channel, name, lambda *_: None, {OFFSET: "next"})
    except ConnectionLost as error:
        if not channel.connection.is_open:
            raise
        link.lost = None  # Only this channel was closed.
        if OFFSET in str(error):
            return False
        raise QueueRefused(f"cannot consume from queue {name!r}: {error}") from None
    link.close_channel(channel)
    return _needs_prefetch(link, name)


def not_a_stream(name: str) -> OptionError:
    """The error for a queue of another type."""
    return OptionError(
        f"{name!r} is no stream (x-queue-type=stream), and has no offsets: say option 'queue' in place of "
        "'stream' to read it"
    )


def settle(link: Link, channel: Channel, name: str) -> int:
    """The number of ready messages of a queue. Deliveries that were due before the question are here then.

    A channel of RabbitMQ may answer before it sends messages that a queue delivered earlier. The second
    answer comes after those.

    Raises:
        ConnectionLost: as `Link.call`.
    """
    link.call(channel.queue_declare, name, passive=True)
    return int(link.call(channel.queue_declare, name, passive=True).method.message_count)


def _needs_prefetch(link: Link, name: str) -> bool:
    """True for a stream."""
    channel = link.channel()
    try:
        with quiet():
            link.consume(channel, name, lambda *_: None)
    except ConnectionLost as error:
        if "prefetch" in str(error) and channel.connection.is_open:
            link.lost = None  # Only this channel was closed.
            return True
        raise
    link.close_channel(channel)
    return False
