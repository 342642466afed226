"""One branch of a distributed transaction.

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
from fakeamqp.model.errors import IllegalState, ModelError
from fakeamqp.model.operations import carry_out
from fakeamqp.model.transactions.transaction import Transaction

if TYPE_CHECKING:
    from fakeamqp.model.access import User
    from fakeamqp.model.timers import Timer
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["TRANSITIONS", "Branch", "BranchEvent", "BranchState", "BranchView", "XaOutcome", "Xid"]


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

_IN_DOUBT = (BranchState.PREPARED, BranchState.HEURISTIC)
_ASSOCIATED = (BranchState.ACTIVE, BranchState.ACTIVE_ROLLBACK_ONLY)


class BranchView(NamedTuple):
    """A snapshot of a branch.

    Attributes:
        xid: its identity.
        state: the value of its `BranchState`.
        outcome: the outcome that was decided; None before that.
        working: how many sessions work on it.
        suspended: how many sessions have suspended their work on it.
        publishes: how many publishes it has collected.
        settlements: how many deliveries it will settle.
        timeout: in seconds.
        due: the instant of the broker's clock at which it times out, or None.
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

    __slots__ = (
        "_timer",
        "_virtual_host",
        "outcome",
        "sessions",
        "state",
        "timeout",
        "transaction",
        "user_name",
        "xid",
    )

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
        self._timer: Timer | None = None
        self.set_timeout(timeout)

    def __repr__(self) -> str:
        return f"<Branch {self.xid} {self.state.value}>"

    def open_to(self, user: User | None) -> bool:
        """Whether this user may join and complete it; None stands for a request that is no client's."""
        return user is None or self.user_name in (None, user.name) or "administrator" in user.tags

    def view(self) -> BranchView:
        """A snapshot of it."""
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
        """Whether it is prepared, or heuristically completed after that."""
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
        """Associate a session with the branch.

        Raises:
            IllegalState: it is prepared or completed.
        """
        self._step(BranchEvent.JOIN)
        self.sessions[session] = True

    def leave(self, session: object) -> None:
        """End the association of a session with the branch."""
        del self.sessions[session]
        if not self.sessions:
            self._step(BranchEvent.LEAVE)
            if self.outcome is XaOutcome.TIMED_OUT:
                self._undo()

    def mark_rollback_only(self, outcome: XaOutcome) -> None:
        """From now on the branch can only be rolled back."""
        self._step(BranchEvent.MARK_ROLLBACK_ONLY)
        self.outcome = outcome

    # --- outcomes -----------------------------------------------------------------------------------

    def prepare(self) -> XaOutcome:
        """Promise to commit or to roll back, as requested later (dtx.prepare/obligation-1).

        Raises:
            IllegalState: a session is associated with it, or it is prepared already.
        """
        transaction = self.transaction
        if self.state is BranchState.IDLE:
            try:
                transaction.prepare()
            except ModelError:
                self.mark_rollback_only(XaOutcome.ROLLED_BACK)
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
        """Do the work. `one_phase` must be set if and only if the branch is not prepared.

        Raises:
            IllegalState: a session is associated with it, or `one_phase` does not match its state.
        """
        if one_phase and self.state is BranchState.IDLE:
            try:
                self.transaction.prepare()
            except ModelError:
                self.mark_rollback_only(XaOutcome.ROLLED_BACK)
        self._step(BranchEvent.COMMIT_ONE_PHASE if one_phase else BranchEvent.COMMIT)
        if self.outcome is not None:
            self._undo()
            return self.outcome
        self._do(self.transaction.commit)
        return XaOutcome.OK

    def rollback(self) -> XaOutcome:
        """Undo the work. The result is only other than OK if the branch has timed out or was completed.

        Raises:
            IllegalState: a session is associated with it.
        """
        self._step(BranchEvent.ROLLBACK)
        self._undo()
        return XaOutcome.OK if self.outcome in (None, XaOutcome.ROLLED_BACK) else self.outcome

    def decide(self, outcome: XaOutcome) -> None:
        """Complete a prepared branch heuristically, without waiting for the coordinator's decision.

        HEURISTIC_MIX commits the publishes and returns the consumed messages. HEURISTIC_HAZARD rolls the
        branch back, but does not report that.

        Raises:
            IllegalState: it is not prepared.
        """
        self._step(BranchEvent.DECIDE)
        if outcome is XaOutcome.HEURISTIC_COMMIT:
            self._do(self.transaction.commit)
        elif outcome is XaOutcome.HEURISTIC_MIX:
            self._do(lambda: carry_out(self.transaction.publishing()))
        self._undo()
        self.outcome = outcome

    def forget(self) -> None:
        """Forget a heuristically completed branch.

        Raises:
            IllegalState: it is not heuristically completed.
        """
        self._step(BranchEvent.FORGET)

    def _do(self, act: Callable[[], object]) -> None:
        self._release()
        act()

    def _undo(self, ending: Ending = "released") -> None:
        """Drop the publishes and return the consumed messages to their places in the queues."""
        self._release()
        # Messages that the queues have taken back or lost meanwhile are not returned again.
        undone = [each for each in self.transaction.rollback() if not each.settled]
        release_all(undone, ending=ending)

    def _release(self) -> None:
        self._stop_timer()
        in_doubt = self._virtual_host.branches.in_doubt
        for delivery in self.transaction.deliveries:
            in_doubt.pop(delivery, None)

    # --- time ---------------------------------------------------------------------------------------

    def set_timeout(self, seconds: int) -> None:
        """Roll the branch back after so many seconds, unless it is prepared or completed before."""
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
        self.mark_rollback_only(XaOutcome.TIMED_OUT)
        self._virtual_host.report("branch timed out", branch=str(self.xid))
        self._undo()

    # --- restart ------------------------------------------------------------------------------------

    def abandon(self) -> None:
        """Undo the work in any state: the broker stops."""
        self.sessions.clear()
        self._undo("lost")
        self.state = BranchState.FINISHED
