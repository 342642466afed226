"""Branches of transactions, deliveries and restarts in any order: every message is in exactly one place.

The machine keeps its own books of which messages are in which queue, who holds them, and what branches would
do. After each step they are compared with the queues. Every message has a number for a body.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from compat_tests.fuzz.profile import examples
from compat_tests.unit.model.bench import PERSISTENT, TRANSIENT, Bench, xid
from fakeamqp.model.deliveries.delivery import Delivery, accept_all, release_all
from fakeamqp.model.errors import IllegalState, ModelError, NotAllowed, NotFound
from fakeamqp.model.transactions import XaOutcome, Xid

QUEUES = {"classic": "classic", "quorum": "quorum"}
SESSIONS = ("a", "b", "c")
XIDS = tuple(xid(number) for number in range(3))
UNDONE = (XaOutcome.ROLLED_BACK, XaOutcome.TIMED_OUT)

queues = st.sampled_from(sorted(QUEUES))
modes = st.sampled_from([PERSISTENT, TRANSIENT])
sessions = st.sampled_from(SESSIONS)
xids = st.sampled_from(XIDS)
hows = st.sampled_from(["", "", "", "suspend", "fail"])


@dataclass
class Work:
    """What one branch would do: bodies to publish, by queue and mode, and deliveries to accept."""

    publishes: list[tuple[bytes, str, int]] = field(default_factory=list)
    accepts: list[Delivery] = field(default_factory=list)


class BranchMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.number = 0
        self.entries = 0

    @initialize()
    def begin(self) -> None:
        self.bench = Bench()
        for name, kind in QUEUES.items():
            self.bench.queue(name, kind)
        self.inside: dict[bytes, tuple[str, int, int]] = {}
        """By body, the queue that a message is in, its mode, and as which one it came in."""
        self.unsecured: set[bytes] = set()
        """Messages of which no publisher was told that the broker has them."""
        self.held: dict[str, list[Delivery]] = {session: [] for session in SESSIONS}
        self.work: dict[Xid, Work] = {}
        self.lost: set[bytes] = set()

    # --- books ------------------------------------------------------------------------------------------

    def new_body(self) -> bytes:
        self.number += 1
        return b"%d" % self.number

    def enter(self, body: bytes, name: str, mode: int) -> None:
        self.entries += 1
        self.inside[body] = (name, mode, self.entries)

    def working_on(self, session: str) -> Xid | None:
        transaction = self.bench.branches.working(session)
        found = [each for each in XIDS if each in self.work and self.collects(each) is transaction]
        return found[0] if transaction is not None else None

    def collects(self, which: Xid) -> object:
        return self.bench.branches._known[which].transaction

    def at_work(self) -> list[tuple[str, Xid]]:
        """The sessions that work on a branch, and on which."""
        found = [(session, self.working_on(session)) for session in SESSIONS]
        return [(session, which) for session, which in found if which is not None]

    def undo(self, which: Xid) -> None:
        self.work[which] = Work()

    def do(self, which: Xid, *, settle: bool = True) -> None:
        work = self.work[which]
        for body, name, mode in work.publishes:
            self.enter(body, name, mode)
        if settle:
            for delivery in work.accepts:
                del self.inside[delivery.queued.message.body]
        self.undo(which)

    def outcome(self, which: Xid) -> XaOutcome | None:
        return next((each.outcome for each in self.bench.branches.views() if each.xid == which), None)

    def forget_what_is_over(self) -> None:
        """Keep up with what branches are, and undo what has timed out with nobody left to work on it."""
        views = {view.xid: view for view in self.bench.branches.views()}
        for which in [each for each in self.work if each not in views]:
            del self.work[which]
        for which, view in views.items():
            if view.outcome is XaOutcome.TIMED_OUT and not view.working + view.suspended:
                self.undo(which)

    # --- without branches -------------------------------------------------------------------------------

    @rule(name=queues, mode=modes, secured=st.booleans())
    def publish(self, name: str, mode: int, secured: bool) -> None:
        body = self.new_body()
        self.bench.publish(name, body, mode, secured=secured)
        if not secured:
            self.unsecured.add(body)
        self.enter(body, name, mode)

    @rule(session=sessions, name=queues)
    def take(self, session: str, name: str) -> None:
        if self.bench.ready(name):
            self.held[session].append(self.bench.take(name, session))

    @rule(session=sessions, index=st.integers(0, 3), accepts=st.booleans())
    def settle(self, session: str, index: int, accepts: bool) -> None:
        if index < len(self.held[session]):
            delivery = self.held[session].pop(index)
            if accepts:
                accept_all([delivery])
                del self.inside[delivery.queued.message.body]
            else:
                release_all([delivery])

    # --- in branches ------------------------------------------------------------------------------------

    @rule(session=sessions, which=xids, flag=st.sampled_from(["", "", "join", "resume"]))
    def start(self, session: str, which: Xid, flag: str) -> None:
        known = which in self.work
        flags: dict[str, Any] = {flag: True} if flag else {}
        try:
            outcome = self.bench.branches.start(session, which, **flags)
        except NotAllowed:
            assert known and not flag
        except NotFound:
            assert not known and flag
        except IllegalState:
            assert flag or self.working_on(session) is not None
        else:
            if outcome is XaOutcome.OK:
                self.work.setdefault(which, Work())
        self.forget_what_is_over()

    @rule(session=sessions, which=xids, how=hows)
    def end(self, session: str, which: Xid, how: str) -> None:
        flags: dict[str, Any] = {how: True} if how else {}
        try:
            self.bench.branches.end(session, which, **flags)
        except IllegalState:
            assert self.working_on(session) != which or how == "suspend"
        self.forget_what_is_over()

    @precondition(lambda self: self.at_work())
    @rule(index=st.integers(0, 2), how=hows)
    def end_what_was_started(self, index: int, how: str) -> None:
        session, which = self.at_work()[index % len(self.at_work())]
        self.end(session, which, how)

    @precondition(lambda self: self.at_work())
    @rule(index=st.integers(0, 2), name=queues, mode=modes)
    def publish_in_branch(self, index: int, name: str, mode: int) -> None:
        session, which = self.at_work()[index % len(self.at_work())]
        body = self.new_body()
        self.bench.plan(self.bench.work(session), name, body, mode)
        self.work[which].publishes.append((body, name, mode))

    @precondition(lambda self: self.at_work())
    @rule(index=st.integers(0, 2), name=queues, later=st.booleans())
    def accept_in_branch(self, index: int, name: str, later: bool) -> None:
        session, which = self.at_work()[index % len(self.at_work())]
        self.take(session, name)
        if later and name == "classic":
            self.take(session, name)
        if self.held[session]:
            delivery = self.held[session].pop()
            self.bench.accept(self.bench.work(session), delivery)
            self.work[which].accepts.append(delivery)

    @rule(session=sessions)
    def leave(self, session: str) -> None:
        self.bench.branches.leave(session)
        release_all(self.held[session], ending="lost")
        self.held[session] = []
        self.forget_what_is_over()

    @rule(which=xids, name=queues, mode=modes)
    def all_at_once(self, which: Xid, name: str, mode: int) -> None:
        """What a program does that nobody disturbs, up to where a branch is in doubt."""
        free = [each for each in SESSIONS if self.working_on(each) is None]
        if which in self.work or not free:
            return
        self.start(free[0], which, "")
        index = [session for session, _ in self.at_work()].index(free[0])
        self.publish(name, mode, True)
        self.publish_in_branch(index, name, mode)
        self.accept_in_branch(index, name, False)
        self.end(free[0], which, "")
        self.prepare(which)

    # --- outcomes ---------------------------------------------------------------------------------------

    @precondition(lambda self: self.work)
    @rule(which=xids)
    def prepare(self, which: Xid) -> None:
        try:
            outcome = self.bench.branches.prepare(which)
        except (IllegalState, NotFound):
            return
        work = self.work[which]
        if outcome is XaOutcome.READ_ONLY:
            assert not work.publishes
            assert not work.accepts
        elif outcome is not XaOutcome.OK:
            self.undo(which)
        else:
            self.unsecured -= {delivery.queued.message.body for delivery in work.accepts}
        self.forget_what_is_over()

    @precondition(lambda self: self.work)
    @rule(which=xids, one_phase=st.booleans(), commit=st.booleans())
    def complete(self, which: Xid, one_phase: bool, commit: bool) -> None:
        branches = self.bench.branches
        ask = partial(branches.commit, one_phase=one_phase) if commit else branches.rollback
        try:
            outcome = ask(which)
        except (IllegalState, NotFound):
            return
        if outcome is XaOutcome.OK and commit:
            self.do(which)
        else:
            self.undo(which)
        self.forget_what_is_over()

    @precondition(lambda self: self.bench.branches.recover())
    @rule(which=xids, how=st.sampled_from(["commit", "rollback", "mix", "hazard"]))
    def decide(self, which: Xid, how: str) -> None:
        try:
            self.bench.branches.complete(which, how)
        except (IllegalState, NotFound):
            return
        if how in ("commit", "mix"):
            self.do(which, settle=how == "commit")
        else:
            self.undo(which)

    @rule(which=xids)
    def forget(self, which: Xid) -> None:
        try:
            self.bench.branches.forget(which)
        except ModelError:
            return
        self.forget_what_is_over()

    @rule(seconds=st.sampled_from([1, 1, 31, 61]))
    def advance(self, seconds: int) -> None:
        before = {which for which in self.work if self.outcome(which) is XaOutcome.TIMED_OUT}
        self.bench.advance(seconds)
        for which in self.work:
            if which not in before and self.outcome(which) is XaOutcome.TIMED_OUT:
                self.undo(which)

    @rule(crash=st.booleans())
    def restart(self, crash: bool) -> None:
        for session in SESSIONS:
            self.leave(session)
        prepared = set(self.bench.branches.recover())
        self.bench.state.restart(crash=crash)
        assert set(self.bench.branches.recover()) == prepared

        def survives(body: bytes, name: str, mode: int) -> bool:
            return (mode == PERSISTENT or name == "quorum") and not (crash and body in self.unsecured)

        for body, (name, mode, _) in list(self.inside.items()):
            if not survives(body, name, mode):
                self.lost.add(body)
                del self.inside[body]
        for which in prepared:
            work = self.work[which]
            self.lost |= {body for body, name, mode in work.publishes if not survives(body, name, mode)}
            work.publishes = [each for each in work.publishes if survives(*each)]
            work.accepts = [each for each in work.accepts if each.queued.message.body in self.inside]
        self.forget_what_is_over()

    # --- what always holds ------------------------------------------------------------------------------

    @invariant()
    def every_message_is_in_one_place(self) -> None:
        away = [each for held in self.held.values() for each in held]
        away += [each for work in self.work.values() for each in work.accepts]
        for name in QUEUES:
            ready = self.bench.ready(name)
            unacked = self.bench.unacked(name)
            inside = sorted(body for body, (where, _, _) in self.inside.items() if where == name)
            assert sorted(ready + unacked) == inside
            assert sorted(unacked) == sorted(
                each.queued.message.body for each in away if each.queue.name == name
            )

    @invariant()
    def what_comes_back_comes_to_its_old_place(self) -> None:
        places = [self.inside[body][2] for body in self.bench.ready("classic")]
        assert places == sorted(places)

    @invariant()
    def what_is_lost_is_told(self) -> None:
        told = [body for body, _, _ in self.bench.dropped()]
        assert sorted(told) == sorted(self.lost)

    @invariant()
    def prepared_branches_hold_what_they_will_settle(self) -> None:
        prepared = self.bench.branches.recover()
        accepts = {each for which in prepared for each in self.work[which].accepts}
        assert set(self.bench.branches.in_doubt) == accepts

    @invariant()
    def timers_belong_to_branches(self) -> None:
        due = [view.due for view in self.bench.branches.views() if view.due is not None]
        assert len(self.bench.state.timers) == len(due)


@pytest.mark.timeout(300)
def test_no_message_is_lost_or_doubled() -> None:
    run_state_machine_as_test(BranchMachine, settings=examples(200, stateful_step_count=50))
