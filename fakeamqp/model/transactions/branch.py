"""One branch of a distributed transaction.

Theory of operation. A branch is begun by a session that starts it, and is worked on by that session and by
those that join it. While any of them is *associated* with it, working or suspended, it is active; then it is
idle, and whoever knows its xid may prepare it, commit it or roll it back. Once prepared it is *in doubt*: the
broker has promised to do either, even after a restart, and the decision is not its own any more. A branch
that has failed or has taken too long is *doomed*: it can only be rolled back, and everybody who asks is told
so. What a broker decides about a prepared branch by itself is called heuristic; the branch then stays known
until somebody has it forgotten.

`TRANSITIONS` is all that may happen: state x event -> state. What is not in it is an illegal state.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from fakeamqp.model.delivery import Ending, release_all
from fakeamqp.model.errors import IllegalState, ModelError
from fakeamqp.model.transactions.transaction import Transaction

if TYPE_CHECKING:
    from fakeamqp.model.timers import Timer
    from fakeamqp.model.transactions.xid import Xid
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["TRANSITIONS", "Branch", "BranchEvent", "BranchState", "BranchView", "XaOutcome"]


class XaOutcome(Enum):
    """What somebody who asks about a branch is told (dtx/xa-*)."""

    OK = "xa-ok"
    """It went as it should."""
    ROLLED_BACK = "xa-rbrollback"
    """The branch was rolled back, or will be, for no reason that has a name of its own."""
    TIMED_OUT = "xa-rbtimeout"
    """The branch was rolled back because it took too long."""
    HEURISTIC_HAZARD = "xa-heurhaz"
    """Nobody knows whether the branch was committed or rolled back."""
    HEURISTIC_COMMIT = "xa-heurcom"
    """The broker committed the branch by itself."""
    HEURISTIC_ROLLBACK = "xa-heurrb"
    """The broker rolled the branch back by itself."""
    HEURISTIC_MIX = "xa-heurmix"
    """The broker committed part of the branch by itself and rolled back the rest."""
    READ_ONLY = "xa-rdonly"
    """There was nothing to do, and the branch is over."""


class BranchState(Enum):
    """Where a branch stands, in words."""

    ACTIVE = "active"
    DOOMED = "active, to be rolled back"
    IDLE = "idle"
    ROLLBACK_ONLY = "rollback-only"
    PREPARED = "prepared"
    HEURISTIC = "heuristically completed"
    GONE = "gone"


class BranchEvent(Enum):
    """What may happen to a branch, in words that "cannot be" can precede."""

    JOIN = "joined"
    LEAVE = "left by its last session"
    DOOM = "doomed"
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
    (_S.ACTIVE, _E.DOOM): _S.DOOMED,
    (_S.DOOMED, _E.LEAVE): _S.ROLLBACK_ONLY,
    (_S.DOOMED, _E.DOOM): _S.DOOMED,
    (_S.IDLE, _E.JOIN): _S.ACTIVE,
    (_S.IDLE, _E.DOOM): _S.ROLLBACK_ONLY,
    (_S.IDLE, _E.PREPARE): _S.PREPARED,
    (_S.IDLE, _E.PREPARE_NOTHING): _S.GONE,
    (_S.IDLE, _E.COMMIT_ONE_PHASE): _S.GONE,
    (_S.IDLE, _E.ROLLBACK): _S.GONE,
    (_S.ROLLBACK_ONLY, _E.DOOM): _S.ROLLBACK_ONLY,
    (_S.ROLLBACK_ONLY, _E.PREPARE): _S.ROLLBACK_ONLY,
    (_S.ROLLBACK_ONLY, _E.COMMIT): _S.GONE,
    (_S.ROLLBACK_ONLY, _E.COMMIT_ONE_PHASE): _S.GONE,
    (_S.ROLLBACK_ONLY, _E.ROLLBACK): _S.GONE,
    (_S.PREPARED, _E.COMMIT): _S.GONE,
    (_S.PREPARED, _E.ROLLBACK): _S.GONE,
    (_S.PREPARED, _E.DECIDE): _S.HEURISTIC,
    (_S.HEURISTIC, _E.COMMIT): _S.HEURISTIC,
    (_S.HEURISTIC, _E.COMMIT_ONE_PHASE): _S.HEURISTIC,
    (_S.HEURISTIC, _E.ROLLBACK): _S.HEURISTIC,
    (_S.HEURISTIC, _E.FORGET): _S.GONE,
}

_IN_DOUBT = (BranchState.PREPARED, BranchState.HEURISTIC)
_ASSOCIATED = (BranchState.ACTIVE, BranchState.DOOMED)


class BranchView(NamedTuple):
    """A branch as it was when somebody looked.

    `state` is in words; `outcome` is what whoever asks is told, None where that is not decided. `working` and
    `suspended` count sessions. `due` is the instant of the broker's clock at which it times out, or None.
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
    """A branch and its work. Made by `Branches.start`; `sessions` says of each whether it is working."""

    __slots__ = ("_timer", "_virtual_host", "outcome", "sessions", "state", "timeout", "transaction", "xid")

    def __init__(self, virtual_host: VirtualHost, xid: Xid, timeout: int) -> None:
        self.xid = xid
        self.state = BranchState.ACTIVE
        self.outcome: XaOutcome | None = None
        """What has been decided about it, other than by whoever coordinates the transaction."""
        self.sessions: dict[object, bool] = {}
        self.transaction = Transaction()
        self.timeout = timeout
        self._virtual_host = virtual_host
        self._timer: Timer | None = None
        self.set_timeout(timeout)

    def __repr__(self) -> str:
        return f"<Branch {self.xid} {self.state.value}>"

    def view(self) -> BranchView:
        """What there is to see of it."""
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
            None if self._timer is None else self._timer.due,
        )

    @property
    def in_doubt(self) -> bool:
        """Whether the broker has promised to wait for the decision, or has anticipated it."""
        return self.state in _IN_DOUBT

    def _step(self, event: BranchEvent) -> None:
        after = TRANSITIONS.get((self.state, event))
        if after is None:
            self._refuse(event)
        else:
            self.state = after

    def _refuse(self, event: BranchEvent) -> None:
        if self.state in _ASSOCIATED:
            raise IllegalState(f"branch {self.xid} is still associated with a session")
        raise IllegalState(f"branch {self.xid} is {self.state.value}: it cannot be {event.value}")

    # --- sessions -----------------------------------------------------------------------------------

    def join(self, session: object) -> None:
        """One more session works on the branch.

        Raises:
            IllegalState: it is prepared or completed.
        """
        self._step(BranchEvent.JOIN)
        self.sessions[session] = True

    def part(self, session: object) -> None:
        """The session has nothing to do with the branch any more."""
        del self.sessions[session]
        if not self.sessions:
            self._step(BranchEvent.LEAVE)
            if self.outcome is XaOutcome.TIMED_OUT:
                self._undo()

    def doom(self, outcome: XaOutcome) -> None:
        """The branch can only be rolled back."""
        self._step(BranchEvent.DOOM)
        self.outcome = outcome

    # --- outcomes -----------------------------------------------------------------------------------

    def prepare(self) -> XaOutcome:
        """Promise to commit or to roll back, as will be asked (dtx.prepare/obligation-1).

        Raises:
            IllegalState: a session is associated with it, or it is prepared already.
        """
        transaction = self.transaction
        if self.state is BranchState.IDLE:
            try:
                transaction.prepare()
            except ModelError:
                self.doom(XaOutcome.ROLLED_BACK)
        empty = not transaction.publishes and not transaction.deliveries
        if self.state is BranchState.IDLE and empty:
            self._step(BranchEvent.PREPARE_NOTHING)
            self._stop_timer()
            return XaOutcome.READ_ONLY
        self._step(BranchEvent.PREPARE)
        if self.outcome is not None:
            self._undo()
            return self.outcome
        self._stop_timer()
        in_doubt = self._virtual_host.branches.in_doubt
        for delivery in transaction.deliveries:
            in_doubt[delivery] = self
        return XaOutcome.OK

    def commit(self, *, one_phase: bool) -> XaOutcome:
        """Do the work. With `one_phase` without having been prepared, otherwise only then.

        Raises:
            IllegalState: a session is associated with it, or `one_phase` says the contrary of what is.
        """
        if one_phase and self.state is BranchState.IDLE:
            try:
                self.transaction.prepare()
            except ModelError:
                self.doom(XaOutcome.ROLLED_BACK)
        self._step(BranchEvent.COMMIT_ONE_PHASE if one_phase else BranchEvent.COMMIT)
        if self.outcome is not None:
            self._undo()
            return self.outcome
        self._do(self.transaction.commit)
        return XaOutcome.OK

    def rollback(self) -> XaOutcome:
        """Undo the work; only of a branch that has timed out, or that was decided about, more is told.

        Raises:
            IllegalState: a session is associated with it.
        """
        self._step(BranchEvent.ROLLBACK)
        self._undo()
        return XaOutcome.OK if self.outcome in (None, XaOutcome.ROLLED_BACK) else self.outcome

    def decide(self, outcome: XaOutcome) -> None:
        """Complete a prepared branch without waiting for the decision.

        A mix commits what is published and returns what was consumed; after a hazard nobody is told what
        became of it, which is that it was rolled back.

        Raises:
            IllegalState: it is not prepared.
        """
        self._step(BranchEvent.DECIDE)
        if outcome is XaOutcome.HEURISTIC_COMMIT:
            self._do(self.transaction.commit)
        elif outcome is XaOutcome.HEURISTIC_MIX:
            self._do(self.transaction.commit_publishes)
        self._undo()
        self.outcome = outcome

    def forget(self) -> None:
        """A heuristically completed branch is remembered no longer.

        Raises:
            IllegalState: it is none.
        """
        self._step(BranchEvent.FORGET)

    def _do(self, act: Callable[[], object]) -> None:
        self._let_go()
        act()

    def _undo(self, ending: Ending = "released") -> None:
        """Drop what would have been published; what was consumed goes back to its place, for anybody."""
        self._let_go()
        # What the queues have taken back or lost meanwhile is not theirs to get again.
        undone = [each for each in self.transaction.rollback() if not each.settled]
        release_all(undone, ending=ending)

    def _let_go(self) -> None:
        self._stop_timer()
        in_doubt = self._virtual_host.branches.in_doubt
        for delivery in self.transaction.deliveries:
            in_doubt.pop(delivery, None)

    # --- time ---------------------------------------------------------------------------------------

    def set_timeout(self, seconds: int) -> None:
        """Have the branch rolled back so many seconds from now, unless it is prepared or completed before."""
        self.timeout = seconds
        self._stop_timer()
        if self.in_doubt or self.outcome is XaOutcome.TIMED_OUT:
            return
        self._timer = self._virtual_host.call_later(
            seconds, self._time_out, f"branch {self.xid} times out and is rolled back"
        )

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _time_out(self) -> None:
        self._timer = None
        self.doom(XaOutcome.TIMED_OUT)
        self._virtual_host.note("branch timed out", branch=str(self.xid))
        self._undo()

    # --- restart ------------------------------------------------------------------------------------

    def abandon(self) -> None:
        """Undo the work, whatever state it is in: the broker goes."""
        self.sessions.clear()
        self._undo("lost")
        self.state = BranchState.GONE
