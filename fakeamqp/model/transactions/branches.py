"""The branches of distributed transactions in one virtual host, and the sessions associated with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fakeamqp.model.errors import (
    AccessRefused,
    CommandInvalid,
    IllegalState,
    InvalidArgument,
    ModelError,
    NotAllowed,
    NotFound,
    NotImplementedHere,
)
from fakeamqp.model.transactions.branch import Branch, BranchState, BranchView, XaOutcome

if TYPE_CHECKING:
    from fakeamqp.model.access import User
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.personality import BranchChoices
    from fakeamqp.model.transactions.branch import Xid
    from fakeamqp.model.transactions.transaction import Transaction
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["Branches"]

_HEURISTIC = {
    "commit": XaOutcome.HEURISTIC_COMMIT,
    "rollback": XaOutcome.HEURISTIC_ROLLBACK,
    "mix": XaOutcome.HEURISTIC_MIX,
    "hazard": XaOutcome.HEURISTIC_HAZARD,
}


class Branches:
    """All known branches. Sessions are only compared by identity.

    A branch is open to the user who has started it, to users with the tag administrator, such as a
    transaction manager with an account of its own, and to requests without a user, which are a test's.

    Attributes:
        in_doubt: the deliveries that prepared branches will settle. Their messages are not ready and belong
            to no client, and a restart does not requeue them.
        promised: the message that a prepared branch is publishing; no queue may refuse it.
    """

    def __init__(self, virtual_host: VirtualHost) -> None:
        self.in_doubt: dict[Delivery, Branch] = {}
        self.promised: Message | None = None
        self._virtual_host = virtual_host
        self._known: dict[Xid, Branch] = {}
        self._working: dict[object, Branch] = {}
        self._enlisted: dict[object, Callable[[], None]] = {}
        """The enlisted sessions, and the function to call when the branch of one is completed."""

    def __len__(self) -> int:
        return len(self._known)

    def views(self) -> tuple[BranchView, ...]:
        """A snapshot of each branch, in the order they were started."""
        return tuple(branch.view() for branch in self._known.values())

    @property
    def _choices(self) -> BranchChoices:
        return self._virtual_host.state.personality.branches

    def _branch(self, xid: Xid, user: User | None) -> Branch:
        """The branch with this identity, for a request of this user.

        Raises:
            NotFound: there is none.
            AccessRefused: another user has started it.
        """
        found = self._known.get(xid)
        if found is None:
            raise NotFound(f"no branch {xid} in vhost '{self._virtual_host.name}'")
        if not found.open_to(user):
            assert user is not None
            raise AccessRefused(
                f"access to branch {xid} in vhost '{self._virtual_host.name}' refused for user "
                f"'{user.name}': another user has started it"
            )
        return found

    # --- demarcation --------------------------------------------------------------------------------

    def enlist(
        self, session: object, xid: Xid, over: Callable[[], None], *, user: User | None = None
    ) -> None:
        """Start a branch whose session cannot end its association itself (0-9: dtx/grammar).

        The association ends when the branch is prepared, committed or rolled back, or with `delist`.

        Args:
            session: the session whose work belongs to the branch.
            xid: the branch's identity.
            over: called when the association ends because the branch is prepared or completed.
            user: the user of the session.

        Raises:
            NotAllowed, IllegalState: see `start`.
        """
        self.start(session, xid, user=user)
        self._enlisted[session] = over

    def delist(self, session: object) -> None:
        """End the association of an enlisted session; does nothing if the session is not enlisted."""
        branch = self._working.pop(session, None)
        if self._enlisted.pop(session, None) is not None and branch is not None:
            branch.leave(session)

    def _finished(self, xid: Xid, user: User | None) -> Branch:
        """The branch, after the association of its enlisted sessions was ended.

        Raises:
            NotFound, AccessRefused: see `_branch`.
        """
        branch = self._branch(xid, user)
        for session in [each for each in branch.sessions if each in self._enlisted]:
            over = self._enlisted[session]
            self.delist(session)
            over()
        return branch

    def start(
        self,
        session: object,
        xid: Xid,
        *,
        join: bool = False,
        resume: bool = False,
        user: User | None = None,
    ) -> XaOutcome:
        """Associate a session's further work with a branch (dtx/transactionality).

        Args:
            session: the session.
            xid: the branch's identity; the branch is new unless one of the flags is set.
            join: work on a branch that another session has started.
            resume: continue with a branch that the session has suspended.
            user: the user of the session.

        Returns:
            OK, or the reason why the branch is rollback-only; the session is not associated with it then.

        Raises:
            CommandInvalid, NotAllowed: both flags are set, by personality.
            IllegalState: the session works on a branch already; it has not suspended this one; or the
                branch is prepared or completed.
            NotAllowed: the branch is known, and no flag is set.
            NotFound: it is not known, and one is.
            AccessRefused: it is another user's, and one is.
            NotImplementedHere: `join` is set, and the personality cannot join branches.
        """
        if join and resume:
            raise self._contradiction("join and resume")
        if join and not self._choices.joins:
            raise NotImplementedHere("this broker is made without joining branches")
        if session in self._working:
            raise IllegalState(f"the session works on branch {self._working[session].xid} already")
        if join or resume:
            branch = self._branch(xid, user)
            if resume and session not in branch.sessions:
                raise IllegalState(f"the session has not suspended branch {xid}")
            if join and session in branch.sessions:
                raise IllegalState(f"the session has suspended branch {xid}, and can only resume it")
            if branch.outcome is not None and not branch.in_doubt:
                if session in branch.sessions:
                    branch.leave(session)
                return branch.outcome
            branch.join(session)
        elif xid in self._known:
            raise NotAllowed(f"branch {xid} is known already")
        else:
            branch = self._known[xid] = Branch(
                self._virtual_host, xid, self._choices.default_timeout, None if user is None else user.name
            )
            branch.join(session)
            self._report("branch started", xid)
        self._working[session] = branch
        return XaOutcome.OK

    def end(self, session: object, xid: Xid, *, fail: bool = False, suspend: bool = False) -> XaOutcome:
        """End or suspend the association of a session with a branch.

        Args:
            session: the session.
            xid: the branch's identity.
            fail: the work has failed: mark the branch rollback-only.
            suspend: the session will resume its work later.

        Returns:
            OK, or the reason why the branch is rollback-only; the session is not associated with it then.

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
            branch.mark_rollback_only(XaOutcome.ROLLED_BACK if branch.outcome is None else branch.outcome)
        if suspend and branch.outcome is None:
            branch.sessions[session] = False
        else:
            branch.leave(session)
        if suspend and fail:
            raise self._contradiction("suspend and fail")
        return XaOutcome.OK if branch.outcome is None else branch.outcome

    def _contradiction(self, flags: str) -> ModelError:
        kinds = {"command-invalid": CommandInvalid, "not-allowed": NotAllowed}
        return kinds[self._choices.contradictory_flags](f"{flags} cannot be set together")

    def working(self, session: object) -> Transaction | None:
        """The transaction of the branch that the session works on, or None."""
        branch = self._working.get(session)
        return None if branch is None else branch.transaction

    def leave(self, session: object) -> None:
        """The session has ended: mark the branches that it is associated with rollback-only.

        Source: dtx.end/session-closed.
        """
        self._working.pop(session, None)
        self._enlisted.pop(session, None)
        for branch in [each for each in self._known.values() if session in each.sessions]:
            if branch.outcome is None:
                branch.mark_rollback_only(XaOutcome.ROLLED_BACK)
            branch.leave(session)

    # --- coordination -------------------------------------------------------------------------------

    def prepare(self, xid: Xid, *, user: User | None = None) -> XaOutcome:
        """Prepare the branch: promise that it can be committed and rolled back later.

        Returns:
            OK; READ_ONLY if the branch has no work, and is over; or the reason why it was rolled back.

        Raises:
            NotFound: there is no such branch.
            IllegalState: a session is associated with it, or it is prepared or completed already.
        """
        return self._settled("prepared", xid, self._finished(xid, user).prepare())

    def commit(self, xid: Xid, *, one_phase: bool = False, user: User | None = None) -> XaOutcome:
        """Do the work of the branch. Its xid may be used again then.

        Returns:
            OK; the reason why it was rolled back instead; or the heuristic outcome.

        Raises:
            NotFound: there is no such branch.
            IllegalState: a session is associated with it; or it is prepared and `one_phase` is set; or it is
                not prepared and `one_phase` is not set.
        """
        return self._settled("committed", xid, self._finished(xid, user).commit(one_phase=one_phase))

    def rollback(self, xid: Xid, *, user: User | None = None) -> XaOutcome:
        """Undo the work of the branch. Its xid may be used again then.

        Returns:
            OK; TIMED_OUT if its timeout has rolled it back before; or the heuristic outcome.

        Raises:
            NotFound: there is no such branch.
            IllegalState: a session is associated with it.
        """
        return self._settled("rolled back", xid, self._finished(xid, user).rollback())

    def forget(self, xid: Xid, *, user: User | None = None) -> None:
        """Forget a heuristically completed branch.

        Raises:
            NotFound: there is no such branch.
            IllegalState: it is not heuristically completed.
        """
        self._branch(xid, user).forget()
        self._settled("forgotten", xid, XaOutcome.OK)

    def recover(self, user: User | None = None) -> list[Xid]:
        """The branches open to this user that are prepared or heuristically completed, in the order they were
        started.
        """
        return [branch.xid for branch in self._known.values() if branch.in_doubt and branch.open_to(user)]

    def complete(self, xid: Xid, how: str) -> None:
        """Complete a branch heuristically, so that tests can check how coordinators handle that.

        Args:
            xid: the identity of a prepared branch.
            how: "commit" or "rollback"; "mix" commits the publishes and returns the consumed messages;
                "hazard" rolls the branch back without reporting that.

        Raises:
            NotFound: there is no such branch.
            IllegalState: it is not prepared.
        """
        self._branch(xid, None).decide(_HEURISTIC[how])
        self._report("branch completed heuristically", xid, outcome=_HEURISTIC[how].value)

    def _settled(self, how: str, xid: Xid, outcome: XaOutcome) -> XaOutcome:
        """Report the result of a request, and remove the branch if it is over."""
        if self._known[xid].state is BranchState.FINISHED:
            del self._known[xid]
        if outcome is XaOutcome.OK:
            self._report(f"branch {how}", xid)
        else:
            self._report("branch answered", xid, outcome=outcome.value)
        return outcome

    def _report(self, event: str, xid: Xid, **facts: object) -> None:
        self._virtual_host.report(event, branch=str(xid), **facts)

    # --- time ---------------------------------------------------------------------------------------

    def timeout(self, xid: Xid, *, user: User | None = None) -> int:
        """The branch's timeout in seconds: the one set last, or the default.

        Raises:
            NotFound, AccessRefused: see `_branch`.
        """
        return self._branch(xid, user).timeout

    def set_timeout(self, xid: Xid, seconds: int, *, user: User | None = None) -> None:
        """Roll the branch back after so many seconds; 0 means the default timeout (dtx.set-timeout/reset).

        Raises:
            NotFound: there is no such branch.
            AccessRefused: another user has started it.
            InvalidArgument: the timeout exceeds the personality's maximum.
        """
        branch = self._branch(xid, user)
        longest = self._choices.longest_timeout
        if longest is not None and seconds > longest:
            raise InvalidArgument(f"a branch may take {longest} s at most, not {seconds} s")
        branch.set_timeout(seconds or self._choices.default_timeout)

    # --- restart ------------------------------------------------------------------------------------

    def abandon(self, *, prepared: bool = False) -> None:
        """Roll back and forget the branches that are not prepared, or with `prepared` all branches."""
        self._working.clear()
        for xid, branch in list(self._known.items()):
            if prepared or not branch.in_doubt:
                del self._known[xid]
                branch.abandon()

    def restarted(self, *, crash: bool = False) -> None:
        """After a restart, once the queues are restored: keep the persistent work of prepared branches."""
        for branch in self._known.values():
            branch.transaction.keep_persistent(crash=crash)
        for delivery in [each for each in self.in_doubt if each.settled]:
            del self.in_doubt[delivery]
