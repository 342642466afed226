"""Branches of distributed transactions: the table of states, what is refused, outcomes, time, views."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from compat_tests.scripted.amqp_0_9_1 import QuietTap
from compat_tests.tools.matrix import cases
from compat_tests.unit.model.bench import Bench, xid
from fakeamqp.model.errors import (
    CommandInvalid,
    IllegalState,
    InvalidArgument,
    ModelError,
    NotAllowed,
    NotFound,
)
from fakeamqp.model.transactions import BranchState, BranchView, XaOutcome, Xid
from fakeamqp.model.transactions.branches import TRANSITIONS, Branch, Branches, BranchEvent

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


# --- what is refused in which state -------------------------------------------------------------------------


def idle(bench: Bench) -> None:
    begin(bench)
    bench.branches.end("a", X)


def suspended(bench: Bench) -> None:
    begin(bench)
    bench.branches.end("a", X, suspend=True)


def timed_out(bench: Bench) -> None:
    begin(bench)
    bench.advance(60)


def prepared(bench: Bench) -> None:
    bench.prepared(1, publish="q")


BEFORE: dict[str, Callable[[Bench], object]] = {
    "unknown": lambda bench: None,
    "active": begin,
    "idle": idle,
    "suspended": suspended,
    "timed out": timed_out,
    "prepared": prepared,
}
WORKS_ALREADY = "works on branch 0:global:1 already"
STILL_ASSOCIATED = "still associated"
NOT_ASSOCIATED = "the session is not associated with branch"
#: state of the branch -> what is refused in it, the error and its text
REFUSED: dict[str, list[tuple[Callable[[Branches], object], type[ModelError], str]]] = {
    "unknown": [
        (lambda it: it.start("a", X, join=True), NotFound, "no branch 0:global:1 in vhost '/'"),
        (lambda it: it.start("a", X, resume=True), NotFound, "no branch 0:global:1 in vhost '/'"),
        (
            lambda it: it.start("a", X, join=True, resume=True),
            CommandInvalid,
            "join and resume cannot be set",
        ),
        (lambda it: it.complete(X, "commit"), NotFound, "no branch"),
    ],
    "active": [
        (lambda it: it.start("b", X), NotAllowed, "branch 0:global:1 is known already"),
        (lambda it: it.start("a", xid(2)), IllegalState, WORKS_ALREADY),
        (lambda it: it.start("a", xid(2), join=True), IllegalState, WORKS_ALREADY),
        (lambda it: it.start("a", xid(2), resume=True), IllegalState, WORKS_ALREADY),
        (lambda it: it.end("b", X), IllegalState, NOT_ASSOCIATED),
        (lambda it: it.end("a", xid(2)), IllegalState, NOT_ASSOCIATED),
        (lambda it: it.forget(X), IllegalState, STILL_ASSOCIATED),
        (lambda it: it.complete(X, "commit"), IllegalState, STILL_ASSOCIATED),
        (lambda it: it.set_timeout(X, 3601), InvalidArgument, "a branch may take 3600 s at most, not 3601 s"),
    ],
    "idle": [
        (lambda it: it.start("a", X), NotAllowed, "is known already"),
        (lambda it: it.end("a", X), IllegalState, NOT_ASSOCIATED),
        (lambda it: it.commit(X), IllegalState, "is idle: it cannot be committed in two phases"),
        (lambda it: it.forget(X), IllegalState, "is idle: it cannot be forgotten"),
        (lambda it: it.complete(X, "commit"), IllegalState, "it cannot be"),
    ],
    "suspended": [
        (lambda it: it.start("b", X, resume=True), IllegalState, "the session has not suspended branch 0:"),
        (lambda it: it.start("a", X, join=True), IllegalState, "can only resume it"),
        (lambda it: it.prepare(X), IllegalState, STILL_ASSOCIATED),
        (lambda it: it.commit(X), IllegalState, STILL_ASSOCIATED),
        (lambda it: it.rollback(X), IllegalState, STILL_ASSOCIATED),
    ],
    "timed out": [(lambda it: it.rollback(X), IllegalState, STILL_ASSOCIATED)],
    "prepared": [
        (lambda it: it.start("b", X, join=True), IllegalState, "is prepared: it cannot be joined"),
        (lambda it: it.commit(X, one_phase=True), IllegalState, "is prepared: it cannot be committed in one"),
        (lambda it: it.prepare(X), IllegalState, "is prepared: it cannot be prepared"),
        (lambda it: it.forget(X), IllegalState, "is prepared: it cannot be forgotten"),
    ],
}


@pytest.mark.parametrize("state", REFUSED)
def test_operation_not_allowed_in_state_of_branch_is_refused_and_changes_nothing(
    bench: Bench, state: str
) -> None:
    BEFORE[state](bench)
    before = bench.branches.views()
    with cases() as case:
        for number, (act, error, text) in enumerate(REFUSED[state]):
            with case(number, text):
                with pytest.raises(error, match=text):
                    act(bench.branches)
                assert bench.branches.views() == before


# --- demarcation --------------------------------------------------------------------------------------------


def test_end_with_both_suspend_and_fail_is_refused_and_dooms_branch(bench: Bench) -> None:
    begin(bench)
    with pytest.raises(CommandInvalid, match="suspend and fail cannot be set together"):
        bench.branches.end("a", X, suspend=True, fail=True)
    assert states(bench) == {X: "rollback-only"}
    assert bench.branches.working("a") is None
    assert bench.branches.rollback(X) is OK


def test_suspended_branch_cannot_be_suspended_again_but_can_end(bench: Bench) -> None:
    begin(bench)
    bench.branches.end("a", X, suspend=True)
    with pytest.raises(IllegalState, match="has suspended branch 0:global:1 already"):
        bench.branches.end("a", X, suspend=True)
    assert bench.branches.end("a", X) is OK
    assert bench.branches.commit(X, one_phase=True) is OK


# --- outcomes -----------------------------------------------------------------------------------------------


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


# --- time ---------------------------------------------------------------------------------------------------


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
