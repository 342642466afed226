"""Leases: one task at a time reads a shard, one query has a spool, and batch reads of a queue take turns.

An exclusive queue is the lease. It belongs to the connection that consumes, and the broker deletes it when
that connection ends, however it ends: a holder without its lease has no deliveries either.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from hashlib import sha256

from fakeamqp.spark.connection import Link, quiet
from fakeamqp.spark.errors import ConnectionLost

_LOCKED = "405 "
# Seconds. RabbitMQ logs an error for each attempt, so the pauses between attempts grow.
_PAUSE, _LONGEST_PAUSE = 0.05, 0.5
_LONGEST_NAME = 255


class LeaseTaken(ConnectionLost):
    """Another connection holds the lease for as long as it was waited for."""


class LeaseRefused(ConnectionLost):
    """The broker does not let the user declare the lease. The connection is open."""


def lease_name(kind: str, of: str = "") -> str:
    """The name of the queue that is the lease of a spool, or of one of its shards; or of another kind."""
    name = f"amqp.lease.{kind}" + (f".{of}" if of else "")
    if len(name.encode()) > _LONGEST_NAME:
        return f"amqp.lease.{kind}.{sha256(of.encode()).hexdigest()}"
    return name


def take_lease(link: Link, name: str, patience: float, between: Callable[[], None] = lambda: None) -> None:
    """Wait for a lease, and hold it until the connection ends.

    Args:
        link: the connection that is to hold it.
        name: a `lease_name`.
        patience: how many seconds to wait for another holder.
        between: called after each attempt that finds another holder; may raise to end the wait.

    Raises:
        LeaseTaken: another connection has held it for `patience` seconds.
        LeaseRefused: the user may not declare the queue.
        ConnectionLost: the connection has ended.
    """
    deadline = time.monotonic() + patience
    pause = _PAUSE
    while (refusal := _refusal(link, name)) is not None:
        if _LOCKED not in refusal:
            raise LeaseRefused(f"cannot declare the lease {name!r}: {refusal}")
        between()
        left = deadline - time.monotonic()
        if left <= 0:
            raise LeaseTaken(f"the lease {name!r} was held by another connection for {patience:g} s")
        link.turn(min(pause, left))
        pause = min(2 * pause, _LONGEST_PAUSE)


def is_held(link: Link, name: str) -> bool:
    """Whether another connection holds a lease.

    Raises:
        ConnectionLost: the connection has ended.
    """
    return _LOCKED in (_refusal(link, name, passive=True) or "")


def _refusal(link: Link, name: str, *, passive: bool = False) -> str | None:
    """The broker's answer to a declaration of the queue; None if it accepts it."""
    channel = link.channel()
    try:
        with quiet():
            link.call(channel.queue_declare, name, passive=passive, exclusive=not passive, auto_delete=False)
    except ConnectionLost as error:
        if channel.is_open or not channel.connection.is_open:
            raise
        link.lost = None  # Only this channel was closed.
        return str(error)
    link.close_channel(channel)
    return None
