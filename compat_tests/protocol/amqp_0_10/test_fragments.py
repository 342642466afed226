"""Messages that come in several transfers (message.fragment-properties)."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_0_10 import Server, Session
from fakeamqp.protocols.amqp_0_10.codec import commands as x, structs

rule = pytest.mark.rule

TO_Q = structs.DeliveryProperties(routing_key="q", priority=3)
FIRST, FURTHER, LAST, WHOLE = (True, False), (False, False), (False, True), (True, True)


@pytest.fixture
def session(session: Session) -> Session:
    return session.declare("q")


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


@rule("0-10/message.fragment-properties/one-message")
def test_fragments_are_delivered_as_single_message(session: Session) -> None:
    session.subscribe()
    fragment(session, b"one ", FIRST, TO_Q)
    fragment(session, b"two ", FURTHER)
    fragment(session, b"three", LAST)
    (transfer,) = session.transfers()
    assert transfer.body == b"one two three"
    assert transfer.find(structs.FragmentProperties) is None


@rule("0-10/message.fragment-properties/first-carries-properties")
def test_properties_of_message_come_only_from_first_fragment(session: Session) -> None:
    session.declare("other").subscribe()
    fragment(session, b"1", FIRST, TO_Q, structs.MessageProperties(content_type="text/first"))
    lie = structs.DeliveryProperties(routing_key="other", priority=9)
    fragment(session, b"2", FURTHER, lie, structs.MessageProperties(content_type="text/second"))
    fragment(session, b"3", LAST)
    (transfer,) = session.transfers()
    assert (transfer.delivery.routing_key, transfer.delivery.priority) == ("q", 3)
    assert transfer.message.content_type == "text/first"


@rule("0-10/message.fragment-properties/same-client")
def test_all_fragments_of_message_go_to_same_subscriber(session: Session) -> None:
    session.subscribe(destination="a").subscribe(destination="b")
    for _ in range(2):
        fragment(session, b"one ", FIRST, TO_Q)
        fragment(session, b"two", LAST)
    got = [(each.command.destination, each.body) for each in session.transfers()]
    assert got == [("a", b"one two"), ("b", b"one two")]


@rule("0-10/message.fragment-properties/pre-acquired-complete")
@pytest.mark.parametrize("acquire_mode", [0, 1])
def test_no_message_is_delivered_before_its_last_fragment(session: Session, acquire_mode: int) -> None:
    session.subscribe(acquire_mode=acquire_mode)
    fragment(session, b"one ", FIRST, TO_Q)
    session.expect_nothing()
    assert session.query().message_count == 0
    fragment(session, b"two", LAST)
    assert session.bodies() == [b"one two"]


@rule("0-10/message.fragment-properties/first-last-default")
def test_transfer_without_fragment_properties_is_whole_message(session: Session) -> None:
    session.subscribe().publish(b"whole")
    fragment(session, b"whole as well", WHOLE, TO_Q)
    first, second = session.transfers()
    assert (first.body, second.body) == (b"whole", b"whole as well")
    assert second.find(structs.FragmentProperties) is None


def test_middle_fragment_without_first_fragment_fails_with_illegal_state(session: Session) -> None:
    refused(session, 409, b"middle", FURTHER)


@rule("0-10/message.fragment-properties/fragment-size")
def test_fragment_with_correct_fragment_size_is_accepted(session: Session) -> None:
    session.subscribe()
    fragment(session, b"one ", FIRST, TO_Q, size=4)
    fragment(session, b"two", LAST, size=3)
    assert session.bodies() == [b"one two"]


def test_fragment_with_wrong_fragment_size_fails_with_illegal_argument(session: Session) -> None:
    refused(session, 531, b"four", FIRST, fragment_size=5)


def test_whole_messages_and_commands_are_accepted_between_fragments(session: Session) -> None:
    session.subscribe()
    fragment(session, b"one ", FIRST, TO_Q)
    assert session.publish(b"whole").query().message_count == 0
    fragment(session, b"two", LAST)
    assert session.bodies() == [b"whole", b"one two"]


def test_fragmented_messages_to_two_exchanges_may_be_interleaved(session: Session) -> None:
    session.bind("q", "amq.fanout").subscribe()
    fragment(session, b"default ", FIRST, TO_Q)
    fragment(session, b"fanout ", FIRST, TO_Q, exchange="amq.fanout")
    fragment(session, b"exchange", LAST)
    fragment(session, b"exchange", LAST, exchange="amq.fanout")
    assert session.bodies() == [b"default exchange", b"fanout exchange"]


def test_fragmented_messages_of_two_sessions_may_be_interleaved(session: Session) -> None:
    other = session.server.session(b"other")
    session.subscribe()
    for each, name in ((session, b"this "), (other, b"that ")):
        fragment(each, name, FIRST, TO_Q)
    for each in (other, session):
        fragment(each, b"one", LAST)
    assert session.bodies() == [b"that one", b"this one"]


def test_first_fragment_within_unfinished_message_fails_with_illegal_state(session: Session) -> None:
    fragment(session, b"one ", FIRST, TO_Q)
    refused(session, 409, b"one ", FIRST)
    assert session.client.session(b"new").query().message_count == 0


def test_unfinished_fragmented_message_is_dropped_when_its_session_ends(session: Session) -> None:
    fragment(session, b"one ", FIRST, TO_Q)
    session.detach()
    new = session.client.session()
    refused(new, 409, b"two", LAST)


@pytest.mark.parametrize("exchanges", [("", ""), ("", "amq.fanout")])
def test_unfinished_fragments_of_session_count_together_against_largest_message_size(
    lenient: Server, exchanges: tuple[str, str]
) -> None:
    session = lenient.session()
    half = bytes(lenient.state.personality.largest_message // 2 + 1)
    fragment(session, half, FIRST, TO_Q, exchange=exchanges[0])
    place = FURTHER if exchanges[0] == exchanges[1] else FIRST
    command = x.MessageTransfer(destination=exchanges[1], accept_mode=1)
    session.fails(command, 506, header=[structs.FragmentProperties(*place)], body=half)


def test_spec_personality_accepts_all_fragments_together_after_last_fragment(spec: Server) -> None:
    session = spec.session().declare("q")
    ids = [fragment(session, b"one ", FIRST, TO_Q, accept_mode=0)]
    session.publish().expect_nothing()
    ids.append(fragment(session, b"two", LAST, accept_mode=0))
    assert list(session.news(x.MessageAccept).transfers or ()) == ids


def test_fragmented_message_belongs_to_transaction_of_its_last_fragment(session: Session) -> None:
    session.perform(x.TxSelect())
    fragment(session, b"one ", FIRST, TO_Q)
    session.perform(x.TxRollback())
    fragment(session, b"two", LAST)
    assert session.query().message_count == 0
    assert session.perform(x.TxCommit()).query().message_count == 1


def test_spec_personality_rejects_all_fragments_of_unroutable_message_together(spec: Server) -> None:
    session = spec.session()
    lost = structs.DeliveryProperties(routing_key="nobody")
    ids = [fragment(session, b"one ", FIRST, lost, accept_mode=0)]
    ids.append(fragment(session, b"two", LAST, accept_mode=0))
    assert list(session.news(x.MessageReject).transfers or ()) == ids
