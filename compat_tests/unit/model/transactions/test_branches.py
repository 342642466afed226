""""""

from __future__ import annotations

from itertools import product

import pytest

from compat_tests.scripted.amqp_0_9_1 import QuietTap
from compat_tests.unit.model.bench import Bench, xid
from fakeamqp.model.errors import (
    CommandInvalid,
    IllegalState,
    InvalidArgument,
    NotAllowed,
    NotFound,
)
from fakeamqp.model.personality import PERSONALITIES
from fakeamqp.model.transactions import BranchState, BranchView, XaOutcome, Xid
from fakeamqp.model.transactions.branches import TRANSITIONS, Branch, BranchEvent

X = xid(1)
OK = XaOutcome.OK


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.queue("q")
    return bench


def begin(bench: Bench, session: str = "a", which: Xid = X) -> None:
    """Start a branch that has something to do."""
    assert bench.branches.start(session, which) is OK
    bench.plan(bench.work(session), "q", b"new")


def states(bench: Bench) -> dict[Xid, str]:
    return {view.xid: view.state for view in bench.branches.views()}


# --- the table ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("state", "event"), list(product(BranchState, BranchEvent)))
def test_transition_missing_in_table_is_refused_as_illegal_state(
    state: BranchState, event: BranchEvent
) -> None:
    branch = Branch(Bench().host, X, 60)
    branch.state = state
    if (state, event) in TRANSITIONS:
        branch._step(event)
        assert branch.state is TRANSITIONS[state, event]
    else:
        with pytest.raises(IllegalState, match="branch 0:global:1 is"):
            branch._step(event)
        assert branch.state is state


def test_every_branch_state_but_finished_can_be_reached_and_left() -> None:
    reached = {BranchState.ACTIVE, *TRANSITIONS.values()}
    left = {state for (state, _), after in TRANSITIONS.items() if after is not state}
    assert reached == set(BranchState)
    assert left == set(BranchState) - {BranchState.FINISHED}


def test_text_of_xid_and_repr_of_branch_are_readable() -> None:
    assert str(Xid(3, b"plain text", b"\x00\xff")) == "3:plain text:00ff"
    assert repr(Branch(Bench().host, X, 60)) == "<Branch 0:global:1 active>"


# --- demarcation --------------------------------------------------------------------------------------------


def test_session_works_on_branch_between_start_and_end(bench: Bench) -> None:
    assert bench.branches.working("a") is None
    begin(bench)
    assert bench.branches.working("a") is not None
    assert bench.branches.working("b") is None
    assert bench.branches.end("a", X) is OK
    assert bench.branches.working("a") is None
    assert bench.ready("q") == []


def test_starting_known_branch_is_refused(bench: Bench) -> None:
    begin(bench)
    with pytest.raises(NotAllowed, match="branch 0:global:1 is known already"):
        bench.branches.start("b", X)
    bench.branches.end("a", X)
    with pytest.raises(NotAllowed):
        bench.branches.start("a", X)


def test_xids_that_differ_in_one_part_are_different_branches(bench: Bench) -> None:
    for number, which in enumerate(
        [Xid(0, b"g", b"b"), Xid(1, b"g", b"b"), Xid(0, b"h", b"b"), Xid(0, b"g", b"c"), Xid(0, b"gb", b"")]
    ):
        begin(bench, f"session {number}", which)
    assert len(bench.branches) == 5


def test_starting_second_branch_in_working_session_is_refused(bench: Bench) -> None:
    begin(bench)
    for flags in ({}, {"join": True}, {"resume": True}):
        with pytest.raises(IllegalState, match="works on branch 0:global:1 already"):
            bench.branches.start("a", xid(2), **flags)


def test_joined_session_shares_transaction_and_blocks_prepare_until_its_end(bench: Bench) -> None:
    begin(bench)
    assert bench.branches.start("b", X, join=True) is OK
    assert bench.work("b") is bench.work("a")
    bench.branches.end("a", X)
    with pytest.raises(IllegalState, match="still associated"):
        bench.branches.prepare(X)
    bench.branches.end("b", X)
    assert bench.branches.prepare(X) is OK


def test_idle_branch_can_be_joined_and_committed(bench: Bench) -> None:
    begin(bench)
    bench.branches.end("a", X)
    assert bench.branches.start("b", X, join=True) is OK
    bench.plan(bench.work("b"), "q", b"more")
    bench.branches.end("b", X)
    assert bench.branches.commit(X, one_phase=True) is OK
    assert bench.ready("q") == [b"new", b"more"]


def test_joining_prepared_branch_is_refused(bench: Bench) -> None:
    bench.prepared(1, publish="q")
    with pytest.raises(IllegalState, match="is prepared: it cannot be joined"):
        bench.branches.start("b", X, join=True)
    assert bench.branches.working("b") is None


def test_joining_or_resuming_unknown_branch_is_refused(bench: Bench) -> None:
    for flags in ({"join": True}, {"resume": True}):
        with pytest.raises(NotFound, match="no branch 0:global:1 in vhost '/'"):
            bench.branches.start("a", X, **flags)
    assert len(bench.branches) == 0


def test_start_with_both_join_and_resume_is_refused(bench: Bench) -> None:
    with pytest.raises(CommandInvalid, match="join and resume cannot be set together"):
        bench.branches.start("a", X, join=True, resume=True)
    with pytest.raises(NotAllowed):
        Bench(PERSONALITIES["spec"]).branches.start("a", X, join=True, resume=True)


def test_end_with_both_suspend_and_fail_is_refused_and_dooms_branch(bench: Bench) -> None:
    begin(bench)
    with pytest.raises(CommandInvalid, match="suspend and fail cannot be set together"):
        bench.branches.end("a", X, suspend=True, fail=True)
    assert states(bench) == {X: "rollback-only"}
    assert bench.branches.working("a") is None
    assert bench.branches.rollback(X) is OK


def test_suspended_branch_cannot_be_completed_until_resumed_and_ended(bench: Bench) -> None:
    begin(bench)
    assert bench.branches.end("a", X, suspend=True) is OK
    assert bench.branches.working("a") is None
    for act in (bench.branches.prepare, bench.branches.commit, bench.branches.rollback):
        with pytest.raises(IllegalState, match="still associated"):
            act(X)
    assert bench.branches.start("a", X, resume=True) is OK
    bench.plan(bench.work("a"), "q", b"more")
    bench.branches.end("a", X)
    bench.branches.commit(X, one_phase=True)
    assert bench.ready("q") == [b"new", b"more"]


def test_session_can_work_on_second_branch_while_first_is_suspended(bench: Bench) -> None:
    begin(bench)
    bench.branches.end("a", X, suspend=True)
    begin(bench, "a", xid(2))
    bench.branches.end("a", xid(2))
    bench.branches.start("a", X, resume=True)
    assert [view.working for view in bench.branches.views()] == [1, 0]


def test_only_session_that_suspended_branch_can_resume_and_not_join(bench: Bench) -> None:
    begin(bench)
    bench.branches.end("a", X, suspend=True)
    with pytest.raises(IllegalState, match="the session has not suspended branch 0:global:1"):
        bench.branches.start("b", X, resume=True)
    with pytest.raises(IllegalState, match="can only resume it"):
        bench.branches.start("a", X, join=True)


def test_suspended_branch_cannot_be_suspended_again_but_can_end(bench: Bench) -> None:
    begin(bench)
    bench.branches.end("a", X, suspend=True)
    with pytest.raises(IllegalState, match="has suspended branch 0:global:1 already"):
        bench.branches.end("a", X, suspend=True)
    assert bench.branches.end("a", X) is OK
    assert bench.branches.commit(X, one_phase=True) is OK


def test_end_by_session_not_associated_with_branch_is_refused(bench: Bench) -> None:
    begin(bench)
    for session, which in (("b", X), ("a", xid(2))):
        with pytest.raises(IllegalState, match="the session is not associated with branch"):
            bench.branches.end(session, which)
    bench.branches.end("a", X)
    with pytest.raises(IllegalState):
        bench.branches.end("a", X)


# --- outcomes -----------------------------------------------------------------------------------------------


def test_idle_branch_needs_one_phase_commit_and_prepared_branch_two_phase_commit(bench: Bench) -> None:
    begin(bench)
    bench.branches.end("a", X)
    with pytest.raises(IllegalState, match="is idle: it cannot be committed in two phases"):
        bench.branches.commit(X)
    assert bench.branches.prepare(X) is OK
    with pytest.raises(IllegalState, match="is prepared: it cannot be committed in one phase"):
        bench.branches.commit(X, one_phase=True)
    assert bench.ready("q") == []
    assert bench.branches.commit(X) is OK
    assert bench.ready("q") == [b"new"]


def test_completed_branch_is_unknown_and_its_xid_can_be_reused(bench: Bench) -> None:
    for complete in (
        lambda: bench.branches.commit(X, one_phase=True),
        lambda: bench.branches.rollback(X),
        lambda: bench.branches.prepare(X) and bench.branches.commit(X),
        lambda: bench.branches.prepare(X) and bench.branches.rollback(X),
    ):
        begin(bench)
        bench.branches.end("a", X)
        assert complete() is OK
        with pytest.raises(NotFound):
            bench.branches.rollback(X)
    assert bench.ready("q") == [b"new", b"new"]


def test_preparing_prepared_branch_is_refused(bench: Bench) -> None:
    bench.prepared(1, publish="q")
    with pytest.raises(IllegalState, match="is prepared: it cannot be prepared"):
        bench.branches.prepare(X)


def test_every_operation_on_unknown_branch_is_refused(bench: Bench) -> None:
    for act in (
        bench.branches.prepare,
        bench.branches.commit,
        bench.branches.rollback,
        bench.branches.forget,
        bench.branches.timeout,
        lambda which: bench.branches.set_timeout(which, 1),
        lambda which: bench.branches.complete(which, "commit"),
    ):
        with pytest.raises(NotFound):
            act(X)


def test_preparing_branch_without_work_is_read_only_and_finishes_branch(bench: Bench) -> None:
    bench.branches.start("a", X)
    bench.branches.end("a", X)
    assert bench.branches.prepare(X) is XaOutcome.READ_ONLY
    assert len(bench.branches) == 0
    assert len(bench.state.timers) == 0


def test_one_phase_commit_of_branch_without_work_succeeds(bench: Bench) -> None:
    bench.branches.start("a", X)
    bench.branches.end("a", X)
    assert bench.branches.commit(X, one_phase=True) is OK


@pytest.mark.parametrize("one_phase", [True, False])
def test_failed_branch_is_rolled_back_at_commit(bench: Bench, one_phase: bool) -> None:
    begin(bench)
    assert bench.branches.end("a", X, fail=True) is XaOutcome.ROLLED_BACK
    assert bench.branches.prepare(X) is XaOutcome.ROLLED_BACK
    assert bench.branches.commit(X, one_phase=one_phase) is XaOutcome.ROLLED_BACK
    assert bench.ready("q") == []
    assert len(bench.branches) == 0


def test_failure_in_one_session_dooms_branch_for_all_sessions(bench: Bench) -> None:
    begin(bench)
    bench.branches.start("b", X, join=True)
    bench.branches.end("b", X, fail=True)
    assert bench.branches.start("c", X, join=True) is XaOutcome.ROLLED_BACK
    assert bench.branches.working("c") is None
    assert states(bench) == {X: "active, rollback-only"}
    assert bench.branches.end("a", X) is XaOutcome.ROLLED_BACK
    assert bench.branches.rollback(X) is OK


def test_resuming_doomed_branch_is_answered_with_rolled_back(bench: Bench) -> None:
    begin(bench)
    bench.branches.start("b", X, join=True)
    bench.branches.end("a", X, suspend=True)
    bench.branches.end("b", X, fail=True)
    assert bench.branches.start("a", X, resume=True) is XaOutcome.ROLLED_BACK
    assert bench.branches.rollback(X) is OK


def test_suspending_doomed_branch_is_answered_with_rolled_back(bench: Bench) -> None:
    begin(bench)
    bench.branches.start("b", X, join=True)
    bench.branches.end("b", X, fail=True)
    assert bench.branches.end("a", X, suspend=True) is XaOutcome.ROLLED_BACK
    assert bench.branches.rollback(X) is OK


def test_session_that_leaves_dooms_its_active_and_suspended_branches(bench: Bench) -> None:
    begin(bench)
    bench.branches.end("a", X, suspend=True)
    begin(bench, "a", xid(2))
    begin(bench, "a2", xid(3))
    bench.branches.leave("a")
    assert states(bench) == {X: "rollback-only", xid(2): "rollback-only", xid(3): "active"}
    assert bench.branches.working("a") is None
    assert bench.branches.prepare(X) is XaOutcome.ROLLED_BACK
    assert bench.branches.rollback(X) is OK
    assert bench.branches.commit(xid(2), one_phase=True) is XaOutcome.ROLLED_BACK


def test_ended_branch_survives_its_session_and_can_be_committed(bench: Bench) -> None:
    begin(bench)
    bench.branches.end("a", X)
    bench.branches.leave("a")
    assert bench.branches.commit(X, one_phase=True) is OK


def test_recover_lists_only_prepared_branches(bench: Bench) -> None:
    begin(bench)
    begin(bench, "b", xid(2))
    bench.branches.end("b", xid(2))
    for number in (5, 3, 4):
        bench.prepared(number, publish="q")
    bench.branches.rollback(xid(3))
    assert bench.branches.recover() == [xid(5), xid(4)]


# --- heuristic outcomes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "outcome", "ready"),
    [
        ("commit", XaOutcome.HEURISTIC_COMMIT, [b"new"]),
        ("rollback", XaOutcome.HEURISTIC_ROLLBACK, [b"old"]),
        ("mix", XaOutcome.HEURISTIC_MIX, [b"old", b"new"]),
        ("hazard", XaOutcome.HEURISTIC_HAZARD, [b"old"]),
    ],
)
def test_heuristic_outcome_takes_effect_and_is_reported_until_forgotten(
    bench: Bench, how: str, outcome: XaOutcome, ready: list[bytes]
) -> None:
    bench.publish("q", b"old")
    bench.prepared(1, publish="q", accept="q")
    bench.branches.complete(X, how)
    assert bench.ready("q") == ready
    assert bench.unacked("q") == []
    assert bench.branches.recover() == [X]
    bench.state.restart()
    for ask in (bench.branches.commit, bench.branches.rollback):
        assert ask(X) is outcome
    assert bench.branches.commit(X, one_phase=True) is outcome
    with pytest.raises(IllegalState, match="is heuristically completed: it cannot be prepared"):
        bench.branches.prepare(X)
    bench.branches.forget(X)
    assert bench.branches.recover() == []
    assert bench.ready("q") == ready


def test_heuristic_completion_of_branch_not_prepared_is_refused(bench: Bench) -> None:
    begin(bench)
    for _ in range(2):
        with pytest.raises(IllegalState):
            bench.branches.complete(X, "commit")
        if bench.branches.working("a"):
            bench.branches.end("a", X)


def test_forgetting_branch_not_heuristically_completed_is_refused(bench: Bench) -> None:
    begin(bench)
    with pytest.raises(IllegalState, match="still associated"):
        bench.branches.forget(X)
    bench.branches.end("a", X)
    with pytest.raises(IllegalState, match="is idle: it cannot be forgotten"):
        bench.branches.forget(X)
    bench.branches.prepare(X)
    with pytest.raises(IllegalState, match="is prepared: it cannot be forgotten"):
        bench.branches.forget(X)


# --- time ---------------------------------------------------------------------------------------------------


def test_branch_timeout_can_be_set_within_limit_and_reset_by_zero(bench: Bench) -> None:
    begin(bench)
    assert bench.branches.timeout(X) == 60
    bench.branches.set_timeout(X, 200)
    assert bench.branches.timeout(X) == 200
    bench.branches.set_timeout(X, 0)
    assert bench.branches.timeout(X) == 60
    bench.branches.set_timeout(X, 3600)
    with pytest.raises(InvalidArgument, match="a branch may take 3600 s at most, not 3601 s"):
        bench.branches.set_timeout(X, 3601)
    assert bench.branches.timeout(X) == 3600


def test_spec_personality_has_no_limit_of_branch_timeout() -> None:
    bench = Bench(PERSONALITIES["spec"])
    bench.branches.start("a", X)
    bench.branches.set_timeout(X, 2**32 - 1)
    assert bench.branches.timeout(X) == 2**32 - 1


def test_timed_out_branch_is_rolled_back_at_once(bench: Bench) -> None:
    bench.publish("q", b"old")
    begin(bench)
    bench.accept(bench.work("a"), bench.take("q"))
    bench.advance(59.9)
    assert bench.ready("q") == []
    bench.advance(0.1)
    assert bench.ready("q") == [b"old"]
    assert bench.branches.start("b", X, join=True) is XaOutcome.TIMED_OUT
    with pytest.raises(IllegalState, match="still associated"):
        bench.branches.rollback(X)
    assert bench.branches.end("a", X) is XaOutcome.TIMED_OUT
    assert bench.branches.prepare(X) is XaOutcome.TIMED_OUT
    assert bench.branches.rollback(X) is XaOutcome.TIMED_OUT
    assert len(bench.branches) == 0


def test_work_after_branch_timeout_is_rolled_back_at_end(bench: Bench) -> None:
    bench.publish("q", b"old")
    begin(bench)
    bench.advance(60)
    bench.accept(bench.work("a"), bench.take("q"))
    bench.plan(bench.work("a"), "q", b"late")
    assert bench.branches.end("a", X) is XaOutcome.TIMED_OUT
    assert bench.ready("q") == [b"old"]
    assert bench.branches.commit(X, one_phase=True) is XaOutcome.TIMED_OUT
    assert bench.ready("q") == [b"old"]


def test_branch_timeout_counts_from_instant_of_setting(bench: Bench) -> None:
    begin(bench)
    bench.advance(50)
    bench.branches.set_timeout(X, 20)
    bench.advance(19)
    assert bench.branches.views()[0].outcome is None
    bench.advance(1)
    assert bench.branches.views()[0].outcome is XaOutcome.TIMED_OUT


def test_idle_branch_times_out_and_prepared_branch_does_not(bench: Bench) -> None:
    begin(bench)
    bench.branches.end("a", X)
    bench.prepared(2, publish="q")
    bench.branches.set_timeout(xid(2), 5)
    bench.advance(3600)
    assert bench.branches.commit(X, one_phase=True) is XaOutcome.TIMED_OUT
    assert bench.branches.timeout(xid(2)) == 5
    assert bench.branches.commit(xid(2)) is OK


def test_tap_receives_events_of_branch_commit_and_timeout_answer(bench: Bench) -> None:
    heard: list[tuple[str, object]] = []

    class Tap(QuietTap):
        def happened(self, event: str, **facts: object) -> None:
            heard.append((event, facts.get("outcome")))

    bench.state.tap = Tap()
    begin(bench)
    assert bench.branches.end("a", X) is OK
    assert bench.branches.commit(X, one_phase=True) is OK
    begin(bench)
    bench.branches.end("a", X)
    bench.advance(3600)
    heard_before = len(heard)
    assert bench.branches.commit(X, one_phase=True) is XaOutcome.TIMED_OUT
    assert [event for event, _ in heard].count("branch answered") == 1
    assert heard[heard_before:] == [("branch answered", "xa-rbtimeout")]
    assert ("branch committed", None) in heard


def test_branch_timer_has_readable_text_and_ends_with_its_branch(bench: Bench) -> None:
    begin(bench)
    assert [timer.words for timer in bench.state.timers.pending()] == [
        "branch 0:global:1 times out and is rolled back"
    ]
    bench.branches.end("a", X)
    bench.branches.commit(X, one_phase=True)
    assert len(bench.state.timers) == 0
    begin(bench)
    bench.branches.end("a", X)
    bench.branches.rollback(X)
    assert len(bench.state.timers) == 0


# --- inspection ---------------------------------------------------------------------------------------------


def test_view_of_branch_shows_sessions_work_and_timeout(bench: Bench) -> None:
    bench.publish("q", b"old")
    begin(bench)
    bench.accept(bench.work("a"), bench.take("q"))
    bench.branches.start("b", X, join=True)
    bench.branches.end("b", X, suspend=True)
    assert bench.branches.views() == (
        BranchView(
            xid=X,
            state="active",
            outcome=None,
            working=1,
            suspended=1,
            publishes=1,
            settlements=1,
            timeout=60,
            due=bench.clock.now() + 60,
        ),
    )


# --- sessions that cannot say when their work for a branch is done -------------------------------------


@pytest.fixture
def told(bench: Bench) -> list[str]:
    """Has a session enlisted that has published; what it is told."""
    told: list[str] = []
    bench.branches.enlist("session", X, lambda: told.append("over"))
    bench.plan(bench.work("session"), "q", b"new")
    return told


def test_prepare_ends_work_of_enlisted_session_and_notifies_it_once(bench: Bench, told: list[str]) -> None:
    assert bench.branches.prepare(X) is XaOutcome.OK
    assert told == ["over"]
    assert bench.branches.working("session") is None
    assert bench.branches.commit(X) is XaOutcome.OK
    assert told == ["over"]
    assert bench.ready("q") == [b"new"]


@pytest.mark.parametrize("committed", [False, True])
def test_commit_and_rollback_end_work_of_enlisted_session_and_notify_it(
    bench: Bench, told: list[str], committed: bool
) -> None:
    if committed:
        bench.branches.commit(X, one_phase=True)
    else:
        bench.branches.rollback(X)
    assert told == ["over"]
    assert bench.ready("q") == ([b"new"] if committed else [])
    assert not len(bench.branches)


def test_delisted_session_is_not_notified_and_its_work_is_committed(bench: Bench, told: list[str]) -> None:
    bench.branches.delist("session")
    bench.branches.delist("session")
    assert told == []
    assert bench.branches.commit(X, one_phase=True) is XaOutcome.OK
    assert told == []
    assert bench.ready("q") == [b"new"]


def test_enlisted_session_that_leaves_dooms_branch(bench: Bench, told: list[str]) -> None:
    bench.branches.leave("session")
    bench.branches.delist("session")
    assert bench.branches.prepare(X) is XaOutcome.ROLLED_BACK
    assert told == []


def test_commit_of_enlisted_branch_is_refused_while_joined_session_works(
    bench: Bench, told: list[str]
) -> None:
    bench.branches.start("other", X, join=True)
    with pytest.raises(IllegalState, match="still associated"):
        bench.branches.commit(X, one_phase=True)
    bench.branches.end("other", X)
    assert bench.branches.commit(X, one_phase=True) is XaOutcome.OK


def test_enlisting_second_session_in_known_branch_is_refused(bench: Bench, told: list[str]) -> None:
    with pytest.raises(NotAllowed):
        bench.branches.enlist("other", X, lambda: None)
    assert bench.branches.working("other") is None
