"""Class stream: messages that nobody acknowledges."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compat_tests.protocol.amqp_0_9.files import speaking_0_9_1
from compat_tests.protocol.amqp_0_9.test_file_staging import over_0_10
from compat_tests.protocol.amqp_0_10.contents import consume_stream, publish_packet, take_packets
from compat_tests.scripted.amqp_0_9 import Child, Client, Content, Server, content
from compat_tests.scripted.octets import cut
from fakeamqp.protocols.amqp_0_9.codec import StreamProperties, methods as m
from fakeamqp.protocols.amqp_0_9_1.codec import methods as shared

rule = pytest.mark.rule

PROPERTIES: dict[str, Any] = {
    "content_type": "audio",
    "content_encoding": "none",
    "headers": {"n": 5},
    "priority": 6,
    "timestamp": 1 << 33,
}


def consume(client: Client, queue: str = "q", tag: str = "t", channel: int = 1, **fields: Any) -> str:
    """Start a consumer; what it is sent stays in the inbox."""
    method = m.StreamConsume(queue=queue, consumer_tag=tag, **fields)
    return client.call(method, m.StreamConsumeOk, channel).consumer_tag


def publish(client: Client, body: bytes, key: str = "q", channel: int = 1, **fields: Any) -> None:
    properties = {name: fields.pop(name) for name in PROPERTIES if name in fields}
    method = m.StreamPublish(routing_key=key, **fields)
    client.send_content(method, StreamProperties(**properties), body, channel=channel)


def take(client: Client, channel: int = 1) -> Content:
    content: Content = client.expect_content(m.StreamDeliver, channel)
    return content


def bodies(client: Client, channel: int = 1) -> list[bytes]:
    taken = []
    while client.inbox:
        taken.append(take(client, channel).body)
    return taken


# --- what it is about --------------------------------------------------------------------------------


@rule("0-9/stream/grammar", "0-9/stream/properties", "0-9/stream.publish/exchange-01")
def test_published_stream_message_is_delivered_with_body_and_properties(
    client: Client, server: Server
) -> None:
    client.declare("q")
    client.call(m.StreamQos(prefetch_count=10), m.StreamQosOk)
    other = server.client()
    consume(other)
    publish(client, b"body", **PROPERTIES)
    client.expect_nothing()
    content = take(other)
    assert content.body == b"body"
    assert {name: getattr(content.properties, name) for name in PROPERTIES} == PROPERTIES
    other.call(m.StreamCancel(consumer_tag="t"), m.StreamCancelOk)


@rule("0-9/stream/properties")
def test_properties_go_out_in_the_octets_they_came_in(client: Client) -> None:
    octets = StreamProperties(**PROPERTIES).encode()
    assert octets[:2] == b"\xf8\x00"
    client.declare("q")
    consume(client)
    publish(client, b"body", **PROPERTIES)
    client.expect(m.StreamDeliver)
    assert client.take_frame().payload[12:] == octets


@rule("0-9/stream.deliver/fields")
def test_stream_deliver_has_consumer_tag_exchange_queue_and_delivery_tag(client: Client) -> None:
    client.declare("q")
    client.bind("q", "amq.direct", "k")
    consume(client)
    publish(client, b"body", "k", exchange="amq.direct")
    deliver = take(client).method
    assert (deliver.consumer_tag, deliver.exchange, deliver.queue) == ("t", "amq.direct", "q")
    assert deliver.delivery_tag > 0


@rule("0-9/stream/03", "0-9/stream/unreliable", "0-9/stream.consume/no-no-ack")
def test_delivered_stream_messages_are_not_requeued_after_connection_loss(server: Server) -> None:
    client = server.client()
    client.declare("q")
    publish(client, b"1")
    publish(client, b"2")
    consume(client)
    assert bodies(client) == [b"1", b"2"]
    client.drop()
    assert server.client().count("q") == 0


@rule("0-9/stream/02")
@pytest.mark.letter
def test_messages_of_higher_priority_go_first(client: Client) -> None:
    client.declare("q")
    for body, priority in ((b"low", 1), (b"high", 7), (b"higher", 9), (b"low too", 1)):
        publish(client, body, priority=priority)
    consume(client)
    assert bodies(client) == [b"higher", b"high", b"low", b"low too"]


@rule("0-9/stream/01")
@pytest.mark.letter
def test_full_queue_drops_the_stream_message_of_lowest_priority(client: Client) -> None:
    client.declare("q", arguments={"x-max-length": 2})
    for body, priority in ((b"high", 7), (b"low", 1), (b"higher", 9)):
        publish(client, body, priority=priority)
    client.expect_nothing()
    consume(client)
    assert bodies(client) == [b"higher", b"high"]


@rule("0-9/queue/any-content#independent", "0-9/content/mixed-classes")
def test_stream_message_is_not_delivered_to_consumers_of_other_classes(client: Client) -> None:
    client.declare("q")
    publish(client, b"stream")
    client.fill("q", b"basic")
    client.consume("q", "basic")
    assert client.delivery().body == b"basic"
    client.call(m.FileConsume(queue="q", consumer_tag="file"), m.FileConsumeOk)
    client.expect_nothing()
    consume(client)
    assert bodies(client) == [b"stream"]


@rule("0-9/content/child-contents")
def test_child_contents_of_a_stream_message_are_delivered_and_returned_with_it(client: Client) -> None:
    inner = (Child(60, b"\0\0", b"inner", (Child(70, b"\0\0", b"innermost"),)),)
    client.declare("q")
    consume(client)
    client.send_content(m.StreamPublish(routing_key="q"), StreamProperties(), b"body", children=inner)
    content = take(client)
    assert (content.body, content.children) == (b"body", inner)
    mandatory = m.StreamPublish(routing_key="nobody", mandatory=True)
    client.send_content(mandatory, StreamProperties(), b"body", children=inner)
    returned = client.expect_content(m.StreamReturn)
    assert (returned.body, returned.children) == (b"body", inner)


def test_stream_messages_keep_body_and_properties_for_0_9_1_and_0_10(server: Server) -> None:
    client = server.client()
    client.declare("q")
    publish(client, b"1", **PROPERTIES)
    publish(client, b"2", **PROPERTIES)
    content = speaking_0_9_1(server).client().get("q", no_ack=True)
    assert content is not None
    assert (content.body, content.properties.content_type, content.properties.priority) == (b"1", "audio", 6)
    session = over_0_10(server).session()
    consume_stream(session)
    (packet,) = take_packets(session)
    assert (packet.body, packet.properties.content_type, packet.properties.headers) == (
        b"2",
        "audio",
        {"n": 5},
    )
    session.declare("r")
    publish_packet(session, b"3", "r", content_type="video")
    consume(client, "r")
    back = take(client)
    assert (back.body, back.properties.content_type) == (b"3", "video")


# --- consumers ---------------------------------------------------------------------------------------


@rule("0-9/stream.consume-ok/tag")
def test_an_empty_tag_is_replaced_and_told(client: Client) -> None:
    client.declare("q")
    tag = consume(client, tag="")
    publish(client, b"body")
    assert tag and take(client).method.consumer_tag == tag


@rule("0-9/stream.consume/queue-01")
def test_stream_consume_with_blank_queue_uses_the_last_declared_queue(server: Server) -> None:
    client = server.client()
    client.declare("q")
    consume(client, "")
    publish(client, b"body")
    assert take(client).body == b"body"
    other = server.client()
    other.send(m.StreamConsume())
    other.expect_connection_close(530)


@rule("0-9/stream.consume/consumer-tag-01")
@pytest.mark.parametrize("channel", [1, 2])
def test_a_tag_in_use_on_the_connection_ends_it(server: Server, channel: int) -> None:
    client = server.client(channels=2)
    client.declare("q")
    client.consume("q", "t")
    client.send(m.StreamConsume(queue="q", consumer_tag="t"), channel)
    client.expect_connection_close(530)


@rule("0-9/stream.consume/exclusive-01")
def test_exclusive_stream_consumer_is_refused_with_405_beside_another_consumer(client: Client) -> None:
    client.declare("q")
    consume(client)
    client.send(m.StreamConsume(queue="q", exclusive=True))
    client.expect_channel_close(405)


def test_stream_consumer_accepts_no_local_and_nowait(server: Server) -> None:
    client, other = server.client(), server.client()
    client.declare("q")
    client.send(m.StreamConsume(queue="q", consumer_tag="t", no_local=True, no_wait=True))
    client.expect_nothing()
    publish(client, b"own")
    publish(other, b"other's")
    assert bodies(client) == [b"other's"]
    client.send(m.StreamCancel(consumer_tag="t", no_wait=True))
    client.expect_nothing()


@rule("0-9/stream.consume/01")
def test_many_consumers_take_turns(server: Server) -> None:
    client = server.client(channels=16)
    client.declare("q")
    for number in range(1, 17):
        consume(client, tag=str(number), channel=number)
    for number in range(1, 17):
        publish(client, b"%d" % number)
    assert [take(client, channel=number).body for number in range(1, 17)] == [
        b"%d" % number for number in range(1, 17)
    ]


@rule("0-9/stream.cancel/stops-shortly", "0-9/stream.cancel-ok/tag")
def test_cancel_ends_deliveries(client: Client) -> None:
    client.declare("q")
    consume(client)
    assert client.call(m.StreamCancel(consumer_tag="t"), m.StreamCancelOk).consumer_tag == "t"
    publish(client, b"body")
    client.expect_nothing()
    assert client.count("q") == 1
    assert client.call(m.StreamCancel(consumer_tag="u"), m.StreamCancelOk).consumer_tag == "u"


def test_stream_consume_from_a_stream_queue_is_refused_with_540(lenient: Server) -> None:
    client = lenient.client()
    client.declare("q", durable=True, arguments={"x-queue-type": "stream"})
    client.send(m.StreamConsume(queue="q"))
    close = client.expect_channel_close(540)
    assert "requires acknowledgements" in close.reply_text


# --- windows and rates -------------------------------------------------------------------------------


def sent(client: Client) -> list[bytes]:
    """The bodies in what the transport takes now; what that lets through is for another time."""
    return [each.payload for each in cut(client.take_bytes()) if each.type == 3]


@rule("0-9/stream.qos/prefetch#count", "0-9/stream.qos/prefetch#size")
@pytest.mark.parametrize("for_connection", [False, True])
@pytest.mark.parametrize("limit", [{"prefetch_count": 2}, {"prefetch_size": 20}])
def test_stream_prefetch_counts_deliveries_not_yet_taken_by_the_transport(
    client: Client, server: Server, limit: dict[str, int], for_connection: bool
) -> None:
    client.declare("q")
    client.call(m.StreamQos(**limit, global_=for_connection), m.StreamQosOk)
    consume(client)
    other = server.client()
    published = [b"%010d" % number for number in range(5)]
    for body in published:
        publish(other, body)
    waiting = server.vhost.queues["q"].ready
    assert len(waiting) == 3
    assert sent(client) == published[:2]
    assert len(waiting) == 1
    assert sent(client) == published[2:4]
    assert sent(client) == published[4:]
    assert sent(client) == []


@rule("0-9/stream.qos/prefetch#zero")
def test_no_window_is_no_limit(client: Client, server: Server) -> None:
    client.declare("q")
    consume(client)
    other = server.client()
    for _ in range(5):
        publish(other, b"body")
    assert len(sent(client)) == 5


def test_a_lost_connection_takes_its_windows_with_it(client: Client, server: Server) -> None:
    client.declare("q")
    client.call(m.StreamQos(prefetch_count=1, consume_rate=1, global_=True), m.StreamQosOk)
    consume(client)
    other = server.client()
    for _ in range(2):
        publish(other, b"body")
    client.drop()
    assert other.count("q") == 1
    assert server.state.timers.next_due() is None


@rule("0-9/stream.qos/consume-rate", "0-9/stream.qos-ok/confirm")
def test_a_rate_holds_deliveries_back_on_the_brokers_clock(client: Client, server: Server) -> None:
    client.declare("q")
    client.call(m.StreamQos(consume_rate=10), m.StreamQosOk)
    consume(client)
    for number in range(3):
        publish(client, b"%020d" % number)
    assert len(bodies(client)) == 1
    server.advance(1.9)
    client.expect_nothing()
    server.advance(0.2)
    assert len(bodies(client)) == 1
    server.advance(2)
    assert len(bodies(client)) == 1
    publish(client, b"now")
    client.expect_nothing()
    client.send(m.StreamQos(consume_rate=0))
    client.expect(m.StreamQosOk)
    assert bodies(client) == [b"now"]


@rule("0-9/stream.qos/global")
def test_a_global_rate_is_for_the_whole_connection(server: Server) -> None:
    client = server.client(channels=2)
    client.declare("q")
    client.declare("r")
    consume(client, "q", "1")
    consume(client, "r", "2", channel=2)
    client.call(m.StreamQos(consume_rate=10, global_=True), m.StreamQosOk)
    publish(client, b"0123456789", "q")
    assert bodies(client) == [b"0123456789"]
    publish(client, b"1", "r")
    client.expect_nothing()
    server.advance(1)
    assert bodies(client, channel=2) == [b"1"]


@rule("0-9/stream.qos/consume-rate-01")
def test_stream_consumer_with_a_low_rate_gets_all_messages_in_time(client: Client, server: Server) -> None:
    client.declare("q")
    client.call(m.StreamQos(consume_rate=1), m.StreamQosOk)
    consume(client)
    for _ in range(10):
        publish(client, b"1", priority=0)
    server.advance(10)
    assert len(bodies(client)) == 10


def test_a_rate_ends_with_its_channel(client: Client, server: Server) -> None:
    client.declare("q")
    client.call(m.StreamQos(consume_rate=1), m.StreamQosOk)
    consume(client)
    publish(client, b"0123456789")
    assert bodies(client) == [b"0123456789"]
    assert server.state.timers.next_due() is not None
    client.close_channel()
    assert server.state.timers.next_due() is None


# --- publishing --------------------------------------------------------------------------------------


@rule("0-9/stream.publish/routes")
@pytest.mark.parametrize("kind", ["direct", "fanout", "topic", "headers"])
def test_every_exchange_routes_streams(client: Client, kind: str) -> None:
    client.declare("q")
    name = "amq.match" if kind == "headers" else f"amq.{kind}"
    client.bind("q", name, "k", arguments={"x-match": "all", "h": 1} if kind == "headers" else {})
    consume(client)
    publish(client, b"body", "k", exchange=name, headers={"h": 1})
    publish(client, b"other", "l", exchange=name, headers={"h": 2})
    assert bodies(client) == ([b"body", b"other"] if kind == "fanout" else [b"body"])


@rule(
    "0-9/stream.publish/mandatory-01",
    "0-9/stream.publish/immediate-01",
    "0-9/stream.return/content#code",
    "0-9/stream.return/content#source",
    "0-9/stream.return/content#content",
)
@pytest.mark.parametrize(("key", "flag", "code"), [("nobody", "mandatory", 312), ("q", "immediate", 313)])
def test_undeliverable_mandatory_or_immediate_stream_message_is_returned(
    client: Client, key: str, flag: str, code: int
) -> None:
    client.declare("q")
    publish(client, b"body", key, **{flag: True}, **PROPERTIES)
    returned = client.expect_content(m.StreamReturn)
    method = returned.method
    assert (method.reply_code, method.exchange, method.routing_key) == (code, "", key)
    assert (returned.body, returned.properties.headers) == (b"body", {"n": 5})
    assert client.count("q") == 0


def test_stream_publish_to_a_missing_exchange_closes_the_channel_with_404(client: Client) -> None:
    publish(client, b"body", exchange="missing")
    client.expect_channel_close(404)


@rule("0-9/stream.publish/exchange-02")
def test_stream_publish_to_an_internal_exchange_closes_the_channel_with_403(lenient: Server) -> None:
    client = lenient.client()
    client.call(shared.ExchangeDeclare(exchange="x", type="fanout", internal=True), shared.ExchangeDeclareOk)
    publish(client, b"body", exchange="x")
    client.expect_channel_close(403)


@rule("0-9/stream.publish/not-transactional")
def test_a_transaction_does_not_hold_streams_back(client: Client) -> None:
    client.declare("q")
    client.call(m.TxSelect(), shared.TxSelectOk)
    publish(client, b"body")
    client.call(m.TxRollback(), shared.TxRollbackOk)
    assert client.count("q") == 1


def test_stream_message_over_the_size_limit_closes_the_channel_with_311(lenient: Server) -> None:
    client = lenient.client()
    client.declare("q")
    publish(client, bytes(lenient.state.personality.largest_message + 1))
    client.expect_channel_close(311)


@pytest.mark.parametrize(
    ("largest", "size", "fits"), [(4, 3, True), (4, 4, True), (4, 5, False), (0, 1, True), (0, 100_000, True)]
)
def test_message_may_be_as_large_as_the_limit(lenient: Server, largest: int, size: int, fits: bool) -> None:
    client = Server(replace(lenient.state.personality, largest_message=largest)).client()
    client.declare("q")
    publish(client, bytes(size))
    if fits:
        assert client.count("q") == 1
    else:
        client.expect_channel_close(311)


@rule("0-9/stream/properties")
def test_headers_keep_their_types(lenient: Server) -> None:
    client = lenient.client()
    client.declare("q")
    consume(client)
    tagged = b"\x01b" + b"b\x05" + b"\x01l" + b"l" + bytes(7) + b"\x09"
    octets = b"\x20\x00" + len(tagged).to_bytes(4, "big") + tagged
    method = client.method_frame(m.StreamPublish(routing_key="q"))
    client.send_bytes(method + content(Child(80, octets, b"body")))
    client.expect(m.StreamDeliver)
    assert client.take_frame().payload[12:] == octets


def test_returned_stream_message_is_recorded_with_its_channel(lenient: Server) -> None:
    kept = Server(lenient.state.personality, history=10)
    client = kept.client(channels=2)
    publish(client, b"1", key="nowhere", channel=2, mandatory=True)
    client.expect_content(m.StreamReturn, 2)
    histories = kept.state.outcome_histories
    assert histories is not None
    [returned] = histories.returned
    assert returned.channel == 2
