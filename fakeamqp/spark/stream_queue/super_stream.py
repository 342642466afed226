"""The partitions of a super stream: the streams that its exchange has bindings to.

RabbitMQ's HTTP API lists the bindings (option `managementUrl`), and no method of AMQP 0-9-1 does. Without the
API, passive declarations find partitions by their names: `rabbitmq-streams add_super_stream` and the stream
clients call them `name-0`, `name-1` and so on, unless they are named after binding keys. A queue of another
type may be bound, or have such a name by accident, and is no partition.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace

from fakeamqp.spark.connection import Link
from fakeamqp.spark.errors import BrokerUnreachable, ConnectionLost, OptionError
from fakeamqp.spark.management import bound_queues
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.queue_types import is_stream

log: logging.Logger = logging.getLogger("fakeamqp.spark.stream_queue")

_NOT_FOUND = "closed the channel: 404 "
# Seconds between two looks for more partitions. A look by name that finds none is an error in the log of
# the broker.
_FIRST_PAUSE = 5.0
_LONGEST_PAUSE = 60.0


def with_partitions(options: ReadOptions, link: Link) -> ReadOptions:
    """The options with the partitions of all super streams as streams.

    Raises:
        OptionError, BrokerUnreachable, ConnectionLost: as `Partitions.find`.
    """
    found = [stream for name in options.super_streams for stream in Partitions(name, options).find(link)]
    return replace(options, streams=(*options.streams, *found))


class Partitions:
    """The partitions of a super stream that are known.

    A stream that has lost its binding stays a partition: what it has may be unread.

    Attributes:
        streams: their names, in their order.
    """

    def __init__(self, name: str, options: ReadOptions) -> None:
        self._name = name
        self._url = options.management_url
        self._connection = options.connection
        self._next = 0
        self._others: set[str] = set()
        self._pause = _FIRST_PAUSE
        self._look_at: float
        self.streams: list[str] = []

    def find(self, link: Link) -> list[str]:
        """Find the partitions.

        Raises:
            OptionError: there are none, or there is no login for the HTTP API.
            BrokerUnreachable: the HTTP API cannot be asked.
            ConnectionLost: the connection ended.
        """
        self._look(link)
        if self.streams:
            return self.streams
        if self._url is None:
            raise OptionError(
                f"super stream {self._name!r} has no partition '{self._name}-0'; if its partitions have "
                "other names than their numbers, set option 'managementUrl', or name all of them in option "
                "'stream'"
            )
        raise OptionError(
            f"super stream {self._name!r} has no partitions: there is no exchange of this name in the "
            "virtual host, or it has no binding to a stream"
        )

    def look_for_more(self, link: Link) -> None:
        """Find partitions that are not known, unless the last look was only just before.

        An HTTP API that cannot be asked is a warning: the query goes on with the partitions that it has.

        Raises:
            ConnectionLost: the connection ended.
        """
        if time.monotonic() >= self._look_at:
            before = len(self.streams)
            try:
                self._look(link)
            except BrokerUnreachable as error:
                log.warning("super stream %r: new partitions are not found: %s", self._name, error)
            found = len(self.streams) > before
            self._pause = _FIRST_PAUSE if found else min(2 * self._pause, _LONGEST_PAUSE)

    def _look(self, link: Link) -> None:
        self._look_at = time.monotonic() + self._pause
        for stream in self._bound() if self._url else self._numbered(link):
            if stream in self._others or stream in self.streams:
                continue
            if is_stream(link, stream):
                self.streams.append(stream)
            else:
                self._others.add(stream)
                log.warning("%r is no stream, so it is no partition of %r: left out", stream, self._name)

    def _bound(self) -> Iterable[str]:
        assert self._url is not None
        return bound_queues(self._url, self._connection, self._name)

    def _numbered(self, link: Link) -> Iterator[str]:
        while _exists(link, stream := f"{self._name}-{self._next}"):
            yield stream
            self._next += 1


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
