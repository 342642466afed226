"""Going on with a message that was broken off (message.resume, resume-id, resume-ttl)."""

from __future__ import annotations

import pytest

from compat_tests.protocol.amqp_0_10.test_fragments import FIRST, FURTHER, LAST, fragment, refused
from compat_tests.scripted.amqp_0_10 import Client, Server, Session
from fakeamqp.model.access import Permission, User
from fakeamqp.protocols.amqp_0_10.codec import commands as x, structs

rule = pytest.mark.rule

ID = "the one"


def properties(ttl: int | None = None, id_: str | None = ID) -> structs.DeliveryProperties:
    return structs.DeliveryProperties(routing_key="q", priority=5, resume_id=id_, resume_ttl=ttl)


@pytest.fixture
def server(server: Server) -> Server:
    server.session(b"declares").declare("q")
    return server


def resume(session: Session, id_: str = ID, destination: str | None = None) -> int | None:
    offset: int | None = session.call(x.MessageResume(destination=destination, resume_id=id_)).offset
    return offset


def begin(server: Server, *header: structs.Struct, body: bytes = b"one ", **login: str) -> Client:
    """A session that has sent the first fragment of a message, and then is no more."""
    session = server.session(b"sends", **login)
    fragment(session, body, FIRST, *(header or (properties(),)))
    session.client.drop()
    return session.client


@rule("0-10/message.resume/offset#amount", "0-10/message.resume/offset#rest")
@rule("0-10/message.delivery-properties/resume-id")
def test_interrupted_message_is_resumed_at_returned_offset(server: Server) -> None:
    begin(server, properties(), structs.MessageProperties(content_type="a/b"))
    session = server.session(b"goes on")
    assert resume(session) == 4
    fragment(session, b"two ", FURTHER)
    fragment(session, b"three", LAST)
    (transfer,) = session.subscribe().transfers()
    assert transfer.body == b"one two three"
    assert (transfer.delivery.priority, transfer.message.content_type) == (5, "a/b")
    assert (transfer.delivery.resume_id, transfer.delivery.resume_ttl) == (None, None)


def test_resumed_message_may_be_interrupted_and_resumed_again(server: Server) -> None:
    begin(server)
    session = server.session(b"second")
    assert resume(session) == 4
    fragment(session, b"two ", FURTHER)
    session.client.drop()
    session = server.session(b"third")
    assert resume(session) == 8
    fragment(session, b"", LAST)
    assert session.subscribe().bodies() == [b"one two "]


@pytest.mark.parametrize("size", [1, 4000, 9000])
def test_transfer_interrupted_in_body_is_resumed_after_last_whole_frame(server: Server, size: int) -> None:
    """What has come of the frames of its body is kept as if it were a fragment."""
    client = server.open(max_frame_size=4096)
    client.session(b"sends")
    body = bytes(range(256)) * 50
    octets = client.command_bytes(x.MessageTransfer(accept_mode=1), header=[properties()], body=body)
    whole = client.command_bytes(x.MessageTransfer(accept_mode=1), header=[properties()], body=b"")
    client.send_bytes(octets[: len(whole) + size]).drop()
    session = server.session(b"goes on")
    offset = resume(session) or 0
    assert offset == size // (4096 - 12) * (4096 - 12)
    if offset:
        fragment(session, body[offset:], LAST)
    else:
        session.publish(body)
    assert session.subscribe().bodies() == [body]


def test_interrupted_fragment_counts_up_to_its_last_whole_frame(server: Server) -> None:
    client = server.open(max_frame_size=4096)
    session = client.session(b"sends")
    fragment(session, b"one ", FIRST, properties())
    further = structs.FragmentProperties(*FURTHER)
    octets = client.command_bytes(x.MessageTransfer(accept_mode=1), header=[further], body=b"x" * 5000)
    client.send_bytes(octets[:-10]).drop()
    assert resume(server.session(b"goes on")) == 4 + 4084


def test_transfer_interrupted_before_its_body_is_resumed_at_offset_zero(server: Server) -> None:
    client = server.open()
    client.session(b"sends")
    octets = client.command_bytes(x.MessageTransfer(accept_mode=1), header=[properties()], body=b"body")
    client.send_bytes(octets[: -4 - 12]).drop()
    assert resume(server.session(b"goes on")) == 0


@rule("0-10/message.resume/resume-id-unknown-resume-id")
def test_message_resume_of_unknown_id_returns_offset_zero(server: Server) -> None:
    session = server.session()
    assert resume(session, "never heard of") == 0
    assert resume(session, "") == 0
    assert session.publish(b"from the beginning").query().message_count == 1


@rule("0-10/message.delivery-properties/resume-ttl#ignored")
def test_interrupted_message_without_resume_id_cannot_be_resumed(server: Server) -> None:
    begin(server, properties(id_=None, ttl=10_000))
    assert resume(server.session()) == 0


@rule("0-10/message.resume/destination-destination-not-found")
def test_message_resume_at_unknown_destination_fails_with_not_found(server: Server) -> None:
    server.session().fails(x.MessageResume(destination="missing", resume_id=ID), 404)


@rule("0-10/message/resume-id")
def test_equal_resume_ids_of_two_users_name_separate_messages(server: Server) -> None:
    server.state.access.add(User("ann", "secret", (), {"/": Permission()}))
    begin(server)
    begin(server, body=b"ann's one ", user="ann", password="secret")
    assert resume(server.session(b"ann", user="ann", password="secret")) == 10
    assert resume(server.session(b"guest")) == 4


@rule("0-10/message.delivery-properties/resume-ttl#kept")
@pytest.mark.parametrize(("waits", "offset"), [(4.9, 4), (5.1, 0)])
def test_interrupted_message_is_kept_for_its_resume_ttl(server: Server, waits: float, offset: int) -> None:
    begin(server, properties(ttl=5000))
    server.advance(waits)
    assert resume(server.session()) == offset


def test_interrupted_message_without_resume_ttl_is_kept_until_restart(server: Server) -> None:
    begin(server)
    server.advance(1_000_000)
    assert resume(server.session()) == 4
    begin(server)
    server.restart()
    assert resume(server.session()) == 0


def test_resumed_message_is_not_available_to_another_session(server: Server) -> None:
    begin(server, properties(ttl=5000))
    session = server.session(b"first")
    assert resume(session) == 4
    assert resume(server.session(b"second")) == 0
    assert resume(session) == 4
    server.advance(10)
    fragment(session, b"two", LAST)
    assert session.query().message_count == 1


def test_later_interrupted_message_replaces_earlier_with_same_resume_id(server: Server) -> None:
    begin(server)
    begin(server, body=b"another ")
    assert resume(server.session()) == 8


def test_resume_ttl_of_replaced_message_does_not_apply(server: Server) -> None:
    begin(server, properties(ttl=5000))
    begin(server)
    server.advance(10)
    assert resume(server.session()) == 4


def test_only_last_100_interrupted_messages_are_kept(server: Server) -> None:
    for number in range(101):
        begin(server, properties(id_=f"{number}"))
    session = server.session()
    assert resume(session, "0") == 0
    assert resume(session, "1", "amq.fanout") == 4
    assert resume(session, "100") == 4


def test_message_resume_during_unfinished_message_fails_with_illegal_state(server: Server) -> None:
    begin(server)
    session = server.session()
    fragment(session, b"other ", FIRST, properties(id_="other"))
    session.fails(x.MessageResume(resume_id=ID), 409)


def test_unfinished_message_of_detached_session_is_resumed_only_by_that_session(server: Server) -> None:
    client = server.open()
    session = client.session(b"lasts", timeout=None)
    fragment(session, b"one ", FIRST, properties())
    client.drop()
    assert resume(server.session(b"other")) == 0
    again = server.open().session(b"lasts", timeout=None, at=1)
    assert resume(again) == 4
    fragment(again, b"two", LAST)
    assert server.session(b"other again").query().message_count == 1


def test_first_fragment_after_message_resume_fails_with_illegal_state(server: Server) -> None:
    begin(server)
    session = server.session()
    assert resume(session) == 4
    refused(session, 409, b"one ", FIRST)


def test_interrupted_transfer_and_unfinished_fragments_of_session_are_both_kept(server: Server) -> None:
    client = server.open(max_frame_size=4096)
    session = client.session(b"sends")
    fragment(session, b"one ", FIRST, properties(id_="fragments"))
    octets = client.command_bytes(x.MessageTransfer(accept_mode=1), header=[properties()], body=b"x" * 5000)
    client.send_bytes(octets[:-10]).drop()
    session = server.session(b"goes on")
    assert resume(session, "fragments") == 4
    assert resume(session, destination="amq.fanout") == 4084
