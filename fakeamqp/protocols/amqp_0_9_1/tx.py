"""Class tx: transactions of publishes and settlements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.model.errors import PreconditionFailed
from fakeamqp.model.transactions import Transaction
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9_1.server_channel import Amqp091Channel

__all__ = ["HANDLERS"]


def select(channel: Amqp091Channel, method: m.TxSelect) -> None:
    """Make the channel transactional; repeating this keeps the open transaction (tx.select/repeatable)."""
    if channel.mode not in (None, "tx"):
        raise PreconditionFailed(f"cannot switch from {channel.mode} to tx mode")
    if channel.races is not None:
        channel.races.arrive()
    channel.mode = "tx"
    if channel.transaction is None:
        channel.transaction = Transaction()
    channel.send(m.TxSelectOk())


def commit(channel: Amqp091Channel, method: m.TxCommit) -> None:
    """Commit the transaction, and begin the next.

    Raises:
        PreconditionFailed: a full queue refused one of the messages (tx.commit-ok/failure).
    """
    if not _transaction(channel).commit():
        raise PreconditionFailed("partial tx completion")
    channel.send(m.TxCommitOk())


def rollback(channel: Amqp091Channel, method: m.TxRollback) -> None:
    """Roll back: settled deliveries are unacknowledged again, and not redelivered (tx.rollback/*)."""
    undone = _transaction(channel).rollback()
    channel.send(m.TxRollbackOk())
    channel.put_back(undone)


def _transaction(channel: Amqp091Channel) -> Transaction:
    if channel.transaction is None:
        raise PreconditionFailed("channel is not transactional")
    return channel.transaction


HANDLERS = {m.TxSelect: select, m.TxCommit: commit, m.TxRollback: rollback}
