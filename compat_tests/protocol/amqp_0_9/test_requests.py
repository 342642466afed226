"""Request and response frames, and class channel's ping, pong and ok."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9 import Child, Client, Server, content
from compat_tests.scripted.requesting import Requester
from compat_tests.tools.matrix import rows
from fakeamqp.protocols.amqp_0_9.codec import BasicProperties, methods as m
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9.codec.constants import FRAME_REQUEST, FRAME_RESPONSE
from fakeamqp.protocols.amqp_0_9.codec.requests import Response
from fakeamqp.protocols.amqp_0_9.requests import IncomingRequests
from fakeamqp.protocols.amqp_0_9_1.codec.frames import frame

rule = pytest.mark.rule

QOS = m.MessageQos(prefetch_count=1)
CONTENT = content(Child(60, BasicProperties().encode(), b"body"))


@pytest.fixture
def requester(client: Client) -> Requester:
    """Requests on channel 1 of an open connection."""
    return Requester(client)


def batching(server: Server) -> Server:
    """A broker that answers equal requests at once."""
    return server.varied(batches_responses=True)


# --- layout --------------------------------------------------------------------------------------------
@rule("0-9/request/layout", "0-9/response/layout")
def test_frames_have_their_numbers_before_the_method(client: Client) -> None:
    numbers = (1).to_bytes(8, "big") + (0).to_bytes(8, "big")
    got = client.send_bytes(frame(FRAME_REQUEST, 1, numbers + bytes(4) + QOS.encode())).take_frame()
    assert got.type == FRAME_RESPONSE
    expected = (1).to_bytes(8, "big") + (1).to_bytes(8, "big") + (0).to_bytes(4, "big")
    assert got.payload == expected + m.MessageOk().encode()


@rule("0-9/request/layout")
@pytest.mark.parametrize("reserved", [True, False])
def test_the_broker_writes_the_form_of_request_that_its_peer_writes(client: Client, reserved: bool) -> None:
    requester = Requester(client, reserved=reserved)
    requester.call(m.ChannelPing(), m.ChannelOk)
    assert requester.request(m.ChannelPong).number == 1


@pytest.mark.parametrize("frame_type", [FRAME_REQUEST, FRAME_RESPONSE])
def test_a_frame_too_short_for_its_numbers_ends_the_connection(client: Client, frame_type: int) -> None:
    client.send_frame(frame_type, 1, bytes(15)).expect_connection_close(501)


@pytest.mark.parametrize("frame_type", [FRAME_REQUEST, FRAME_RESPONSE])
@pytest.mark.parametrize("method", [QOS, m.ChannelOpen()], ids=lambda each: each.NAME)
def test_request_or_response_frame_on_channel_0_closes_the_connection_with_504(
    client: Client, frame_type: int, method: Any
) -> None:
    client.send_frame(frame_type, 0, bytes(7) + b"\x01" + bytes(12) + method.encode())
    client.expect_connection_close(504)


# --- requests of the client ----------------------------------------------------------------------------
@rule("0-9/request/every-request-answered", "0-9/request/hold-forever")
def test_every_request_is_answered(requester: Requester) -> None:
    requester.ask(QOS, m.MessageRecover(requeue=True), m.MessageOpen(reference=b"r"))
    covered: list[int] = []
    while requester.client.inbox:
        told = requester.response(m.MessageOk)
        covered += range(told.first, told.first + told.offset + 1)
    assert covered == [1, 2, 3]


@rule("0-9/request/request-id-increments")
@pytest.mark.parametrize("number", [0, 3, 1 << 63])
def test_request_with_an_unexpected_number_closes_the_connection_with_503(
    server: Server, requester: Requester, number: int
) -> None:
    other = Requester(server.client())
    requester.call(QOS, m.MessageOk)
    requester.repeat(QOS, number)
    requester.client.expect_connection_close(503)
    other.call(QOS, m.MessageOk)


@rule("0-9/request/per-channel-sequences#channel")
def test_each_channel_counts_on_its_own(server: Server) -> None:
    client = server.client(channels=2)
    for number in (1, 2):
        requester = Requester(client, number)
        requester.ask(QOS)
        assert requester.response()[:2] == (1, 1)


@rule("0-9/request/per-channel-sequences#channel")
def test_request_numbers_start_again_on_a_reopened_channel(requester: Requester) -> None:
    requester.call(QOS, m.MessageOk)
    requester.client.close_channel()
    requester.client.open_channel()
    again = Requester(requester.client)
    again.ask(QOS)
    assert again.response()[:2] == (1, 1)


@rule("0-9/request/in-order-of-issue")
def test_requests_are_executed_in_the_order_of_their_arrival(requester: Requester) -> None:
    declare = m.QueueDeclare(queue="q")
    requester.ask(declare, m.MessageTransfer(routing_key="q", body=Body(b"a")), m.QueuePurge(queue="q"))
    requester.response(m.QueueDeclareOk)
    requester.response(m.MessageOk)
    assert requester.response(m.QueuePurgeOk).method.message_count == 1


@rule("0-9/request/no-method-semantics-change")
def test_a_request_may_carry_any_method(requester: Requester) -> None:
    assert requester.call(m.QueueDeclare(queue="q"), m.QueueDeclareOk).queue == "q"
    requester.call(m.QueueBind(queue="q", exchange="amq.fanout"), m.QueueBindOk)
    requester.call(m.TxSelect(), m.TxSelectOk)
    requester.call(m.BasicConsume(queue="q", consumer_tag="t"), m.BasicConsumeOk)
    requester.call(m.ChannelFlow(active=True), m.ChannelFlowOk)
    requester.call(m.QueueDelete(queue="q"), m.QueueDeleteOk)
    requester.call(m.ChannelClose(reply_code=200), m.ChannelCloseOk)
    requester.client.open_channel()


@rule("0-9/request/no-method-semantics-change")
def test_failing_request_closes_the_channel_with_404(requester: Requester) -> None:
    requester.ask(m.QueueDeclare(queue="none", passive=True))
    requester.client.expect_channel_close(404, at=(50, 10))


def test_request_with_an_unknown_method_closes_the_connection_with_540(spec: Server) -> None:
    requester = Requester(spec.client())
    numbers = (1).to_bytes(8, "big") + bytes(8) + bytes(4)
    requester.client.send_frame(FRAME_REQUEST, 1, numbers + (200 << 16 | 1).to_bytes(4, "big"))
    requester.client.expect_connection_close(540)


@rule("0-9/request/no-method-semantics-change")
def test_the_content_of_a_reply_comes_behind_the_response(requester: Requester) -> None:
    client = requester.client
    client.declare("q").fill("q", b"body", message_id="m")
    requester.ask(m.BasicGet(queue="q", no_ack=True))
    assert requester.response(m.BasicGetOk).first == 1
    assert [client.take_frame().type for _ in range(2)] == [2, 3]
    requester.call(QOS, m.MessageOk)


@rule("0-9/request/no-method-semantics-change")
def test_content_may_follow_a_request(requester: Requester) -> None:
    client = requester.client
    client.declare("q")
    publish = m.BasicPublish(routing_key="q")
    client.send_bytes(requester.request_bytes(publish) + CONTENT).inbox.clear()
    assert client.empty("q") == [b"body"]


@rule("0-9/request/every-request-answered", "0-9/response/generic-ok")
def test_a_method_without_an_answer_is_answered_by_ok_when_all_of_it_has_come(spec: Server) -> None:
    requester = Requester(spec.client(), channel=1)
    client = requester.client
    client.send_bytes(requester.request_bytes(m.BasicPublish(exchange="amq.fanout"))).expect_nothing()
    client.send_bytes(CONTENT)
    assert requester.response(m.MessageOk).first == 1
    requester.call(m.BasicRecover(requeue=True), m.MessageOk)


@rule("0-9/request/every-request-answered")
def test_contents_that_come_together_are_answered_each(spec: Server) -> None:
    requester = Requester(spec.client())
    publish = m.BasicPublish(exchange="amq.fanout")
    requester.client.send_bytes(b"".join(requester.request_bytes(publish) + CONTENT for _ in range(3)))
    assert requester.response(m.MessageOk)[:3] == (1, 1, 2)


def test_lenient_broker_sends_no_response_to_a_request_without_a_reply_method(lenient: Server) -> None:
    requester = Requester(lenient.client())
    requester.ask(m.BasicRecover(requeue=True))
    requester.client.expect_nothing()
    requester.repeat(m.BasicRecover(requeue=True), 1)
    requester.client.expect_nothing()
    requester.call(QOS, m.MessageOk)


@rule("0-9/request/no-method-semantics-change")
def test_a_request_can_open_the_channel(server: Server) -> None:
    requester = Requester(server.client(channels=0))
    assert requester.call(m.ChannelOpen(), m.ChannelOpenOk).channel_id
    requester.call(QOS, m.MessageOk)


def test_a_channel_opened_afterwards_has_no_request_of_another(server: Server) -> None:
    client = server.client(channels=0)
    Requester(client).call(m.ChannelOpen(), m.ChannelOpenOk)
    client.perform(m.ChannelOpen(), channel=2)
    assert Requester(client, 2).call(QOS, m.MessageOk)


@rows(
    "send, code",
    (lambda requester: requester.ask(QOS), 504),
    (lambda requester: requester.repeat(m.ChannelOpen(), 2), 503),
    (lambda requester: requester.answer(1), 504),
    ids=["request", "channel.open with number 2", "response"],
)
def test_frame_other_than_first_request_on_closed_channel_closes_the_connection(
    server: Server, send: Callable[[Requester], object], code: int
) -> None:
    send(Requester(client := server.client(channels=0)))
    client.expect_connection_close(code)


def test_requests_and_responses_for_a_closing_channel_are_discarded(requester: Requester) -> None:
    client = requester.client
    requester.ask(m.MessageConsume(queue="none"), QOS)
    requester.answer(7)
    assert client.expect(m.ChannelClose).reply_code == 404
    client.expect_nothing()
    client.send(m.ChannelCloseOk()).open_channel()


# --- responses of the broker ---------------------------------------------------------------------------
@rule("0-9/response/response-id-increments")
def test_each_response_has_the_next_number(requester: Requester) -> None:
    for number in range(1, 6):
        requester.ask(QOS)
        assert requester.response().number == number


@rule("0-9/request/batch-or-single#batch", "0-9/response/range")
def test_equal_answers_to_consecutive_requests_are_sent_as_a_single_response(server: Server) -> None:
    requester = Requester(batching(server).client())
    requester.ask(QOS, QOS, m.MessageRecover(requeue=True))
    assert requester.response(m.MessageOk)[:3] == (1, 1, 2)
    requester.ask(QOS)
    assert requester.response(m.MessageOk)[:3] == (2, 4, 0)
    requester.client.expect_nothing()


@rule("0-9/request/batch-or-single#single")
def test_clients_in_the_field_get_one_response_to_each_request(lenient: Server) -> None:
    requester = Requester(lenient.client())
    requester.ask(QOS, QOS)
    assert [requester.response()[:3] for _ in range(2)] == [(1, 1, 0), (2, 2, 0)]


@rule("0-9/response/identical-only")
def test_different_answers_are_sent_as_separate_responses(server: Server) -> None:
    requester = Requester(batching(server).client())
    requester.client.declare("q")
    empty = m.MessageGet(queue="q")
    requester.ask(QOS, QOS, empty, empty, m.ChannelPong(), QOS)
    assert [requester.response()[:3] for _ in range(4)] == [(1, 1, 1), (2, 3, 1), (3, 5, 0), (4, 6, 0)]


@rule("0-9/response/identical-only")
def test_failed_request_is_not_in_the_response_range(server: Server) -> None:
    requester = Requester(batching(server).client())
    requester.ask(QOS, m.MessageCheckpoint(reference=b"none"))
    assert requester.response(m.MessageOk)[:3] == (1, 1, 0)
    requester.client.expect_channel_close(404)


def test_response_other_than_ok_is_not_held_back_for_batching(server: Server) -> None:
    requester = Requester(batching(server).client())
    client = requester.client
    client.declare("q").fill("q", b"a")
    requester.ask(m.BasicConsume(queue="q", consumer_tag="t", no_ack=True))
    requester.response(m.BasicConsumeOk)
    assert client.bodies() == [b"a"]


@rule("0-9/response/range")
def test_transfer_is_sent_after_the_response_to_its_consume_request(server: Server) -> None:
    requester = Requester(batching(server).client())
    client = requester.client
    client.declare("q").fill("q", b"a")
    requester.ask(QOS, m.MessageConsume(queue="q", destination="d"), QOS)
    assert requester.response(m.MessageOk)[:3] == (1, 1, 1)
    assert requester.transfer().method.body.octets == b"a"
    assert requester.response(m.MessageOk)[:3] == (2, 3, 0)


# --- repeated requests ---------------------------------------------------------------------------------
@rule("0-9/request/duplicate-detection")
def test_a_request_that_comes_again_is_answered_again_and_not_carried_out(requester: Requester) -> None:
    client = requester.client
    client.declare("q")
    transfer = m.MessageTransfer(routing_key="q", body=Body(b"once"))
    requester.ask(transfer)
    first = requester.response(m.MessageOk)
    requester.repeat(transfer, 1)
    assert requester.response(m.MessageOk) == first
    assert client.count("q") == 1
    requester.call(QOS, m.MessageOk)


@rule("0-9/request/duplicate-detection")
def test_repeated_request_of_a_batch_gets_the_response_of_the_batch(server: Server) -> None:
    requester = Requester(batching(server).client())
    requester.ask(QOS, QOS, QOS)
    first = requester.response()
    requester.repeat(QOS, 2)
    assert requester.response() == first


@rule("0-9/request/duplicate-detection")
def test_transfer_repeated_before_its_response_is_published_once(requester: Requester) -> None:
    client = requester.client
    client.declare("q")
    requester.call(m.MessageOpen(reference=b"r"), m.MessageOk)
    transfer = m.MessageTransfer(routing_key="q", body=Body(b"r", by_reference=True))
    requester.ask(transfer)
    requester.repeat(transfer, 2)
    client.expect_nothing()
    requester.ask(m.MessageClose(reference=b"r"))
    covered = 0
    while client.inbox:
        covered += 1 + requester.response(m.MessageOk).offset
    assert covered == 2
    assert client.count("q") == 1


@rule("0-9/request/response-mark", "0-9/response/cumulative-ack")
def test_responses_up_to_the_mark_are_forgotten(requester: Requester) -> None:
    for _ in range(3):
        requester.call(QOS, m.MessageOk)
    requester.mark = 2
    requester.call(QOS, m.MessageOk)
    requester.repeat(QOS, 3)
    assert requester.response().number == 3
    requester.repeat(QOS, 2)
    requester.client.expect_connection_close(503)


@rule("0-9/request/response-mark")
def test_response_mark_that_decreases_is_ignored(requester: Requester) -> None:
    requester.call(QOS, m.MessageOk)
    requester.mark = 1
    requester.call(QOS, m.MessageOk)
    requester.mark = 0
    requester.call(QOS, m.MessageOk)


@rule("0-9/request/response-mark")
def test_a_mark_beyond_the_last_response_ends_the_connection(requester: Requester) -> None:
    requester.mark = 1
    requester.ask(QOS)
    requester.client.expect_connection_close(503)


@pytest.mark.parametrize("method", [QOS, m.BasicRecover(requeue=True)], ids=["answered", "unanswered"])
def test_broker_remembers_at_most_1000_requests_answered_or_not(lenient: Server, method: Any) -> None:
    requester = Requester(lenient.client())
    for _ in range(1001):
        requester.ask(method)
        requester.client.inbox.clear()
    requester.repeat(method, 2)
    if method is QOS:
        assert requester.response().number == 2
    requester.client.expect_nothing()
    requester.repeat(method, 1)
    requester.client.expect_connection_close(503)


# --- requests of the broker ----------------------------------------------------------------------------
@rule("0-9/channel.ping/ok-reply", "0-9/channel.ping/issues-pong", "0-9/channel.pong/not-a-response")
@rule("0-9/channel.ok/completion")
def test_a_ping_is_answered_and_a_pong_follows(requester: Requester) -> None:
    assert requester.call(m.ChannelPing(), m.ChannelOk).encode() == (20 << 16 | 80).to_bytes(4, "big")
    asked = requester.request(m.ChannelPong)
    requester.answer(asked.number, m.ChannelOk()).client.expect_nothing()


@rule("0-9/channel.pong/ok-reply")
def test_a_pong_is_answered(requester: Requester) -> None:
    requester.call(m.ChannelPong(), m.ChannelOk)
    requester.client.expect_nothing()


@rule("0-9/channel.ping/issues-pong", "0-9/channel.pong/ok-reply")
def test_pings_and_pongs_may_go_in_method_frames(client: Client) -> None:
    client.call(m.ChannelPing(), m.ChannelOk)
    client.expect(m.ChannelPong)
    client.send(m.ChannelOk()).call(m.ChannelPong(), m.ChannelOk)
    client.expect_nothing()


@pytest.mark.parametrize("pings", [0, 2])
def test_an_ok_that_answers_no_pong_ends_the_connection(client: Client, pings: int) -> None:
    for _ in range(pings):
        client.call(m.ChannelPing(), m.ChannelOk)
        client.expect(m.ChannelPong)
        client.send(m.ChannelOk())
    client.ends(m.ChannelOk(), 503)


def pings(requester: Requester, count: int) -> Requester:
    """Have the broker send so many requests."""
    for _ in range(count):
        requester.call(m.ChannelPing(), m.ChannelOk)
        requester.request(m.ChannelPong)
    return requester


@rule("0-9/request/per-channel-sequences#direction", "0-9/request/response-mark")
def test_broker_requests_have_consecutive_numbers_and_the_last_response_as_mark(requester: Requester) -> None:
    requester.call(m.ChannelPing(), m.ChannelOk)
    assert requester.request()[:2] == (1, 0)
    requester.answer(1, m.ChannelOk()).call(m.ChannelPing(), m.ChannelOk)
    assert requester.request()[:2] == (2, 1)


@rule("0-9/response/range")
def test_a_response_may_answer_several_requests_of_the_broker(requester: Requester) -> None:
    pings(requester, 3).answer(1, m.ChannelOk(), offset=2)
    requester.answer(1, m.ChannelOk()).client.expect_connection_close(503)


@rule("0-9/response/range")
def test_response_range_may_include_an_already_answered_request(requester: Requester) -> None:
    pings(requester, 3).answer(2, m.ChannelOk()).answer(1, m.ChannelOk(), offset=2).call(QOS, m.MessageOk)


@rule("0-9/response/response-id-increments")
@pytest.mark.parametrize("number", [0, 2])
def test_response_with_unexpected_number_ends_connection(requester: Requester, number: int) -> None:
    pings(requester, 1).answer(1, m.ChannelOk(), number=number).client.expect_connection_close(503)


def test_response_with_a_repeated_number_is_ignored(requester: Requester) -> None:
    pings(requester, 2).answer(1, m.ChannelOk()).answer(2, m.ChannelOk(), number=1)
    requester.answer(2, m.ChannelOk()).call(QOS, m.MessageOk)


@pytest.mark.parametrize(("first", "offset"), [(0, 0), (0, 1), (2, 0), (1, 1), (1, (1 << 32) - 1)])
def test_a_response_to_no_request_ends_the_connection(requester: Requester, first: int, offset: int) -> None:
    other = Requester(requester.server.client())
    pings(requester, 1).answer(first, m.ChannelOk(), offset=offset).client.expect_connection_close(503)
    other.call(QOS, m.MessageOk)


@pytest.mark.parametrize("reply", [m.MessageOk(), m.QueueDeclareOk(), QOS])
def test_a_response_by_another_method_ends_the_connection(requester: Requester, reply: Any) -> None:
    pings(requester, 1).answer(1, reply).client.expect_connection_close(503)


# --- after a reconnect ---------------------------------------------------------------------------------
def resumed(server: Server, lost: Requester, channel_id: bytes) -> Requester:
    """The same channel on a new connection, after the old one was lost."""
    lost.client.drop()
    client = server.client(channels=0)
    client.call(m.ChannelResume(channel_id=channel_id), m.ChannelOk)
    requester = Requester(client)
    requester.asked, requester.answered, requester.mark = lost.asked, lost.answered, lost.mark
    return requester


@pytest.fixture
def trusting(server: Server) -> Server:
    """A broker that asks for no access tickets, since a channel that is resumed has none."""
    return server.varied(checks_tickets=False)


@pytest.fixture
def losing(trusting: Server) -> Client:
    """A client that will lose its connection."""
    return trusting.client()


@pytest.fixture
def channel_id(losing: Client) -> bytes:
    """What channel 2, which is open by then, can be resumed by."""
    found = losing.call(m.ChannelOpen(), m.ChannelOpenOk, channel=2).channel_id
    assert isinstance(found, bytes)
    return found


@rule("0-9/request/failover-reissue")
def test_request_answered_before_connection_loss_is_not_executed_again_after_resume(
    trusting: Server, losing: Client, channel_id: bytes
) -> None:
    losing.declare("q", durable=True)
    lost = Requester(losing, 2)
    transfer = m.MessageTransfer(routing_key="q", body=Body(b"once"))
    lost.ask(transfer)
    remembered = lost.response()
    requester = resumed(trusting, lost, channel_id)
    requester.repeat(transfer, 1)
    assert requester.response() == remembered
    assert requester.client.count("q") == 1
    requester.ask(QOS)
    assert requester.response()[:2] == (2, 2)


@rule("0-9/request/failover-reissue")
def test_lost_request_is_executed_when_sent_after_resume(losing: Client, channel_id: bytes) -> None:
    losing.declare("q", durable=True)
    requester = resumed(losing.server, Requester(losing, 2), channel_id)
    assert requester.publish("q", b"late").client.count("q") == 1


@rule("0-9/request/failover-reissue")
def test_resumed_channel_repeats_unanswered_broker_requests_under_their_numbers(
    trusting: Server, losing: Client, channel_id: bytes
) -> None:
    lost = pings(Requester(losing, 2), 3).answer(1, m.ChannelOk())
    requester = resumed(trusting, lost, channel_id)
    assert [requester.request(m.ChannelPong)[:2] for _ in range(2)] == [(2, 1), (3, 1)]
    requester.answer(
        2, m.MessageOk()
    )  # What the lost connection has not brought: an answer to what was asked.
    requester.answer(3, m.ChannelOk()).call(m.ChannelPing(), m.ChannelOk)
    assert requester.request(m.ChannelPong)[:2] == (4, 3)


@rule("0-9/request/failover-reissue")
def test_transfer_unanswered_at_connection_loss_is_executed_once_when_repeated_after_resume(
    trusting: Server, losing: Client, channel_id: bytes
) -> None:
    losing.declare("q", durable=True)
    lost = Requester(losing, 2)
    lost.call(m.MessageOpen(reference=b"r"), m.MessageOk)
    lost.call(m.MessageAppend(reference=b"r", octets=b"body"), m.MessageOk)
    lost.call(m.MessageCheckpoint(reference=b"r", identifier="i"), m.MessageOk)
    transfer = m.MessageTransfer(routing_key="q", body=Body(b"r", by_reference=True))
    lost.ask(transfer)
    requester = resumed(trusting, lost, channel_id)
    assert requester.call(m.MessageResume(reference=b"r", identifier="i"), m.MessageOffset).value == 4
    requester.repeat(transfer, 4)
    requester.repeat(transfer, 4)
    requester.client.expect_nothing()
    requester.ask(m.MessageClose(reference=b"r"))
    while requester.client.inbox:
        requester.response(m.MessageOk)
    assert len(trusting.vhost.queues["q"].ready) == 1
    requester.repeat(transfer, 4)
    told = requester.response(m.MessageOk)
    assert told.first <= 4 <= told.first + told.offset


@rule("0-9/request/failover-reissue")
def test_resumed_channel_sends_pongs_for_lost_request_numbers_before_redelivery(
    trusting: Server, losing: Client, channel_id: bytes
) -> None:
    losing.declare("q", durable=True)
    lost = Requester(losing, 2).consume("q", "d")
    losing.fill("q", b"1")
    assert lost.transfer().number == 1
    requester = resumed(trusting, lost, channel_id)
    assert requester.request(m.ChannelPong).number == 1
    again = requester.transfer()
    assert (again.number, again.method.body.octets, again.method.redelivered) == (2, b"1", True)
    requester.answer(1)
    assert len(trusting.vhost.queues["q"].unacked) == 1


def test_batched_response_not_sent_before_interruption_is_repeated_on_demand() -> None:
    incoming = IncomingRequests()
    assert incoming.receive(1, 0)
    assert incoming.answer(1, b"ok", batches=True) == []
    incoming.interrupt()
    assert incoming.flush() == []
    assert not incoming.receive(1, 0)
    assert incoming.repeat(1) == Response(1, 1, 0, b"ok")


def test_a_request_cannot_resume_a_channel(trusting: Server, losing: Client, channel_id: bytes) -> None:
    losing.drop()
    again = trusting.client(channels=0)
    Requester(again).ask(m.ChannelResume(channel_id=channel_id))
    again.expect_connection_close(503)


@rule("0-9/request/no-method-semantics-change")
def test_close_names_the_method_of_the_request_that_failed_or_has_a_wrong_id(requester: Requester) -> None:
    client = requester.client
    client.declare("q")
    requester.call(QOS, m.MessageOk)
    requester.ask(m.MessageGet(queue="missing"))
    close = client.expect_channel_close(404)
    assert (close.class_id, close.method_id) == (m.MessageGet.CLASS_ID, m.MessageGet.METHOD_ID)
    client.open_channel()
    requester.repeat(QOS, 7)
    close = client.expect_connection_close(503)
    assert (close.class_id, close.method_id) == (QOS.CLASS_ID, QOS.METHOD_ID)
