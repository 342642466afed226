"""Class tx: transfers and accepts that count all together or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fakeamqp.model.errors import IllegalState, NotAllowed
from fakeamqp.model.transactions import Transaction
from fakeamqp.protocols.amqp_0_10.codec import commands
from fakeamqp.protocols.amqp_0_10.codec.constants import AcceptMode
from fakeamqp.protocols.amqp_0_10.replies import SessionFault

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_10.codec.packed import Command
    from fakeamqp.protocols.amqp_0_10.sessions.server_session import ServerSession

__all__ = ["HANDLERS", "check_accept_mode"]


def select(session: ServerSession, command: commands.TxSelect) -> None:
    """Make the session transactional from now on; work that is pending is kept if it is already.

    Raises:
        IllegalState: it is, or distributed transactions are selected, where the personality minds.
        NotAllowed: a subscription of it expects no accepts, where the personality minds.
    """
    if session.choices.selects_once and session.mode is not None:
        raise IllegalState(f"the session is selected for {session.mode} already")
    for end in session.subscriptions.values():
        _require_accepts(session, end.accept_mode)
    if session.mode is None:
        session.mode = "tx"
    if session.own_transaction is None:
        session.own_transaction = Transaction()
        if session.transaction is None:
            session.transaction = session.own_transaction


def check_accept_mode(session: ServerSession, accept_mode: AcceptMode) -> None:
    """May a subscription of this session have this accept mode?

    Raises:
        NotAllowed: the session is transactional and it expects none, where the personality minds.
    """
    if session.own_transaction is not None:
        _require_accepts(session, accept_mode)


def _require_accepts(session: ServerSession, accept_mode: AcceptMode) -> None:
    """Source: tx.select/explicit-accepts."""
    if session.choices.needs_explicit_accepts and accept_mode is AcceptMode.NONE:
        raise NotAllowed("subscriptions of a transactional session need accept-mode explicit")


def commit(session: ServerSession, command: commands.TxCommit) -> None:
    """Do everything since select, the last commit or the last rollback, or nothing of it.

    Raises:
        SessionFault: the session is not transactional (tx.commit/select-required).
        ResourceError: a full queue would refuse one of the messages. The session ends, and nothing is done.
        PreconditionFailed: a queue has taken back what was accepted; likewise.
    """
    transaction = _own(session)
    transaction.prepare()
    transaction.commit()


def rollback(session: ServerSession, command: commands.TxRollback) -> None:
    """Undo it; what was accepted stays acquired by the session (tx.rollback/stay-acquired).

    Raises:
        SessionFault: the session is not transactional (tx.rollback/select-required).
    """
    session.ledger.put_back(_own(session).rollback())


def _own(session: ServerSession) -> Transaction:
    if session.own_transaction is None:
        raise SessionFault(session.choices.without_select, "the session is not transactional")
    return session.own_transaction


HANDLERS: dict[type[Command], Callable[[ServerSession, Any], None]] = {
    commands.TxSelect: select,
    commands.TxCommit: commit,
    commands.TxRollback: rollback,
}
