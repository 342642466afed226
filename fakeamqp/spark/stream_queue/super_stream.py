"""The partitions of a super stream: streams whose names are its name and a number.

Its exchange has a binding to each, but no method of AMQP 0-9-1 lists bindings. `rabbitmq-streams
add_super_stream` names partitions `name-0`, `name-1` and so on, and so do the stream clients; passive
declarations find them. Partitions that are named after binding keys cannot be found. A queue of another type
may have such a name by accident, and is no partition.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from fakeamqp.spark.connection import Link
from fakeamqp.spark.errors import ConnectionLost, OptionError
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.queue_types import is_stream

__all__ = ["Partitions", "with_partitions"]

log = logging.getLogger("fakeamqp.spark.stream_queue")

_NOT_FOUND = "closed the channel: 404 "
# Seconds between two looks for more partitions. Each look that finds none is an error in the broker's log.
_FIRST_PAUSE = 5.0
_LONGEST_PAUSE = 60.0


def with_partitions(options: ReadOptions, link: Link) -> ReadOptions:
    """The options with the partitions of all super streams as streams.

    Raises:
        OptionError: if one has no partitions.
        ConnectionLost: if the connection ends.
    """
    found = [stream for name in options.super_streams for stream in Partitions(name).find(link)]
    return replace(options, streams=(*options.streams, *found))


class Partitions:
    """The partitions of a super stream that are known.

    Attributes:
        streams: their names, in their order.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._next = 0
        self._pause = _FIRST_PAUSE
        self._look_at = 0.0
        self.streams: list[str] = []

    def find(self, link: Link) -> list[str]:
        """Find the partitions.

        Raises:
            OptionError: if there are none.
            ConnectionLost: if the connection ends.
        """
        self._look(link)
        if not self.streams:
            raise OptionError(
                f"super stream {self._name!r} has no partition '{self._name}-0'; if its partitions have "
                "other names than their numbers, name all of them in option 'stream'"
            )
        return self.streams

    def look_for_more(self, link: Link) -> None:
        """Find the partitions behind the known ones, unless the last look was only just before.

        Raises:
            ConnectionLost: if the connection ends.
        """
        if time.monotonic() >= self._look_at:
            before = len(self.streams)
            self._look(link)
            found = len(self.streams) > before
            self._pause = _FIRST_PAUSE if found else min(2 * self._pause, _LONGEST_PAUSE)

    def _look(self, link: Link) -> None:
        while _exists(link, stream := f"{self._name}-{self._next}"):
            if is_stream(link, stream):
                self.streams.append(stream)
            else:
                log.warning("%r is no stream, so it is no partition of %r: left out", stream, self._name)
            self._next += 1
        self._look_at = time.monotonic() + self._pause


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
