"""Sessions that cannot say when their work for a branch is done."""

from __future__ import annotations

import pytest

from compat_tests.unit.model.transactions.bench import Bench, xid
from fakeamqp.model.errors import IllegalState, NotAllowed
from fakeamqp.model.transactions import XaOutcome

X = xid(1)


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.queue("q")
    return bench


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
