"""Looking at messages and taking them (acquire modes, message.acquire)."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_10 import Server, Session
from fakeamqp.protocols.amqp_0_10.codec import commands as x
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet

rule = pytest.mark.rule

BODIES = [b"1", b"2", b"3"]


@pytest.fixture
def session(session: Session) -> Session:
    session.declare("q")
    for body in BODIES:
        session.publish(body)
    return session


def acquire(session: Session, *ids: int) -> list[int]:
    acquired = session.call(x.MessageAcquire(transfers=SequenceSet.of(*ids)))
    assert acquired.transfers is not None, "an empty set is there as well"
    return list(acquired.transfers)


@rule("0-10/message/acquire-pre-acquired")
def test_pre_acquired_messages_are_delivered_to_single_subscription(session: Session) -> None:
    session.subscribe(destination="a").subscribe(destination="b")
    assert [each.command.destination for each in session.transfers()] == ["a"] * 3


@rule("0-10/message/acquire-not-acquired")
def test_message_is_delivered_to_all_browsers_and_leaves_queue_when_acquired(session: Session) -> None:
    for destination in ("a", "b"):
        session.subscribe(destination=destination, acquire_mode=1)
    transfers = session.transfers()
    seen = [(each.command.destination, each.body) for each in transfers]
    assert seen == [(destination, body) for destination in ("a", "b") for body in BODIES]
    assert session.query().message_count == 3
    assert acquire(session, transfers[0].id) == [transfers[0].id]
    assert session.query().message_count == 2


def test_browser_receives_each_later_message_once(session: Session) -> None:
    assert session.subscribe(acquire_mode=1).publish(b"4").bodies() == [*BODIES, b"4"]
    session.flow(10).expect_nothing()
    assert session.query().message_count == 4


@rule("0-10/message/not-acquired-none")
@pytest.mark.deviates("0-10/message/not-acquired-none")
def test_message_browsed_without_explicit_accept_mode_is_not_acquired_by_spec_and_removed_by_default(
    server: Server,
) -> None:
    session = server.session().declare("q").publish()
    (transfer,) = session.subscribe(acquire_mode=1, accept_mode=1).transfers()
    spec = server.is_spec
    assert acquire(session, transfer.id) == ([] if spec else [transfer.id])
    left = 1 if spec else 0
    assert session.query().message_count == left
    session.detach()
    assert session.client.session(b"new").query().message_count == left


@rule("0-10/message.acquire/one-to-one#one", "0-10/message.acquire/one-to-one#empty")
def test_message_acquire_returns_single_result_with_acquired_ids(session: Session) -> None:
    session.subscribe(acquire_mode=1)
    ids = [each.id for each in session.transfers()]
    assert len(ids) == len(BODIES)
    for asked, acquired in ((ids, ids), (ids, []), ([1000], []), ([], [])):
        id_ = session.send(x.MessageAcquire(transfers=SequenceSet.of(*asked)), sync=True)
        results = [each.what for each in session.client.inbox if isinstance(each.what, x.ExecutionResult)]
        session.client.inbox.clear()
        assert [(each.command_id, list(each.value.transfers)) for each in results] == [(id_, acquired)]
    assert list(session.call(x.MessageAcquire()).transfers) == []


@rule("0-10/message.acquire/exclusive-winner")
def test_message_is_acquired_by_single_browser_until_released(session: Session) -> None:
    server = session.server
    other = server.session(b"other")
    for each in (session, other):
        each.subscribe(acquire_mode=1)
    mine, others = session.transfers()[0].id, other.transfers()[0].id
    assert acquire(other, others) == [others]
    assert acquire(session, mine) == []
    other.release(others)
    assert acquire(session, mine) == [mine]


@rule("0-10/message.acquire/not-on-gone")
def test_message_consumed_by_another_subscription_is_not_acquired(session: Session) -> None:
    session.subscribe(acquire_mode=1)
    ids = [each.id for each in session.transfers()]
    (taken,) = session.subscribe(destination="taker", credit=1).transfers()
    session.accept(taken.id)
    assert acquire(session, *ids) == ids[1:]


def test_expired_message_is_not_acquired(server: Server) -> None:
    session = server.session().declare("q").publish(ttl=1000)
    (transfer,) = session.subscribe(acquire_mode=1).transfers()
    server.advance(2)
    assert acquire(session, transfer.id) == []


def test_acquired_messages_can_be_accepted_released_and_rejected(session: Session) -> None:
    session.subscribe(acquire_mode=1)
    one, two, three = (each.id for each in session.transfers())
    acquire(session, one, two, three)
    assert session.accept(one).release(two, set_redelivered=True).reject(three).query().message_count == 1
    (transfer,) = session.subscribe(destination="taker").transfers()
    assert (transfer.body, transfer.redelivered) == (b"2", True)


def test_acquired_messages_are_redelivered_after_session_ends(session: Session) -> None:
    session.subscribe(acquire_mode=1)
    acquire(session, *(each.id for each in session.transfers()))
    session.detach()
    again = session.client.session(b"again").subscribe()
    assert [(each.body, each.redelivered) for each in again.transfers()] == [(body, True) for body in BODIES]


def test_completion_restores_window_credit_of_browser(session: Session) -> None:
    session.subscribe(acquire_mode=1, credit=1, window=True)
    for body in BODIES:
        (transfer,) = session.transfers()
        assert transfer.body == body
        session.completed(transfer.id)


def test_released_transfers_of_browser_are_forgotten(session: Session) -> None:
    session.subscribe(acquire_mode=1)
    ids = [each.id for each in session.transfers()]
    assert len(session.end.ledger.outstanding) == 3
    assert not session.release(*ids).end.ledger.outstanding


def test_session_forgets_browsed_messages_that_left_the_queue(session: Session) -> None:
    first = session.subscribe(destination="browser", acquire_mode=1).transfers()[0]
    (stays,) = session.perform(x.QueuePurge(queue="q")).publish(b"stays").transfers()
    session.server.session(b"other").subscribe(accept_mode=1)
    for number in range(3900):
        session.publish(f"{number}".encode())
    assert len(session.transfers()) == 3900
    assert len(session.end.ledger.outstanding) < 1100
    assert first.id not in session.end.ledger.outstanding
    assert acquire(session, first.id, stays.id) == []
