"""The type of a queue, for which AMQP 0-9-1 has no question.

The answer to one request tells it: basic.consume with the argument `x-stream-offset`. RabbitMQ accepts it for
streams, and names the type of any other queue in its refusal: `invalid arg 'x-stream-offset' for queue
'orders' in vhost '/' of queue type rabbit_quorum_queue`. It refuses before it looks at messages, consumers or
an exclusive consumer: messages are neither redelivered nor counted (`x-delivery-count`), and the only effect
is an error in its log (measured on 3.10, 4.0 and 4.3, for classic and quorum queues). Other brokers are not
asked: they may ignore the argument, and deliver messages.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fakeamqp.spark.errors import ChannelClosed, OptionError
from fakeamqp.spark.wire.refusals import refused

if TYPE_CHECKING:
    from fakeamqp.spark.wire.connection import WireConnection

OFFSET = "x-stream-offset"
STREAM, QUORUM = "stream", "quorum"

_TYPE = re.compile(r"of queue type rabbit_(\w+?)_queue")


def queue_type(connection: WireConnection, queue: str) -> str | None:
    """The type of a queue: `stream`, `quorum` or `classic`; None if the broker does not tell.

    Raises:
        QueueRefused: the queue does not exist, or the user may not consume from it.
        ConnectionLost: the connection ended before.
    """
    if connection.product != "RabbitMQ":
        return None
    channel = connection.channel()
    try:
        channel.qos(1)  # A stream refuses a consumer without a prefetch count.
        channel.consume(queue, lambda *_: None, {OFFSET: "next"})
    except ChannelClosed as refusal:
        if OFFSET in refusal.reply_text:
            found = _TYPE.search(refusal.reply_text)
            return found[1] if found else None
        raise refused(f"cannot consume from queue {queue!r}", refusal) from None
    channel.close()
    return STREAM


def check_is_no_stream(connection: WireConnection, name: str) -> None:
    """Check that a queue is no stream, where a consumer without an offset gets later messages only.

    Raises:
        OptionError: it is a stream.
        QueueRefused, ConnectionLost: as `queue_type`.
    """
    if queue_type(connection, name) == STREAM:
        raise a_stream(name)


def a_stream(name: str) -> OptionError:
    """The error for a stream."""
    return OptionError(f"{name!r} is a stream: set option 'stream' instead of 'queue'")


def not_a_stream(name: str) -> OptionError:
    """The error for a queue of another type."""
    return OptionError(
        f"{name!r} is no stream (x-queue-type=stream), and has no offsets: set option 'queue' instead of "
        "'stream'"
    )
