"""Class tx: transfers and accepts that take effect all together or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.model.errors import IllegalState, NotAllowed
from fakeamqp.model.transactions import Transaction
from fakeamqp.protocols.amqp_0_10.codec import commands
from fakeamqp.protocols.amqp_0_10.codec.constants import AcceptMode
from fakeamqp.protocols.amqp_0_10.replies import SessionFault

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_10.server_session import ServerSession


def select(session: ServerSession, command: commands.TxSelect) -> None:
    """Make the session transactional; one that is already so keeps its pending work."""
    if session.choices.selects_once and session.mode is not None:
        raise IllegalState(f"the session is selected for {session.mode} already")
    for end in session.subscriptions.values():
        require_accepts(session, end.accept_mode)
    if session.mode is None:
        session.mode = "tx"
    if session.own_transaction is None:
        session.own_transaction = Transaction()
        if session.transaction is None:
            session.transaction = session.own_transaction


def require_accepts(session: ServerSession, accept_mode: AcceptMode) -> None:
    """Refuse, by personality, accept-mode none in a transactional session (tx.select/explicit-accepts)."""
    if session.choices.needs_explicit_accepts and accept_mode is AcceptMode.NONE:
        raise NotAllowed("subscriptions of a transactional session need accept-mode explicit")


def commit(session: ServerSession, command: commands.TxCommit) -> None:
    """Carry out all work since select, the last commit or the last rollback (tx.commit/select-required). If a
    queue refuses a message, or has taken one back, no work is done, and the session ends.
    """
    transaction = _own(session)
    transaction.prepare()
    transaction.commit()


def rollback(session: ServerSession, command: commands.TxRollback) -> None:
    """Discard that work; accepted messages stay acquired (tx.rollback/stay-acquired,
    tx.rollback/select-required).
    """
    session.ledger.put_back(_own(session).rollback())


def _own(session: ServerSession) -> Transaction:
    if session.own_transaction is None:
        raise SessionFault(session.choices.without_select, "the session is not transactional")
    return session.own_transaction
