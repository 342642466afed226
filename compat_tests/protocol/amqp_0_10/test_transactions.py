from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_10 import Client, Server, Session
from compat_tests.tools.matrix import rows
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c, structs
from fakeamqp.protocols.amqp_0_10.codec.constants import AcceptMode, DeliveryMode
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet

rule = pytest.mark.rule

SELECT = x.TxSelect()
COMMIT = x.TxCommit()
ROLLBACK = x.TxRollback()


def select(session: Session) -> Session:
    session.call(SELECT)
    return session


def take(session: Session, queue: str = "q", destination: str = "d") -> int:
    """Subscribe for one message, and answer with the id of its transfer."""
    session.subscribe(queue, destination, credit=1, accept_mode=AcceptMode.EXPLICIT, acquire_mode=0)
    return session.transfer().id


def ready(server: Server, queue: str = "q") -> list[bytes]:
    return [each.message.body for each in server.vhost.queues[queue].ready]


def unacked(server: Server, queue: str = "q") -> int:
    return len(server.vhost.queues[queue].unacked)


@pytest.fixture
def other(server: Server) -> Session:
    """A session on a connection of its own."""
    return server.session(b"other")


# --- the class ----------------------------------------------------------------------------------------------
@rule("0-10/tx.select/required-before", "0-10/tx/optional")
def test_commit_and_rollback_succeed_after_tx_select(session: Session) -> None:
    for command in (SELECT, COMMIT, ROLLBACK):
        assert session.call(command) is None


def _without_select(command: str) -> list[pytest.MarkDecorator]:
    return [
        rule(f"0-10/tx.{command}/select-required#raises", f"0-10/tx.{command}/select-required#code"),
        pytest.mark.deviates(f"0-10/tx.{command}/select-required#code"),
    ]


@rows(
    "command",
    pytest.param(COMMIT, marks=_without_select("commit")),
    pytest.param(ROLLBACK, marks=_without_select("rollback")),
)
@pytest.mark.parametrize(("personality", "code"), [("rabbitmq-4.3", 503), ("spec", 409)])
def test_tx_commit_or_rollback_without_select_fails(command: x.TxCommit, personality: str, code: int) -> None:
    Server(personality).session().fails(command, code)


@rule("0-10/tx.select/exactly-once")
def test_spec_personality_refuses_second_tx_select_with_illegal_state(spec: Server) -> None:
    session = spec.session()
    exception = select(session).fails(SELECT, 409)
    assert exception.description == "the session is selected for tx already"


@pytest.mark.deviates("0-10/tx.select/exactly-once")
def test_default_personality_allows_second_tx_select_and_keeps_pending_work(lenient: Server) -> None:
    session = lenient.session().declare()
    select(session).publish(b"one")
    select(session).publish(b"two").call(COMMIT)
    assert ready(lenient) == [b"one", b"two"]


@rule("0-10/tx.select/no-dtx")
def test_spec_personality_refuses_tx_select_in_distributed_transaction(spec: Server) -> None:
    session = spec.session().perform(x.DtxSelect())
    session.perform(x.DtxStart(xid=structs.Xid(0, b"g", b"b"))).fails(SELECT, 409)


@pytest.mark.deviates("0-10/tx.select/no-dtx")
def test_default_personality_allows_local_and_distributed_transactions_together(lenient: Server) -> None:
    session = lenient.session().declare().perform(x.DtxSelect())
    xid = structs.Xid(0, b"g", b"b")
    session.perform(x.DtxStart(xid=xid))
    select(session).publish(b"distributed").perform(x.DtxEnd(xid=xid))
    session.publish(b"local").call(COMMIT)
    assert ready(lenient) == [b"local"]


@rule("0-10/tx.select/explicit-accepts#subscribe", "0-10/tx.select/explicit-accepts#select")
def test_spec_personality_requires_explicit_accept_mode_in_transactional_session(spec: Server) -> None:
    one = select(spec.session(b"1").declare())
    one.fails(x.MessageSubscribe(queue="q", destination="d", accept_mode=1, acquire_mode=0), 530)
    two = spec.session(b"2")
    two.perform(x.MessageSubscribe(queue="q", destination="d", accept_mode=1, acquire_mode=0))
    two.fails(SELECT, 530)
    three = spec.session(b"3")
    three.perform(x.MessageSubscribe(queue="q", destination="d", accept_mode=0, acquire_mode=0))
    select(three).perform(x.MessageSubscribe(queue="q", destination="e", accept_mode=0, acquire_mode=0))


@pytest.mark.deviates("0-10/tx.select/explicit-accepts#subscribe", "0-10/tx.select/explicit-accepts#select")
@pytest.mark.parametrize("selected", ["before", "after"])
def test_default_personality_allows_subscription_without_explicit_accept_mode_in_transaction(
    lenient: Server, selected: str
) -> None:
    session = lenient.session().declare()
    if selected == "before":
        select(session)
    session.subscribe("q", accept_mode=1, acquire_mode=0)
    if selected == "after":
        select(session)
    session.publish(b"m").call(COMMIT)
    assert session.bodies() == [b"m"]


# --- commit -------------------------------------------------------------------------------------------------
@rule("0-10/tx.commit/scope#transfers", "0-10/tx.commit/scope#accepts")
def test_commit_applies_transfers_and_accepts(server: Server, session: Session, other: Session) -> None:
    session.declare().publish(b"old")
    select(session)
    id_ = take(session)
    session.accept(id_).publish(b"new")
    assert ready(server) == []
    assert unacked(server) == 1
    session.call(COMMIT)
    assert unacked(server) == 0
    assert other.subscribe("q", accept_mode=0, acquire_mode=0).bodies() == [b"new"]


@rule("0-10/tx.commit/new-transaction", "0-10/tx.rollback/new-transaction")
def test_next_transaction_starts_after_commit_and_after_rollback(server: Server, session: Session) -> None:
    session.declare()
    select(session)
    for body, end in ((b"one", COMMIT), (b"two", ROLLBACK), (b"three", COMMIT)):
        session.publish(body).call(end)
    assert ready(server) == [b"one", b"three"]


@rule("0-10/tx.commit/after-predecessors")
def test_commit_is_not_completed_before_its_transfers(client: Client) -> None:
    session = client.session().declare()
    first = select(session).next_id
    header = [structs.DeliveryProperties(routing_key="q")]
    octets = b"".join(
        client.command_bytes(x.MessageTransfer(accept_mode=1), header=header, body=b"%d" % number)
        for number in range(5)
    )
    octets += client.command_bytes(COMMIT, sync=True)
    # However the bytes are cut, the commit is not completed alone.
    completed = SequenceSet()
    for start in range(0, len(octets), 11):
        client.send_bytes(octets[start : start + 11])
        for each in client.inbox:
            if isinstance(each.what, c.SessionCompleted) and each.what.commands is not None:
                completed.update(each.what.commands)
        client.inbox.clear()
        if first + 5 in completed:
            break
    assert all(number in completed for number in range(first, first + 6))


@rule("0-10/tx.commit/publish-modes")
def test_transfers_of_any_accept_mode_are_committed(server: Server, session: Session) -> None:
    session.declare()
    select(session)
    for mode in (AcceptMode.NONE, AcceptMode.EXPLICIT):
        session.publish(mode.name.encode(), accept_mode=mode)
    assert ready(server) == []
    session.call(COMMIT)
    assert ready(server) == [b"NONE", b"EXPLICIT"]


def test_message_in_transaction_is_routed_at_publish_not_at_commit(server: Server, session: Session) -> None:
    session.declare_exchange("e", "fanout")
    for queue in ("bound", "late", "gone"):
        session.declare(queue)
    session.bind("bound", "e").bind("gone", "e")
    select(session).publish(b"m", exchange="e").bind("late", "e").perform(x.QueueDelete(queue="gone"))
    session.call(COMMIT)
    assert ready(server, "bound") == [b"m"]
    assert ready(server, "late") == []


def test_commit_of_publish_to_full_queue_fails_and_has_no_effect(session: Session, other: Session) -> None:
    for queue, arguments in (("full", {"x-max-length": 0, "x-overflow": "reject-publish"}), ("q", {})):
        session.server.vhost.queues.declare(queue, QueueDeclaration(durable=True, arguments=arguments))
    other.publish(b"old")
    select(session).accept(take(session)).publish(b"new")
    exception = session.publish(b"new", key="full").fails(COMMIT, 506)
    assert exception.description == "queue 'full' cannot take all messages of the transaction"
    assert ready(session.server) == [b"old"]
    assert ready(session.server, "full") == []


# --- rollback -----------------------------------------------------------------------------------------------
@rule("0-10/tx.rollback/discards#transfers", "0-10/tx.rollback/discards#accepts")
def test_rollback_discards_transfers_and_accepts(server: Server, session: Session) -> None:
    session.declare().publish(b"old")
    select(session).accept(take(session)).publish(b"new").call(ROLLBACK)
    assert ready(server) == []
    assert unacked(server) == 1
    session.call(COMMIT)
    assert unacked(server) == 1


@rule("0-10/tx.rollback/completes-all#transfers", "0-10/tx.rollback/completes-all#accepts")
def test_rolled_back_commands_are_completed_no_later_than_rollback(session: Session) -> None:
    session.declare().publish(b"old")
    select(session)
    id_ = take(session)
    session.client.inbox.clear()
    ids = [session.transfer_id(b"new"), session.send(x.MessageAccept(transfers=SequenceSet.of(id_)))]
    ids.append(session.send(ROLLBACK, sync=True))
    completed = SequenceSet()
    for each in session.client.inbox:
        assert isinstance(each.what, c.SessionCompleted)
        assert each.what.commands is not None
        assert ids[-1] not in each.what.commands or all(number in each.what.commands for number in ids)
        completed.update(each.what.commands)
    assert all(number in completed for number in ids)


@rule("0-10/tx.rollback/stay-acquired#acquired", "0-10/tx.rollback/stay-acquired#accept")
@rule("0-10/tx.rollback/stay-acquired#release")
def test_accepted_message_stays_acquired_after_rollback_and_can_be_settled_again(
    server: Server, session: Session, other: Session
) -> None:
    session.declare()
    for body in (b"1", b"2", b"3"):
        session.publish(body)
    select(session).subscribe("q", accept_mode=0, acquire_mode=0)
    ids = [each.id for each in session.transfers()]
    session.accept(ids[2], ids[0], ids[1]).call(ROLLBACK)
    assert other.subscribe("q", accept_mode=0, acquire_mode=0).bodies() == []
    session.perform(x.MessageStop(destination="d")).release(ids[0])
    assert other.bodies() == [b"1"]
    session.accept(ids[1]).call(COMMIT)
    assert [each.queued.message.body for each in server.vhost.queues["q"].unacked] == [b"3", b"1"]


@rule("0-10/tx.rollback/discards#transfers", "0-10/tx.rollback/discards#accepts")
@pytest.mark.parametrize("end", ["detach", "drop", "exception"])
def test_end_of_session_rolls_back_transaction(session: Session, other: Session, end: str) -> None:
    other.declare().publish(b"old")
    select(session).accept(take(session)).publish(b"new")
    if end == "detach":
        session.detach()
    elif end == "drop":
        session.client.drop()
    else:
        session.fails(x.MessageCancel(destination="nobody"), 404)
    assert ready(session.server) == [b"old"]
    assert unacked(session.server) == 0


@rule("0-10/tx.rollback/stay-acquired#acquired")
@pytest.mark.parametrize("end", [ROLLBACK, COMMIT])
def test_accepted_message_may_be_released_before_end(lenient: Server, end: x.TxCommit | x.TxRollback) -> None:
    """As qpid.messaging does, which then rolls back."""
    session = lenient.session().declare()
    for body in (b"1", b"2"):
        session.publish(body)
    select(session)
    first, second = take(session, "q", "d"), take(session, "q", "e")
    session.accept(first, second).release(first, set_redelivered=True)
    assert ready(lenient) == [b"1"]
    session.call(end)
    assert ready(lenient) == [b"1"]
    assert unacked(lenient) == (1 if end is ROLLBACK else 0)


# --- what is no part of it ----------------------------------------------------------------------------------
def test_release_and_reject_in_transaction_take_effect_at_once(server: Server, session: Session) -> None:
    session.declare()
    for body in (b"1", b"2"):
        session.publish(body)
    select(session)
    first, second = take(session, "q", "d"), take(session, "q", "e")
    session.release(first).reject(second)
    assert ready(server) == [b"1"]
    session.call(ROLLBACK)
    assert ready(server) == [b"1"]
    assert unacked(server) == 0


# --- restarts -----------------------------------------------------------------------------------------------
def persistent(session: Session, body: bytes) -> Session:
    return session.publish(body, delivery_mode=DeliveryMode.PERSISTENT)


@pytest.mark.parametrize("crash", [False, True])
def test_restart_keeps_committed_messages_and_rolls_back_the_pending(server: Server, crash: bool) -> None:
    session = select(persistent(server.session().declare(durable=True), b"old"))
    persistent(session, b"committed").call(COMMIT)
    persistent(session, b"pending").accept(take(session))
    server.restart(crash=crash)
    assert ready(server) == [b"old", b"committed"]
