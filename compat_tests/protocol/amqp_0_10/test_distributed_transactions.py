from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.scripted.amqp_0_10 import Server, Session
from compat_tests.tools.matrix import marked_rows, rows
from fakeamqp.model.access import Permission, User
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c, structs
from fakeamqp.protocols.amqp_0_10.codec.constants import AcceptMode, DeliveryMode, XaStatus
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet
from fakeamqp.protocols.amqp_0_10.codec.structs import Command

rule = pytest.mark.rule

OK = XaStatus.XA_OK
X = structs.Xid(0, b"global", b"branch")
Y = structs.Xid(0, b"global", b"other branch")


class Branches:
    """A session, and short words for what it does with branches."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def start(self, xid: structs.Xid = X, **flags: bool) -> XaStatus:
        return self._status(x.DtxStart(xid=xid, **flags))

    def end(self, xid: structs.Xid = X, **flags: bool) -> XaStatus:
        return self._status(x.DtxEnd(xid=xid, **flags))

    def prepare(self, xid: structs.Xid = X) -> XaStatus:
        return self._status(x.DtxPrepare(xid=xid))

    def commit(self, xid: structs.Xid = X, *, one_phase: bool = False) -> XaStatus:
        return self._status(x.DtxCommit(xid=xid, one_phase=one_phase))

    def rollback(self, xid: structs.Xid = X) -> XaStatus:
        return self._status(x.DtxRollback(xid=xid))

    def recover(self) -> list[bytes]:
        """The branch ids of what is in doubt."""
        result = self.session.call(x.DtxRecover())
        assert isinstance(result, structs.RecoverResult)
        return [each.branch_id for each in result.in_doubt or ()]

    def timeout(self, xid: structs.Xid = X) -> int:
        result = self.session.call(x.DtxGetTimeout(xid=xid))
        assert isinstance(result, structs.GetTimeoutResult)
        assert result.timeout is not None
        return result.timeout

    def set_timeout(self, seconds: int, xid: structs.Xid = X) -> None:
        self.session.call(x.DtxSetTimeout(xid=xid, timeout=seconds))

    def _status(self, command: Command) -> XaStatus:
        result = self.session.call(command)
        assert isinstance(result, structs.XaResult)
        return XaStatus(result.status or 0)

    def publish(self, body: bytes, queue: str = "b") -> None:
        self.session.publish(body, key=queue, delivery_mode=DeliveryMode.PERSISTENT)

    def accept_next(self, queue: str = "a") -> None:
        """Take the next message of a queue, and accept it."""
        destination = f"{queue} {self.session.next_id}"
        self.session.subscribe(queue, destination, credit=1, accept_mode=0, acquire_mode=0)
        id_ = self.session.transfer().id
        self.session.call(x.MessageCancel(destination=destination))
        self.session.accept(id_)

    def move(self) -> None:
        """Take the next message from queue a, and publish another to queue b."""
        self.accept_next("a")
        self.publish(b"new", "b")

    def work(self, xid: structs.Xid = X, **flags: bool) -> None:
        """Move a message as the whole work of a branch."""
        assert self.start(xid) is OK
        self.move()
        self.end(xid, **flags)


def select(session: Session) -> Branches:
    session.perform(x.DtxSelect())
    return Branches(session)


def ready(server: Server, queue: str) -> list[bytes]:
    return [each.message.body for each in server.vhost.queues[queue].ready]


def queues(server: Server) -> tuple[list[bytes], list[bytes]]:
    """What is ready in the queues a and b."""
    return ready(server, "a"), ready(server, "b")


def fill(server: Server) -> None:
    """Two queues, and two messages in the first."""
    session = server.session(b"who fills")
    for queue in ("a", "b"):
        session.declare(queue, durable=True)
    for body in (b"1", b"2"):
        session.publish(body, key="a", delivery_mode=DeliveryMode.PERSISTENT)
    session.detach()


def selected(server: Server, name: bytes = b"one") -> Branches:
    return select(server.session(name))


@pytest.fixture
def filled(server: Server) -> Server:
    fill(server)
    return server


@pytest.fixture
def one(filled: Server) -> Branches:
    """A selected session of a broker with two queues."""
    return selected(filled)


@pytest.fixture
def other(filled: Server) -> Branches:
    """One more, which is not selected: whoever coordinates does not work."""
    return Branches(filled.session(b"other"))


# --- the class ----------------------------------------------------------------------------------------------
@rule("0-10/dtx.select/repeatable")
def test_dtx_select_may_be_repeated(session: Session) -> None:
    assert session.call(x.DtxSelect()) is None
    assert session.call(x.DtxSelect()) is None


@rule("0-10/dtx/demarcation-grammar#select", "0-10/dtx.select/required#raises")
@rule("0-10/dtx.select/required#code")
@pytest.mark.deviates("0-10/dtx.select/required#code")
@pytest.mark.parametrize("command", [x.DtxStart(xid=X), x.DtxEnd(xid=X), x.DtxStart(resume=True)])
@pytest.mark.parametrize(("personality", "code"), [("rabbitmq-4.3", 503), ("spec", 409)])
def test_dtx_start_and_end_without_select_fail(personality: str, code: int, command: Command) -> None:
    Server(personality).session().fails(command, code)


@rule("0-10/dtx/transactionality#within", "0-10/dtx/transactionality#outside")
def test_only_publishes_between_dtx_start_and_end_wait_for_commit(filled: Server, one: Branches) -> None:
    one.publish(b"before")
    one.start()
    one.publish(b"within")
    one.end()
    one.publish(b"after")
    assert ready(filled, "b") == [b"before", b"after"]
    one.commit(one_phase=True)
    assert ready(filled, "b") == [b"before", b"after", b"within"]


@rule("0-10/dtx/demarcation-grammar#turns")
def test_session_works_on_branches_in_turn_and_commits_in_any_order(filled: Server, one: Branches) -> None:
    for xid in (X, Y):
        assert one.start(xid) is OK
        one.publish(xid.branch_id or b"")
        assert one.end(xid) is OK
    assert one.commit(Y, one_phase=True) is OK
    assert one.commit(X, one_phase=True) is OK
    assert ready(filled, "b") == [b"other branch", b"branch"]


@rule("0-10/dtx/coordination-grammar#one-phase", "0-10/dtx/coordination-grammar#two-phase", "0-10/dtx/xa-ok")
@rule("0-10/dtx.commit/effect#published", "0-10/dtx.commit/effect#consumed")
@rule("0-10/dtx.rollback/effect#published", "0-10/dtx.rollback/effect#consumed")
@pytest.mark.parametrize("two_phase", [False, True])
@pytest.mark.parametrize("commits", [False, True])
def test_branch_commits_or_rolls_back_in_one_or_two_phases(
    filled: Server, one: Branches, other: Branches, two_phase: bool, commits: bool
) -> None:
    assert one.start() is OK
    one.move()
    assert one.end() is OK
    if two_phase:
        assert other.prepare() is OK
    assert queues(filled) == ([b"2"], [])
    assert (other.commit(one_phase=not two_phase) if commits else other.rollback()) is OK
    assert not filled.vhost.queues["a"].unacked
    assert queues(filled) == (([b"2"] if commits else [b"1", b"2"]), ([b"new"] if commits else []))


@rule("0-10/dtx/xid#parts")
def test_xid_and_dtx_start_have_specified_encoding() -> None:
    xid = structs.Xid(0x01020304, b"g" * 64, b"b")
    packed = bytes.fromhex("01020304") + b"\x40" + b"g" * 64 + b"\x01b"
    # The coded form: size, class and struct code, flags of three fields.
    assert xid.encode() == bytes.fromhex("0000004b 0604 0700") + packed
    assert x.DtxStart(xid=xid).encode() == bytes.fromhex("0602 0100 0100") + xid.encode()


@rule("0-10/dtx/xid#parts", "0-10/dtx/xid#length")
def test_xids_that_differ_in_any_part_name_separate_branches(one: Branches) -> None:
    for xid in (
        structs.Xid(1, b"g" * 64, b"b" * 64),
        structs.Xid(2, b"g" * 64, b"b" * 64),
        structs.Xid(1, b"", b"b" * 64),
        structs.Xid(1, b"g" * 255, b""),
    ):
        assert one.start(xid) is OK
        assert one.end(xid) is OK


def test_dtx_start_without_xid_fails_with_illegal_argument(one: Branches) -> None:
    exception = one.session.fails(x.DtxStart(), 531)
    assert (exception.class_code, exception.command_code, exception.field_index) == (6, 2, 0)


@rule("0-10/dtx/xa-result")
def test_xa_result_of_dtx_start_has_specified_encoding(one: Branches) -> None:
    id_ = one.session.send(x.DtxStart(xid=X), sync=True)
    result = next(each.what for each in one.session.client.inbox if isinstance(each.what, x.ExecutionResult))
    assert result.command_id == id_
    octets = bytes.fromhex("00000006 0601 0100 0000")
    assert result.value == structs.XaResult(0)
    assert result.value.encode() == octets
    assert octets in one.session.client.bytes_in


# --- statuses -----------------------------------------------------------------------------------------------
@rule("0-10/dtx/xa-rbrollback", "0-10/dtx.end/fail-failure#marks", "0-10/dtx.end/fail-failure#reports")
@rule("0-10/dtx.commit/result#rollback-only")
def test_branch_ended_with_fail_is_rolled_back(filled: Server, one: Branches) -> None:
    one.start()
    one.move()
    assert one.end(fail=True) is XaStatus.XA_RBROLLBACK
    assert one.commit(one_phase=True) is XaStatus.XA_RBROLLBACK
    assert queues(filled) == ([b"1", b"2"], [])


@rule("0-10/dtx/xa-rbtimeout", "0-10/dtx.set-timeout/effective")
def test_branch_is_rolled_back_as_soon_as_its_timeout_expires(filled: Server, one: Branches) -> None:
    one.start()
    one.move()
    one.set_timeout(2)
    filled.advance(1.9)
    assert ready(filled, "a") == [b"2"]
    filled.advance(0.2)
    assert ready(filled, "a") == [b"1", b"2"]
    assert one.end() is XaStatus.XA_RBTIMEOUT
    assert one.rollback() is XaStatus.XA_RBTIMEOUT
    assert ready(filled, "b") == []
    one.session.fails(x.DtxRollback(xid=X), 404)


@rule("0-10/dtx.set-timeout/effective")
@pytest.mark.parametrize("again", [1, 5])
def test_last_dtx_set_timeout_replaces_earlier_timeout(filled: Server, one: Branches, again: int) -> None:
    """It counts from the last set-timeout on, whether that is sooner or later than the one before."""
    one.start()
    one.move()
    one.set_timeout(3)
    filled.advance(0.5)
    one.set_timeout(again)
    assert one.timeout() == again
    filled.advance(again - 0.6)
    assert ready(filled, "a") == [b"2"]
    filled.advance(0.7)
    assert ready(filled, "a") == [b"1", b"2"]
    assert one.end() is XaStatus.XA_RBTIMEOUT


@rule("0-10/dtx.recover/in-doubt#decided", "0-10/dtx.forget/illegal-state#decided")
@rule("0-10/dtx/coordination-grammar#forget")
@marked_rows(
    "how, status, a, b",
    (rule("0-10/dtx/xa-heurhaz"), "hazard", XaStatus.XA_HEURHAZ, [b"1", b"2"], []),
    (rule("0-10/dtx/xa-heurcom"), "commit", XaStatus.XA_HEURCOM, [b"2"], [b"new"]),
    (rule("0-10/dtx/xa-heurrb"), "rollback", XaStatus.XA_HEURRB, [b"1", b"2"], []),
    (rule("0-10/dtx/xa-heurmix"), "mix", XaStatus.XA_HEURMIX, [b"1", b"2"], [b"new"]),
)
def test_heuristic_decision_of_broker_is_reported_until_branch_is_forgotten(
    filled: Server, one: Branches, how: str, status: XaStatus, a: list[bytes], b: list[bytes]
) -> None:
    one.work()
    one.prepare()
    branches = filled.vhost.branches
    branches.complete(branches.recover()[0], how)
    assert one.recover() == [b"branch"]
    assert one.rollback() is status
    assert one.commit() is status
    assert queues(filled) == (a, b)
    one.session.call(x.DtxForget(xid=X))
    assert one.recover() == []
    one.session.fails(x.DtxForget(xid=X), 404)


@rule("0-10/dtx.prepare/result#ok", "0-10/dtx.prepare/result#rdonly", "0-10/dtx.prepare/result#rbrollback")
@rule("0-10/dtx.prepare/result#rbtimeout", "0-10/dtx/xa-rdonly")
def test_dtx_prepare_returns_ok_rdonly_rbrollback_or_rbtimeout(filled: Server, one: Branches) -> None:
    one.work(X)
    one.work(Y, fail=True)
    empty, slow = structs.Xid(0, b"empty", b""), structs.Xid(0, b"slow", b"")
    for xid in (empty, slow):
        one.start(xid)
        one.end(xid)
    one.set_timeout(1, slow)
    filled.advance(1)
    assert [one.prepare(xid) for xid in (X, empty, Y, slow)] == [
        XaStatus.XA_OK,
        XaStatus.XA_RDONLY,
        XaStatus.XA_RBROLLBACK,
        XaStatus.XA_RBTIMEOUT,
    ]
    assert one.start(empty) is OK, "a branch without work has ended"


@rule("0-10/dtx.end/result#rbrollback", "0-10/dtx.end/result#rbtimeout", "0-10/dtx.start/result#ok")
@rule("0-10/dtx.start/result#rbrollback", "0-10/dtx.start/result#rbtimeout")
def test_dtx_start_and_end_return_rbrollback_or_rbtimeout_of_branch(filled: Server, one: Branches) -> None:
    two = selected(filled, b"two")
    one.start(X)
    assert two.start(Y) is OK
    two.set_timeout(1, Y)
    filled.advance(1)
    assert two.end(Y) is XaStatus.XA_RBTIMEOUT
    assert two.start(Y, join=True) is XaStatus.XA_RBTIMEOUT
    assert two.start(X, join=True) is OK
    assert two.end(X, fail=True) is XaStatus.XA_RBROLLBACK
    assert two.start(X, join=True) is XaStatus.XA_RBROLLBACK
    two.publish(b"no part of it")
    assert ready(filled, "b") == [b"no part of it"]
    assert one.end(X) is XaStatus.XA_RBROLLBACK


# --- start --------------------------------------------------------------------------------------------------
def _started(one: Branches) -> None:
    one.start()


def _suspended(one: Branches) -> None:
    one.start()
    one.end(suspend=True)


def _ended(one: Branches) -> None:
    one.work()


def _prepared(one: Branches) -> None:
    one.work()
    one.prepare()


def _idle(one: Branches) -> None:
    pass


TURNS_START = rule("0-10/dtx/demarcation-grammar#turns", "0-10/dtx.start/illegal-state")
NOT_ASSOCIATED = rule("0-10/dtx.end/xid-not-associated")
TURNS_END = rule("0-10/dtx/demarcation-grammar#turns", "0-10/dtx.end/illegal-state")


@marked_rows(
    "reach, command, code, description",
    (TURNS_START, _started, x.DtxStart(xid=Y), 409, "works on branch 0:global:branch already"),
    (rule("0-10/dtx.start/xid-unknown-xid"), _ended, x.DtxStart(xid=X), 530, "branch 0:global:branch"),
    ((), _idle, x.DtxStart(xid=X, join=True), 404, "no branch"),
    ((), _idle, x.DtxStart(xid=X, resume=True), 404, "no branch"),
    (TURNS_END, _idle, x.DtxEnd(xid=X), 409, ""),
    (NOT_ASSOCIATED, _started, x.DtxEnd(xid=Y), 409, "not associated with branch 0:global:other branch"),
    ids=repr,
)
def test_demarcation_in_wrong_state_of_session_fails(
    one: Branches, reach: Callable[[Branches], None], command: Command, code: int, description: str
) -> None:
    reach(one)
    assert description in (one.session.fails(command, code).description or "")


@marked_rows(
    "reach, command",
    (rule("0-10/dtx.commit/one-phase-one-phase"), _ended, x.DtxCommit(xid=X)),
    (rule("0-10/dtx.commit/one-phase-two-phase"), _prepared, x.DtxCommit(xid=X, one_phase=True)),
    (rule("0-10/dtx.forget/illegal-state#others"), _prepared, x.DtxForget(xid=X)),
    (rule("0-10/dtx.prepare/illegal-state"), _prepared, x.DtxPrepare(xid=X)),
    (rule("0-10/dtx.commit/illegal-state"), _suspended, x.DtxCommit(xid=X, one_phase=True)),
    (rule("0-10/dtx.rollback/illegal-state"), _suspended, x.DtxRollback(xid=X)),
    (rule("0-10/dtx.prepare/xid-not-disassociated"), _started, x.DtxPrepare(xid=X)),
    (rule("0-10/dtx.commit/xid-not-disassociated"), _started, x.DtxCommit(xid=X)),
    (rule("0-10/dtx.rollback/xid-not-disassociated"), _started, x.DtxRollback(xid=X)),
    (rule("0-10/dtx.forget/xid-not-disassociated"), _started, x.DtxForget(xid=X)),
    ids=repr,
)
def test_coordination_in_wrong_state_of_branch_fails_with_illegal_state_and_has_no_effect(
    filled: Server, one: Branches, other: Branches, reach: Callable[[Branches], None], command: Command
) -> None:
    reach(one)
    before = filled.vhost.branches.views()
    description = other.session.fails(command, 409).description
    if reach is _started:
        assert description == "branch 0:global:branch is still associated with a session"
    assert filled.vhost.branches.views() == before
    if reach is _suspended:
        assert one.start(resume=True) is OK
    if reach in (_started, _suspended):
        assert one.end() is OK
    assert one.rollback() is OK


@rule("0-10/dtx.start/already-known")
def test_dtx_start_of_xid_active_elsewhere_fails_with_not_allowed(filled: Server, one: Branches) -> None:
    one.start(X)
    selected(filled, b"two").session.fails(x.DtxStart(xid=X), 530)


def _codes(lenient: int, spec: int) -> pytest.MarkDecorator:
    """The code of each personality."""
    return pytest.mark.parametrize(("personality", "code"), [("rabbitmq-4.3", lenient), ("spec", spec)])


@rule("0-10/dtx.start/join-and-resume#raises", "0-10/dtx.start/join-and-resume#code")
@pytest.mark.deviates("0-10/dtx.start/join-and-resume#code")
@_codes(503, 530)
def test_dtx_start_with_both_join_and_resume_fails(personality: str, code: int) -> None:
    selected(Server(personality)).session.fails(x.DtxStart(xid=X, join=True, resume=True), code)


@rule("0-10/dtx.start/join")
def test_sessions_share_branch_after_start_with_join(filled: Server, one: Branches, other: Branches) -> None:
    two = selected(filled, b"two")
    one.start()
    assert two.start(join=True) is OK
    one.publish(b"from one")
    two.publish(b"from two")
    two.accept_next("a")
    one.end()
    other.session.fails(x.DtxCommit(xid=X, one_phase=True), 409)
    two.end()
    assert ready(filled, "b") == []
    assert one.commit(one_phase=True) is OK
    assert queues(filled) == ([b"2"], [b"from one", b"from two"])


@rule("0-10/dtx.start/resume", "0-10/dtx.end/suspend-resume")
def test_suspended_branch_continues_after_dtx_start_with_resume(filled: Server, one: Branches) -> None:
    one.start()
    one.publish(b"before")
    assert one.end(suspend=True) is OK
    one.publish(b"meanwhile")
    assert one.start(resume=True) is OK
    one.publish(b"after")
    one.end()
    assert ready(filled, "b") == [b"meanwhile"]
    assert one.commit(one_phase=True) is OK
    assert ready(filled, "b") == [b"meanwhile", b"before", b"after"]


def test_session_works_on_another_branch_while_first_is_suspended(filled: Server, one: Branches) -> None:
    one.start(X)
    one.end(X, suspend=True)
    one.start(Y)
    one.publish(b"y")
    one.end(Y)
    one.start(X, resume=True)
    one.publish(b"x")
    one.end(X)
    one.commit(X, one_phase=True)
    assert ready(filled, "b") == [b"x"]


# --- end ----------------------------------------------------------------------------------------------------
@rule("0-10/dtx.end/suspend-and-fail#raises", "0-10/dtx.end/suspend-and-fail#code")
@pytest.mark.deviates("0-10/dtx.end/suspend-and-fail#code")
@_codes(503, 530)
def test_dtx_end_with_both_suspend_and_fail_fails(personality: str, code: int) -> None:
    server = Server(personality)
    one = selected(server)
    one.start()
    one.session.fails(x.DtxEnd(xid=X, suspend=True, fail=True), code)
    assert Branches(server.session(b"other")).rollback() is OK


@rule("0-10/dtx.end/session-closed#active", "0-10/dtx.end/session-closed#suspended")
@pytest.mark.parametrize("suspended", [False, True])
@pytest.mark.parametrize("end", ["detach", "drop", "exception"])
def test_end_of_session_rolls_back_branches_not_ended(
    filled: Server, one: Branches, other: Branches, end: str, suspended: bool
) -> None:
    one.start()
    one.move()
    if suspended:
        one.end(suspend=True)
    if end == "detach":
        one.session.detach()
    elif end == "drop":
        one.session.client.drop()
    else:
        one.session.fails(x.MessageCancel(destination="nobody"), 404)
    assert other.prepare() is XaStatus.XA_RBROLLBACK
    assert other.rollback() is OK
    assert queues(filled) == ([b"1", b"2"], [])


def test_detached_session_keeps_its_branch_until_attached_again(filled: Server) -> None:
    client = filled.open()
    session = client.session(b"one", timeout=60)
    one = select(session)
    one.start()
    one.publish(b"new")
    client.drop()
    client = filled.open()
    client.call(c.SessionAttach(name=b"one"), c.SessionAttached)
    client.inbox.clear()
    client.send(c.SessionExpected(commands=SequenceSet.of(1)))  # Start had a result.
    back = Session(client, b"one", 0).point(session.next_id)
    again = Branches(back)
    assert again.end() is OK
    assert again.commit(one_phase=True) is OK
    assert ready(filled, "b") == [b"new"]


def test_ended_branch_can_be_committed_after_its_session_ends(
    filled: Server, one: Branches, other: Branches
) -> None:
    one.work()
    one.session.detach()
    assert ready(filled, "a") == [b"2"]
    assert other.commit(one_phase=True) is OK
    assert ready(filled, "b") == [b"new"]


# --- what has to be known and left --------------------------------------------------------------------------
@rule("0-10/dtx.commit/xid-unknown-xid", "0-10/dtx.forget/xid-unknown-xid")
@rule("0-10/dtx.get-timeout/xid-unknown-xid", "0-10/dtx.prepare/xid-unknown-xid")
@rule("0-10/dtx.rollback/xid-unknown-xid", "0-10/dtx.set-timeout/xid-unknown-xid")
@rows("command", x.DtxPrepare, x.DtxCommit, x.DtxRollback, x.DtxForget, x.DtxGetTimeout, x.DtxSetTimeout)
def test_dtx_command_for_unknown_branch_fails(session: Session, command: Callable[..., Command]) -> None:
    exception = session.fails(command(xid=X), 404)
    assert exception.description == "no branch 0:global:branch in vhost '/'"


# --- commit, forget, prepare, rollback ----------------------------------------------------------------------
@rule("0-10/dtx.rollback/effect#consumed")
def test_message_accepted_in_rolled_back_branch_is_redelivered_to_another_session(
    one: Branches, other: Branches
) -> None:
    one.start()
    one.session.subscribe("a", "d", credit=1, accept_mode=0, acquire_mode=0)
    id_ = one.session.transfer().id
    one.session.accept(id_)
    one.end()
    one.rollback()
    other.session.subscribe("a", "d", accept_mode=0, acquire_mode=0)
    again, _ = other.session.transfers()
    assert (again.body, again.redelivered) == (b"1", True)


@rule("0-10/dtx.commit/result#not-rdonly", "0-10/dtx.end/result#ok", "0-10/dtx.end/success")
def test_dtx_commit_of_branch_without_work_returns_ok(one: Branches, other: Branches) -> None:
    one.start()
    assert one.end() is OK
    assert other.commit(one_phase=True) is OK


@rule("0-10/dtx.commit/forgets")
def test_xid_may_be_used_again_after_commit(filled: Server, one: Branches) -> None:
    for _ in range(2):
        one.work()
        assert one.commit(one_phase=True) is OK
    assert ready(filled, "b") == [b"new", b"new"]


@rule("0-10/dtx.prepare/result#rbrollback")
def test_dtx_prepare_of_publish_to_full_queue_returns_rbrollback(filled: Server, one: Branches) -> None:
    arguments = {"x-max-length": 0, "x-overflow": "reject-publish"}
    filled.vhost.queues.declare("full", QueueDeclaration(durable=True, arguments=arguments))
    one.start()
    one.move()
    one.publish(b"new", "full")
    one.end()
    assert one.prepare() is XaStatus.XA_RBROLLBACK
    assert ready(filled, "a") == [b"1", b"2"]


# --- recover ------------------------------------------------------------------------------------------------
@rule("0-10/dtx.recover/in-doubt#prepared", "0-10/dtx.recover/not-active#started")
@rule("0-10/dtx.recover/not-active#ended")
def test_dtx_recover_lists_only_prepared_branches(one: Branches, other: Branches) -> None:
    xids = [structs.Xid(0, b"global", b"%d" % number) for number in range(5)]
    for xid in xids:
        one.start(xid)
        one.publish(b"new")
        one.end(xid)
    one.prepare(xids[3])
    one.prepare(xids[1])
    one.start(X)
    assert other.recover() == [b"1", b"3"]


@rule("0-10/dtx.recover/result")
def test_dtx_recover_result_has_specified_encoding(one: Branches) -> None:
    for xid in (X, Y):
        one.start(xid)
        one.publish(b"new")
        one.end(xid)
        one.prepare(xid)
    result = one.session.call(x.DtxRecover())
    elements = X.encode() + Y.encode()
    array = bytes.fromhex("ab 00000002") + elements
    octets = bytes.fromhex("0603 0100") + len(array).to_bytes(4, "big") + array
    assert result.encode() == len(octets).to_bytes(4, "big") + octets
    assert octets in one.session.client.bytes_in


def test_dtx_recover_result_without_branches_is_encoded_as_empty_array(session: Session) -> None:
    session.perform(x.DtxRecover())
    assert bytes.fromhex("0603 0100 00000005 ab 00000000") in session.client.bytes_in


# --- timeouts -----------------------------------------------------------------------------------------------
@rule("0-10/dtx.get-timeout/value#set", "0-10/dtx.get-timeout/value#default", "0-10/dtx.set-timeout/reset")
def test_dtx_timeout_is_60_seconds_and_can_be_set_and_reset(one: Branches, other: Branches) -> None:
    one.start()
    assert one.timeout() == 60
    other.set_timeout(10)
    assert one.timeout() == 10
    one.set_timeout(0)
    assert other.timeout() == 60


def test_only_default_personality_refuses_dtx_timeout_above_one_hour(lenient: Server, spec: Server) -> None:
    for server in (lenient, spec):
        one = selected(server)
        one.start()
        one.set_timeout(3600)
        if server is lenient:
            one.session.fails(x.DtxSetTimeout(xid=X, timeout=3601), 542)
        else:
            one.set_timeout(3601)
            assert one.timeout() == 3601


@rule("0-10/dtx/xa-rbtimeout")
def test_branch_times_out_after_one_minute_unless_set_longer(filled: Server, one: Branches) -> None:
    one.work(X)
    one.work(Y)
    one.set_timeout(120, Y)
    filled.advance(61)
    assert one.commit(X, one_phase=True) is XaStatus.XA_RBTIMEOUT
    assert one.commit(Y, one_phase=True) is OK


# --- restarts -----------------------------------------------------------------------------------------------
@rule("0-10/dtx/coordination-grammar#recovery", "0-10/dtx.prepare/obligation-1#commit")
@rule("0-10/dtx.prepare/obligation-1#rollback", "0-10/dtx.prepare/obligation-2")
@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("commits", [True, False])
def test_prepared_branch_survives_restart_and_can_be_completed(
    filled: Server, one: Branches, crash: bool, commits: bool
) -> None:
    one.work()
    one.prepare()
    for _ in range(2):
        filled.restart(crash=crash)
        assert ready(filled, "a") == [b"2"]
        assert ready(filled, "b") == []
    back = Branches(filled.session(b"back"))
    assert back.recover() == [b"branch"]
    assert (back.commit() if commits else back.rollback()) is OK
    assert queues(filled) == (([b"2"] if commits else [b"1", b"2"]), ([b"new"] if commits else []))
    assert back.recover() == []
    filled.restart(crash=True)
    assert ready(filled, "a") == ([b"2"] if commits else [b"1", b"2"])


@rule("0-10/dtx.recover/not-active#started", "0-10/dtx.recover/not-active#ended")
@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("ended", [True, False])
def test_branch_not_prepared_is_rolled_back_by_restart(
    filled: Server, one: Branches, crash: bool, ended: bool
) -> None:
    one.start()
    one.move()
    if ended:
        one.end()
    filled.restart(crash=crash)
    assert queues(filled) == ([b"1", b"2"], [])
    back = selected(filled, b"back")
    assert back.recover() == []
    assert back.start() is OK


@pytest.mark.parametrize("crash", [False, True])
def test_restart_rolls_back_branch_of_detached_session(filled: Server, crash: bool) -> None:
    one = select(filled.open().session(b"one", timeout=None))
    one.start()
    one.move()
    one.session.client.drop()
    assert filled.vhost.branches.views()[0].working == 1
    filled.restart(crash=crash)
    assert ready(filled, "a") == [b"1", b"2"]
    assert len(filled.vhost.branches) == 0


def test_prepared_branch_keeps_only_persistent_messages_after_restart(filled: Server, one: Branches) -> None:
    one.start()
    one.publish(b"persistent")
    one.session.publish(b"transient", key="b")
    one.end()
    one.prepare()
    filled.restart()
    assert Branches(filled.session(b"back")).commit() is OK
    assert ready(filled, "b") == [b"persistent"]


# --- beside local transactions ------------------------------------------------------------------------------
def test_publishes_outside_branches_belong_to_local_transaction(lenient: Server) -> None:
    fill(lenient)
    session = lenient.session().perform(x.TxSelect())
    one = select(session)
    one.publish(b"local")
    one.start()
    one.publish(b"distributed")
    one.end()
    one.publish(b"local as well")
    assert one.commit(one_phase=True) is OK
    assert ready(lenient, "b") == [b"distributed"]
    session.perform(x.TxCommit())
    assert ready(lenient, "b") == [b"distributed", b"local", b"local as well"]


def test_rollback_of_branch_restores_only_messages_accepted_in_it(filled: Server, one: Branches) -> None:
    one.session.subscribe("a", "d", accept_mode=AcceptMode.EXPLICIT, acquire_mode=0)
    first, second = (each.id for each in one.session.transfers())
    for xid, id_ in ((X, first), (Y, second)):
        one.start(xid)
        one.session.call(x.MessageAccept(transfers=SequenceSet.of(id_)))
        one.end(xid)
    assert one.commit(X, one_phase=True) is OK
    one.session.detach()
    assert ready(filled, "a") == []
    assert Branches(filled.session(b"back")).rollback(Y) is OK
    assert ready(filled, "a") == [b"2"]


# --- other users -------------------------------------------------------------------------------------
def branches_of(server: Server, name: str, *tags: str) -> Branches:
    """What this user does with branches, in a session of its own."""
    server.state.access.add(User(name, "secret", tags, {"/": Permission()}))
    session = server.session(name.encode(), user=name, password="secret").perform(x.DtxSelect())
    return Branches(session)


COORDINATING: list[Command] = [
    x.DtxPrepare(xid=X),
    x.DtxCommit(xid=X, one_phase=True),
    x.DtxCommit(xid=X),
    x.DtxRollback(xid=X),
    x.DtxForget(xid=X),
    x.DtxGetTimeout(xid=X),
    x.DtxSetTimeout(xid=X, timeout=1),
    x.DtxStart(xid=X, join=True),
    x.DtxStart(xid=X, resume=True),
]


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("command", COORDINATING, ids=repr)
def test_dtx_command_on_branch_of_another_user_is_refused(
    server: Server, command: Command, prepared: bool
) -> None:
    server.session(b"guest's").declare("b", durable=True)
    ann = branches_of(server, "ann")
    ann.start()
    ann.publish(b"1")
    ann.end()
    if prepared:
        ann.prepare()
    before = server.vhost.branches.views()
    exception = branches_of(server, "bob").session.fails(command, 403)
    assert "refused for user 'bob': another user has started it" in (exception.description or "")
    assert branches_of(server, "carol").recover() == []
    assert server.vhost.branches.views() == before
    assert ann.recover() == ([b"branch"] if prepared else [])


def test_branch_is_open_to_other_sessions_of_its_user_and_to_administrators(server: Server) -> None:
    server.session(b"guest's").declare("b", durable=True)
    ann = branches_of(server, "ann")
    ann.start()
    ann.publish(b"1")
    ann.end()
    ann.prepare()
    server.restart()
    again = Branches(server.session(b"again", user="ann", password="secret"))
    assert again.recover() == [b"branch"]
    manager = branches_of(server, "manager", "administrator")
    assert manager.recover() == [b"branch"]
    assert manager.commit() is OK
    assert len(server.vhost.queues["b"].ready) == 1
