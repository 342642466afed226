"""The driver's connection of a query on shards: depths of the queues, and the lease of the spool."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from fakeamqp.spark.connection import Link
from fakeamqp.spark.errors import BrokerUnreachable, ConnectionLost, SpoolError
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.retries import Retries
from fakeamqp.spark.shards.lease import LeaseTaken, lease_name, take_lease

__all__ = ["Watch"]

log = logging.getLogger("fakeamqp.spark")

# Seconds. Nothing answers heartbeats while Spark runs a batch.
_HEARTBEAT = 600
# A query that is stopping releases its lease in that time.
_PATIENCE = 10.0

_T = TypeVar("_T")


class Watch:
    """Asks for the depths of all shards, and connects again when the connection is lost."""

    def __init__(self, options: ReadOptions, spool: str) -> None:
        if options.connection.heartbeat is None:
            options = replace(options, connection=replace(options.connection, heartbeat=_HEARTBEAT))
        self._options = options
        self._spool = spool
        self._link: Link | None = None
        self._channel: Any = None
        self._opened = False

    def depths(self) -> dict[str, dict[str, int]]:
        """The ready messages and consumers of each shard.

        Raises:
            SpoolError: another query uses the spool.
            BrokerUnreachable, ConnectionLost: there is no connection for as long as `reconnectTimeout`, or a
                queue does not exist.
        """
        return self._persist(self._ask)

    def close(self) -> None:
        """Close the connection, which releases the lease."""
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def _ask(self) -> dict[str, dict[str, int]]:
        link = self._open()
        found: dict[str, dict[str, int]] = {}

        def note(frame: Any) -> None:
            method = frame.method
            found[method.queue] = {"ready": method.message_count, "consumers": method.consumer_count}

        link.check()
        for shard in self._options.queues:
            self._channel.queue_declare(shard, passive=True, callback=note)
        wanted = set(self._options.queues)
        link.wait_for(
            lambda: wanted <= found.keys(), self._options.connection.connect_timeout, "answer queue_declare"
        )
        return found

    def _open(self) -> Link:
        if self._link is None:
            link = Link(self._options.connection)
            link.open()
            try:
                take_lease(link, lease_name(self._spool), _PATIENCE)
                if self._options.shard_exchange and not self._opened:
                    _bind(link, self._options.shard_exchange, self._options.queues)
                self._channel = link.channel()
            except BaseException:
                link.close()
                raise
            self._link = link
        return self._link

    def _persist(self, ask: Callable[[], _T]) -> _T:
        retries = Retries(self._options.reconnect_timeout)
        while True:
            try:
                answer = ask()
            except LeaseTaken as error:
                self.close()
                raise SpoolError(
                    f"spoolDir is in use by another query: {error}. Stop that one, or give this one its own"
                ) from None
            except (ConnectionLost, BrokerUnreachable) as error:
                self.close()
                if not self._opened:
                    raise
                pause = retries.pause(error)
                log.warning("%s; connecting again", error)
                time.sleep(pause)
            else:
                self._opened = True
                return answer


def _bind(link: Link, exchange: str, shards: Sequence[str]) -> None:
    """Declare the shards as durable queues, and bind them to a consistent-hash exchange with equal weights.

    Raises:
        ConnectionLost: the exchange does not exist, or the user may not do that.
    """
    channel = link.channel()
    try:
        link.call(channel.exchange_declare, exchange, passive=True)
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
        raise ConnectionLost(f"cannot bind shards to exchange {exchange!r}: {error}") from None
    link.close_channel(channel)
