"""Distributed transactions: branches that sessions work in, and how they end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from compat_tests.clients.amqp_0_10.branches import (
    ROLLED_BACK,
    XID,
    begin,
    commit,
    contents,
    depths,
    end,
    prepare,
    publish,
    roll_back,
    status,
    swap,
    swapped,
)
from compat_tests.clients.amqp_0_10.checks import fails
from compat_tests.clients.amqp_0_10.client import Connection, Session, connect
from fakeamqp import Broker
from fakeamqp.protocols.amqp_0_10.codec import commands as x
from fakeamqp.protocols.amqp_0_10.codec.structs import RecoverResult, Xid

OTHER_XID = Xid(format=0, global_id=b"transaction", branch_id=b"another branch")

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


# --- one branch from its start to its end ------------------------------------------------------------------


@suite("test_simple_commit")
def test_branch_commit_in_one_phase_applies_its_work(worker: Session, newcomer: Newcomer) -> None:
    swapped(worker)
    commit(worker, one_phase=True)
    worker.close()
    assert contents(newcomer(), "a") == []
    assert contents(newcomer(), "b") == [b"one"]


@suite("test_simple_prepare_commit")
def test_a_branch_is_committed_in_two_phases(worker: Session, newcomer: Newcomer) -> None:
    swapped(worker)
    prepare(worker)
    assert depths(worker) == (0, 0)
    commit(worker)
    worker.close()
    assert contents(newcomer(), "a") == []
    assert contents(newcomer(), "b") == [b"one"]


@suite("test_simple_rollback")
def test_a_branch_is_rolled_back(worker: Session, newcomer: Newcomer) -> None:
    swapped(worker)
    roll_back(worker)
    worker.close()
    assert contents(newcomer(), "a") == [b"one"]
    assert contents(newcomer(), "b") == []


@suite("test_simple_prepare_rollback")
def test_a_prepared_branch_is_rolled_back(worker: Session, newcomer: Newcomer) -> None:
    swapped(worker)
    prepare(worker)
    assert depths(worker) == (0, 0)
    roll_back(worker)
    worker.close()
    assert contents(newcomer(), "a") == [b"one"]
    assert contents(newcomer(), "b") == []


@pytest.mark.parametrize("crash", [False, True], ids=["restart", "crash"])
def test_a_prepared_branch_outlives_the_broker(broker: Broker, crash: bool) -> None:
    with connect(broker) as connection:
        session = connection.session(b"worker")
        session.declare("d", durable=True)
        session.call(x.DtxSelect())
        begin(session)
        session.publish(b"prepared", key="d", delivery_mode=2)
        end(session)
        prepare(session)
        connection.drop()
    broker.restart(crash=crash)
    with connect(broker) as connection:
        session = connection.session(b"recovery")
        assert session.depth("d") == 0
        found = session.call(x.DtxRecover())
        assert isinstance(found, RecoverResult)
        (xid,) = found.in_doubt or ()
        assert xid == XID
        commit(session, xid)
        session.subscribe("d", "d")
        assert session.get("d").body == b"prepared"


@suite("test_forget_xid_on_completion")
def test_xid_can_be_used_again_after_rollback_or_commit(worker: Session) -> None:
    for finish in (roll_back, lambda session: commit(session, one_phase=True)):
        begin(worker)
        end(worker)
        finish(worker)
    begin(worker)
    end(worker)
    roll_back(worker)


# --- start and end ------------------------------------------------------------------------------------------


@suite("test_select_required")
def test_work_in_branches_needs_dtx_select(newcomer: Newcomer) -> None:
    for command in (x.DtxStart(xid=XID), x.DtxEnd(xid=XID)):
        with fails(503):
            newcomer().call(command)


@suite("test_bad_resume")
def test_resuming_needs_dtx_select_as_well(session: Session) -> None:
    with fails(503):
        session.call(x.DtxStart(resume=True))


@suite("test_start_already_known")
def test_a_known_branch_must_be_joined(worker: Session, newcomer: Newcomer) -> None:
    begin(worker)
    other = newcomer()
    other.call(x.DtxSelect())
    with fails(530):
        begin(other)
    end(worker)
    roll_back(worker)


@suite("test_start_join_and_resume")
def test_dtx_start_with_join_and_resume_fails_with_503(worker: Session) -> None:
    with fails(503):
        begin(worker, join=True, resume=True)


@suite("test_start_join")
def test_two_sessions_work_in_one_branch(worker: Session, newcomer: Newcomer) -> None:
    other = newcomer()
    other.call(x.DtxSelect())
    publish(worker, "a", b"from a")
    publish(worker, "b", b"from b")
    begin(worker)
    begin(other, join=True)
    swap(worker, "a", "b")
    swap(other, "b", "a")
    end(worker)
    end(other)
    commit(worker, one_phase=True)
    assert (contents(worker, "a"), contents(worker, "b")) == ([b"from b"], [b"from a"])


@suite("test_suspend_resume")
def test_an_association_is_suspended_and_resumed(worker: Session) -> None:
    publish(worker, "a", b"from a")
    publish(worker, "b", b"from b")
    begin(worker)
    swap(worker, "a", "b")
    end(worker, suspend=True)
    begin(worker, resume=True)
    swap(worker, "b", "a")
    end(worker)
    commit(worker, one_phase=True)
    assert (contents(worker, "a"), contents(worker, "b")) == ([b"from b"], [b"from a"])


@suite("test_suspend_start_end_resume")
def test_other_work_is_done_while_one_is_suspended(worker: Session) -> None:
    publish(worker, "a", b"from a")
    publish(worker, "b", b"from b")
    begin(worker)
    swap(worker, "a", "b")
    end(worker, suspend=True)

    begin(worker, OTHER_XID)
    publish(worker, "b", b"other work")
    end(worker, OTHER_XID)
    publish(worker, "b", b"plain work")

    begin(worker, resume=True)
    swap(worker, "b", "a")
    end(worker)
    commit(worker, one_phase=True)
    assert contents(worker, "a") == [b"from b"]
    assert contents(worker, "b") == [b"plain work", b"from a"]
    roll_back(worker, OTHER_XID)
    assert contents(worker, "b") == [b"plain work", b"from a"]


@suite("test_end_suspend_and_fail")
def test_dtx_end_with_suspend_and_fail_fails_with_503(broker: Broker, worker: Session) -> None:
    begin(worker)
    with fails(503):
        end(worker, suspend=True, fail=True)
    with connect(broker) as connection:
        status(connection.session(b"cleanup"), x.DtxRollback(xid=XID))


@suite("test_end_unknown_xid")
def test_dtx_end_without_start_fails_with_409(worker: Session) -> None:
    with fails(409):
        end(worker)


@suite("test_end")
def test_publish_and_accept_after_dtx_end_do_not_belong_to_the_branch(
    session: Session, newcomer: Newcomer
) -> None:
    session.declare("a")
    other = newcomer()
    other.call(x.DtxSelect())
    begin(other)
    publish(other, "a", b"in the branch")
    end(other)
    publish(other, "a", b"behind it")
    assert session.depth("a") == 1
    other.subscribe("a", "d")
    message = other.get("d")
    assert message.properties.correlation_id == b"behind it"
    other.cancel("d")
    other.accept(message)
    other.close()
    commit(session, one_phase=True)  # It never selected dtx.
    assert contents(session, "a") == [b"in the branch"]


@suite("test_implicit_end")
@pytest.mark.parametrize("how", ["detached", "failed", "lost"])
def test_branch_of_an_ended_session_can_only_be_rolled_back(
    broker: Broker, session: Session, how: str
) -> None:
    session.declare("a")
    publish(session, "a", b"taken")
    connection = connect(broker)
    other = connection.session(b"other")
    other.call(x.DtxSelect())
    begin(other)
    other.subscribe("a", "d", credit=1)
    other.accept(other.get("d"))
    other.cancel("d")
    publish(other, "a", b"sent")
    if how == "detached":
        other.close()
    elif how == "failed":
        with fails(404):
            other.purge("nowhere")
    connection.drop()
    broker._reader.wait_for(lambda state: len(state.connections) == 1)

    status(session, x.DtxPrepare(xid=XID), ROLLED_BACK)
    session.call(x.DtxRollback(xid=XID))
    assert contents(session, "a") == [b"taken"]
    with fails(404):
        session.call(x.DtxRollback(xid=XID))
