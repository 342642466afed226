"""Class message: what its methods and frames are, and transfers to the broker."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9 import Client, Server
from compat_tests.scripted.requesting import Requester
from compat_tests.tools.matrix import marked_rows, rows
from fakeamqp.model.access import Permission, TopicPermission, User
from fakeamqp.model.history import OutcomeHistories
from fakeamqp.protocols.amqp_0_9.codec import METHODS, methods as m
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9.codec.constants import FRAME_REQUEST
from fakeamqp.protocols.amqp_0_9.codec.requests import Request, encode_request

rule = pytest.mark.rule

FULL: dict[str, Any] = {
    "priority": 7,
    "delivery_mode": 2,
    "message_id": "m-1",
    "correlation_id": "c-1",
    "reply_to": "answers",
    "content_type": "text/plain",
    "content_encoding": "utf-8",
    "user_id": "guest",
    "app_id": "tests",
    "transaction_id": "t-1",
    "security_token": b"\0secret",
    "application_headers": {"n": 1, "nested": {"t": True}},
}


def transfer(routing_key: str = "q", body: bytes = b"body", **fields: Any) -> m.MessageTransfer:
    return m.MessageTransfer(routing_key=routing_key, body=Body(body), **fields)


# --- the class -----------------------------------------------------------------------------------------
@rule("0-9/message/request-frames", "0-9/message/symmetric", "0-9/message.transfer/routing")
def test_message_published_by_transfer_is_delivered_by_transfer(requester: Requester) -> None:
    requester.consume("q", "d").ask(transfer())
    got = requester.transfer().method
    assert (got.destination, got.exchange, got.routing_key) == ("d", "", "q")
    assert (got.body.octets, got.redelivered) == (b"body", False)
    requester.response(m.MessageOk)


METHOD_FRAMES = [
    m.MessageTransfer(),
    m.MessageConsume(),
    m.MessageCancel(),
    m.MessageGet(),
    m.MessageRecover(),
    m.MessageOpen(),
    m.MessageClose(),
    m.MessageAppend(),
    m.MessageCheckpoint(),
    m.MessageResume(),
    m.MessageQos(),
    m.MessageOk(),
    m.MessageEmpty(),
    m.MessageReject(),
    m.MessageOffset(),
]


@rule("0-9/message/request-frames")
@pytest.mark.parametrize("method", METHOD_FRAMES, ids=lambda each: each.NAME)
def test_methods_of_the_class_do_not_come_in_method_frames(client: Client, method: Any) -> None:
    client.ends(method, 503, at=(120, method.METHOD_ID))


@rows("reply", m.MessageOk(), m.MessageEmpty(), m.MessageReject(), m.MessageOffset(), m.ChannelOk())
def test_replies_do_not_come_in_requests(requester: Requester, reply: Any) -> None:
    requester.ask(reply)
    requester.client.expect_connection_close(503)


@rule("0-9/message/grammar")
def test_each_request_of_class_message_gets_the_response_method_of_the_grammar(requester: Requester) -> None:
    requester.call(m.MessageQos(prefetch_count=5), m.MessageOk)
    requester.call(m.MessageGet(queue="q", destination="g"), m.MessageEmpty)
    requester.call(transfer(), m.MessageOk)
    requester.call(transfer("nowhere"), m.MessageReject)
    requester.call(m.MessageGet(queue="q", destination="g"), m.MessageOk)
    requester.transfer()
    requester.call(m.MessageConsume(queue="q", destination="d"), m.MessageOk)
    requester.call(m.MessageCancel(destination="d"), m.MessageOk)
    requester.call(m.MessageOpen(reference=b"r"), m.MessageOk)
    requester.call(m.MessageAppend(reference=b"r", octets=b"ab"), m.MessageOk)
    requester.call(m.MessageCheckpoint(reference=b"r", identifier="i"), m.MessageOk)
    assert requester.call(m.MessageResume(reference=b"s", identifier="i"), m.MessageOffset).value == 2
    requester.call(m.MessageClose(reference=b"r"), m.MessageOk)
    requester.call(m.MessageRecover(requeue=True), m.MessageOk)


@rule("0-9/message/no-nowait", "0-9/message/wip")
def test_each_method_of_the_class_is_answered(requester: Requester) -> None:
    requester.client.declare("q")
    for method in (
        m.MessageQos(prefetch_count=1),
        m.MessageConsume(queue="q", destination="d"),
        m.MessageCancel(destination="d"),
        m.MessageCancel(destination="d"),
    ):
        requester.call(method, m.MessageOk)
        requester.client.expect_nothing()


def test_no_method_of_the_class_can_do_without_its_answer() -> None:
    fields = {name for each in METHODS.values() if each.CLASS_ID == 120 for name, _ in each.LAYOUT}
    assert "no_wait" not in fields and "destination" in fields


@rule("0-9/message.ok/completion", "0-9/message.empty/empty")
def test_ok_and_empty_have_no_fields(requester: Requester) -> None:
    assert requester.call(m.MessageQos(), m.MessageOk).encode() == (120 << 16 | 500).to_bytes(4, "big")
    empty = requester.call(m.MessageGet(queue="q"), m.MessageEmpty)
    assert empty.encode() == (120 << 16 | 510).to_bytes(4, "big")


# --- fields --------------------------------------------------------------------------------------------
@rule("0-9/message.transfer/fields", "0-9/message.transfer/headers-kept")
def test_transfer_keeps_all_fields_set_by_its_publisher(requester: Requester) -> None:
    asked = requester.publish("q", b"body", **FULL).get("q")
    assert asked is not None
    got = asked.method
    assert {name: getattr(got, name) for name in FULL} == FULL
    assert len(got.LAYOUT) == 22 and got.LAYOUT[-1] == ("body", "content")


@rule("0-9/message.transfer/headers-kept")
def test_headers_keep_their_types(lenient: Server) -> None:
    client = lenient.client().declare("q")
    tagged = b"\x01b" + b"b\x05" + b"\x01l" + b"l" + bytes(7) + b"\x09"
    table = len(tagged).to_bytes(4, "big") + tagged
    octets = m.MessageTransfer(routing_key="q").encode()[:-9] + table + bytes(5)
    client.send_frame(FRAME_REQUEST, 1, encode_request(Request(1, 0, octets)))
    client.send_frame(FRAME_REQUEST, 1, encode_request(Request(2, 0, m.MessageGet(queue="q").encode())))
    assert client.take_bytes().count(table) == 1


def test_message_with_empty_body_and_no_headers_is_delivered(requester: Requester) -> None:
    asked = requester.publish("q", b"").get("q")
    assert asked is not None
    assert (asked.method.body, asked.method.application_headers) == (Body(), {})


@rule("0-9/message.transfer/timestamp")
def test_the_broker_says_when_a_message_came(server: Server, requester: Requester) -> None:
    asked = requester.publish("q", b"", timestamp=17).get("q")
    assert asked is not None
    assert asked.method.timestamp == int(server.clock.time())


@rule("0-9/message.transfer/expiration")
def test_the_broker_says_when_a_message_expires(server: Server, requester: Requester) -> None:
    requester.publish("q", b"", ttl=10_000, expiration=17)
    requester.publish("q", b"", ttl=1, expiration=17).publish("q", b"", expiration=17)
    now = int(server.clock.time())
    for ttl, expiration in ((10_000, now + 10), (1, now + 1), (0, 0)):
        asked = requester.get("q")
        assert asked is not None
        assert (asked.method.ttl, asked.method.expiration) == (ttl, expiration)


@rule("0-9/message.transfer/ttl#discarded")
def test_expired_transfer_is_discarded_after_its_ttl(requester: Requester) -> None:
    asked = requester.publish("q", b"short", ttl=50).publish("q", b"longer", ttl=500).after(0.05).get("q")
    assert asked is not None and asked.method.body.octets == b"longer"
    assert requester.get("q") is None


@rule("0-9/message.transfer/ttl#dead-lettered")
def test_expired_transfer_is_dead_lettered_with_reason_expired(requester: Requester) -> None:
    client = requester.client
    client.declare("dead")
    table = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    client.declare("dying", arguments=table)
    asked = requester.publish("dying", b"m", ttl=50, transaction_id="t").after(0.05).get("dead")
    assert asked is not None
    got = asked.method
    assert (got.body.octets, got.routing_key, got.ttl, got.transaction_id) == (b"m", "dead", 0, "t")
    assert got.application_headers["x-death"][0]["reason"] == "expired"


# --- destinations --------------------------------------------------------------------------------------
@rule("0-9/message.transfer/destination-01", "0-9/domain.destination/blank")
def test_a_blank_destination_is_the_default_exchange(requester: Requester) -> None:
    assert requester.publish("q", b"m").client.empty("q") == [b"m"]


@rule("0-9/message.transfer/routing")
def test_the_destination_is_an_exchange(requester: Requester) -> None:
    requester.client.bind("q", "amq.topic", "a.*")
    asked = requester.publish("a.b", b"m", destination="amq.topic").get("q")
    assert asked is not None
    assert (asked.method.exchange, asked.method.routing_key) == ("amq.topic", "a.b")


@marked_rows(
    "fields, code",
    (rule("0-9/message.transfer/destination-missing"), {"destination": "missing"}, 404),
    (rule("0-9/message.transfer/destination-02"), {"destination": "inner"}, 403),
    ((), {"destination": "amq.direct"}, 403),
)
def test_transfer_to_a_missing_or_forbidden_destination_closes_the_channel(
    server: Server, fields: dict[str, str], code: int
) -> None:
    server.state.access.add(User("u", "p", (), {"/": Permission(write="^(inner|missing|amq.default)$")}))
    server.vhost.exchanges.create("inner", "fanout", internal=True)
    requester = Requester(server.client(user="u", password="p"))
    requester.ask(transfer(**fields))
    requester.client.expect_channel_close(code)


def test_transfer_with_the_user_id_of_another_user_closes_the_channel_with_406(lenient: Server) -> None:
    requester = Requester(lenient.client())
    requester.ask(transfer(user_id="nobody"))
    requester.client.expect_channel_close(406)


def test_transfer_to_a_topic_exchange_is_refused_without_topic_permission(lenient: Server) -> None:
    allowed = {("/", "amq.topic"): TopicPermission(write="^mine$")}
    lenient.state.access.add(User("u", "p", (), {"/": Permission()}, allowed))
    requester = Requester(lenient.client(user="u", password="p"))
    requester.call(transfer("mine", destination="amq.topic"), m.MessageReject)
    requester.ask(transfer("yours", destination="amq.topic"))
    requester.client.expect_channel_close(403)


@rule("0-9/message.transfer/ticket-01", "0-9/message.consume/ticket-01", "0-9/message.get/ticket-01")
@rows(
    "rights, method",
    ("read", transfer()),
    ("write", m.MessageConsume(queue="q", destination="d")),
    ("write", m.MessageGet(queue="q")),
    ids=["transfer", "consume", "get"],
)
def test_a_ticket_must_give_the_right_that_a_method_needs(spec: Server, rights: str, method: Any) -> None:
    spec.client().declare("q")
    client = spec.client(channels=2)
    request = m.AccessRequest(realm="/data", **{rights: True})
    method.ticket = client.call(request, m.AccessRequestOk, 2).ticket
    Requester(client, 2).ask(method)
    client.expect_channel_close(403, 2)


# --- what becomes of a message -------------------------------------------------------------------------
@rule("0-9/message.transfer/01", "0-9/message/01")
def test_confirmed_persistent_transfer_survives_a_crash(server: Server) -> None:
    requester = Requester(server.client())
    requester.client.declare("q", durable=True)
    requester.publish("q", b"kept", delivery_mode=2).publish("q", b"lost", delivery_mode=1)
    server.restart(crash=True)
    assert [each.message.body for each in server.vhost.queues["q"].ready] == [b"kept"]


@rule("0-9/message.reject/rejects")
def test_a_message_without_a_queue_is_rejected(requester: Requester) -> None:
    reject = requester.call(transfer("nowhere"), m.MessageReject)
    assert (reject.code, reject.text) == (0, "NO_ROUTE")


@rule("0-9/message.transfer/immediate-01", "0-9/domain.reject-code/01")
def test_an_immediate_message_without_a_ready_consumer_is_rejected(requester: Requester) -> None:
    reject = requester.call(transfer(immediate=True), m.MessageReject)
    assert (reject.code, reject.text) == (1, "NO_CONSUMERS")
    assert requester.get("q") is None
    requester.consume("q", "d").ask(transfer(immediate=True))
    assert requester.transfer().method.body.octets == b"body"
    requester.response(m.MessageOk)


def test_a_message_that_a_full_queue_refuses_is_rejected(requester: Requester) -> None:
    table = {"x-max-length": 1, "x-overflow": "reject-publish"}
    requester.client.declare("full", arguments=table)
    reject = requester.publish("full", b"first").call(transfer("full"), m.MessageReject)
    assert reject.code == 0 and "full" in reject.text


def test_a_message_that_an_exchange_keeps_for_later_is_not_rejected(lenient: Server) -> None:
    requester = Requester(lenient.client())
    client = requester.client
    client.declare("q")
    delayed = m.ExchangeDeclare(
        exchange="later", type="x-delayed-message", arguments={"x-delayed-type": "fanout"}
    )
    client.call(delayed, m.ExchangeDeclareOk)
    client.bind("q", "later")
    requester.publish("", b"m", destination="later", application_headers={"x-delay": 1000})
    assert requester.get("q") is None
    asked = requester.after(1).get("q")
    assert asked is not None and asked.method.body.octets == b"m"


def test_rejected_transfer_is_recorded_in_the_history_of_returned_messages(requester: Requester) -> None:
    requester.server.state.outcome_histories = OutcomeHistories(10)
    requester.call(transfer("nowhere", b"m"), m.MessageReject)
    (returned,) = requester.server.state.outcome_histories.returned
    assert (returned.message.body, returned.code, returned.text) == (b"m", 0, "NO_ROUTE")


@rule("0-9/message/03")
def test_a_blocked_publisher_is_read_no_further(server: Server, requester: Requester) -> None:
    client = requester.client
    for connection in server.state.connections:
        connection.set_blocked("low on memory")  # type: ignore[attr-defined]
    client.inbox.clear()
    client.send_bytes(requester.request_bytes(transfer()) + requester.request_bytes(transfer()))
    assert requester.response(m.MessageOk).first == 1
    client.expect_nothing()
    for connection in server.state.connections:
        connection.set_blocked(None)  # type: ignore[attr-defined]
    while (told := client.take_frame()).type == 1:
        pass  # channel.flow, where the personality says so
    assert told.type == 10
    assert client.count("q") == 2


def test_a_message_too_large_is_refused(lenient: Server) -> None:
    server = Server(replace(lenient.state.personality, largest_message=4))
    requester = Requester(server.client())
    requester.client.declare("q")
    requester.publish("q", b"1234").ask(transfer(body=b"12345"))
    requester.client.expect_channel_close(406)


# --- priorities ----------------------------------------------------------------------------------------
@rule("0-9/message/06", "0-9/message/07")
@pytest.mark.letter
def test_messages_of_higher_priority_go_first(requester: Requester) -> None:
    requester.client.declare("q")
    for priority in range(10):
        requester.publish("q", b"%d" % priority, priority=priority)
    requester.ask(m.MessageConsume(queue="q", destination="d", no_ack=True))
    requester.response(m.MessageOk)
    assert requester.bodies() == [b"%d" % priority for priority in reversed(range(10))]


@rule("0-9/message/08")
def test_messages_of_one_priority_keep_their_order(requester: Requester) -> None:
    for number in range(6):
        requester.publish("q", b"%d" % number, delivery_mode=1 + number % 2, priority=5)
    assert requester.consume("q", "d", no_ack=True).bodies() == [b"%d" % number for number in range(6)]


@rule("0-9/message/02", "0-9/message/05")
@pytest.mark.letter
def test_full_queue_drops_the_transfer_of_lowest_priority(requester: Requester) -> None:
    requester.client.declare("full", arguments={"x-max-length": 2})
    requester.publish("full", b"urgent", priority=9).publish("full", b"not", priority=0)
    requester.publish("full", b"a little", priority=4)
    assert requester.consume("full", "d", no_ack=True).bodies() == [b"urgent", b"a little"]


def test_a_transfer_to_many_queues_is_answered_once_all_have_it(requester: Requester) -> None:
    client = requester.client
    for each in range(100):
        client.perform(m.QueueDeclare(queue=f"many.{each}"))
        client.perform(m.QueueBind(queue=f"many.{each}", exchange="amq.fanout"))
    operations = client.server.state.operations
    operations.pauses = lambda: True
    requester.ask(transfer("", destination="amq.fanout"))
    slices = 0
    while operations.pending:
        assert client.inbox == []
        operations.step()
        slices += 1
    assert slices > 1
    requester.response(m.MessageOk)
