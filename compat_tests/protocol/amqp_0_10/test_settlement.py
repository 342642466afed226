"""What a client does with what it was sent: accept, reject, release."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_10 import Server, Session, Transfer
from fakeamqp.protocols.amqp_0_10.choices import Amqp010Choices
from fakeamqp.protocols.amqp_0_10.codec import commands as x, structs
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet

rule = pytest.mark.rule

BODIES = [b"1", b"2", b"3", b"4", b"5"]


@pytest.fixture
def session(session: Session) -> Session:
    return session.declare("q")


def fill(session: Session, *bodies: bytes) -> Session:
    for body in bodies or BODIES:
        session.publish(body)
    return session


def taken(session: Session, *bodies: bytes, **arguments: int) -> list[Transfer]:
    """Publish, and receive all of it."""
    fill(session, *bodies).subscribe(**arguments)
    return session.transfers()


def left(session: Session, queue: str = "q") -> list[bytes | None]:
    """What another session gets of the queue."""
    other = session.server.session(b"looks")
    bodies = other.subscribe(queue, accept_mode=1).bodies()
    other.detach()
    return bodies


# --- accept modes ------------------------------------------------------------------------------------
@rule("0-10/message/accept-mode-explicit")
@pytest.mark.parametrize("mode", [0, None])
def test_unaccepted_message_is_requeued_when_session_ends(session: Session, mode: int | None) -> None:
    first, _ = fill(session, b"1", b"2").subscribe(accept_mode=mode).transfers()
    session.accept(first.id).detach()
    assert left(session) == [b"2"]


@rule("0-10/message/accept-mode-none")
def test_messages_without_explicit_accept_mode_are_not_requeued_when_session_ends(session: Session) -> None:
    taken(session, b"1", b"2", accept_mode=1)
    session.detach()
    assert left(session) == []


def test_default_personality_allows_accept_of_transfer_without_explicit_accept_mode(lenient: Server) -> None:
    session = lenient.session().declare("q")
    (transfer,) = taken(session, b"1", accept_mode=1)
    session.accept(transfer.id).accept(transfer.id + 5)


# --- accept ------------------------------------------------------------------------------------------
@rule("0-10/message.accept/ranges", "0-10/message.accept/removes")
def test_message_accept_of_two_ranges_settles_only_those_transfers(session: Session) -> None:
    one, two, _, four, _ = (each.id for each in taken(session))
    accepted = SequenceSet()
    accepted.add_range(one, two)
    accepted.add(four)
    assert len(accepted.ranges) == 2
    session.perform(x.MessageAccept(transfers=accepted)).detach()
    assert left(session) == [b"3", b"5"]


def test_message_accept_of_largest_range_settles_all_transfers(lenient: Server) -> None:
    session = lenient.session().declare("q")
    taken(session)
    session.perform(x.MessageAccept(transfers=SequenceSet.between(0, 0xFFFFFFFF))).detach()
    assert left(session) == []


@rule("0-10/message.accept/final")
@pytest.mark.parametrize("command", [x.MessageAccept, x.MessageRelease, x.MessageReject])
def test_spec_personality_refuses_settling_of_accepted_transfer_with_illegal_state(
    spec: Server, command: type[x.Command]
) -> None:
    session = spec.session().declare("q")
    (transfer,) = taken(session, b"1")
    session.accept(transfer.id).fails(command(transfers=SequenceSet.of(transfer.id)), 409)
    assert left(session) == []


@pytest.mark.deviates("0-10/message.accept/final")
@pytest.mark.parametrize("command", [x.MessageAccept, x.MessageRelease, x.MessageReject])
def test_default_personality_ignores_settling_of_accepted_transfer(
    lenient: Server, command: type[x.Command]
) -> None:
    session = lenient.session().declare("q", alternate_exchange="amq.fanout")
    session.declare("rejected").bind("rejected", "amq.fanout")
    (transfer,) = taken(session, b"1")
    session.accept(transfer.id).perform(command(transfers=SequenceSet.of(transfer.id))).detach()
    assert (left(session), left(session, "rejected")) == ([], [])


@rule("0-10/message.reject/final", "0-10/message.release/final")
@pytest.mark.parametrize("first", [x.MessageReject, x.MessageRelease])
@pytest.mark.parametrize("then", [x.MessageAccept, x.MessageRelease, x.MessageReject])
def test_settling_of_rejected_or_released_transfer_has_no_effect_on_message(
    server: Server, first: type[x.Command], then: type[x.Command]
) -> None:
    """An error by the text; brokers in the field do nothing."""
    session = server.session().declare("q")
    (transfer,) = taken(session, b"1")
    session.perform(x.MessageStop(destination="d"))
    which = SequenceSet.of(transfer.id)
    session.perform(first(transfers=which))
    if server.state.personality.extension(Amqp010Choices).unknown_transfers_are_errors:
        session.fails(then(transfers=which), 409)
    else:
        session.perform(then(transfers=which))
    assert left(session) == ([b"1"] if first is x.MessageRelease else [])


@rule("0-10/message.accept/acquisition")
def test_accept_of_browsed_message_does_not_remove_message(server: Server) -> None:
    session = server.session().declare("q")
    (transfer,) = taken(session, b"1", acquire_mode=1)
    if server.state.personality.extension(Amqp010Choices).unknown_transfers_are_errors:
        session.fails(x.MessageAccept(transfers=SequenceSet.of(transfer.id)), 409)
    else:
        session.accept(transfer.id)
    assert left(session) == [b"1"]


# --- reject ------------------------------------------------------------------------------------------
@rule("0-10/message.reject/alternate-exchange#alternate", "0-10/message/reject-code-unspecified")
@pytest.mark.parametrize("code", [0, 1, 2])
def test_rejected_message_goes_to_alternate_exchange_of_its_queue(session: Session, code: int) -> None:
    session.declare("rejected").bind("rejected", "amq.fanout")
    session.declare("main", alternate_exchange="amq.fanout")
    (transfer,) = session.publish(key="main", priority=4).subscribe("main").transfers()
    session.perform(x.MessageReject(transfers=SequenceSet.of(transfer.id), code=code, text="no thanks"))
    assert session.query("main").message_count == 0
    (again,) = session.subscribe("rejected", "r").transfers()
    assert (again.body, again.delivery) == (transfer.body, transfer.delivery)


@rule("0-10/message.reject/alternate-exchange#discarded")
def test_rejected_message_is_discarded_without_alternate_exchange(session: Session) -> None:
    (transfer,) = taken(session, b"1")
    session.reject(transfer.id).detach()
    assert left(session) == []


@rule("0-10/message.reject/acquisition")
def test_reject_of_browsed_message_does_not_remove_message(session: Session) -> None:
    (transfer,) = taken(session, b"1", acquire_mode=1)
    session.reject(transfer.id).detach()
    assert left(session) == [b"1"]


# --- release -----------------------------------------------------------------------------------------
@rule("0-10/message.release/ordering")
def test_released_messages_keep_their_order_in_queue(session: Session) -> None:
    transfers = fill(session).subscribe(credit=3).transfers()
    assert session.release(*(each.id for each in reversed(transfers))).flow(5).bodies() == BODIES


@rule("0-10/message.release/available")
def test_released_message_is_available_to_another_subscription(session: Session) -> None:
    (transfer,) = fill(session, b"1").subscribe(credit=1).transfers()
    session.subscribe(destination="other").expect_nothing()
    (again,) = session.release(transfer.id).transfers()
    assert (again.command.destination, again.body) == ("other", b"1")


@rule("0-10/message.release/set-redelivered#set", "0-10/message.release/set-redelivered#unchanged")
@rule("0-10/message.transfer/redelivered-on-requeue")
def test_release_can_set_redelivered_mark_but_not_remove_mark(session: Session) -> None:
    marked, not_marked = fill(session, b"marked", b"not marked").subscribe(credit=2).transfers()
    session.release(marked.id, set_redelivered=True)
    marked, not_marked = session.release(not_marked.id).flow(2).transfers()
    assert (marked.redelivered, not_marked.redelivered) == (True, False)
    assert session.release(marked.id).flow(1).transfer().redelivered


@rule("0-10/message.release/not-acquired")
def test_release_of_browsed_message_does_not_set_redelivered(session: Session) -> None:
    (seen,) = taken(session, b"1", acquire_mode=1)
    (transfer,) = session.release(seen.id, set_redelivered=True).subscribe(destination="taker").transfers()
    assert not transfer.redelivered
    assert not session.call(x.MessageAcquire(transfers=SequenceSet.of(seen.id))).transfers


def test_released_message_is_delivered_again_without_delivery_limit(lenient: Server) -> None:
    session = lenient.session().declare("q")
    fill(session, b"1").subscribe(credit=1)
    for _ in range(50):
        (transfer,) = session.transfers()
        session.release(transfer.id).flow(1)
    assert session.bodies() == [b"1"]


# --- queues and subscriptions that have gone -----------------------------------------------------------
@pytest.mark.parametrize("alternate", [None, "amq.fanout"])
def test_settling_transfers_of_deleted_queue_has_no_effect(session: Session, alternate: str | None) -> None:
    """They have gone to its alternate exchange, or are no more."""
    session.bind("q", "amq.fanout").declare("gone", alternate_exchange=alternate)
    for number in range(3):
        session.publish(f"{number}".encode(), key="gone")
    first, second, third = session.subscribe("gone", "g").transfers()
    session.perform(x.MessageCancel(destination="g"))
    session.perform(x.QueueDelete(queue="gone")).accept(first.id).release(second.id)
    assert session.reject(third.id).query().message_count == (3 if alternate else 0)


# --- transactions ------------------------------------------------------------------------------------
def test_accept_takes_effect_at_commit(session: Session) -> None:
    session.perform(x.TxSelect())
    fill(session, b"1", b"2").perform(x.TxCommit())
    first, second = session.subscribe().transfers()
    session.accept(first.id).perform(x.TxCommit()).accept(second.id).detach()
    assert left(session) == [b"2"]


def test_accepted_message_may_be_released_before_rollback(lenient: Server) -> None:
    """qpid.messaging releases all it has had, then rolls back."""
    session = lenient.session().declare("q").perform(x.TxSelect())
    fill(session, b"1", b"2").perform(x.TxCommit())
    first, second = session.subscribe(credit=2).transfers()
    session.accept(first.id).release(first.id, second.id, set_redelivered=True).perform(x.TxRollback())
    session.flow(2)
    assert [(each.body, each.redelivered) for each in session.transfers()] == [(b"1", True), (b"2", True)]


def test_release_in_branch_does_not_undo_accept_of_another_session(lenient: Server) -> None:
    """Both work in one branch, and their transfers have the same ids."""
    xid = structs.Xid(format=1, global_id=b"g", branch_id=b"b")
    one, other = lenient.session(b"one"), lenient.session(b"other")
    transfers = []
    for number, session in enumerate((one, other)):
        queue = f"q{number}"
        session.declare(queue)
        session.publish(key=queue)
        session.call(x.DtxSelect())
        session.call(x.DtxStart(xid=xid, join=number > 0))
        session.subscribe(queue, credit=1)
        transfers += session.transfers()
        session.accept(transfers[-1].id)
    assert transfers[0].id == transfers[1].id
    one.release(transfers[0].id)
    for session in (one, other):
        session.call(x.DtxEnd(xid=xid))
    one.perform(x.DtxCommit(xid=xid, one_phase=True)).detach()
    other.detach()
    assert (left(one, "q0"), left(one, "q1")) == ([b"body"], [])


def test_spec_personality_refuses_release_after_accept_in_transaction(spec: Server) -> None:
    session = spec.session().declare("q")
    fill(session, b"1").perform(x.TxSelect())
    (transfer,) = session.subscribe().transfers()
    session.accept(transfer.id).fails(x.MessageRelease(transfers=SequenceSet.of(transfer.id)), 409)
    assert left(session) == [b"1"]
