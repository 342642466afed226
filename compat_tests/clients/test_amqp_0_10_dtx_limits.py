"""Distributed transactions: what may not be done, recovery, and timeouts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest

from compat_tests.clients.amqp_0_10.branches import (
    TIMED_OUT,
    XID,
    begin,
    commit,
    contents,
    depths,
    end,
    prepare,
    publish,
    ready,
    roll_back,
    status,
    swap,
)
from compat_tests.clients.amqp_0_10.checks import fails
from compat_tests.clients.amqp_0_10.client import Connection, Session, connect
from fakeamqp import Broker
from fakeamqp.protocols.amqp_0_10.codec import commands as x
from fakeamqp.protocols.amqp_0_10.codec.structs import Command, GetTimeoutResult, RecoverResult, Xid

UNKNOWN = Xid(format=0, global_id=b"unknown", branch_id=b"branch")

Newcomer: TypeAlias = Callable[[], Session]


def suite(name: str) -> pytest.MarkDecorator:
    return pytest.mark.suite(f"dtx.DtxTests.{name}")


@pytest.fixture
def newcomer(connection: Connection) -> Newcomer:
    """Makes further sessions, since the first may have failed."""

    def make() -> Session:
        return connection.session(f"newcomer {len(connection.sessions)}".encode())

    return make


@pytest.fixture
def worker(session: Session) -> Session:
    """A session that may work in branches; there are queues `a` and `b`, which stay."""
    session.declare("a")
    session.declare("b")
    session.call(x.DtxSelect())
    return session


# --- what may not be ----------------------------------------------------------------------------------------


@suite("test_invalid_commit_one_phase_true")
def test_commit_in_one_phase_of_a_prepared_branch_fails_with_409(worker: Session, newcomer: Newcomer) -> None:
    ready(worker)
    prepare(worker)
    with fails(409):
        commit(worker, one_phase=True)
    roll_back(newcomer())


@suite("test_invalid_commit_one_phase_false")
def test_a_branch_is_not_committed_in_two_phases_unprepared(worker: Session, newcomer: Newcomer) -> None:
    ready(worker)
    with fails(409):
        commit(worker, one_phase=False)
    roll_back(newcomer())


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(x.DtxCommit(xid=XID), marks=suite("test_invalid_commit_not_ended"), id="commit"),
        pytest.param(x.DtxCommit(xid=XID, one_phase=True), id="commit one phase"),
        pytest.param(x.DtxRollback(xid=XID), marks=suite("test_invalid_rollback_not_ended"), id="rollback"),
        pytest.param(x.DtxPrepare(xid=XID), marks=suite("test_invalid_prepare_not_ended"), id="prepare"),
    ],
)
def test_commit_rollback_or_prepare_of_a_branch_not_ended_fails_with_409(
    worker: Session, newcomer: Newcomer, command: Command
) -> None:
    begin(worker)
    publish(worker, "a", b"whatever")
    with fails(409):
        newcomer().call(command)
    end(worker)
    roll_back(worker)
    assert depths(worker) == (0, 0)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(x.DtxPrepare(xid=UNKNOWN), marks=suite("test_prepare_unknown"), id="prepare"),
        pytest.param(x.DtxCommit(xid=UNKNOWN), marks=suite("test_commit_unknown"), id="commit"),
        pytest.param(x.DtxRollback(xid=UNKNOWN), marks=suite("test_rollback_unknown"), id="rollback"),
        pytest.param(x.DtxGetTimeout(xid=UNKNOWN), marks=suite("test_get_timeout_unknown"), id="get-timeout"),
    ],
)
def test_the_branch_must_be_known(session: Session, command: Command) -> None:
    with fails(404):
        session.call(command)


# --- recovery and time --------------------------------------------------------------------------------------


@suite("test_recover")
def test_prepared_branches_and_no_others_are_in_doubt(worker: Session) -> None:
    xids = [Xid(format=0, global_id=f"number {n}".encode(), branch_id=b"branch") for n in range(1, 10)]
    prepared = [xids[n] for n in (1, 4, 5, 7)]
    for xid in xids:
        begin(worker, xid)
        publish(worker, "a", xid.global_id or b"")
        end(worker, xid)
        (prepare if xid in prepared else roll_back)(worker, xid)
    found = worker.call(x.DtxRecover())
    assert isinstance(found, RecoverResult)
    in_doubt: list[Any] = list(found.in_doubt or ())
    assert sorted(xid.global_id for xid in in_doubt) == [xid.global_id for xid in prepared]
    for xid in in_doubt:
        roll_back(worker, xid)  # As it came.
    assert worker.call(x.DtxRecover()).in_doubt == []
    assert worker.depth("a") == 0


@pytest.fixture
def timeless() -> Iterator[Broker]:
    """A broker whose time stands still."""
    with Broker(seed=1, clock="virtual") as running:
        yield running
        assert running.failures == ()


@suite("test_set_timeout")
def test_a_branch_that_takes_too_long_is_rolled_back(timeless: Broker) -> None:
    with connect(timeless) as connection:
        checker = connection.session(b"checker")
        checker.declare("a")
        checker.declare("b")
        worker = connection.session(b"worker")
        publish(worker, "a", b"one")
        worker.call(x.DtxSelect())
        begin(worker)
        swap(worker, "a", "b")
        worker.call(x.DtxSetTimeout(xid=XID, timeout=2))
        result = worker.call(x.DtxGetTimeout(xid=XID))
        assert isinstance(result, GetTimeoutResult) and result.timeout == 2
        timeless.clock.advance(1.9)
        assert depths(checker) == (0, 0)
        timeless.clock.advance(0.1)
        assert contents(checker, "a") == [b"one"]
        assert contents(checker, "b") == []
        status(worker, x.DtxEnd(xid=XID), TIMED_OUT)
        status(worker, x.DtxRollback(xid=XID), TIMED_OUT)
        with fails(404):
            worker.call(x.DtxRollback(xid=XID))


def test_a_prepared_branch_has_all_the_time_it_needs(timeless: Broker) -> None:
    with connect(timeless) as connection:
        worker = connection.session(b"worker")
        worker.declare("a")
        worker.call(x.DtxSelect())
        begin(worker)
        publish(worker, "a", b"one")
        worker.call(x.DtxSetTimeout(xid=XID, timeout=2))
        end(worker)
        prepare(worker)
        timeless.clock.advance(3600)
        commit(worker)
        assert contents(worker, "a") == [b"one"]
