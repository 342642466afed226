"""The branches of distributed transactions in one virtual host, and the sessions associated with them.

Theory of operation. A session starts a branch; other sessions may join it. While any session is *associated*
with the branch, working or suspended, the branch is active. Then it is idle, and any session that knows its
xid may prepare it, commit it or roll it back. A prepared branch is *in doubt*: the broker has promised to
commit it or to roll it back, even after a restart, and no longer decides which. A branch that has failed or
timed out is *rollback-only*: it can only be rolled back, and every request for it is answered so. If the
broker completes a prepared branch by itself, the outcome is called heuristic; the branch then stays known
until a client forgets it.

`TRANSITIONS` is the complete table: state x event -> state. Any other combination is an illegal state.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from fakeamqp.model.deliveries.delivery import Ending, release_all
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
from fakeamqp.model.operations import carry_out
from fakeamqp.model.timers import Deadline
from fakeamqp.model.transactions.transaction import Transaction

if TYPE_CHECKING:
    from fakeamqp.model.access import User
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.personality import BranchChoices
    from fakeamqp.model.virtual_host import VirtualHost


class Xid(NamedTuple):
    """A branch's identity (dtx/xid): two xids are equal only if all three parts are.

    All branches of one transaction have the same `global_id` and different `branch_id`s; each has at most
    255 bytes. The transaction manager defines their content; `format` identifies its format.
    """

    format: int
    global_id: bytes
    branch_id: bytes

    def __str__(self) -> str:
        return f"{self.format}:{_shown(self.global_id)}:{_shown(self.branch_id)}"


def _shown(identifier: bytes) -> str:
    """The identifier as text if it is printable ASCII, otherwise in hexadecimal digits."""
    text = identifier.decode("ascii", "replace")
    return text if text.isprintable() and text.isascii() else identifier.hex()


class XaOutcome(Enum):
    """The result of a request for a branch (dtx/xa-*)."""

    OK = "xa-ok"
    """The request succeeded."""
    ROLLED_BACK = "xa-rbrollback"
    """The branch was rolled back, or will be, for an unspecified reason."""
    TIMED_OUT = "xa-rbtimeout"
    """The branch was rolled back because it timed out."""
    HEURISTIC_HAZARD = "xa-heurhaz"
    """The branch may have been committed or rolled back; the broker does not know which."""
    HEURISTIC_COMMIT = "xa-heurcom"
    """The broker committed the branch by itself."""
    HEURISTIC_ROLLBACK = "xa-heurrb"
    """The broker rolled the branch back by itself."""
    HEURISTIC_MIX = "xa-heurmix"
    """The broker committed part of the branch by itself and rolled back the rest."""
    READ_ONLY = "xa-rdonly"
    """The branch had no work, and is over."""


class BranchState(Enum):
    """The state of a branch; the values are texts for people."""

    ACTIVE = "active"
    ACTIVE_ROLLBACK_ONLY = "active, rollback-only"
    IDLE = "idle"
    ROLLBACK_ONLY = "rollback-only"
    PREPARED = "prepared"
    HEURISTIC = "heuristically completed"
    FINISHED = "finished"


class BranchEvent(Enum):
    """An event of a branch; "cannot be" may precede the values in texts."""

    JOIN = "joined"
    LEAVE = "left by its last session"
    MARK_ROLLBACK_ONLY = "marked rollback-only"
    PREPARE = "prepared"
    PREPARE_NOTHING = "found empty"
    COMMIT = "committed in two phases"
    COMMIT_ONE_PHASE = "committed in one phase"
    ROLLBACK = "rolled back"
    DECIDE = "decided by the broker"
    FORGET = "forgotten"


_S, _E = BranchState, BranchEvent

TRANSITIONS: dict[tuple[BranchState, BranchEvent], BranchState] = {
    (_S.ACTIVE, _E.JOIN): _S.ACTIVE,
    (_S.ACTIVE, _E.LEAVE): _S.IDLE,
    (_S.ACTIVE, _E.MARK_ROLLBACK_ONLY): _S.ACTIVE_ROLLBACK_ONLY,
    (_S.ACTIVE_ROLLBACK_ONLY, _E.LEAVE): _S.ROLLBACK_ONLY,
    (_S.ACTIVE_ROLLBACK_ONLY, _E.MARK_ROLLBACK_ONLY): _S.ACTIVE_ROLLBACK_ONLY,
    (_S.IDLE, _E.JOIN): _S.ACTIVE,
    (_S.IDLE, _E.MARK_ROLLBACK_ONLY): _S.ROLLBACK_ONLY,
    (_S.IDLE, _E.PREPARE): _S.PREPARED,
    (_S.IDLE, _E.PREPARE_NOTHING): _S.FINISHED,
    (_S.IDLE, _E.COMMIT_ONE_PHASE): _S.FINISHED,
    (_S.IDLE, _E.ROLLBACK): _S.FINISHED,
    (_S.ROLLBACK_ONLY, _E.MARK_ROLLBACK_ONLY): _S.ROLLBACK_ONLY,
    (_S.ROLLBACK_ONLY, _E.PREPARE): _S.ROLLBACK_ONLY,
    (_S.ROLLBACK_ONLY, _E.COMMIT): _S.FINISHED,
    (_S.ROLLBACK_ONLY, _E.COMMIT_ONE_PHASE): _S.FINISHED,
    (_S.ROLLBACK_ONLY, _E.ROLLBACK): _S.FINISHED,
    (_S.PREPARED, _E.COMMIT): _S.FINISHED,
    (_S.PREPARED, _E.ROLLBACK): _S.FINISHED,
    (_S.PREPARED, _E.DECIDE): _S.HEURISTIC,
    (_S.HEURISTIC, _E.COMMIT): _S.HEURISTIC,
    (_S.HEURISTIC, _E.COMMIT_ONE_PHASE): _S.HEURISTIC,
    (_S.HEURISTIC, _E.ROLLBACK): _S.HEURISTIC,
    (_S.HEURISTIC, _E.FORGET): _S.FINISHED,
}

_ASSOCIATED = (BranchState.ACTIVE, BranchState.ACTIVE_ROLLBACK_ONLY)


class BranchView(NamedTuple):
    """A snapshot of a branch.

    `state` is the value of its `BranchState`, `outcome` None until one was decided. `working` and `suspended`
    count sessions. `timeout` is in seconds; it is over at the instant `due` of the broker's clock, or never.
    """

    xid: Xid
    state: str
    outcome: XaOutcome | None
    working: int
    suspended: int
    publishes: int
    settlements: int
    timeout: int
    due: float | None


class Branch:
    """A branch and its work. Created by `Branches.start`; `sessions` maps each to whether it is working."""

    def __init__(
        self, virtual_host: VirtualHost, xid: Xid, timeout: int, user_name: str | None = None
    ) -> None:
        self.xid: Xid = xid
        self.user_name: str | None = user_name
        """The user who has started it; None if that was no client."""
        self.state: BranchState = BranchState.ACTIVE
        self.outcome: XaOutcome | None = None
        """The outcome decided by the broker itself, not by the transaction's coordinator."""
        self.sessions: dict[object, bool] = {}
        self.transaction: Transaction = Transaction()
        self.timeout: int = timeout
        self._virtual_host = virtual_host
        self._deadline = Deadline(virtual_host.state.timers, self._time_out)
        self.set_timeout(timeout)

    def __repr__(self) -> str:
        return f"<Branch {self.xid} {self.state.value}>"

    def open_to(self, user: User | None) -> bool:
        """Whether this user may join and complete it."""
        return user is None or self.user_name in (None, user.name) or "administrator" in user.tags

    def view(self) -> BranchView:
        working = sum(self.sessions.values())
        return BranchView(
            self.xid,
            self.state.value,
            self.outcome,
            working,
            len(self.sessions) - working,
            self.transaction.publishes,
            len(self.transaction.deliveries),
            self.timeout,
            self._deadline.due,
        )

    @property
    def in_doubt(self) -> bool:
        """Whether it is prepared, or heuristically completed after that."""
        return self.state in (BranchState.PREPARED, BranchState.HEURISTIC)

    def _step(self, event: BranchEvent) -> None:
        after = TRANSITIONS.get((self.state, event))
        if after is not None:
            self.state = after
        elif self.state in _ASSOCIATED:
            raise IllegalState(f"branch {self.xid} is still associated with a session")
        else:
            raise IllegalState(f"branch {self.xid} is {self.state.value}: it cannot be {event.value}")

    # --- sessions -----------------------------------------------------------------------------------

    def join(self, session: object) -> None:
        self._step(BranchEvent.JOIN)
        self.sessions[session] = True

    def leave(self, session: object) -> None:
        del self.sessions[session]
        if not self.sessions:
            self._step(BranchEvent.LEAVE)
            if self.outcome is XaOutcome.TIMED_OUT:
                self._undo()

    def mark_rollback_only(self, outcome: XaOutcome) -> None:
        self._step(BranchEvent.MARK_ROLLBACK_ONLY)
        self.outcome = outcome

    # --- outcomes -----------------------------------------------------------------------------------

    def prepare(self) -> XaOutcome:
        """Promise to commit or to roll back, as requested later (dtx.prepare/obligation-1)."""
        transaction = self.transaction
        self._prepare_work()
        empty = not transaction.publishes and not transaction.deliveries
        if self.state is BranchState.IDLE and empty:
            self._step(BranchEvent.PREPARE_NOTHING)
            self._deadline.set(None)
            return XaOutcome.READ_ONLY
        self._step(BranchEvent.PREPARE)
        if self.outcome is not None:
            self._undo()
            return self.outcome
        self._deadline.set(None)
        in_doubt = self._virtual_host.branches.in_doubt
        for delivery in transaction.deliveries:
            in_doubt[delivery] = self
        return XaOutcome.OK

    def commit(self, *, one_phase: bool) -> XaOutcome:
        """Do the work. `one_phase` must be set if and only if the branch is not prepared."""
        if one_phase:
            self._prepare_work()
        self._step(BranchEvent.COMMIT_ONE_PHASE if one_phase else BranchEvent.COMMIT)
        if self.outcome is not None:
            self._undo()
            return self.outcome
        self._release()
        self.transaction.commit()
        return XaOutcome.OK

    def _prepare_work(self) -> None:
        """Make sure that an idle branch can be committed; otherwise it can only be rolled back."""
        if self.state is BranchState.IDLE:
            try:
                self.transaction.prepare()
            except ModelError:
                self.mark_rollback_only(XaOutcome.ROLLED_BACK)

    def rollback(self) -> XaOutcome:
        """Undo the work. The result is only other than OK if the branch has timed out or was completed."""
        self._step(BranchEvent.ROLLBACK)
        self._undo()
        return XaOutcome.OK if self.outcome in (None, XaOutcome.ROLLED_BACK) else self.outcome

    def decide(self, outcome: XaOutcome) -> None:
        """Complete a prepared branch heuristically, without waiting for the coordinator's decision.

        HEURISTIC_MIX commits the publishes and returns the consumed messages. HEURISTIC_HAZARD rolls the
        branch back, but does not report that.
        """
        self._step(BranchEvent.DECIDE)
        self._release()
        if outcome is XaOutcome.HEURISTIC_COMMIT:
            self.transaction.commit()
        elif outcome is XaOutcome.HEURISTIC_MIX:
            carry_out(self.transaction.publishing())
        self._undo()
        self.outcome = outcome

    def forget(self) -> None:
        self._step(BranchEvent.FORGET)

    def _undo(self, ending: Ending = "released") -> None:
        """Drop the publishes and return the consumed messages to their places in the queues."""
        self._release()
        # Messages that the queues have taken back or lost meanwhile are not returned again.
        undone = [each for each in self.transaction.rollback() if not each.settled]
        release_all(undone, ending=ending)

    def _release(self) -> None:
        self._deadline.set(None)
        in_doubt = self._virtual_host.branches.in_doubt
        for delivery in self.transaction.deliveries:
            in_doubt.pop(delivery, None)

    def set_timeout(self, seconds: int) -> None:
        self.timeout = seconds
        self._deadline.set(None)
        if self.in_doubt or self.outcome is XaOutcome.TIMED_OUT:
            return
        due = self._virtual_host.now() + seconds
        self._deadline.set(due, f"branch {self.xid} times out and is rolled back")

    def _time_out(self) -> None:
        self.mark_rollback_only(XaOutcome.TIMED_OUT)
        self._virtual_host.report("branch timed out", branch=str(self.xid))
        self._undo()

    def abandon(self) -> None:
        """Undo the work in any state: the broker stops."""
        self.sessions.clear()
        self._undo("lost")
        self.state = BranchState.FINISHED


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
    Requests raise `NotFound` if there is no such branch, `AccessRefused` if it is not open to the user, and
    `IllegalState` if `TRANSITIONS` does not allow them.

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
        return tuple(branch.view() for branch in self._known.values())

    @property
    def _choices(self) -> BranchChoices:
        return self._virtual_host.state.personality.branches

    def _branch(self, xid: Xid, user: User | None) -> Branch:
        """The branch with this identity, for a request of this user."""
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

        The association ends when the branch is prepared, committed or rolled back, or with `delist`. `over`
        is called in the former cases. Raises as `start`.
        """
        self.start(session, xid, user=user)
        self._enlisted[session] = over

    def delist(self, session: object) -> None:
        """End the association of an enlisted session; does nothing if the session is not enlisted."""
        branch = self._working.pop(session, None)
        if self._enlisted.pop(session, None) is not None and branch is not None:
            branch.leave(session)

    def _finished(self, xid: Xid, user: User | None) -> Branch:
        """The branch, after the association of its enlisted sessions was ended. Raises as `_branch`."""
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

        The branch is new unless one of the flags is set: `join` for one that another session has started,
        `resume` for one that the session has suspended. Returns OK, or the reason why the branch is
        rollback-only; the session is not associated with it then.
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
        """End the association of a session with a branch, or suspend it: the session resumes its work later.

        With `fail` the work has failed, and the branch is marked rollback-only. Returns OK, or the reason why
        it is so; the session is not associated with it then (dtx.end/xid-not-associated).
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
        """The session has ended: its branches become rollback-only (dtx.end/session-closed)."""
        self._working.pop(session, None)
        self._enlisted.pop(session, None)
        for branch in [each for each in self._known.values() if session in each.sessions]:
            if branch.outcome is None:
                branch.mark_rollback_only(XaOutcome.ROLLED_BACK)
            branch.leave(session)

    # --- coordination -------------------------------------------------------------------------------

    def prepare(self, xid: Xid, *, user: User | None = None) -> XaOutcome:
        """Prepare the branch. Returns OK, READ_ONLY if it was empty and is over, or why it failed."""
        return self._settled("prepared", xid, self._finished(xid, user).prepare())

    def commit(self, xid: Xid, *, one_phase: bool = False, user: User | None = None) -> XaOutcome:
        """Do the work of the branch. Its xid may be used again then.

        `one_phase` must be set if and only if it is not prepared. Returns OK, why it was rolled back, or the
        heuristic outcome.
        """
        return self._settled("committed", xid, self._finished(xid, user).commit(one_phase=one_phase))

    def rollback(self, xid: Xid, *, user: User | None = None) -> XaOutcome:
        """Undo the work of the branch. Returns OK, TIMED_OUT if it was undone, or the heuristic outcome."""
        return self._settled("rolled back", xid, self._finished(xid, user).rollback())

    def forget(self, xid: Xid, *, user: User | None = None) -> None:
        """Forget a heuristically completed branch."""
        self._branch(xid, user).forget()
        self._settled("forgotten", xid, XaOutcome.OK)

    def recover(self, user: User | None = None) -> list[Xid]:
        """The branches open to this user that are prepared or heuristically completed, in the order they were
        started.
        """
        return [branch.xid for branch in self._known.values() if branch.in_doubt and branch.open_to(user)]

    def complete(self, xid: Xid, how: str) -> None:
        """Complete a prepared branch heuristically, so that tests can check how coordinators handle that.

        `how` is "commit" or "rollback"; "mix" commits the publishes and returns the consumed messages;
        "hazard" rolls the branch back without reporting that.
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

    def timeout(self, xid: Xid, *, user: User | None = None) -> int:
        """The branch's timeout in seconds: the one set last, or the default."""
        return self._branch(xid, user).timeout

    def set_timeout(self, xid: Xid, seconds: int, *, user: User | None = None) -> None:
        """Roll the branch back after so many seconds; 0 means the default timeout (dtx.set-timeout/reset)."""
        branch = self._branch(xid, user)
        longest = self._choices.longest_timeout
        if longest is not None and seconds > longest:
            raise InvalidArgument(f"a branch may take {longest} s at most, not {seconds} s")
        branch.set_timeout(seconds or self._choices.default_timeout)

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
