"""Details in which RabbitMQ does something of its own, measured on 4.0.5 and 4.3.6 (tests name the rest)."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.scripted.octets import cut
from compat_tests.tools.matrix import rows
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames

RABBITMQ = ["rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2", "rabbitmq-4.3"]


# --- the flag redelivered of dead letters -----------------------------------------------------------
def dying(client: Client, target: dict[str, Any] | None = None, **arguments: Any) -> Client:
    """Declare a queue whose dead letters go to the queue "dead"."""
    client.declare("dead", durable=True, arguments=target or {})
    to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    return client.declare("q", durable=True, arguments=to_dead | arguments)


def dead_flag(client: Client) -> bool:
    return bool(client.fetch("dead").method.redelivered)


@pytest.mark.parametrize("name", RABBITMQ)
@rows(
    "settle, counted",
    (m.BasicReject(delivery_tag=1, requeue=False), True),
    (m.BasicNack(delivery_tag=1, requeue=False), False),
    ids=["reject", "nack"],
)
@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_rejected_dead_letter_is_redelivered_in_4_3(name: str, settle: Any, counted: bool, kind: str) -> None:
    client = Server(name).client()
    dying(client, **{"x-queue-type": kind}).fill("q", b"m").get("q")
    client.send(settle)
    assert dead_flag(client) is (counted and name == "rabbitmq-4.3")


@pytest.mark.needs("virtual time")
@pytest.mark.parametrize(("requeue", "counted"), [("reject", True), ("nack", False), ("lost", True)])
@pytest.mark.parametrize("name", RABBITMQ)
def test_dead_letter_expired_after_requeue_has_redelivered_set_in_4_3(
    name: str, requeue: str, counted: bool
) -> None:
    server = Server(name)
    client, other = server.client(), server.client()
    dying(client, **{"x-message-ttl": 1000}).fill("q", b"m")
    other.get("q")
    if requeue == "lost":
        other.close_channel()
    elif requeue == "reject":
        other.reject(1, requeue=True)
    else:
        other.send(m.BasicNack(delivery_tag=1, requeue=True))
    server.advance(2)
    assert dead_flag(client) is (counted and name == "rabbitmq-4.3")


@pytest.mark.needs("personality rabbitmq-4.3")
def test_dead_letter_delivered_to_waiting_consumer_has_no_redelivered_flag() -> None:
    client = Server("rabbitmq-4.3").client()
    dying(client).consume("dead", no_ack=True).fill("q", b"m").get("q")
    assert client.reject(1, requeue=False).delivery().method.redelivered is False


@pytest.mark.needs("virtual time")
def test_second_dead_lettering_keeps_the_redelivered_flag() -> None:
    client = Server("rabbitmq-4.3").client().declare("last", durable=True)
    to_last = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "last", "x-message-ttl": 10}
    dying(client, to_last).fill("q", b"m").get("q")
    assert client.reject(1, requeue=False).after(1).fetch("last").method.redelivered


@pytest.mark.needs("personality rabbitmq-4.3")
def test_dead_letter_in_quorum_queue_has_acquired_and_delivery_counts() -> None:
    client = Server("rabbitmq-4.3").client()
    dying(client, {"x-queue-type": "quorum"}).fill("q", b"m").get("q")
    headers = client.reject(1, requeue=False).fetch("dead").properties.headers
    assert headers is not None
    assert (headers["x-acquired-count"], headers["x-delivery-count"]) == (1, 1)
    assert list(headers) == sorted(headers)


# --- confirms ---------------------------------------------------------------------------------------
def publishes(client: Client, *keys: str) -> bytes:
    """Publishes with these routing keys, as they are sent in one write."""
    octets = b""
    for key in keys:
        octets += client.method_frame(m.BasicPublish(routing_key=key))
        octets += b"".join(content_frames(1, 60, b"\0\0", b"m", 4096))
    return octets


@pytest.mark.parametrize("name", [*RABBITMQ, "spec"])
def test_rabbitmq_confirms_unroutable_messages_one_by_one(name: str) -> None:
    client = Server(name).client()
    client.declare("q", durable=True).perform(m.ConfirmSelect())
    client.send_bytes(publishes(client, "q", "q", "nowhere", "nowhere", "q"))
    acks = []
    for frame in cut(client.take_bytes()):
        ack = client.read(frame.payload)
        assert isinstance(ack, m.BasicAck)
        acks.append((ack.delivery_tag, ack.multiple))
    if name == "spec":
        assert acks == [(5, True)]
    else:
        assert acks == [(3, False), (4, False), (5, True)]


# --- short strings ----------------------------------------------------------------------------------

NOT_UTF8 = "\udcff"
SURROGATE = b"\xed\xa0\x80".decode("utf-8", "surrogateescape")
OVERLONG = b"\xc0\x80".decode("utf-8", "surrogateescape")


@rows(
    "method",
    m.QueueDeclare(queue=NOT_UTF8),
    m.QueueDeclare(queue=OVERLONG),
    m.QueueBind(queue="q", exchange="amq.direct", routing_key=NOT_UTF8),
    m.ExchangeDeclare(exchange="x", type=NOT_UTF8),
    m.BasicConsume(queue="q", consumer_tag=NOT_UTF8),
    m.BasicGet(queue=NOT_UTF8),
    ids=repr,
)
@pytest.mark.parametrize("name", RABBITMQ)
def test_rabbitmq_refuses_invalid_utf8_in_names_with_501(name: str, method: Any) -> None:
    close = Server(name).client().declare("q", durable=True).ends(method, 501)
    assert close.reply_text == "FRAME_ERROR - Malformed UTF-8 in shortstr"
    assert (close.class_id, close.method_id) == (0, 0)


def test_spec_personality_accepts_invalid_utf8_in_routing_key(spec: Server) -> None:
    spec.client().declare("q").bind("q", "amq.direct", NOT_UTF8)


@pytest.mark.parametrize("name", RABBITMQ)
def test_utf8_encoded_surrogates_in_queue_name_are_refused_since_4_3(name: str) -> None:
    client = Server(name).client().send(m.QueueDeclare(queue=SURROGATE))
    if name == "rabbitmq-4.3":
        client.expect_connection_close(501)
    else:
        client.expect(m.QueueDeclareOk)


@pytest.mark.parametrize("name", RABBITMQ)
def test_publish_accepts_invalid_utf8_in_routing_key_and_correlation_id(name: str) -> None:
    client = Server(name).client()
    client.declare("q", durable=True).bind("q", "amq.fanout")
    client.publish(b"m", exchange="amq.fanout", routing_key=NOT_UTF8, correlation_id=NOT_UTF8)
    content = client.fetch("q")
    assert (content.method.routing_key, content.properties.correlation_id) == (NOT_UTF8, NOT_UTF8)


# --- texts ------------------------------------------------------------------------------------------
@pytest.mark.needs("personality rabbitmq-4.2")
@rows(
    "value, text",
    (1000.0, "1.0e3"),
    (0.1, "0.1"),
    (1.5, "1.5"),
    (1e22, "1.0e22"),
    (1e-7, "1.0e-7"),
    (123456.789, "123456.789"),
    (-2.0, "-2.0"),
    (1e5, "1.0e5"),
    (1e6, "1.0e6"),
    (12345678901234567890.0, "1.2345678901234567e19"),
)
def test_floats_in_error_texts_are_formatted_like_erlang(value: float, text: str) -> None:
    client = Server("rabbitmq-4.2").client().declare("q", durable=True, arguments={"x-message-ttl": 7})
    client.send(m.QueueDeclare(queue="q", durable=True, arguments={"x-message-ttl": value}))
    assert f"received '{text}' but current is '7'" in client.expect_channel_close(406).reply_text


@pytest.mark.needs("personality rabbitmq-4.2")
@rows(
    "expiration, problem",
    ("9" * 20, "{value_too_large,\n" + " " * 44 + "9" * 20 + "}"),
    ("5 and some words behind it", "{leftover_string,\n" + " " * 50 + '" and some words behind it"}'),
    ("315360000001", "{value_too_large,315360000001}"),
    ("5x", '{leftover_string,"x"}'),
    ("", "no_integer"),
)
def test_invalid_expiration_texts_have_line_breaks_like_erlang(expiration: str, problem: str) -> None:
    client = Server("rabbitmq-4.2").client().publish(b"m", routing_key="q", expiration=expiration)
    text = f"PRECONDITION_FAILED - invalid expiration '{expiration}': {problem}"
    assert client.expect_channel_close(406).reply_text == text


# --- reply addresses and the exchange for logs --------------------------------------------------------
@pytest.mark.parametrize("name", RABBITMQ)
@pytest.mark.parametrize("passive", [True, False])
def test_declare_of_invalid_reply_address_closes_the_connection_since_4_2(name: str, passive: bool) -> None:
    # Measured on 4.0.5 and 4.3.6; 4.2.9 by its tagged source.
    client = Server(name).client()
    client.send(m.QueueDeclare(queue="amq.rabbitmq.reply-to.bogus", passive=passive))
    if name in ("rabbitmq-4.2", "rabbitmq-4.3"):
        assert client.expect_connection_close(541).reply_text == "INTERNAL_ERROR"
    else:
        client.expect_channel_close(404)


@pytest.mark.needs("inspection", "settings")
@pytest.mark.parametrize("name", RABBITMQ)
def test_amq_rabbitmq_log_exists_only_in_default_virtual_host_of_4_3(name: str) -> None:
    server = Server(name)
    other = server.state.add_virtual_host("other")
    assert ("amq.rabbitmq.log" in server.vhost.exchanges) is (name == "rabbitmq-4.3")
    assert "amq.rabbitmq.log" not in other.exchanges
    if name == "rabbitmq-4.3":
        client = server.client().publish(b"m", exchange="amq.rabbitmq.log")
        text = client.expect_channel_close(403).reply_text
        assert text == (
            "ACCESS_REFUSED - cannot publish to internal exchange 'amq.rabbitmq.log' in vhost '/'"
        )


# --- exact arguments --------------------------------------------------------------------------------
def table(*fields: bytes) -> bytes:
    octets = b"".join(fields)
    return len(octets).to_bytes(4, "big") + octets


def binding(index: int, queue: str, exchange: str, arguments: bytes) -> bytes:
    """The payload of queue.bind (20) or queue.unbind (50)."""

    def short(text: str) -> bytes:
        return bytes((len(text),)) + text.encode()

    flags = b"\0" if index == 20 else b""
    return bytes((0, 50, 0, index, 0, 0)) + short(queue) + short(exchange) + short("") + flags + arguments


def bindings_left(name: str, bound: bytes, unbound: bytes) -> int:
    server = Server(name)
    client = server.client().declare("q", durable=True)
    client.send_frame(1, 1, binding(20, "q", "amq.headers", bound)).expect(m.QueueBindOk)
    client.send_frame(1, 1, binding(50, "q", "amq.headers", unbound)).expect(m.QueueUnbindOk)
    return len(server.vhost.exchanges["amq.headers"].bindings)


ONE = {tag: b"\x01a" + tag + octets for tag, octets in (
    (b"I", b"\0\0\0\x01"), (b"b", b"\x01"), (b"B", b"\x01"), (b"s", b"\0\x01"), (b"u", b"\0\x01"),
    (b"i", b"\0\0\0\x01"), (b"l", bytes(7) + b"\x01"), (b"L", bytes(7) + b"\x01"),
)}  # fmt: skip
TWO = b"\x01bI\0\0\0\x02"


@pytest.mark.needs("inspection", "several personalities")
@pytest.mark.parametrize("tag", [tag for tag in ONE if tag not in b"I"])
def test_rabbitmq_distinguishes_bindings_by_integer_width_of_arguments(tag: bytes) -> None:
    for name in RABBITMQ:
        assert bindings_left(name, table(ONE[b"I"]), table(ONE[tag])) == 1, name
        assert bindings_left(name, table(ONE[tag]), table(ONE[tag])) == 0, name
    if tag != b"s":  # By the letter that is a short string.
        assert bindings_left("spec", table(ONE[b"I"]), table(ONE[tag])) == 0


@pytest.mark.needs("inspection", "personality rabbitmq-4.2")
def test_bindings_with_int64_tags_l_and_capital_l_are_equal() -> None:
    assert bindings_left("rabbitmq-4.2", table(ONE[b"l"]), table(ONE[b"L"])) == 0


@pytest.mark.needs("inspection", "several personalities")
def test_binding_arguments_compare_field_order_only_in_nested_tables() -> None:
    one = ONE[b"I"]
    assert bindings_left("rabbitmq-4.2", table(one, TWO), table(TWO, one)) == 0
    nested = [b"\x01tF" + each for each in (table(one, TWO), table(TWO, one))]
    assert bindings_left("rabbitmq-4.2", table(nested[0]), table(nested[1])) == 1
    assert bindings_left("spec", table(nested[0]), table(nested[1])) == 0


@pytest.mark.needs("inspection")
def test_binding_created_without_wire_types_is_unbound_by_its_values() -> None:
    server = Server("rabbitmq-4.3")
    client = server.client()
    queue = client.declare("q", durable=True) and server.vhost.queues["q"]
    server.vhost.bindings.bind("amq.headers", queue, "", {"a": 1})
    client.send_frame(1, 1, binding(50, "q", "amq.headers", table(ONE[b"l"]))).expect(m.QueueUnbindOk)
    assert not server.vhost.exchanges["amq.headers"].bindings


def routed(name: str, wanted: bytes, sent: bytes) -> bool:
    client = Server(name).client().declare("q", durable=True)
    client.send_frame(1, 1, binding(20, "q", "amq.headers", wanted)).expect(m.QueueBindOk)
    client.publish_bytes(b"\x20\0" + sent, b"m", exchange="amq.headers")
    return client.get("q") is not None


@pytest.mark.needs("several personalities")
@pytest.mark.parametrize("tag", [b"F", b"A"])
def test_rabbitmq_headers_exchange_compares_nested_values_with_order_and_width(tag: bytes) -> None:
    if tag == b"F":
        values = table(ONE[b"I"], TWO), table(TWO, ONE[b"I"]), table(ONE[b"l"], TWO)
    else:
        values = tuple(table(*(field[2:] for field in fields)) for fields in (
            (ONE[b"I"], TWO), (TWO, ONE[b"I"]), (ONE[b"l"], TWO),
        ))  # fmt: skip
    same, other_order, other_width = (table(b"\x01t" + tag + value) for value in values)
    for name in RABBITMQ:
        assert routed(name, same, same)
        assert not routed(name, same, other_order)
        assert not routed(name, same, other_width)
    assert routed("spec", same, other_width)


@pytest.mark.needs("personality rabbitmq-4.2")
def test_headers_exchange_uses_both_of_two_arguments_of_one_name() -> None:
    other = b"\x01aI\0\0\0\x02"
    any_of = b"\x07x-matchS\0\0\0\x03any"
    for sent in (ONE[b"I"], other):
        assert routed("rabbitmq-4.2", table(any_of, ONE[b"I"], other), table(sent))
        assert not routed("rabbitmq-4.2", table(ONE[b"I"], other), table(sent))
