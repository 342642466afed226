"""Queue arguments of Apache's brokers, as sessions see them. What each does is tested without a protocol."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_10 import Server, Session
from fakeamqp.protocols.amqp_0_10.codec import commands as x, structs


@pytest.fixture
def session(lenient: Server) -> Session:
    return lenient.session()


def exists(session: Session) -> bool:
    return session.query().queue == "q"


def test_queue_query_returns_qpid_argument_as_declared(session: Session) -> None:
    session.declare(arguments={"qpid.max_count": "3"})
    assert (session.query().arguments or {})["qpid.max_count"] == "3"


def test_transfer_above_qpid_max_count_fails_with_506(session: Session) -> None:
    session.declare(arguments={"qpid.max_count": 1}).publish(b"1")
    command = x.MessageTransfer()
    header = [structs.DeliveryProperties(routing_key="q")]
    session.fails(command, 506, header=header, body=b"2")


def test_qpid_ring_policy_drops_oldest_message_above_max_count(session: Session) -> None:
    session.declare(arguments={"qpid.max_count": 2, "qpid.policy_type": "ring"})
    for body in (b"1", b"2", b"3"):
        session.publish(body)
    assert session.subscribe().bodies() == [b"2", b"3"]


def test_qpid_queue_msg_sequence_numbers_messages_in_header(session: Session) -> None:
    session.declare(arguments={"qpid.queue_msg_sequence": "n"}).publish(b"1")
    session.publish(b"2", message=structs.MessageProperties(application_headers={"h": "x"}, app_id=b"a"))
    first, second = session.subscribe().transfers()
    assert first.message.application_headers == {"n": 1}
    assert (second.message.application_headers, second.message.app_id) == ({"h": "x", "n": 2}, b"a")


def test_no_local_queue_drops_messages_published_over_connection_of_owner(lenient: Server) -> None:
    client = lenient.open()
    owner, beside = client.session(b"owner"), client.session(b"beside", channel=1)
    owner.declare("q", exclusive=True, auto_delete=True, arguments={"no-local": "true"})
    owner.subscribe().publish(b"own")
    beside.publish(b"beside")
    client.inbox.clear()  # Completions.
    lenient.session(b"other").publish(b"other")
    lenient.client().fill("q", b"of 0-9-1")
    assert owner.bodies() == [b"other", b"of 0-9-1"]
    assert owner.query().message_count == 0


def test_qpid_auto_delete_timeout_keeps_queue_after_its_session_ends(lenient: Server) -> None:
    owner = lenient.session(b"owner")
    owner.declare("q", exclusive=True, auto_delete=True, arguments={"qpid.auto_delete_timeout": 3})
    owner.publish(b"kept").detach()
    other = lenient.session(b"other")
    assert other.after(2.9).query().message_count == 1
    lenient.advance(0.2)
    assert not exists(other)


def test_message_group_stays_with_session_until_session_ends(lenient: Server) -> None:
    first, second = lenient.session(b"first"), lenient.session(b"second")
    first.declare("q", arguments={"qpid.group_header_key": "g", "qpid.shared_msg_group": 1})
    for body in (b"a1", b"a2", b"b1"):
        first.publish(body, message=structs.MessageProperties(application_headers={"g": body[:1].decode()}))
    assert first.subscribe(credit=1).bodies() == [b"a1"]
    assert second.subscribe().bodies() == [b"b1"]
    first.detach()
    again = second.transfers()
    assert [(each.body, each.redelivered) for each in again] == [(b"a1", True), (b"a2", False)]


def test_qpid_arguments_of_queue_declared_by_0_9_1_are_ignored(lenient: Server) -> None:
    lenient.client().declare("q", arguments={"qpid.max_count": "none"}).fill("q", b"1")
    assert lenient.session().query().message_count == 1
