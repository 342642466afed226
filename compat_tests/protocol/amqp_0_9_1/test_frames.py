from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.scripted.octets import arguments, cut, field, long_string, queue_declare, table
from compat_tests.tools.matrix import rows
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import FRAME_HEADER, content_frames, frame
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties

CHANNEL_OPEN = bytes.fromhex("01 0001 00000005 0014000a 00 ce")


def expect_unreadable_properties(client: Client, code: int) -> None:
    """The properties of a content cannot be read: this code, or the 541 of RabbitMQ (measured)."""
    close = client.expect_connection_close(code if client.explained_to else 541)
    assert (close.class_id, close.method_id) == ((60, 40) if client.explained_to else (0, 0))


def quiet_client(server: Server, **handshake: int) -> Client:
    """A connection without channels."""
    return server.client(channels=0, **handshake)  # type: ignore[arg-type]


# --- layout ------------------------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/frame/layout")
def test_a_frame_is_type_channel_size_payload_and_end(server: Server) -> None:
    client = quiet_client(server).send_bytes(bytes.fromhex("01 0102 00000005 0014000a 00 ce"))
    frame_type, channel, payload, end = cut(client.take_bytes())[0]
    assert (frame_type, channel, end) == (1, 0x0102, 0xCE)
    assert payload[:4] == bytes.fromhex("0014000b")
    assert len(payload) == 8 + int.from_bytes(payload[4:8], "big"), "channel.open-ok has a long string"


@pytest.mark.rule("0-9-1/frame/type-method")
def test_methods_come_in_frames_of_type_1(server: Server) -> None:
    client = server.connect()
    client.send_bytes(client.protocol_header)
    [start] = cut(client.take_bytes())
    assert start.type == 1
    assert start.payload[:4] == bytes.fromhex("000a000a")


def delivered(client: Client, body: bytes, **properties: str) -> list[tuple[int, bytes]]:
    """Type and payload of the frames by which a message comes."""
    client.declare("q").publish(body, routing_key="q", **properties)
    client.send(m.BasicConsume(queue="q", no_ack=True))
    consume_ok, *frames = cut(client.take_bytes())
    assert consume_ok.payload[:4] == bytes.fromhex("003c0015")
    assert {each.channel for each in frames} == {1}
    return [(each.type, each.payload) for each in frames]


@pytest.mark.rule("0-9-1/frame/type-header")
def test_a_content_header_comes_in_a_frame_of_type_2_after_the_method(client: Client) -> None:
    deliver, header = delivered(client, b"", content_type="a/b")
    assert deliver[0] == 1
    assert deliver[1][:4] == bytes.fromhex("003c003c")
    assert header == (2, bytes.fromhex("003c 0000 0000000000000000 8000 03") + b"a/b")


@pytest.mark.rule("0-9-1/frame/type-body")
def test_a_body_comes_in_a_frame_of_type_3_after_the_header(client: Client) -> None:
    deliver, header, body = delivered(client, b"hello")
    assert (deliver[0], header[0]) == (1, 2)
    assert body == (3, b"hello")


@pytest.mark.needs("virtual time")
@pytest.mark.rule("0-9-1/frame/type-heartbeat")
def test_a_heartbeat_comes_in_a_frame_of_type_8(server: Server) -> None:
    client = quiet_client(server, heartbeat=1)
    server.advance(1)
    heartbeat, *_ = cut(client.take_bytes())
    assert (heartbeat.type, heartbeat.size) == (8, 8)


@pytest.mark.needs("virtual time")
@pytest.mark.rule("0-9-1/frame/frame-end-value")
def test_every_frame_ends_with_206(server: Server) -> None:
    client = server.connect()
    octets = []
    for method, channel in (
        (None, 0),
        (m.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0guest", locale="en_US"), 0),
        (m.ConnectionTuneOk(channel_max=9, frame_max=8192, heartbeat=1), 0),
        (m.ConnectionOpen(virtual_host="/"), 0),
    ):
        client.send(method, channel) if method else client.send_bytes(client.protocol_header)
        octets.append(client.take_bytes())
    client.open_channel()
    for method in (m.QueueDeclare(queue="q"), m.BasicConsume(queue="q", no_ack=True)):
        client.send(method)
        octets.append(client.take_bytes())
    client.publish(bytes(20_000), routing_key="q", frame_size=5000)
    octets.append(client.take_bytes())
    server.advance(1)
    octets.append(client.take_bytes())
    frames = cut(b"".join(octets))
    assert {each.type for each in frames} == {1, 2, 3, 8}
    assert {each.end for each in frames} == {206}


@pytest.mark.rule("0-9-1/frame/size-excludes-end")
def test_size_field_of_frame_counts_only_the_payload(client: Client) -> None:
    payloads = [client.with_ticket(queue_declare(name)) for name in ("a", "bcd")]
    octets = b"".join(b"\x01\x00\x01" + len(each).to_bytes(4, "big") + each + b"\xce" for each in payloads)
    assert client.send_bytes(octets).expect(m.QueueDeclareOk).queue == "a"
    assert client.expect(m.QueueDeclareOk).queue == "bcd"
    client.expect_nothing()


@pytest.mark.rule("0-9-1/frame/unaligned-integers")
def test_frames_are_read_at_unaligned_positions(client: Client) -> None:
    names = ["n" * length for length in range(1, 10)]
    client.send_bytes(b"".join(frame(1, 1, client.with_ticket(queue_declare(name))) for name in names))
    assert [client.expect(m.QueueDeclareOk).queue for _ in names] == names


def test_frames_sent_one_byte_at_a_time_are_read(client: Client) -> None:
    octets = b"".join(frame(1, 1, queue_declare(name)) for name in ("first", "second"))
    for octet in octets:
        client.send_bytes(bytes((octet,)))
    assert client.expect(m.QueueDeclareOk).queue == "first"
    assert client.expect(m.QueueDeclareOk).queue == "second"


# --- frames that cannot be right ---------------------------------------------------------------------------

defined_in_0_9 = pytest.mark.protocols("0-9-1")
UNDEFINED_TYPES = [0, 11, 255, *(pytest.param(each, marks=defined_in_0_9) for each in (4, 5, 6, 7, 9, 10))]


@pytest.mark.rule("0-9-1/frame/unknown-type")
@pytest.mark.parametrize("frame_type", UNDEFINED_TYPES)
@pytest.mark.parametrize("channel", [0, 1])
def test_spec_ends_transport_at_frame_of_undefined_type(spec: Server, frame_type: int, channel: int) -> None:
    spec.client().send_frame(frame_type, channel, b"").expect_silent_end()


@pytest.mark.deviates("0-9-1/frame/unknown-type")
@pytest.mark.parametrize("frame_type", UNDEFINED_TYPES)
@pytest.mark.parametrize("channel", [0, 1])
def test_rabbitmq_closes_connection_with_501_at_frame_of_undefined_type(
    rabbitmq: Server, frame_type: int, channel: int
) -> None:
    rabbitmq.client().send_frame(frame_type, channel, b"").expect_connection_close(501, at=(0, 0))


@pytest.mark.rule("0-9-1/frame/bad-frame-end")
def test_spec_personality_ends_transport_at_wrong_frame_end(spec: Server) -> None:
    quiet_client(spec).send_bytes(CHANNEL_OPEN[:-1] + b"\xcd").expect_silent_end()


@pytest.mark.needs("virtual time")
@pytest.mark.deviates("0-9-1/frame/bad-frame-end")
def test_rabbitmq_closes_connection_with_501_at_wrong_frame_end(rabbitmq: Server) -> None:
    close = quiet_client(rabbitmq).send_bytes(CHANNEL_OPEN[:-1] + b"\xcd").expect_end_of_frames()
    assert (close.class_id, close.method_id) == (0, 0)


BROKEN_FRAMING = {
    "wrong-end": CHANNEL_OPEN[:-1] + b"\xcd",
    "undefined-type": frame(9, 1, b"abc"),
    "oversized": FRAME_HEADER.pack(3, 1, 140_000) + bytes(140_000) + b"\xce",
}
CLOSE_OK = frame(1, 0, m.ConnectionCloseOk().encode())


@pytest.mark.needs("inspection", "personality of choices")
@pytest.mark.parametrize("octets", BROKEN_FRAMING.values(), ids=BROKEN_FRAMING)
@pytest.mark.parametrize("size", [1, 7, 1_000_000])
def test_close_ok_is_found_behind_broken_framing(rabbitmq: Server, octets: bytes, size: int) -> None:
    explaining = rabbitmq.varied(explains_malformed_input=True)
    client = explaining.client()
    octets += frame(1, 1, queue_declare("q")) + CLOSE_OK
    for position in range(0, len(octets), size):
        assert not client.closed
        client.send_bytes(octets[position : position + size])
    assert client.expect(m.ConnectionClose, 0).reply_code == 501
    client.expect_nothing()
    assert client.connection.finished
    assert "q" not in explaining.vhost.queues


@pytest.mark.needs("personality of choices")
@pytest.mark.parametrize(
    ("before", "broken"),
    [(CLOSE_OK, BROKEN_FRAMING["undefined-type"]), (b"", FRAME_HEADER.pack(9, 1, 1) + CLOSE_OK[1:])],
    ids=["in a message before", "from the last byte of the header on"],
)
def test_close_ok_that_begins_before_the_broken_payload_is_not_recognised(
    rabbitmq: Server, before: bytes, broken: bytes
) -> None:
    client = rabbitmq.varied(explains_malformed_input=True).client()
    content = b"".join(content_frames(1, 60, BasicProperties().encode(), before, 4000))
    client.send_bytes(client.method_frame(m.BasicPublish()) + content + broken).expect(m.ConnectionClose, 0)
    assert not client.closed
    assert client.send_bytes(CLOSE_OK).connection.finished


@pytest.mark.needs("virtual time", "inspection")
@pytest.mark.parametrize("octets", [BROKEN_FRAMING["wrong-end"], BROKEN_FRAMING["oversized"]])
def test_rabbitmq_reads_no_frame_behind_broken_framing(rabbitmq: Server, octets: bytes) -> None:
    client = rabbitmq.client()
    client.send_bytes(octets + frame(1, 1, queue_declare("q")) + CLOSE_OK).expect_end_of_frames()
    assert "q" not in rabbitmq.vhost.queues


@pytest.mark.needs("virtual time")
def test_broken_framing_after_a_connection_error_still_ends_the_transport(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    client.send_bytes(frame(1, 1, arguments(60, 80)) + BROKEN_FRAMING["wrong-end"]).expect_end_of_frames()


@pytest.mark.rule("0-9-1/frame/frame-end-before-decode")
def test_method_in_frame_with_wrong_frame_end_is_not_executed(server: Server) -> None:
    other = server.client()
    client = server.client().send_bytes(frame(1, 1, queue_declare("q"))[:-1] + b"\xcd")
    assert client.closed or client.expect(m.ConnectionClose, 0)
    other.fails(m.QueueDeclare(queue="q", passive=True), 404)


@pytest.mark.rule("0-9-1/frame/bad-frame-end-log")
def test_a_wrong_frame_end_is_logged(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    client = quiet_client(server)
    with caplog.at_level(logging.INFO, "fakeamqp"):
        client.send_bytes(CHANNEL_OPEN[:-1] + b"\xcd")
    assert "invalid frame end marker 205, expected 206 (channel 1, bytes: 00 14 00 0a 00)" in caplog.text


# --- frame-max ---------------------------------------------------------------------------------------------
def smallest_frame_max(server: Server) -> int:
    return server.state.personality.smallest_frame_max


def publish_in_one_frame(client: Client, octets: int) -> Client:
    """Publish to queue q a body whose one frame is that large, header and frame-end included."""
    return client.publish(bytes(octets - 8), routing_key="q", frame_size=octets)


@pytest.mark.rule("0-9-1/frame/oversized-send#body")
def test_server_sends_no_frame_larger_than_frame_max(server: Server) -> None:
    frame_max = smallest_frame_max(server)
    server.client().declare("q").publish(bytes(100_000), routing_key="q")
    client = server.client(frame_max=frame_max).send(m.BasicGet(queue="q", no_ack=True))
    frames = cut(client.take_bytes())
    assert sum(len(each.payload) for each in frames if each.type == 3) == 100_000
    assert max(each.size for each in frames) == frame_max


@pytest.mark.needs("virtual time")
@pytest.mark.rule("0-9-1/frame/oversized-send#header")
@pytest.mark.deviates("0-9-1/frame/oversized-send#header")
@pytest.mark.protocols("0-9-1")
@pytest.mark.parametrize("how", ["got", "consumed"])
def test_only_rabbitmq_sends_content_header_larger_than_frame_max(server: Server, how: str) -> None:
    """RabbitMQ sends it (measured on 3.10.8 and 4.3.6); by the letter the connection ends."""
    frame_max = smallest_frame_max(server)
    publisher = server.client().declare("q")
    client = server.client(frame_max=frame_max)
    fits = BasicProperties(headers={"h": "x" * (frame_max - 8 - 14 - 4 - 2 - 5)})
    for properties in (fits, BasicProperties(headers={"h": "x" * 20_000})):
        publisher.publish(b"body", routing_key="q", headers=properties.headers)
    ask = m.BasicGet(queue="q") if how == "got" else m.BasicConsume(queue="q", no_wait=True)
    client.send(ask)
    if how == "got":
        client.send(ask)
    server.advance(0)
    frames = cut(client.take_bytes())
    assert [each.type for each in frames[:3]] == [1, 2, 3]
    assert frames[1].size == frame_max
    if server.is_spec:
        [close] = frames[3:]
        assert close.size <= frame_max
        method = client.read(close.payload)
        assert isinstance(method, m.ConnectionClose)
        assert method.reply_code == 501
        assert "20025" in method.reply_text and str(frame_max) in method.reply_text
        client.send(m.ConnectionCloseOk(), 0)
        assert publisher.count("q") == 2, "it is still there for others"
    else:
        assert [each.type for each in frames[3:]] == [1, 2, 3]
        assert frames[4].size == 20_033


@pytest.mark.rule("0-9-1/frame/oversized-receive")
def test_spec_personality_closes_connection_with_501_at_frame_larger_than_frame_max(spec: Server) -> None:
    client = spec.client(frame_max=4096).declare("q")
    publish_in_one_frame(client, 5000).expect_connection_close(501, at=(0, 0))


@pytest.mark.needs("virtual time")
@pytest.mark.deviates("0-9-1/frame/oversized-receive")
def test_rabbitmq_accepts_frame_of_up_to_eight_octets_more_than_frame_max(rabbitmq: Server) -> None:
    client = rabbitmq.client(frame_max=8192).declare("q")
    assert publish_in_one_frame(client, 8200).count("q") == 1
    publish_in_one_frame(client, 8201).expect_end_of_frames()


@pytest.mark.needs("virtual time")
def test_oversized_frame_is_refused_when_its_frame_header_has_arrived(server: Server) -> None:
    server.client().send_bytes(FRAME_HEADER.pack(3, 1, 0xFFFFFFFF)).expect_end_of_frames()


@pytest.mark.rule("0-9-1/frame/frame-max-includes-overhead")
def test_frame_max_bounds_the_whole_frame(spec: Server) -> None:
    client = spec.client(frame_max=4096).declare("q")
    assert publish_in_one_frame(client, 4096).count("q") == 1
    publish_in_one_frame(client, 4097).expect_connection_close(501)


@pytest.mark.rule("0-9-1/frame/frame-max-includes-overhead")
def test_a_body_is_cut_so_that_whole_frames_fit(server: Server) -> None:
    frame_max = smallest_frame_max(server)
    client = server.client(frame_max=frame_max).declare("q")
    client.publish(bytes(2 * (frame_max - 8) + 1), routing_key="q", frame_size=1000)
    client.send(m.BasicGet(queue="q"))
    bodies = [len(each.payload) for each in cut(client.take_bytes()) if each.type == 3]
    assert bodies == [frame_max - 8, frame_max - 8, 1]


@pytest.mark.needs("virtual time")
@pytest.mark.rule("0-9-1/frame/method-not-split#method")
def test_a_method_larger_than_a_frame_is_refused(server: Server) -> None:
    client = server.client(frame_max=smallest_frame_max(server))
    fields = table(field("x-large", b"S" + long_string(bytes(10_000))))
    client.send_frame(1, 1, queue_declare("q", fields=fields)).expect_end_of_frames()


@pytest.mark.needs("virtual time")
@pytest.mark.rule("0-9-1/frame/method-not-split#header")
def test_a_content_header_larger_than_a_frame_is_refused(server: Server) -> None:
    client = server.client(frame_max=smallest_frame_max(server))
    client.publish(routing_key="q", headers={"large": "x" * 10_000}).expect_end_of_frames()


@pytest.mark.needs("virtual time")
@pytest.mark.rule("0-9-1/frame/exceeds-agreed-limits#frame-size")
def test_a_client_that_exceeds_the_agreed_frame_size_is_disconnected(server: Server) -> None:
    other = server.client()
    client = server.client(frame_max=smallest_frame_max(server))
    client.send_frame(3, 1, bytes(smallest_frame_max(server) + 1)).expect_end_of_frames()
    other.declare("still-served")


@pytest.mark.rule("0-9-1/frame/exceeds-agreed-limits#channels")
def test_a_client_that_exceeds_the_agreed_channels_is_disconnected(server: Server) -> None:
    client = server.client(channels=2, channel_max=2)
    client.send(m.ChannelOpen(), 3).expect(m.ConnectionClose, 0)
    assert client.send(m.ConnectionCloseOk(), 0).closed


# --- channels ----------------------------------------------------------------------------------------------

CONNECTION_METHODS: list[m.Method] = [
    m.ConnectionStartOk(),
    m.ConnectionSecureOk(),
    m.ConnectionTuneOk(),
    m.ConnectionOpen(virtual_host="/"),
    m.ConnectionClose(reply_code=200),
    m.ConnectionCloseOk(),
]
OTHER_METHODS: list[m.Method] = [
    m.ChannelOpen(),
    m.ChannelClose(reply_code=200),
    m.ExchangeDeclare(exchange="e"),
    m.QueueDeclare(queue="q"),
    m.BasicPublish(routing_key="q"),
    m.BasicAck(delivery_tag=1),
    m.TxSelect(),
]


@pytest.mark.deviates("0-9-1/frame/channel-zero-connection")
@pytest.mark.rule("0-9-1/frame/channel-zero-connection")
@pytest.mark.parametrize("method", CONNECTION_METHODS, ids=lambda method: method.NAME)
@pytest.mark.parametrize("channel", [1, 2])
def test_connection_method_on_channel_ends_connection(client: Client, method: m.Method, channel: int) -> None:
    client.send(method, channel)
    # RabbitMQ minds first that the channel is not open (measured).
    close = client.expect_connection_close(503 if channel == 1 or client.explained_to else 504)
    assert (close.class_id, close.method_id) == (method.CLASS_ID, method.METHOD_ID)


@pytest.mark.rule("0-9/frame/channel-global#others", "0-9-1/frame/channel-nonzero-others")
@pytest.mark.parametrize("method", OTHER_METHODS, ids=lambda method: method.NAME)
def test_channel_method_on_channel_0_closes_connection_with_504(client: Client, method: m.Method) -> None:
    close = client.ends(method, 504, channel=0)
    assert close.reply_text == "CHANNEL_ERROR - unexpected method in connection state running"
    assert (close.class_id, close.method_id) == (method.CLASS_ID, method.METHOD_ID)


@pytest.mark.rule("0-9-1/frame/strict-sequence#interleaving")
def test_contents_on_two_channels_may_be_interleaved(connect: Callable[..., Client]) -> None:
    client = connect(channels=2).declare("q1").declare("q2")
    frames = {
        channel: [
            client.method_frame(m.BasicPublish(routing_key=f"q{channel}"), channel),
            frame(2, channel, bytes.fromhex("003c 0000 0000000000000006 0000")),
            *(frame(3, channel, f"{part}{channel}".encode()) for part in "abc"),
        ]
        for channel in (1, 2)
    }
    for one, two in zip(frames[1], frames[2], strict=True):
        client.send_bytes(two + one)
    assert [client.get(f"q{n}").body for n in (1, 2)] == [b"a1b1c1", b"a2b2c2"]  # type: ignore[union-attr]


@pytest.mark.needs("personality of choices")
@pytest.mark.rule("0-9-1/frame/limits-channel-class-method#channel")
@pytest.mark.parametrize("offered", [65535, 0])
def test_channel_numbers_have_sixteen_bits(server: Server, offered: int) -> None:
    client = server.varied(channel_max=offered).client(channels=0, channel_max=offered)
    client.send_bytes(bytes.fromhex("01 ffff 00000005 0014000a 00 ce")).expect(m.ChannelOpenOk, 65535)
    client.declare("q", channel=65535)


# --- methods that cannot be right --------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/frame/class-id-reserved")
@pytest.mark.parametrize("class_id", [0xF000, 0xFFFF])
@pytest.mark.parametrize("channel", [0, 1])
def test_method_of_reserved_class_ends_connection(server: Server, class_id: int, channel: int) -> None:
    client, other = server.client(), server.client()
    client.send_frame(1, channel, arguments(class_id, 10, b"anything"))
    if client.explained_to:
        client.expect_connection_close(540, at=(class_id, 10))
    else:
        client.expect_silent_end()
    other.declare("still-served")


@pytest.mark.rule("0-9-1/frame/limits-channel-class-method#class")
@pytest.mark.rule("0-9-1/frame/limits-channel-class-method#method")
@pytest.mark.parametrize("ids", [(0xFFFE, 0xFFFD), (60, 0xFFFF), (0xFFFF, 10)])
def test_class_and_method_ids_have_sixteen_bits(spec: Server, ids: tuple[int, int]) -> None:
    spec.client().send_frame(1, 1, arguments(*ids)).expect_connection_close(540, at=ids)


@pytest.mark.deviates("0-9-1/frame/unknown-method#class", "0-9-1/frame/unknown-method#method")
@pytest.mark.rule("0-9-1/frame/unknown-method#class", "0-9-1/frame/unknown-method#method")
@rows(
    "ids",
    (60, 999),
    (60, 0),
    (0, 0),
    *(pytest.param(each, marks=defined_in_0_9) for each in ((70, 10), (10, 42))),
)
@pytest.mark.parametrize("channel", [0, 1, 2])
def test_an_unknown_method_is_not_implemented(client: Client, ids: tuple[int, int], channel: int) -> None:
    client.send_frame(1, channel, arguments(*ids))
    if not client.explained_to:
        client.expect_silent_end()
        return
    client.expect_connection_close(
        540, text=f"NOT_IMPLEMENTED - there is no method {ids[1]} in class {ids[0]}", at=ids
    )


@pytest.mark.rule("0-9/frame/method-processing#unpacked", "0-9-1/frame/truncated-arguments")
def test_arguments_that_end_too_early_are_a_frame_error(client: Client) -> None:
    close = client.send_frame(1, 1, arguments(50, 10, b"\0\0", b"\x20abc")).expect_connection_close(501)
    assert (close.class_id, close.method_id) == (50, 10)


@pytest.mark.rule("0-9-1/frame/truncated-arguments")
@pytest.mark.parametrize("size", [0, 1, 3])
def test_a_method_frame_too_short_for_its_ids_is_a_frame_error(client: Client, size: int) -> None:
    client.send_frame(1, 1, bytes.fromhex("140028")[:size]).expect_connection_close(501, at=(0, 0))


def test_octets_behind_the_arguments_are_a_frame_error(client: Client) -> None:
    client.send_frame(1, 1, queue_declare("q") + b"\0").expect_connection_close(501)


@pytest.mark.deviates("0-9-1/frame/truncated-arguments")
@pytest.mark.rule("0-9-1/frame/truncated-arguments")
def test_arguments_that_end_too_early_are_a_frame_error_on_channel_0_as_well(client: Client) -> None:
    client.send_frame(1, 0, arguments(10, 50, b"\0"))
    if not client.explained_to:
        assert client.expect_connection_close(541).reply_text == "INTERNAL_ERROR"
        return
    client.expect_connection_close(501, at=(10, 50))


@pytest.mark.deviates("0-9-1/frame/illegal-field-value")
@pytest.mark.rule("0-9-1/frame/illegal-field-value")
def test_a_field_of_unknown_type_is_a_syntax_error(server: Server) -> None:
    client, other = server.client(), server.client()
    client.send_frame(1, 1, queue_declare("q", fields=table(field("a", b"z\0"))))
    if client.explained_to:
        client.expect_connection_close(502, at=(50, 10))
    else:
        client.expect_silent_end()
    other.fails(m.QueueDeclare(queue="q", passive=True), 404)


@pytest.mark.rule("0-9/types/max-longstr", "0-9-1/security/length-checked")
@rows(
    "payload",
    pytest.param(arguments(50, 10, b"\0\0", b"\xffabc"), id="short-string"),
    pytest.param(queue_declare("q", fields=b"\xff\xff\xff\xff"), id="table"),
    pytest.param(queue_declare("q", fields=b"\0\0\0\x05\x01a"), id="table-beyond-frame"),
)
def test_a_length_beyond_the_payload_is_a_frame_error(server: Server, payload: bytes) -> None:
    client, other = server.client(), server.client()
    client.send_frame(1, 1, payload).expect_connection_close(501)
    other.declare("still-served")


@pytest.mark.rule("0-9-1/security/length-checked")
def test_a_length_beyond_a_content_header_is_refused(server: Server) -> None:
    client = server.client().declare("q").publish_bytes(b"\x80\x00" + b"\xffabc", routing_key="q")
    expect_unreadable_properties(client, 501)
    assert server.client().count("q") == 0
