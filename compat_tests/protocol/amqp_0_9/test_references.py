"""References: bodies in pieces, in both directions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9 import Server
from compat_tests.scripted.requesting import Requester
from compat_tests.tools.matrix import rows
from fakeamqp.model.access import Permission, User
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9.codec.constants import FRAME_RESPONSE

rule = pytest.mark.rule

R = b"\0reference"


def begin(requester: Requester, *pieces: bytes, name: bytes = R) -> Requester:
    """Open a reference and append to it."""
    requester.call(m.MessageOpen(reference=name), m.MessageOk)
    append(requester, *pieces, name=name)
    return requester


def append(requester: Requester, *pieces: bytes, name: bytes = R) -> Requester:
    for piece in pieces:
        requester.call(m.MessageAppend(reference=name, octets=piece), m.MessageOk)
    return requester


def transfer(name: bytes = R, routing_key: str = "q", **fields: Any) -> m.MessageTransfer:
    return m.MessageTransfer(routing_key=routing_key, body=Body(name, by_reference=True), **fields)


def close(requester: Requester, *expected: type, name: bytes = R) -> list[int]:
    """Close a reference: the requests that were answered then, each with its reply in order."""
    requester.ask(m.MessageClose(reference=name))
    covered: list[int] = []
    replies: list[type] = []
    while requester.client.inbox:
        told = requester.response()
        answered = range(told.first, told.first + told.offset + 1)
        covered += answered
        replies += [type(told.method)] * len(answered)
    assert replies == list(expected)
    return covered


# --- from the client -----------------------------------------------------------------------------------
@rule("0-9/message.transfer/body-reference", "0-9/message.append/appends")
def test_a_body_may_come_in_pieces(requester: Requester) -> None:
    begin(requester, b"ab", b"", b"cd").ask(transfer(message_id="m"))
    close(requester, m.MessageOk, m.MessageOk)
    asked = requester.get("q")
    assert asked is not None
    assert (asked.method.body, asked.method.message_id) == (Body(b"abcd"), "m")
    assert requester.get("q") is None


@rule("0-9/message.close/01")
def test_a_transfer_is_answered_when_its_reference_is_closed(requester: Requester) -> None:
    number = begin(requester, b"a").ask(transfer())
    requester.client.expect_nothing()
    assert append(requester, b"b").client.count("q") == 0
    assert close(requester, m.MessageOk, m.MessageOk) == [number, requester.asked]
    assert requester.client.empty("q") == [b"ab"]


@rule("0-9/message.open/scope")
def test_a_reference_may_be_transferred_more_than_once(requester: Requester) -> None:
    requester.client.declare("other")
    begin(requester, b"a").ask(transfer(), transfer(routing_key="other"), transfer(routing_key="nowhere"))
    close(requester, m.MessageOk, m.MessageOk, m.MessageReject, m.MessageOk)
    assert requester.client.empty("q") == requester.client.empty("other") == [b"a"]


@rule("0-9/message.open/scope")
def test_reference_reopened_after_close_starts_with_an_empty_body(requester: Requester) -> None:
    begin(requester, b"a")
    close(requester, m.MessageOk)
    requester.call(m.MessageOpen(reference=R), m.MessageOk)
    requester.ask(transfer())
    close(requester, m.MessageOk, m.MessageOk)
    assert requester.client.empty("q") == [b""]


def test_bodies_of_two_open_references_are_kept_apart(requester: Requester) -> None:
    begin(requester, b"a", name=b"1")
    begin(requester, b"b", name=b"2")
    append(requester, b"a", name=b"1").ask(transfer(b"2"), transfer(b"1"))
    close(requester, m.MessageOk, m.MessageOk, name=b"1")
    close(requester, m.MessageOk, m.MessageOk, name=b"2")
    assert requester.client.empty("q") == [b"aa", b"b"]


def test_each_channel_has_references_of_its_own(server: Server) -> None:
    client = server.client(channels=2)
    begin(Requester(client, 1))
    begin(Requester(client, 2))


@rule("0-9/message.open/reference-01", "0-9/message.resume/reference-01")
@pytest.mark.parametrize("method", [m.MessageOpen(reference=R), m.MessageResume(reference=R, identifier="i")])
def test_an_open_reference_cannot_be_opened(requester: Requester, method: Any) -> None:
    begin(requester).ask(method)
    requester.client.expect_channel_close(406)


@rule("0-9/message.append/reference-01", "0-9/message.close/reference-01")
@rule("0-9/message.checkpoint/reference-01")
@rows(
    "method",
    m.MessageAppend(reference=R, octets=b"a"),
    m.MessageClose(reference=R),
    m.MessageCheckpoint(reference=R, identifier="i"),
    transfer(),
    ids=lambda each: each.NAME,
)
def test_a_reference_must_be_open(requester: Requester, method: Any) -> None:
    requester.ask(method)
    assert f"reference {R.decode()!r} is not open" in requester.client.expect_channel_close(404).reply_text


@pytest.mark.parametrize(
    ("code", "fields"),
    [(404, {"destination": "missing"}), (403, {"destination": "inner"}), (406, {"user_id": "nobody"})],
)
def test_invalid_transfer_by_reference_is_refused_before_the_reference_is_closed(
    lenient: Server, code: int, fields: Any
) -> None:
    lenient.vhost.exchanges.create("inner", "fanout", internal=True)
    requester = Requester(lenient.client())
    begin(requester).ask(transfer(**fields))
    requester.client.expect_channel_close(code)


def test_a_blocked_publisher_that_appends_is_read_no_further(server: Server, requester: Requester) -> None:
    requester.call(m.MessageOpen(reference=R), m.MessageOk)
    server.state.block("low on memory")
    requester.client.inbox.clear()
    requester.ask(*[m.MessageAppend(reference=R, octets=b"a")] * 2)
    assert [frame.type for frame in requester.client.inbox] == [FRAME_RESPONSE]


def test_an_exchange_that_has_gone_by_then_is_missing(requester: Requester) -> None:
    client = requester.client
    client.declare_exchange("x", "fanout")
    begin(requester).ask(transfer(destination="x"))
    client.perform(m.ExchangeDelete(exchange="x"))
    requester.ask(m.MessageClose(reference=R))
    client.expect_channel_close(404)


def test_append_beyond_the_largest_message_closes_the_channel_with_311(lenient: Server) -> None:
    server = Server(replace(lenient.state.personality, largest_message=4))
    requester = begin(begin(Requester(server.client()), b"12", name=b"1"), b"3", name=b"2")
    close(requester, m.MessageOk, name=b"1")
    append(requester, b"456", name=b"2").ask(m.MessageAppend(reference=b"2", octets=b"7"))
    requester.client.expect_channel_close(311)


def test_more_than_1000_open_references_close_the_channel_with_506(lenient: Server) -> None:
    requester = Requester(lenient.client())
    for number in range(1000):
        begin(requester, name=b"%d" % number)
    requester.ask(m.MessageOpen(reference=b"more"))
    requester.client.expect_channel_close(506)


# --- checkpoints ---------------------------------------------------------------------------------------
@rule("0-9/message.checkpoint/saves", "0-9/message.checkpoint/honour-offset", "0-9/message.resume/offset")
@rule("0-9/message.offset/value")
@pytest.mark.parametrize("lost", ["channel", "connection"])
def test_resume_after_channel_or_connection_loss_continues_at_the_checkpoint_offset(
    server: Server, requester: Requester, lost: str
) -> None:
    begin(requester, b"0123").call(m.MessageCheckpoint(reference=R, identifier="i"), m.MessageOk)
    append(requester, b"lost")
    if lost == "channel":
        requester.client.close_channel()
        requester.client.open_channel()
        again = Requester(requester.client)
    else:
        requester.client.drop()
        again = Requester(server.client())
    offset = again.call(m.MessageResume(reference=b"s", identifier="i"), m.MessageOffset)
    assert offset.encode() == (120 << 16 | 530).to_bytes(4, "big") + (4).to_bytes(8, "big")
    append(again, b"4567", name=b"s").ask(transfer(b"s"))
    close(again, m.MessageOk, m.MessageOk, name=b"s")
    assert again.client.empty("q") == [b"01234567"]


@rule("0-9/message.open/channel-close", "0-9/message.resume/offset")
def test_resume_without_a_checkpoint_starts_at_offset_0(server: Server, requester: Requester) -> None:
    begin(requester, b"0123").client.drop()
    again = Requester(server.client())
    assert again.call(m.MessageResume(reference=R, identifier="i"), m.MessageOffset).value == 0
    append(again, b"new").ask(transfer())
    close(again, m.MessageOk, m.MessageOk)
    assert again.client.empty("q") == [b"new"]


def test_the_last_checkpoint_counts_and_lasts_until_the_reference_is_closed(requester: Requester) -> None:
    begin(requester, b"0").call(m.MessageCheckpoint(reference=R, identifier="i"), m.MessageOk)
    append(requester, b"1").call(m.MessageCheckpoint(reference=R, identifier="i"), m.MessageOk)
    requester.client.drop()
    for _ in range(2):
        again = Requester(requester.server.client())
        assert again.call(m.MessageResume(reference=R, identifier="i"), m.MessageOffset).value == 2
        again.client.drop()
    again = Requester(requester.server.client())
    again.call(m.MessageResume(reference=R, identifier="i"), m.MessageOffset)
    close(again, m.MessageOk)
    assert again.call(m.MessageResume(reference=R, identifier="i"), m.MessageOffset).value == 0


def test_checkpoint_is_not_visible_to_another_user(lenient: Server) -> None:
    requester = Requester(lenient.client())
    begin(requester, b"0").call(m.MessageCheckpoint(reference=R, identifier="i"), m.MessageOk)
    lenient.state.access.add(User("eve", "pw", (), {"/": Permission()}))
    eve = Requester(lenient.client(user="eve", password="pw"))
    assert eve.call(m.MessageResume(reference=R, identifier="i"), m.MessageOffset).value == 0


def test_a_restart_forgets_checkpoints(server: Server, requester: Requester) -> None:
    begin(requester, b"0").call(m.MessageCheckpoint(reference=R, identifier="i"), m.MessageOk)
    server.restart()
    again = Requester(server.client())
    assert again.call(m.MessageResume(reference=R, identifier="i"), m.MessageOffset).value == 0


# --- to the client -------------------------------------------------------------------------------------

FRAME_MAX = 4096


def small(server: Server) -> Requester:
    """Requests on a connection with the smallest frames, with a queue "q"."""
    client = server.client(frame_max=FRAME_MAX).declare("q")
    return Requester(client)


def fill(server: Server, *bodies: bytes, **properties: Any) -> None:
    """Publish from a connection with larger frames."""
    server.client().fill("q", *bodies, **properties)


def receive(requester: Requester) -> tuple[bytes, Any, list[int]]:
    """A message by reference: its body, the transfer, and the numbers of the requests."""
    opened = requester.request(m.MessageOpen)
    name = opened.method.reference
    numbers, body = [opened.number], b""
    while True:
        asked = requester.request()
        numbers.append(asked.number)
        if isinstance(asked.method, m.MessageTransfer):
            break
        assert isinstance(asked.method, m.MessageAppend) and asked.method.reference == name
        body += asked.method.octets
    assert asked.method.body == Body(name, by_reference=True)
    closed = requester.request(m.MessageClose)
    assert closed.method.reference == name
    return body, asked, [*numbers, closed.number]


BODY = bytes(range(256)) * 40


@rule("0-9/message.transfer/body-reference")
@pytest.mark.parametrize("reserved", [True, False])
@pytest.mark.letter
def test_a_body_larger_than_a_frame_goes_by_reference(server: Server, reserved: bool) -> None:
    client = server.client(frame_max=FRAME_MAX).declare("q")
    requester = Requester(client, reserved=reserved).consume("q", "d")
    fill(server, BODY, message_id="m")
    assert all(len(frame.payload) + 8 <= FRAME_MAX for frame in client.inbox)
    assert max(len(frame.payload) + 8 for frame in client.inbox) == FRAME_MAX
    body, asked, numbers = receive(requester)
    assert body == BODY
    assert (asked.method.destination, asked.method.message_id) == ("d", "m")
    assert numbers == list(range(1, len(numbers) + 1))
    requester.answer(1, offset=len(numbers) - 1)
    client.expect_nothing()
    assert client.count("q") == 0


@pytest.mark.letter
def test_a_body_goes_inline_as_long_as_it_fits(server: Server) -> None:
    requester = small(server).consume("q", "d", no_ack=True)
    empty = 20 + len(m.MessageTransfer(destination="d", routing_key="q").encode())
    fill(server, b"x" * (FRAME_MAX - 8 - empty))
    (frame,) = requester.client.inbox
    assert len(frame.payload) + 8 == FRAME_MAX
    assert requester.transfer().method.body.octets == b"x" * (FRAME_MAX - 8 - empty)
    fill(server, b"x" * (FRAME_MAX - 8 - empty + 1))
    body, _, numbers = receive(requester)
    assert (len(body), len(numbers)) == (FRAME_MAX - 8 - empty + 1, 4)


@rule("0-9/frame/undeliverable-size")
@pytest.mark.parametrize("reserved", [True, False])
@pytest.mark.parametrize("excess", [0, 1])
@pytest.mark.letter
def test_transfer_fields_larger_than_frame_max_close_the_connection_with_501(
    server: Server, reserved: bool, excess: int
) -> None:
    client = server.client(frame_max=FRAME_MAX).declare("q")
    requester = Requester(client, reserved=reserved).consume("q", "d", no_ack=True)
    name = Body(b"1", by_reference=True)
    empty = m.MessageTransfer(destination="d", routing_key="q", application_headers={"h": ""}, body=name)
    room = FRAME_MAX - 8 - (20 if reserved else 16) - len(empty.encode())
    fill(server, BODY, headers={"h": "x" * (room + excess)})
    if excess:
        client.after(0).expect_connection_close(501)
    else:
        assert max(len(frame.payload) + 8 for frame in client.inbox) == FRAME_MAX
        assert receive(requester)[0] == BODY


@pytest.mark.letter
def test_there_is_no_need_to_answer_more_than_the_transfer(server: Server) -> None:
    requester = small(server)
    requester.call(m.MessageQos(prefetch_count=1), m.MessageOk)
    requester.consume("q", "d")
    fill(server, BODY, BODY[1:])
    body, asked, _ = receive(requester)
    requester.client.expect_nothing()
    requester.answer(asked.number)
    body, asked, _ = receive(requester)
    assert body == BODY[1:]
    requester.answer(asked.number, m.MessageReject()).client.drop()
    assert len(server.vhost.queues["q"].ready) == 0


@pytest.mark.letter
def test_every_reference_of_the_broker_has_another_name(server: Server) -> None:
    requester = small(server).consume("q", "d", no_ack=True)
    fill(server, BODY, BODY)
    names = {receive(requester)[1].method.body.octets for _ in range(2)}
    assert len(names) == 2


@pytest.mark.letter
def test_large_message_from_get_is_sent_by_reference(server: Server) -> None:
    requester = small(server)
    fill(server, BODY)
    requester.call(m.MessageGet(queue="q", destination="g"), m.MessageOk)
    body, asked, _ = receive(requester)
    assert (body, asked.method.destination) == (BODY, "g")


@pytest.mark.parametrize("reply", [m.MessageReject(), m.MessageEmpty()])
@pytest.mark.letter
def test_message_open_answered_by_another_method_ends_connection_with_503(server: Server, reply: Any) -> None:
    requester = small(server).consume("q", "d")
    fill(server, BODY)
    _, _, numbers = receive(requester)
    requester.answer(numbers[0], reply).client.expect_connection_close(503)
