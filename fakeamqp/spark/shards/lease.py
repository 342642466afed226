"""Leases: one task at a time reads a shard, and one query has a spool.

An exclusive queue is the lease. It belongs to the connection that consumes, and the broker deletes it when
that connection ends, however it ends: a holder without its lease has no deliveries either.
"""

from __future__ import annotations

import time
from hashlib import sha256

from fakeamqp.spark.connection import Link, quiet
from fakeamqp.spark.errors import ConnectionLost

__all__ = ["LeaseTaken", "lease_name", "take_lease"]

_LOCKED = "405 "
_PAUSE = 0.05
_LONGEST_NAME = 255


class LeaseTaken(ConnectionLost):
    """Another connection holds the lease for as long as it was waited for."""


def lease_name(spool: str, shard: str = "") -> str:
    """The name of the queue that is the lease of a shard, or of the whole spool."""
    name = f"amqp.lease.{spool}" + (f".{shard}" if shard else "")
    if len(name.encode()) > _LONGEST_NAME:
        return f"amqp.lease.{spool}.{sha256(shard.encode()).hexdigest()}"
    return name


def take_lease(link: Link, name: str, patience: float) -> None:
    """Wait for a lease, and hold it until the connection ends.

    Raises:
        LeaseTaken: another connection has held it for `patience` seconds.
        ConnectionLost: the connection has ended, or the user may not declare the queue.
    """
    deadline = time.monotonic() + patience
    while True:
        channel = link.channel()
        try:
            with quiet():
                link.call(channel.queue_declare, name, exclusive=True, auto_delete=False)
            link.close_channel(channel)
            return
        except ConnectionLost as error:
            if not channel.connection.is_open:
                raise
            if _LOCKED not in str(error):
                raise ConnectionLost(f"cannot declare the lease {name!r}: {error}") from None
            link.lost = None  # Only this channel was closed.
            if time.monotonic() >= deadline:
                raise LeaseTaken(
                    f"the lease {name!r} was held by another connection for {patience:g} s"
                ) from None
        link.turn(_PAUSE)
