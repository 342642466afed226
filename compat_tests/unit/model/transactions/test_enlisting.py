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


def test_a_decision_ends_the_work(bench: Bench, told: list[str]) -> None:
    assert bench.branches.prepare(X) is XaOutcome.OK
    assert told == ["over"]
    assert bench.branches.working("session") is None
    assert bench.branches.commit(X) is XaOutcome.OK
    assert told == ["over"]
    assert bench.ready("q") == [b"new"]


@pytest.mark.parametrize("committed", [False, True])
def test_each_decision_does(bench: Bench, told: list[str], committed: bool) -> None:
    if committed:
        bench.branches.commit(X, one_phase=True)
    else:
        bench.branches.rollback(X)
    assert told == ["over"]
    assert bench.ready("q") == ([b"new"] if committed else [])
    assert not len(bench.branches)


def test_who_retires_has_done_its_work(bench: Bench, told: list[str]) -> None:
    bench.branches.delist("session")
    bench.branches.delist("session")
    assert told == []
    assert bench.branches.commit(X, one_phase=True) is XaOutcome.OK
    assert told == []
    assert bench.ready("q") == [b"new"]


def test_who_leaves_has_not(bench: Bench, told: list[str]) -> None:
    bench.branches.leave("session")
    bench.branches.delist("session")
    assert bench.branches.prepare(X) is XaOutcome.ROLLED_BACK
    assert told == []


def test_others_have_to_say_themselves_that_they_are_done(bench: Bench, told: list[str]) -> None:
    bench.branches.start("other", X, join=True)
    with pytest.raises(IllegalState, match="still associated"):
        bench.branches.commit(X, one_phase=True)
    bench.branches.end("other", X)
    assert bench.branches.commit(X, one_phase=True) is XaOutcome.OK


def test_a_branch_that_is_known_is_nobody_elses(bench: Bench, told: list[str]) -> None:
    with pytest.raises(NotAllowed):
        bench.branches.enlist("other", X, lambda: None)
    assert bench.branches.working("other") is None
