"""Is a queue a stream? AMQP 0-9-1 has no question for that; requests that one type refuses tell.

| request | stream | other queues |
|---|---|---|
| basic.consume with `x-stream-offset` | accepted | refused since RabbitMQ 4; the argument is ignored before |
| basic.consume without a prefetch count | refused | accepted |
"""

from __future__ import annotations

from fakeamqp.spark.connection import Link
from fakeamqp.spark.errors import ConnectionLost, OptionError
from fakeamqp.spark.options import ConnectionOptions
from fakeamqp.spark.property_lists import without_header

__all__ = ["OFFSET", "check_is_no_stream", "check_is_stream", "not_a_stream", "taken_offset"]

OFFSET = "x-stream-offset"
_ANSWERS = 2


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

    RabbitMQ before 4.0 may deliver one message of another queue for this, and mark it as redelivered.

    Raises:
        OptionError: if it is a stream.
        BrokerUnreachable: no connection can be opened.
        ConnectionLost: the connection ended before.
    """
    offsets: list[int | None] = []
    # Its own connection: a refusal ends a channel, which an open `Link` takes for a loss.
    with Link(options) as link:
        channel = link.channel()
        link.call(channel.basic_qos, prefetch_count=1)
        try:
            link.consume(
                channel,
                name,
                lambda _tag, _redelivered, _route, properties, _body: offsets.append(
                    taken_offset(properties)[0]
                ),
                {OFFSET: "next"},
            )
        except ConnectionLost:
            if channel.connection.is_open:
                return  # It is no stream, or cannot be consumed, which is for the caller to find out.
            raise
        for _ in range(_ANSWERS):
            link.call(channel.queue_declare, name, passive=True)
        link.close_channel(channel)
        if offsets[0] is None if offsets else not _needs_prefetch(link, name):
            return
    raise OptionError(f"{name!r} is a stream: set option 'stream' instead of 'queue'")


def not_a_stream(name: str) -> OptionError:
    """The error for a queue of another type."""
    return OptionError(
        f"{name!r} is no stream (x-queue-type=stream), and has no offsets: say option 'queue' in place of "
        "'stream' to read it"
    )


def _needs_prefetch(link: Link, name: str) -> bool:
    """True for a stream. Afterwards the link is of no use."""
    channel = link.channel()
    try:
        link.consume(channel, name, lambda *_: None)
    except ConnectionLost as error:
        if "prefetch" in str(error):
            return True
        raise
    link.close_channel(channel)
    return False
