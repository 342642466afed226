"""The partitions of a super stream: streams whose names are its name and a number.

Its exchange has a binding to each, but no method of AMQP 0-9-1 lists bindings. `rabbitmq-streams
add_super_stream` names partitions `name-0`, `name-1` and so on, and so do the stream clients; passive
declarations find them. Partitions that are named after binding keys cannot be found.
"""

from __future__ import annotations

from dataclasses import replace

from fakeamqp.spark.connection import Link
from fakeamqp.spark.errors import ConnectionLost, OptionError
from fakeamqp.spark.options import ReadOptions

__all__ = ["more_partitions", "partitions", "with_partitions"]

_NOT_FOUND = "closed the channel: 404 "


def with_partitions(options: ReadOptions, link: Link) -> ReadOptions:
    """The options with the partitions of all super streams as streams.

    Raises:
        OptionError: if one has no partitions.
        ConnectionLost: if the connection ends.
    """
    found = [stream for name in options.super_streams for stream in partitions(link, name)]
    return replace(options, streams=(*options.streams, *found))


def partitions(link: Link, name: str) -> list[str]:
    """The partitions of a super stream, in their order.

    Raises:
        OptionError: if there are none.
        ConnectionLost: if the connection ends.
    """
    found = more_partitions(link, name, 0)
    if not found:
        raise OptionError(
            f"super stream {name!r} has no partition '{name}-0'; if its partitions have other names than "
            "their numbers, name all of them in option 'stream'"
        )
    return found


def more_partitions(link: Link, name: str, known: int) -> list[str]:
    """The partitions behind the first `known` ones.

    Raises:
        ConnectionLost: if the connection ends.
    """
    found: list[str] = []
    while _exists(link, stream := f"{name}-{known + len(found)}"):
        found.append(stream)
    return found


def _exists(link: Link, queue: str) -> bool:
    channel = link.channel()
    try:
        link.call(channel.queue_declare, queue, passive=True)
    except ConnectionLost as error:
        if _NOT_FOUND in str(error) and channel.connection.is_open:
            link.lost = None  # The answer to the question, not a loss.
            return False
        raise
    link.close_channel(channel)
    return True
