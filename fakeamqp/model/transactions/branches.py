"""The branches of distributed transactions in one virtual host: who works on which, and what they come to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fakeamqp.model.errors import (
    CommandInvalid,
    IllegalState,
    InvalidArgument,
    ModelError,
    NotAllowed,
    NotFound,
)
from fakeamqp.model.transactions.branch import Branch, BranchState, BranchView, XaOutcome

if TYPE_CHECKING:
    from fakeamqp.model.delivery import Delivery
    from fakeamqp.model.message import Message
    from fakeamqp.model.personality import BranchChoices
    from fakeamqp.model.transactions.transaction import Transaction
    from fakeamqp.model.transactions.xid import Xid
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["Branches"]

_HEURISTIC = {
    "commit": XaOutcome.HEURISTIC_COMMIT,
    "rollback": XaOutcome.HEURISTIC_ROLLBACK,
    "mix": XaOutcome.HEURISTIC_MIX,
    "hazard": XaOutcome.HEURISTIC_HAZARD,
}


class Branches:
    """All branches that are known. Sessions are told apart by identity and are never looked into.

    `in_doubt` are the deliveries that prepared branches will settle: their messages are neither ready nor
    anybody's, and a restart leaves them alone. `promised` is the message that a prepared branch publishes
    right now: no queue may refuse it.
    """

    def __init__(self, virtual_host: VirtualHost) -> None:
        self.in_doubt: dict[Delivery, Branch] = {}
        self.promised: Message | None = None
        self._virtual_host = virtual_host
        self._known: dict[Xid, Branch] = {}
        self._working: dict[object, Branch] = {}
        self._enlisted: dict[object, Callable[[], None]] = {}
        """Those that cannot say when their work is done, and whom to tell that it is."""

    def __len__(self) -> int:
        return len(self._known)

    def views(self) -> tuple[BranchView, ...]:
        """What there is to see of each, in the order they were started."""
        return tuple(branch.view() for branch in self._known.values())

    @property
    def _choices(self) -> BranchChoices:
        return self._virtual_host.state.personality.branches

    def _branch(self, xid: Xid) -> Branch:
        found = self._known.get(xid)
        if found is None:
            raise NotFound(f"no branch {xid} in vhost '{self._virtual_host.name}'")
        return found

    # --- demarcation --------------------------------------------------------------------------------

    def enlist(self, session: object, xid: Xid, over: Callable[[], None]) -> None:
        """Have what a session does from now on be the work of a new branch, until somebody decides about it.

        It cannot say itself that its work is done (0-9: dtx/grammar). Its work is done when the branch is
        prepared, committed or rolled back, or when it `retires`.

        Args:
            session: whose work it is.
            xid: of the branch.
            over: called when its work is done because somebody has decided about the branch.

        Raises:
            NotAllowed, IllegalState: see `start`.
        """
        self.start(session, xid)
        self._enlisted[session] = over

    def retire(self, session: object) -> None:
        """The session that was enlisted has ended, and its work is done; if it was, it works on no branch."""
        branch = self._working.pop(session, None)
        if self._enlisted.pop(session, None) is not None and branch is not None:
            branch.part(session)

    def _finished(self, xid: Xid) -> Branch:
        """The branch, on which nobody works any more that could not say so.

        Raises:
            NotFound: there is no such branch.
        """
        branch = self._branch(xid)
        for session in [each for each in branch.sessions if each in self._enlisted]:
            over = self._enlisted[session]
            self.retire(session)
            over()
        return branch

    def start(self, session: object, xid: Xid, *, join: bool = False, resume: bool = False) -> XaOutcome:
        """Have what the session does from now on belong to the branch (dtx/transactionality).

        Args:
            session: whose work it is.
            xid: of the branch, which is new unless one of the flags is set.
            join: work on a branch that others have started.
            resume: go on with a branch that the session has suspended.

        Returns:
            OK, or why the branch can only be rolled back: the session then does not work on it.

        Raises:
            CommandInvalid, NotAllowed: both flags are set, by personality.
            IllegalState: the session works on a branch already; it has not suspended this one; or the
                branch is prepared or completed.
            NotAllowed: the branch is known, and no flag is set.
            NotFound: it is not known, and one is.
        """
        if join and resume:
            raise self._contradiction("join and resume")
        if session in self._working:
            raise IllegalState(f"the session works on branch {self._working[session].xid} already")
        if join or resume:
            branch = self._branch(xid)
            if resume and session not in branch.sessions:
                raise IllegalState(f"the session has not suspended branch {xid}")
            if join and session in branch.sessions:
                raise IllegalState(f"the session has suspended branch {xid}, and can only resume it")
            if branch.outcome is not None and not branch.in_doubt:
                if session in branch.sessions:
                    branch.part(session)
                return branch.outcome
            branch.join(session)
        elif xid in self._known:
            raise NotAllowed(f"branch {xid} is known already")
        else:
            branch = self._known[xid] = Branch(self._virtual_host, xid, self._choices.default_timeout)
            branch.join(session)
            self._note("branch started", xid)
        self._working[session] = branch
        return XaOutcome.OK

    def end(self, session: object, xid: Xid, *, fail: bool = False, suspend: bool = False) -> XaOutcome:
        """The session's work for the branch is over: done, failed, or to be resumed.

        Returns:
            OK, or why the branch can only be rolled back; the session is then not associated with it.

        Raises:
            IllegalState: the session is not associated with the branch (dtx.end/xid-not-associated), or has
                suspended it already.
            CommandInvalid, NotAllowed: both flags are set, by personality. The work has failed then.
        """
        branch = self._known.get(xid)
        if branch is None or session not in branch.sessions:
            raise IllegalState(f"the session is not associated with branch {xid}")
        if suspend and not fail and not branch.sessions[session]:
            raise IllegalState(f"the session has suspended branch {xid} already")
        if branch.sessions[session]:
            del self._working[session]
        if fail:
            branch.doom(XaOutcome.ROLLED_BACK if branch.outcome is None else branch.outcome)
        if suspend and branch.outcome is None:
            branch.sessions[session] = False
        else:
            branch.part(session)
        if suspend and fail:
            raise self._contradiction("suspend and fail")
        return XaOutcome.OK if branch.outcome is None else branch.outcome

    def _contradiction(self, flags: str) -> ModelError:
        kinds = {"command-invalid": CommandInvalid, "not-allowed": NotAllowed}
        return kinds[self._choices.contradictory_flags](f"{flags} cannot be set together")

    def working(self, session: object) -> Transaction | None:
        """What collects the session's work, where it works on a branch."""
        branch = self._working.get(session)
        return None if branch is None else branch.transaction

    def leave(self, session: object) -> None:
        """The session has ended: branches that it is associated with can only be rolled back.

        Source: dtx.end/session-closed.
        """
        self._working.pop(session, None)
        self._enlisted.pop(session, None)
        for branch in [each for each in self._known.values() if session in each.sessions]:
            if branch.outcome is None:
                branch.doom(XaOutcome.ROLLED_BACK)
            branch.part(session)

    # --- coordination -------------------------------------------------------------------------------

    def prepare(self, xid: Xid) -> XaOutcome:
        """Make sure that the branch can be committed and rolled back, whatever happens meanwhile.

        Returns:
            OK; READ_ONLY where there was nothing to do, and the branch is over; or why it can only be
            rolled back.

        Raises:
            NotFound: there is no such branch.
            IllegalState: a session is associated with it, or it is prepared or completed already.
        """
        return self._settled("prepared", xid, self._finished(xid).prepare())

    def commit(self, xid: Xid, *, one_phase: bool = False) -> XaOutcome:
        """Do the work of the branch, after which its xid may be used again.

        Returns:
            OK; why it was rolled back instead; or what the broker has decided by itself.

        Raises:
            NotFound: there is no such branch.
            IllegalState: a session is associated with it; it is not prepared and `one_phase` is not set, or
                it is and it is.
        """
        return self._settled("committed", xid, self._finished(xid).commit(one_phase=one_phase))

    def rollback(self, xid: Xid) -> XaOutcome:
        """Undo the work of the branch, after which its xid may be used again.

        Returns:
            OK; TIMED_OUT where that was done before; or what the broker has decided by itself.

        Raises:
            NotFound: there is no such branch.
            IllegalState: a session is associated with it.
        """
        return self._settled("rolled back", xid, self._finished(xid).rollback())

    def forget(self, xid: Xid) -> None:
        """Remember a heuristically completed branch no longer.

        Raises:
            NotFound: there is no such branch.
            IllegalState: it is no such one.
        """
        self._branch(xid).forget()
        self._settled("forgotten", xid, XaOutcome.OK)

    def recover(self) -> list[Xid]:
        """The branches that are prepared or heuristically completed, in the order they were started."""
        return [branch.xid for branch in self._known.values() if branch.in_doubt]

    def complete(self, xid: Xid, how: str) -> None:
        """Have the broker decide by itself, as no broker should and some have to: for tests of what follows.

        Args:
            xid: of a prepared branch.
            how: "commit" or "rollback"; "mix" commits what is published and returns what was consumed;
                "hazard" loses track of it, which rolls it back.

        Raises:
            NotFound: there is no such branch.
            IllegalState: it is not prepared.
        """
        self._branch(xid).decide(_HEURISTIC[how])
        self._note("branch completed heuristically", xid, outcome=_HEURISTIC[how].value)

    def _settled(self, how: str, xid: Xid, outcome: XaOutcome) -> XaOutcome:
        """Note what a branch has come to, and remember it no longer where it is over."""
        if self._known[xid].state is BranchState.GONE:
            del self._known[xid]
        if outcome is XaOutcome.OK:
            self._note(f"branch {how}", xid)
        else:
            self._note("branch answered", xid, outcome=outcome.value)
        return outcome

    def _note(self, event: str, xid: Xid, **facts: object) -> None:
        self._virtual_host.note(event, branch=str(xid), **facts)

    # --- time ---------------------------------------------------------------------------------------

    def timeout(self, xid: Xid) -> int:
        """After how many seconds the branch is rolled back: what was set last, or the default.

        Raises:
            NotFound: there is no such branch.
        """
        return self._branch(xid).timeout

    def set_timeout(self, xid: Xid, seconds: int) -> None:
        """Have the branch rolled back so many seconds from now; 0 means the default (dtx.set-timeout/reset).

        Raises:
            NotFound: there is no such branch.
            InvalidArgument: the broker does not wait that long, by personality.
        """
        branch = self._branch(xid)
        longest = self._choices.longest_timeout
        if longest is not None and seconds > longest:
            raise InvalidArgument(f"a branch may take {longest} s at most, not {seconds} s")
        branch.set_timeout(seconds or self._choices.default_timeout)

    # --- restart ------------------------------------------------------------------------------------

    def abandon(self, *, prepared: bool = False) -> None:
        """The broker goes: branches that are not prepared are rolled back and forgotten, or all are."""
        self._working.clear()
        for xid, branch in list(self._known.items()):
            if prepared or not branch.in_doubt:
                del self._known[xid]
                branch.abandon()

    def restarted(self, *, crash: bool = False) -> None:
        """The broker is back, and so are its queues: of prepared branches what is persistent is left."""
        for branch in self._known.values():
            branch.transaction.keep_persistent(crash=crash)
        for delivery in [each for each in self.in_doubt if each.settled]:
            del self.in_doubt[delivery]
