"""Class dtx: distributed transactions of one session.

The model decides what a branch allows in which state: see `model.transactions.branches`. Demarcation (start
and end) concerns the session's own work; coordination (the rest) is open to every session of the user who has
started the branch, selected or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.model.transactions import XaOutcome, Xid
from fakeamqp.protocols.amqp_0_10.codec import commands, structs
from fakeamqp.protocols.amqp_0_10.codec.constants import XaStatus
from fakeamqp.protocols.amqp_0_10.codec.types import STRUCT32, Array
from fakeamqp.protocols.amqp_0_10.replies import SessionFault

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_10.server_session import ServerSession

_STATUS: dict[XaOutcome, XaStatus] = {
    outcome: XaStatus[outcome.value.upper().replace("-", "_")] for outcome in XaOutcome
}
"""What the model says -> what the client is told (dtx/xa-*)."""


def select(session: ServerSession, command: commands.DtxSelect) -> None:
    """Let the session take part in distributed transactions, any number of times (dtx.select/repeatable)."""
    session.mode = "dtx"


def start(session: ServerSession, command: commands.DtxStart) -> structs.XaResult:
    """Put the transfers and accepts that follow into a branch (dtx/transactionality, dtx.select/required)."""
    _check_selected(session)
    branches = session.virtual_host.branches
    outcome = branches.start(
        session, _xid(command.xid), join=command.join, resume=command.resume, user=session.user
    )
    _look_whose_work_it_is(session)
    return _result(outcome)


def end(session: ServerSession, command: commands.DtxEnd) -> structs.XaResult:
    """End or suspend the session's work for a branch; commands that follow count by themselves."""
    _check_selected(session)
    branches = session.virtual_host.branches
    outcome = branches.end(session, _xid(command.xid), fail=command.fail, suspend=command.suspend)
    _look_whose_work_it_is(session)
    return _result(outcome)


def _check_selected(session: ServerSession) -> None:
    if session.mode != "dtx":
        raise SessionFault(
            session.choices.without_select, "the session is not selected for distributed transactions"
        )


def _look_whose_work_it_is(session: ServerSession) -> None:
    """Set the transaction of the session's work: the branch, else its own one, else none."""
    branch = session.virtual_host.branches.working(session)
    session.transaction = session.own_transaction if branch is None else branch


def prepare(session: ServerSession, command: commands.DtxPrepare) -> structs.XaResult:
    """Prepare a branch, so that it can be committed and rolled back (dtx.prepare/*)."""
    return _result(session.virtual_host.branches.prepare(_xid(command.xid), user=session.user))


def commit(session: ServerSession, command: commands.DtxCommit) -> structs.XaResult:
    """Commit the work of a branch (dtx.commit/*)."""
    branches = session.virtual_host.branches
    return _result(branches.commit(_xid(command.xid), one_phase=command.one_phase, user=session.user))


def rollback(session: ServerSession, command: commands.DtxRollback) -> structs.XaResult:
    """Roll back the work of a branch (dtx.rollback/*)."""
    return _result(session.virtual_host.branches.rollback(_xid(command.xid), user=session.user))


def forget(session: ServerSession, command: commands.DtxForget) -> None:
    """Forget a heuristically completed branch (dtx.forget/*)."""
    session.virtual_host.branches.forget(_xid(command.xid), user=session.user)


def recover(session: ServerSession, command: commands.DtxRecover) -> structs.RecoverResult:
    """List the branches that wait for a decision (dtx.recover/in-doubt)."""
    xids = [
        structs.Xid(format=each.format, global_id=each.global_id, branch_id=each.branch_id)
        for each in session.virtual_host.branches.recover(session.user)
    ]
    return structs.RecoverResult(in_doubt=Array(xids, STRUCT32))


def get_timeout(session: ServerSession, command: commands.DtxGetTimeout) -> structs.GetTimeoutResult:
    """Tell after how many seconds a branch is rolled back (dtx.get-timeout/value)."""
    branches = session.virtual_host.branches
    return structs.GetTimeoutResult(timeout=branches.timeout(_xid(command.xid), user=session.user))


def set_timeout(session: ServerSession, command: commands.DtxSetTimeout) -> None:
    """Set after how many seconds a branch is rolled back; 0 is the default (dtx.set-timeout/*)."""
    branches = session.virtual_host.branches
    branches.set_timeout(_xid(command.xid), command.timeout or 0, user=session.user)


def _xid(given: structs.Xid | None) -> Xid:
    """The xid as the model knows it. Raises SessionFault where the command has none."""
    if given is None:
        raise SessionFault("illegal-argument", "an xid is needed", "xid")
    return Xid(given.format or 0, given.global_id or b"", given.branch_id or b"")


def _result(outcome: XaOutcome) -> structs.XaResult:
    return structs.XaResult(status=_STATUS[outcome])
