"""Messages that come in several transfers (message.fragment-properties)."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.amqp_0_10.driver import Server, Session
from fakeamqp.protocols.amqp_0_10.codec import commands as x, structs

TO_Q = structs.DeliveryProperties(routing_key="q", priority=3)
FIRST, FURTHER, LAST, WHOLE = (True, False), (False, False), (False, True), (True, True)


@pytest.fixture
def session(session: Session) -> Session:
    session.declare("q")
    return session


def fragment(
    session: Session,
    body: bytes,
    place: tuple[bool, bool],
    *more: structs.Struct,
    size: int | None = None,
    exchange: str | None = None,
    accept_mode: int = 1,
) -> int:
    header = [structs.FragmentProperties(*place, fragment_size=size), *more]
    command = x.MessageTransfer(destination=exchange, accept_mode=accept_mode)
    return session.send(command, header=header, body=body)


def refused(session: Session, code: int, body: bytes, place: tuple[bool, bool], **more: Any) -> None:
    header = [structs.FragmentProperties(*place, **more), TO_Q]
    session.fails(x.MessageTransfer(accept_mode=1), code, header=header, body=body)


@pytest.mark.rule("0-10/message.fragment-properties/one-message")
def test_fragments_are_one_message(session: Session) -> None:
    session.subscribe()
    fragment(session, b"one ", FIRST, TO_Q)
    fragment(session, b"two ", FURTHER)
    fragment(session, b"three", LAST)
    (transfer,) = session.transfers()
    assert transfer.body == b"one two three"
    assert transfer.find(structs.FragmentProperties) is None


@pytest.mark.rule("0-10/message.fragment-properties/first-carries-properties")
def test_only_the_first_says_what_the_message_is(session: Session) -> None:
    session.declare("other")
    session.subscribe()
    fragment(session, b"1", FIRST, TO_Q, structs.MessageProperties(content_type="text/first"))
    lie = structs.DeliveryProperties(routing_key="other", priority=9)
    fragment(session, b"2", FURTHER, lie, structs.MessageProperties(content_type="text/second"))
    fragment(session, b"3", LAST)
    (transfer,) = session.transfers()
    assert (transfer.delivery.routing_key, transfer.delivery.priority) == ("q", 3)
    assert transfer.message.content_type == "text/first"


@pytest.mark.rule("0-10/message.fragment-properties/same-client")
def test_one_subscriber_gets_all_of_a_message(session: Session) -> None:
    session.subscribe(destination="a")
    session.subscribe(destination="b")
    for _ in range(2):
        fragment(session, b"one ", FIRST, TO_Q)
        fragment(session, b"two", LAST)
    got = [(each.command.destination, each.body) for each in session.transfers()]
    assert got == [("a", b"one two"), ("b", b"one two")]


@pytest.mark.rule("0-10/message.fragment-properties/pre-acquired-complete")
@pytest.mark.parametrize("acquire_mode", [0, 1])
def test_nothing_is_delivered_before_all_is_there(session: Session, acquire_mode: int) -> None:
    session.subscribe(acquire_mode=acquire_mode)
    fragment(session, b"one ", FIRST, TO_Q)
    session.expect_nothing()
    assert session.query().message_count == 0
    fragment(session, b"two", LAST)
    assert session.bodies() == [b"one two"]


@pytest.mark.rule("0-10/message.fragment-properties/first-last-default")
def test_without_the_struct_a_transfer_is_a_whole_message(session: Session) -> None:
    session.subscribe()
    session.publish(b"whole")
    fragment(session, b"whole as well", WHOLE, TO_Q)
    first, second = session.transfers()
    assert (first.body, second.body) == (b"whole", b"whole as well")
    assert second.find(structs.FragmentProperties) is None


def test_a_struct_with_neither_flag_is_a_part_from_the_middle(session: Session) -> None:
    refused(session, 409, b"middle", FURTHER)


@pytest.mark.rule("0-10/message.fragment-properties/fragment-size")
def test_a_fragment_may_state_its_size(session: Session) -> None:
    session.subscribe()
    fragment(session, b"one ", FIRST, TO_Q, size=4)
    fragment(session, b"two", LAST, size=3)
    assert session.bodies() == [b"one two"]


def test_a_size_that_is_wrong_is_refused(session: Session) -> None:
    refused(session, 531, b"four", FIRST, fragment_size=5)


def test_whole_messages_and_other_commands_may_come_in_between(session: Session) -> None:
    session.subscribe()
    fragment(session, b"one ", FIRST, TO_Q)
    session.publish(b"whole")
    assert session.query().message_count == 0
    fragment(session, b"two", LAST)
    assert session.bodies() == [b"whole", b"one two"]


def test_messages_to_several_exchanges_may_be_under_way(session: Session) -> None:
    session.bind("q", "amq.fanout")
    session.subscribe()
    fragment(session, b"default ", FIRST, TO_Q)
    fragment(session, b"fanout ", FIRST, TO_Q, exchange="amq.fanout")
    fragment(session, b"exchange", LAST)
    fragment(session, b"exchange", LAST, exchange="amq.fanout")
    assert session.bodies() == [b"default exchange", b"fanout exchange"]


def test_messages_of_several_sessions_are_kept_apart(session: Session) -> None:
    other = session.client.server.session(b"other")
    session.subscribe()
    for each, name in ((session, b"this "), (other, b"that ")):
        fragment(each, name, FIRST, TO_Q)
    for each in (other, session):
        fragment(each, b"one", LAST)
    assert session.bodies() == [b"that one", b"this one"]


def test_a_message_cannot_begin_within_another(session: Session) -> None:
    fragment(session, b"one ", FIRST, TO_Q)
    refused(session, 409, b"one ", FIRST)
    assert session.client.session(b"new").query().message_count == 0


def test_a_message_without_an_end_is_forgotten_with_its_session(session: Session) -> None:
    fragment(session, b"one ", FIRST, TO_Q)
    session.detach()
    new = session.client.session()
    refused(new, 409, b"two", LAST)


@pytest.mark.parametrize("exchanges", [("", ""), ("", "amq.fanout")])
def test_all_that_is_under_way_counts_for_what_is_too_large(
    lenient: Server, exchanges: tuple[str, str]
) -> None:
    session = lenient.session()
    half = bytes(lenient.state.personality.largest_message // 2 + 1)
    fragment(session, half, FIRST, TO_Q, exchange=exchanges[0])
    place = FURTHER if exchanges[0] == exchanges[1] else FIRST
    command = x.MessageTransfer(destination=exchanges[1], accept_mode=1)
    session.fails(command, 506, header=[structs.FragmentProperties(*place)], body=half)


def test_the_publisher_is_told_of_all_fragments_at_once(spec: Server) -> None:
    session = spec.session()
    session.declare("q")
    ids = [fragment(session, b"one ", FIRST, TO_Q, accept_mode=0)]
    session.publish()
    session.expect_nothing()
    ids.append(fragment(session, b"two", LAST, accept_mode=0))
    assert list(session.news(x.MessageAccept).transfers or ()) == ids


def test_a_message_belongs_to_the_transaction_that_its_end_comes_in(session: Session) -> None:
    session.call(x.TxSelect())
    fragment(session, b"one ", FIRST, TO_Q)
    session.call(x.TxRollback())
    fragment(session, b"two", LAST)
    assert session.query().message_count == 0
    session.call(x.TxCommit())
    assert session.query().message_count == 1


def test_an_unroutable_message_in_fragments(spec: Server) -> None:
    session = spec.session()
    lost = structs.DeliveryProperties(routing_key="nobody")
    ids = [fragment(session, b"one ", FIRST, lost, accept_mode=0)]
    ids.append(fragment(session, b"two", LAST, accept_mode=0))
    assert list(session.news(x.MessageReject).transfers or ()) == ids
