"""Going on with a message that was broken off (message.resume, resume-id, resume-ttl)."""

from __future__ import annotations

import pytest

from compat_tests.protocol.amqp_0_10.driver import Client, Server, Session
from compat_tests.protocol.amqp_0_10.test_message_fragments import FIRST, FURTHER, LAST, fragment, refused
from fakeamqp.model.access import Permission, User
from fakeamqp.protocols.amqp_0_10.codec import commands as x, structs

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


@pytest.mark.rule("0-10/message.resume/offset#amount")
@pytest.mark.rule("0-10/message.resume/offset#rest")
@pytest.mark.rule("0-10/message.delivery-properties/resume-id")
def test_a_message_goes_on_where_it_was_broken_off(server: Server) -> None:
    begin(server, properties(), structs.MessageProperties(content_type="a/b"))
    session = server.session(b"goes on")
    assert resume(session) == 4
    fragment(session, b"two ", FURTHER)
    fragment(session, b"three", LAST)
    session.subscribe()
    (transfer,) = session.transfers()
    assert transfer.body == b"one two three"
    assert (transfer.delivery.priority, transfer.message.content_type) == (5, "a/b")
    assert (transfer.delivery.resume_id, transfer.delivery.resume_ttl) == (None, None)


def test_it_may_be_broken_off_again(server: Server) -> None:
    begin(server)
    session = server.session(b"second")
    assert resume(session) == 4
    fragment(session, b"two ", FURTHER)
    session.client.drop()
    session = server.session(b"third")
    assert resume(session) == 8
    fragment(session, b"", LAST)
    session.subscribe()
    assert session.bodies() == [b"one two "]


@pytest.mark.parametrize("size", [1, 4000, 9000])
def test_a_transfer_that_broke_off_within_its_body_goes_on(server: Server, size: int) -> None:
    """What has come of the frames of its body is kept as if it were a fragment."""
    client = server.open(max_frame_size=4096)
    client.session(b"sends")
    body = bytes(range(256)) * 50
    octets = client.command_bytes(x.MessageTransfer(accept_mode=1), header=[properties()], body=body)
    whole = client.command_bytes(x.MessageTransfer(accept_mode=1), header=[properties()], body=b"")
    client.send_bytes(octets[: len(whole) + size])
    client.drop()
    session = server.session(b"goes on")
    offset = resume(session) or 0
    assert offset == size // (4096 - 12) * (4096 - 12)
    if offset:
        fragment(session, body[offset:], LAST)
    else:
        session.publish(body)
    session.subscribe()
    assert session.bodies() == [body]


def test_a_fragment_that_broke_off_counts_as_far_as_it_came(server: Server) -> None:
    client = server.open(max_frame_size=4096)
    session = client.session(b"sends")
    fragment(session, b"one ", FIRST, properties())
    further = structs.FragmentProperties(*FURTHER)
    octets = client.command_bytes(x.MessageTransfer(accept_mode=1), header=[further], body=b"x" * 5000)
    client.send_bytes(octets[:-10])
    client.drop()
    assert resume(server.session(b"goes on")) == 4 + 4084


def test_a_transfer_that_broke_off_before_its_body_is_not_known(server: Server) -> None:
    client = server.open()
    client.session(b"sends")
    octets = client.command_bytes(x.MessageTransfer(accept_mode=1), header=[properties()], body=b"body")
    client.send_bytes(octets[: -4 - 12])
    client.drop()
    assert resume(server.session(b"goes on")) == 0


@pytest.mark.rule("0-10/message.resume/resume-id-unknown-resume-id")
def test_an_unknown_id_has_nothing(server: Server) -> None:
    session = server.session()
    assert resume(session, "never heard of") == 0
    assert resume(session, "") == 0
    session.publish(b"from the beginning")
    assert session.query().message_count == 1


@pytest.mark.rule("0-10/message.delivery-properties/resume-ttl#ignored")
def test_a_message_without_an_id_cannot_be_resumed(server: Server) -> None:
    begin(server, properties(id_=None, ttl=10_000))
    assert resume(server.session()) == 0


@pytest.mark.rule("0-10/message.resume/destination-destination-not-found")
def test_an_unknown_destination_is_not_found(server: Server) -> None:
    server.session().fails(x.MessageResume(destination="missing", resume_id=ID), 404)


@pytest.mark.rule("0-10/message/resume-id")
def test_an_id_is_unique_to_a_user(server: Server) -> None:
    server.state.access.add(User("ann", "secret", (), {"/": Permission()}))
    begin(server)
    begin(server, body=b"ann's one ", user="ann", password="secret")
    assert resume(server.session(b"ann", user="ann", password="secret")) == 10
    assert resume(server.session(b"guest")) == 4


@pytest.mark.rule("0-10/message.delivery-properties/resume-ttl#kept")
@pytest.mark.parametrize(("waits", "offset"), [(4.9, 4), (5.1, 0)])
def test_what_was_broken_off_is_kept_for_as_long_as_was_asked(
    server: Server, waits: float, offset: int
) -> None:
    begin(server, properties(ttl=5000))
    server.advance(waits)
    assert resume(server.session()) == offset


def test_without_a_ttl_it_is_kept_until_the_broker_restarts(server: Server) -> None:
    begin(server)
    server.advance(1_000_000)
    assert resume(server.session()) == 4
    begin(server)
    server.restart()
    assert resume(server.session()) == 0


def test_what_was_resumed_is_not_there_for_others(server: Server) -> None:
    begin(server, properties(ttl=5000))
    session = server.session(b"first")
    assert resume(session) == 4
    assert resume(server.session(b"second")) == 0
    assert resume(session) == 4
    server.advance(10)
    fragment(session, b"two", LAST)
    assert session.query().message_count == 1


def test_the_later_of_two_with_one_id_is_kept(server: Server) -> None:
    begin(server)
    begin(server, body=b"another ")
    assert resume(server.session()) == 8


def test_the_ttl_of_what_was_replaced_does_not_count(server: Server) -> None:
    begin(server, properties(ttl=5000))
    begin(server)
    server.advance(10)
    assert resume(server.session()) == 4


def test_no_more_than_a_hundred_are_kept(server: Server) -> None:
    for number in range(101):
        begin(server, properties(id_=f"{number}"))
    session = server.session()
    assert resume(session, "0") == 0
    assert resume(session, "1", "amq.fanout") == 4
    assert resume(session, "100") == 4


def test_a_message_cannot_be_resumed_while_another_is_under_way(server: Server) -> None:
    begin(server)
    session = server.session()
    fragment(session, b"other ", FIRST, properties(id_="other"))
    session.fails(x.MessageResume(resume_id=ID), 409)


def test_what_a_session_that_goes_on_holds_is_its_own(server: Server) -> None:
    client = server.open()
    session = client.session(b"lasts", timeout=None)
    fragment(session, b"one ", FIRST, properties())
    client.drop()
    assert resume(server.session(b"other")) == 0
    again = server.open().session(b"lasts", timeout=None, at=1)
    assert resume(again) == 4
    fragment(again, b"two", LAST)
    assert server.session(b"other again").query().message_count == 1


def test_what_follows_has_to_be_a_fragment(server: Server) -> None:
    begin(server)
    session = server.session()
    assert resume(session) == 4
    refused(session, 409, b"one ", FIRST)


def test_a_message_that_broke_off_beside_fragments_of_another_is_kept_as_well(server: Server) -> None:
    client = server.open(max_frame_size=4096)
    session = client.session(b"sends")
    fragment(session, b"one ", FIRST, properties(id_="fragments"))
    octets = client.command_bytes(x.MessageTransfer(accept_mode=1), header=[properties()], body=b"x" * 5000)
    client.send_bytes(octets[:-10])
    client.drop()
    session = server.session(b"goes on")
    assert resume(session, "fragments") == 4
    assert resume(session, destination="amq.fanout") == 4084
