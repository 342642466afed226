"""message.subscribe and message.cancel: who takes what, on what terms, for how long."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_0_10 import Client, Server, Session
from compat_tests.tools.matrix import marked_rows
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet

rule = pytest.mark.rule


@pytest.fixture
def session(session: Session) -> Session:
    return session.declare("q")


@pytest.fixture
def other(server: Server) -> Session:
    """A session on another connection to the same broker as `client` and `session`."""
    return server.session(b"other")


def ended(session: Session, code: int) -> x.ExecutionException:
    """The session was ended by an exception that no command of its own is to blame for."""
    exception = session.news(x.ExecutionException)
    assert (exception.error_code, exception.command_id) == (code, None)
    session.news(c.SessionDetach)
    session.client.send(c.SessionDetached(name=session.name), session.channel)
    return exception


# --- what is refused ---------------------------------------------------------------------------------
@rule("0-10/message.subscribe/queue-not-found")
def test_message_subscribe_to_missing_queue_fails_with_not_found(session: Session) -> None:
    session.fails(x.MessageSubscribe(queue="missing", destination="d"), 404)


@rule("0-10/message.subscribe/empty-queue-name")
@pytest.mark.parametrize("name", ["", None])
@pytest.mark.parametrize(("personality", "code"), [("rabbitmq-4.2", 531), ("spec", 542)])
def test_message_subscribe_without_queue_name_fails(name: str | None, personality: str, code: int) -> None:
    exception = Server(personality).session().fails(x.MessageSubscribe(queue=name, destination="d"), code)
    assert exception.field_index == 0


@rule("0-10/message.subscribe/destination-unique-subscriber-destination")
def test_message_subscribe_with_destination_in_use_fails_with_not_allowed(session: Session) -> None:
    session.subscribe().fails(x.MessageSubscribe(queue="q", destination="d"), 530)


@rule("0-10/message.subscribe/destination-scope")
def test_two_sessions_may_use_same_destination(session: Session, other: Session) -> None:
    for each in (session, other):
        each.subscribe(credit=1).publish()
    assert [len(each.transfers()) for each in (session, other)] == [1, 1]


@marked_rows(
    "first, second",
    (rule("0-10/message.subscribe/exclusive-in-use"), False, True),
    (rule("0-10/message.subscribe/exclusive-blocks"), True, False),
)
@pytest.mark.parametrize("same", [True, False])
def test_subscription_beside_another_fails_with_resource_locked_if_one_is_exclusive(
    session: Session, other: Session, first: bool, second: bool, same: bool
) -> None:
    session.subscribe(exclusive=first)
    asking = session if same else other
    asking.fails(x.MessageSubscribe(queue="q", destination="too", exclusive=second), 405)


def test_queue_and_destination_are_free_after_exclusive_cancel(session: Session, other: Session) -> None:
    for each in (session, session, other):
        each.subscribe(exclusive=True).perform(x.MessageCancel(destination="d"))


def test_message_subscribe_to_exclusive_queue_of_another_session_fails_with_resource_locked(
    session: Session, other: Session
) -> None:
    session.declare("mine", exclusive=True)
    other.fails(x.MessageSubscribe(queue="mine", destination="d"), 405)


@rule("0-10/message.subscribe/simultaneous-subscriptions")
def test_fifty_subscriptions_share_queue(session: Session) -> None:
    for number in range(50):
        session.subscribe(destination=f"d{number}", credit=1)
    assert session.query().subscriber_count == 50
    for _ in range(50):
        session.publish()
    assert len({each.command.destination for each in session.transfers()}) == 50


@rule("0-10/message.subscribe/arguments")
def test_unknown_subscription_arguments_are_ignored(session: Session) -> None:
    assert session.subscribe(arguments={"nobody-knows": 1}).publish().bodies() == [b"body"]


def test_subscription_with_higher_x_priority_receives_message_first(session: Session) -> None:
    session.subscribe(destination="low", arguments={"x-priority": -1})
    session.subscribe(destination="high", arguments={"x-priority": 5})
    assert session.publish().transfer().command.destination == "high"


@rule("0-10/message.subscribe/resume-fields")
@pytest.mark.parametrize("redelivered", [True, False])
def test_transfers_carry_resume_id_and_ttl_of_subscription(session: Session, redelivered: bool) -> None:
    session.publish(priority=4, redelivered=redelivered).subscribe(resume_id="how", resume_ttl=5000)
    (transfer,) = session.subscribe(destination="without", acquire_mode=1).transfers()
    assert (transfer.delivery.resume_id, transfer.delivery.resume_ttl) == ("how", 5000)
    assert (transfer.delivery.priority, transfer.redelivered) == (4, redelivered)


@pytest.mark.parametrize("octets", ["exact", "short"])
def test_resume_id_of_transfer_counts_as_byte_credit(session: Session, octets: str) -> None:
    (measured,) = session.publish().subscribe(destination="measure", credit=1, resume_id="how").transfers()
    session.release(measured.id)
    credit = measured.cost - (octets == "short")
    session.subscribe(destination="d", octets=credit, resume_id="how")
    assert len(session.transfers()) == (1 if octets == "exact" else 0)


# --- how long it lasts -------------------------------------------------------------------------------
@rule("0-10/message.subscribe/lifetime#session")
def test_subscription_ends_with_its_session(session: Session, other: Session) -> None:
    session.subscribe()
    assert other.query().subscriber_count == 1
    session.detach()
    assert other.query().subscriber_count == 0


def test_detached_session_keeps_its_subscription_until_timeout(server: Server, other: Session) -> None:
    other.declare("q")
    client = server.open()
    client.session(b"kept", timeout=60).subscribe()
    client.drop()
    assert other.query().subscriber_count == 1
    assert other.publish().query().message_count == 1  # Nothing is sent where there is no transport.
    assert other.after(61).query().subscriber_count == 0


def test_session_attached_to_new_transport_continues_to_receive_messages(other: Session) -> None:
    client = other.declare("q").server.open()
    client_commands = client.session(b"moves", timeout=60).subscribe().next_id
    client.drop()
    new = other.publish().server.open(max_frame_size=4096).session(b"moves", channel=7, at=client_commands)
    assert new.bodies() == [b"body"]
    other.publish(b"x" * 10_000)
    assert new.bodies() == [b"x" * 10_000]


# --- queues that go ----------------------------------------------------------------------------------
@rule("0-10/execution.exception/correlates#unknown", "0-10/message.subscribe/queue-deletion#credit")
def test_deletion_of_queue_ends_session_of_subscriber_with_408(session: Session, other: Session) -> None:
    session.subscribe()
    other.perform(x.QueueDelete(queue="q"))
    exception = ended(session, 408)
    assert "'q'" in (exception.description or "")


@rule("0-10/message.subscribe/queue-deletion#no-credit")
def test_spec_ends_session_of_subscriber_without_credit_when_queue_is_deleted(spec: Server) -> None:
    session, other = spec.session(b"one"), spec.session(b"other")
    session.declare("q").subscribe(credit=None, octets=None)
    other.perform(x.QueueDelete(queue="q"))
    ended(session, 408)


@pytest.mark.deviates("0-10/message.subscribe/queue-deletion#no-credit")
def test_default_personality_reports_deleted_queue_when_subscriber_grants_credit(lenient: Server) -> None:
    session, other = lenient.session(b"one"), lenient.session(b"other")
    session.declare("q").subscribe(credit=None)
    other.perform(x.QueueDelete(queue="q"))
    session.expect_nothing()
    session.perform(x.MessageFlush(destination="d"))
    session.flow(5, unit=1).fails(x.MessageFlow(destination="d", value=1), 408)


def test_default_personality_allows_cancel_of_subscription_to_deleted_queue(lenient: Server) -> None:
    session, other = lenient.session(b"one"), lenient.session(b"other")
    session.declare("q").subscribe(credit=None)
    other.perform(x.QueueDelete(queue="q"))
    session.perform(x.MessageCancel(destination="d")).declare("q").subscribe()


def test_deletion_of_own_subscribed_queue_is_completed_before_session_ends(session: Session) -> None:
    session.subscribe().client.inbox.clear()
    id_ = session.send(x.QueueDelete(queue="q"), sync=True)
    assert id_ in (session.expect(c.SessionCompleted).commands or ())
    ended(session, 408)


def test_unaccepted_message_of_deleted_queue_goes_to_its_alternate_exchange(other: Session) -> None:
    session = other.server.session()
    other.declare("rest").bind("rest", "amq.fanout")
    session.declare("main", alternate_exchange="amq.fanout")
    for body in (b"1", b"2"):
        session.publish(body, key="main")
    assert session.subscribe("main", credit=1).bodies() == [b"1"]
    assert other.perform(x.QueueDelete(queue="main")).subscribe("rest").bodies() == [b"1", b"2"]


# --- cancel ------------------------------------------------------------------------------------------
@rule("0-10/message.cancel/destination-subscription-not-found")
def test_message_cancel_of_unknown_destination_fails_with_not_found(session: Session) -> None:
    session.fails(x.MessageCancel(destination="nope"), 404)


@rule("0-10/message.subscribe/lifetime#cancelled", "0-10/message.cancel/stops")
def test_no_message_is_delivered_after_message_cancel(session: Session, other: Session) -> None:
    session.subscribe(accept_mode=1)
    other.publish(b"before")
    assert session.bodies() == [b"before"]
    session.perform(x.MessageCancel(destination="d"))
    other.publish()
    session.expect_nothing()
    assert other.query().message_count == 1
    assert other.query().subscriber_count == 0


@rule("0-10/message.cancel/post-cancel-transfer-resolution#accept")
@rule("0-10/message.cancel/post-cancel-transfer-resolution#release")
@rule("0-10/message.cancel/post-cancel-transfer-resolution#acquire")
@rule("0-10/message.cancel/post-cancel-transfer-resolution#reject")
def test_transfers_received_before_cancel_can_still_be_settled(session: Session, other: Session) -> None:
    for number in range(4):
        session.publish(f"{number}".encode())
    seen = session.subscribe(destination="browser", acquire_mode=1, credit=4).transfers()[3].id
    session.subscribe(credit=3)
    accepted, released, rejected = (each.id for each in session.transfers())
    for destination in ("browser", "d"):
        session.perform(x.MessageCancel(destination=destination))
    session.accept(accepted).release(released)
    assert session.reject(rejected).call(x.MessageAcquire(transfers=SequenceSet.of(seen))).transfers
    assert session.query().message_count == 1
    session.detach()
    assert not session.server.vhost.queues["q"].unacked
    other.subscribe()
    assert [(each.body, each.redelivered) for each in other.transfers()] == [(b"1", False), (b"3", True)]


def test_completion_of_transfer_before_cancel_gives_new_subscription_no_credit(session: Session) -> None:
    (transfer,) = session.publish().subscribe(window=True, credit=1).transfers()
    session.perform(x.MessageCancel(destination="d"))
    session.subscribe(window=True, credit=1).completed(transfer.id)
    assert len(session.publish().publish().transfers()) == 1


# --- other types of queues ---------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["quorum", "stream"])
def test_quorum_and_stream_queues_deliver_to_subscriptions(lenient: Server, kind: str) -> None:
    lenient.client().declare("typed", durable=True, arguments={"x-queue-type": kind})
    session = lenient.session()
    arguments: dict[str, Any] = {"x-stream-offset": "first"} if kind == "stream" else {}
    for number in range(3):
        session.publish(f"{number}".encode(), key="typed")
    first, second = session.subscribe("typed", credit=2, window=True, arguments=arguments).transfers()
    assert (first.body, second.body) == (b"0", b"1")
    assert session.accept(first.id).completed(first.id).bodies() == [b"2"]


def test_sessions_of_same_connection_receive_messages_in_turn(client: Client) -> None:
    sessions = [client.session(f"s{number}".encode(), channel=number) for number in range(3)]
    sessions[0].declare("q")
    for each in sessions:
        each.subscribe()
    for _ in range(6):
        sessions[0].publish()
    channels = [each.channel for each in client.inbox if isinstance(each.what, x.MessageTransfer)]
    assert channels == [0, 1, 2] * 2
