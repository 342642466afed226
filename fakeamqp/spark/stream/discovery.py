"""The streams that the options do not name and the broker knows: partitions of super streams, and matches.

The partitions of a super stream are the streams that its exchange has bindings to. RabbitMQ's HTTP API
(option `managementUrl`) lists bindings and streams, and AMQP 0-9-1 does not. Without the API, passive
declarations find partitions by their names: `rabbitmq-streams add_super_stream` and the stream clients call
them `name-0`, `name-1` and so on, unless they are named after binding keys. A queue of another type may be
bound, or have such a name by accident, and is no partition.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace

from fakeamqp.protocols.amqp_0_9_1.codec.methods import QueueDeclare
from fakeamqp.spark.errors import BrokerUnreachable, OptionError
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.wire.connection import WireConnection
from fakeamqp.spark.wire.management import bound_queues, streams_matching
from fakeamqp.spark.wire.queue_types import STREAM, queue_type
from fakeamqp.spark.wire.refusals import refusal_of, refused

log: logging.Logger = logging.getLogger("fakeamqp.spark.stream")

_NOT_FOUND = 404
# Seconds between two looks for more streams. A look by name that finds none is an error in the log of the
# broker.
_FIRST_PAUSE = 5.0
_LONGEST_PAUSE = 60.0


def discoveries(options: ReadOptions) -> list[Discovery]:
    """One for the pattern, or for each super stream; none if the options name all streams."""
    if options.stream_pattern is not None:
        return [Discovery(options, None)]
    return [Discovery(options, name) for name in options.super_streams]


def with_found_streams(options: ReadOptions, connection: WireConnection) -> ReadOptions:
    """The options with the streams that the broker knows as `streams`; raises as `Discovery.look`."""
    found = [stream for each in discoveries(options) for stream in each.look(connection)]
    return replace(options, streams=(*options.streams, *found))


class Discovery:
    """The partitions of a super stream, or the streams that match the pattern.

    A stream that has lost its binding stays: what it has may be unread.
    """

    def __init__(self, options: ReadOptions, super_stream: str | None) -> None:
        self._options = options
        self._super_stream = super_stream
        self._streams: list[str] = []
        self._others: set[str] = set()
        self._next = 0
        self._pause = _FIRST_PAUSE
        self._look_at = -math.inf

    def look(self, connection: WireConnection) -> list[str]:
        """The streams in their order, as they are now or were just before.

        If the HTTP API cannot be asked, a query goes on with the streams that it has, with a warning.

        Raises:
            OptionError: there are none, or there is no login for the HTTP API.
            QueueRefused: the user may not read one.
            BrokerUnreachable: the HTTP API cannot be asked, and no stream is known.
            ConnectionLost: the connection ended.
        """
        if time.monotonic() >= self._look_at or not self._streams:
            before = len(self._streams)
            try:
                self._find(connection)
            except BrokerUnreachable as error:
                if not before:
                    raise
                name = self._super_stream or self._options.stream_pattern
                log.warning("%r: new streams are not found: %s", name, error)
            if not self._streams:
                raise OptionError(self._why_none())
            found = len(self._streams) > before
            self._look_at = time.monotonic() + self._pause
            self._pause = _FIRST_PAUSE if found else min(2 * self._pause, _LONGEST_PAUSE)
        return self._streams

    def _why_none(self) -> str:
        name = self._super_stream
        if name is None:
            pattern = self._options.stream_pattern
            return f"option 'streamPattern' is {pattern!r}, and matches the whole name of no stream"
        if self._options.management_url is None:
            return (
                f"super stream {name!r} has no partition '{name}-0'; if its partitions have other names than "
                "their numbers, set option 'managementUrl', or name all of them in option 'stream'"
            )
        return (
            f"super stream {name!r} has no partitions: there is no exchange of this name in the virtual "
            "host, or it has no binding to a stream"
        )

    def _find(self, connection: WireConnection) -> None:
        url, options, name = self._options.management_url, self._options.connection, self._super_stream
        if self._options.stream_pattern is not None:
            assert url is not None
            found: Iterable[str] = streams_matching(url, options, self._options.stream_pattern)
            self._streams += [stream for stream in found if stream not in self._streams]
            return
        assert name is not None
        for queue in self._numbered(connection, name) if url is None else bound_queues(url, options, name):
            if queue in self._others or queue in self._streams:
                continue
            if queue_type(connection, queue) in (STREAM, None):
                self._streams.append(queue)
            else:
                self._others.add(queue)
                log.warning("%r is no stream, so it is no partition of %r: left out", queue, name)

    def _numbered(self, connection: WireConnection, name: str) -> Iterator[str]:
        while _exists(connection, queue := f"{name}-{self._next}"):
            yield queue
            self._next += 1


def _exists(connection: WireConnection, queue: str) -> bool:
    refusal = refusal_of(connection, QueueDeclare(queue=queue, passive=True))
    if refusal is not None and refusal.reply_code != _NOT_FOUND:
        raise refused(f"cannot look for partition {queue!r}", refusal)
    return refusal is None
