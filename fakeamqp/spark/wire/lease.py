"""Leases: one task at a time reads a shard, one query has a spool, and batch reads of a queue take turns.

An exclusive queue is the lease. It belongs to the connection that consumes, and the broker deletes it when
that connection ends, however it ends: a holder without its lease has no deliveries either.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING

from fakeamqp.protocols.amqp_0_9_1.codec.methods import QueueDeclare, QueueDelete
from fakeamqp.spark.errors import ConnectionLost
from fakeamqp.spark.wire.refusals import refusal_of

if TYPE_CHECKING:
    from fakeamqp.spark.wire.connection import WireConnection

_LOCKED = 405
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


def take_lease(
    connection: WireConnection, name: str, patience: float, between: Callable[[], None] = lambda: None
) -> None:
    """Wait for a lease, and hold it until `release_lease` or the end of the connection.

    Args:
        connection: the connection that is to hold it.
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
    while (refusal := refusal_of(connection, QueueDeclare(queue=name, exclusive=True))) is not None:
        if refusal.reply_code != _LOCKED:
            raise LeaseRefused(f"cannot declare the lease {name!r}: {refusal}")
        between()
        left = deadline - time.monotonic()
        if left <= 0:
            raise LeaseTaken(f"the lease {name!r} was held by another connection for {patience:g} s")
        connection.turn(min(pause, left))
        pause = min(2 * pause, _LONGEST_PAUSE)
    connection.leases.add(name)


def release_lease(connection: WireConnection, name: str) -> None:
    """Let others have a lease of this connection. Without the lease this does nothing.

    Raises:
        ConnectionLost: the connection has ended, and the lease with it.
    """
    if name in connection.leases:
        refusal_of(connection, QueueDelete(queue=name))
        connection.leases.remove(name)


def is_held(connection: WireConnection, name: str) -> bool:
    """Whether another connection holds a lease.

    Raises:
        ConnectionLost: the connection has ended.
    """
    refusal = refusal_of(connection, QueueDeclare(queue=name, passive=True))
    return refusal is not None and refusal.reply_code == _LOCKED
