"""The driver's connection of a query on shards: depths of the queues, and the lease of the spool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fakeamqp.spark.attended import AttendedLink, with_heartbeat
from fakeamqp.spark.connection import Link
from fakeamqp.spark.errors import ConnectionLost, OptionError, SpoolError
from fakeamqp.spark.lease import LeaseTaken, lease_name, take_lease
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.queue_types import is_stream

# Seconds. If the machine of the driver vanishes, the broker releases the lease after two or three heartbeats,
# and the query that starts elsewhere waits for that.
_HEARTBEAT = 5
_BEATS = 4


class Watch:
    """Asks for the depths of all shards, and holds the lease of the spool in between."""

    def __init__(self, options: ReadOptions, spool: str) -> None:
        self._options = with_heartbeat(options, _HEARTBEAT)
        self._patience = _BEATS * max(self._options.connection.heartbeat or 0, _HEARTBEAT)
        self._spool = spool
        self._channel: Any
        self._checked = False
        self._attended = AttendedLink(self._options, "watch of shards", self._prepare)

    def depths(self) -> dict[str, dict[str, int]]:
        """The ready messages and consumers of each shard.

        Raises:
            SpoolError: another query uses the spool.
            OptionError: a shard is a stream.
            BrokerUnreachable, ConnectionLost: there is no connection for as long as `reconnectTimeout`, or a
                queue does not exist.
        """
        return self._attended.call(self._ask)

    def close(self) -> None:
        """Close the connection, which releases the lease."""
        self._attended.stop()

    # --- in the thread of the connection --------------------------------------------------------------

    def _prepare(self, link: Link) -> None:
        try:
            take_lease(link, lease_name(self._spool), self._patience)
        except LeaseTaken as error:
            raise SpoolError(
                f"spoolDir is in use by another query, or by another source of this one: {error}. Stop that "
                "query, or give this source its own"
            ) from None
        if not self._checked:
            if self._options.shard_exchange:
                _bind(link, self._options.shard_exchange, self._options.queues)
            for shard in self._options.queues:
                if is_stream(link, shard):
                    raise OptionError(f"shard {shard!r} is a stream: set option 'superStream' or 'stream'")
            self._checked = True
        self._channel = link.channel()

    def _ask(self, link: Link) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}

        def note(frame: Any) -> None:
            method = frame.method
            found[method.queue] = {"ready": method.message_count, "consumers": method.consumer_count}

        for shard in self._options.queues:
            self._channel.queue_declare(shard, passive=True, callback=note)
        wanted = set(self._options.queues)
        link.wait_for(
            lambda: wanted <= found.keys(), self._options.connection.connect_timeout, "answer queue_declare"
        )
        return found


def _bind(link: Link, exchange: str, shards: Sequence[str]) -> None:
    """Declare the shards as durable queues, and bind them to a consistent-hash exchange with equal weights.

    Raises:
        ConnectionLost: the exchange is of another type, or the user may not do that.
    """
    channel = link.channel()
    try:
        link.call(channel.exchange_declare, exchange, "x-consistent-hash", durable=True)
        for shard in shards:
            try:
                link.call(channel.queue_declare, shard, passive=True)
            except ConnectionLost:
                if not channel.connection.is_open:
                    raise
                link.lost = None
                channel = link.channel()
                link.call(channel.queue_declare, shard, durable=True)
            link.call(channel.queue_bind, shard, exchange, "1")
    except ConnectionLost as error:
        raise ConnectionLost(
            f"cannot bind shards to {exchange!r} as a durable x-consistent-hash exchange: {error}"
        ) from None
    link.close_channel(channel)
