"""Class tx: transactions of publishes and settlements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fakeamqp.model.errors import ModelError, PreconditionFailed
from fakeamqp.model.operations import carry_out
from fakeamqp.model.transactions import Transaction
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
    from fakeamqp.protocols.amqp_0_9_1.server_channel import Amqp091Channel


def select(channel: Amqp091Channel, method: Method) -> None:
    """Make the channel transactional; repeating this keeps the open transaction (tx.select/repeatable)."""
    if channel.mode not in (None, "tx"):
        raise PreconditionFailed(f"cannot switch from {channel.mode} to tx mode")
    if channel.races is not None:
        channel.races.arrive()
    channel.mode = "tx"
    if channel.transaction is None:
        channel.transaction = Transaction()
    channel.send(m.TxSelectOk())


def commit(channel: Amqp091Channel, method: Method) -> None:
    """Commit the transaction, and begin the next.

    Commit-ok follows the messages published, and precedes deliveries that the settlements make room for
    (RabbitMQ: measured on 4.0.5 and 4.3.6).

    Raises:
        PreconditionFailed: a full queue refused one of the messages (tx.commit-ok/failure).
    """
    steps = _committing(channel, _transaction(channel))
    if channel.personality.commits_gradually:
        channel.connection.broker.operations.run(steps, channel.connection)
    else:
        carry_out(steps)


def _committing(channel: Amqp091Channel, transaction: Transaction) -> Iterator[None]:
    """The steps of a commit. It goes on if its channel or connection closes meanwhile."""
    connection = channel.connection

    def is_open() -> bool:
        return connection.channels.get(channel.number) is channel

    def published() -> None:
        if is_open():
            channel.send(m.TxCommitOk())

    try:
        accepted = yield from transaction.committing(published)
        if not accepted:
            raise PreconditionFailed("partial tx completion")
    except ModelError as problem:
        if not connection.busy:
            raise
        if is_open():
            connection.fail(channel.number, problem, m.TxCommit.INDEX)
        else:
            channel.release()


def rollback(channel: Amqp091Channel, method: Method) -> None:
    """Roll back: settled deliveries are unacknowledged again, and not redelivered (tx.rollback/*)."""
    undone = _transaction(channel).rollback()
    channel.send(m.TxRollbackOk())
    channel.put_back(undone)


def _transaction(channel: Amqp091Channel) -> Transaction:
    if channel.transaction is None:
        raise PreconditionFailed("channel is not transactional")
    return channel.transaction
