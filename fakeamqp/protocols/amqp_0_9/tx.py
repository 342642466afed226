"""Class tx: transactions of publishes and settlements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.model.deliveries.delivery import release_all
from fakeamqp.model.errors import PreconditionFailed
from fakeamqp.model.transactions import Transaction
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.message_state import Messages

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method


def select(channel: Amqp09Channel, method: Method) -> None:
    """Make the channel transactional; repeating this keeps the open transaction (tx.select/repeatable)."""
    if channel.mode == "dtx":
        raise PreconditionFailed("the channel is in dtx mode")
    channel.mode = "tx"
    if channel.transaction is None:
        channel.transaction = Transaction()
    channel.send(m.TxSelectOk())


def commit(channel: Amqp09Channel, method: Method) -> None:
    """Commit the transaction, and begin the next; full queues may refuse messages (tx.commit-ok/failure)."""
    if not _transaction(channel).commit():
        raise PreconditionFailed("partial tx completion")
    channel.send(m.TxCommitOk())


def rollback(channel: Amqp09Channel, method: Method) -> None:
    """Roll back: settled deliveries are unacknowledged again, or by personality redelivered.

    Sources: tx.rollback/undoes-acks; the test suite of Apache's broker.
    """
    undone = _transaction(channel).rollback()
    channel.send(m.TxRollbackOk())
    if channel.choices.rollback_redelivers:
        undone = channel.class_state(Messages).put_back(undone)
        channel.note_settled("requeued", undone)
        release_all([each for each in undone if not each.queue.redeliver(each)])
    else:
        channel.put_back(undone)


def _transaction(channel: Amqp09Channel) -> Transaction:
    """Return the open transaction; the channel must be transactional (tx.commit/needs-select)."""
    if channel.mode != "tx" or channel.transaction is None:
        raise PreconditionFailed("channel is not transactional")
    return channel.transaction
