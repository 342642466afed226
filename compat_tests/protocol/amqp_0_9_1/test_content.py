from __future__ import annotations

import random
import struct
from collections.abc import Callable

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.scripted.octets import RawFrame, cut, field, long_string, short_string, table
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

rule = pytest.mark.rule
NON_CONTENT = "expected content header for class 60, got non content header frame instead"
NON_BODY = "expected content body, got non content body frame instead"
NON_METHOD = "expected method frame, got non method frame instead"


def send_header(
    client: Client, size: int, *, class_id: int = 60, weight: int = 0, channel: int = 1
) -> Client:
    return client.send_frame(2, channel, struct.pack(">HHQ", class_id, weight, size) + b"\0\0")


def announce(client: Client, size: int, channel: int = 1, queue: str = "q") -> Client:
    """The method and the header of a content; its body is due."""
    client.send(m.BasicPublish(routing_key=queue), channel)
    send_header(client, size, channel=channel)
    return client


def expect_error(client: Client, code: int, text: str, ids: tuple[int, int]) -> None:
    close = client.expect_connection_close(code)
    assert close.reply_text.endswith(text)
    assert (close.class_id, close.method_id) == ids


def test_header_frame_without_property_flags_closes_the_connection_with_501(spec: Server) -> None:
    client = spec.client().send(m.BasicPublish(routing_key="q"))
    client.send_frame(2, 1, struct.pack(">HHQ", 60, 0, 0))
    expect_error(client, 501, "the payload ends inside the property flags", (60, 40))


def fetch_bytes(client: Client) -> list[bytes]:
    """The payloads of the frames by which a message of queue q comes."""
    client.send(m.BasicGet(queue="q", no_ack=True))
    return [each.payload for each in cut(client.take_bytes())]


# --- the order of frames -----------------------------------------------------------------------------------
@rule("0-9-1/content/follows-method")
def test_content_is_sent_as_method_header_and_body_frames_both_ways(server: Server) -> None:
    client = server.client(frame_max=8192).declare("q").consume("q", no_ack=True)
    announce(client, 10_000).expect_nothing()
    client.send_frame(3, 1, bytes(5_000)).expect_nothing()
    client.send_frame(3, 1, bytes(5_000))
    deliver, *content = cut(client.take_bytes())
    assert deliver.payload[:4] == bytes.fromhex("003c003c")
    assert [each.type for each in content] == [2, 3, 3]


@rule("0-9/content/header-layout", "0-9-1/content/header-layout")
def test_header_frame_contains_class_weight_size_flags_and_values(client: Client) -> None:
    client.declare("q").publish(b"hello", routing_key="q", content_type="a/b", priority=7, message_id="id")
    header = fetch_bytes(client)[1]
    assert header == bytes.fromhex("003c 0000 0000000000000005 8880") + b"\x03a/b" + b"\x07" + b"\x02id"


@pytest.mark.deviates("0-9-1/content/class-id-matches")
@rule("0-9-1/content/class-id-matches")
@pytest.mark.parametrize("class_id", [10, 50, 999])
def test_header_frame_of_another_class_closes_the_connection(server: Server, class_id: int) -> None:
    client = send_header(server.client().send(m.BasicPublish(routing_key="q")), 0, class_id=class_id)
    text = f"expected content header for class 60, got one for class {class_id} instead"
    expect_error(client, 501 if server.is_spec else 505, text, (60, 40))


@rule("0-9-1/content/incomplete#header")
def test_method_in_place_of_header_frame_closes_the_connection_with_505(client: Client) -> None:
    client.send(m.BasicPublish(routing_key="q")).send(m.QueueDeclare(queue="q"))
    expect_error(client, 505, NON_CONTENT, (60, 40))


@rule("0-9-1/content/incomplete#header")
def test_second_publish_in_place_of_header_frame_closes_the_connection_with_505(client: Client) -> None:
    client.publish(routing_key="q")
    for _ in range(2):
        client.send(m.BasicPublish(routing_key="q"))
    expect_error(client, 505, NON_CONTENT, (60, 40))


@rule("0-9-1/content/incomplete#header")
def test_body_frame_in_place_of_header_frame_closes_the_connection_with_505(client: Client) -> None:
    client.send(m.BasicPublish(routing_key="q")).send_frame(3, 1, b"body")
    expect_error(client, 505, NON_CONTENT, (60, 40))


@rule("0-9-1/content/incomplete#body")
def test_header_frame_in_place_of_body_frame_closes_the_connection_with_505(client: Client) -> None:
    announce(client, 10)
    send_header(client, 10)
    expect_error(client, 505, NON_BODY, (60, 40))


@pytest.mark.deviates("0-9-1/content/incomplete#malformed")
@rule("0-9-1/content/incomplete#malformed")
def test_malformed_properties_close_the_connection(client: Client) -> None:
    client.publish_bytes(b"\x80\x00\x05abc", routing_key="q")
    close = client.expect_connection_close(501 if client.explained_to else 541)
    assert (close.class_id, close.method_id) == ((60, 40) if client.explained_to else (0, 0))


@rule("0-9-1/content/incomplete#malformed")
def test_truncated_header_frame_closes_the_connection_with_501(client: Client) -> None:
    client.send(m.BasicPublish(routing_key="q"))
    client.send_frame(2, 1, bytes.fromhex("003c 0000 00")).expect_connection_close(501)


@rule("0-9-1/content/missing-body")
@pytest.mark.parametrize("method", [m.ChannelFlow(active=True), m.ChannelClose(), m.BasicPublish()])
def test_method_within_incomplete_body_closes_connection_with_505(client: Client, method: m.Method) -> None:
    client.declare("q")
    announce(client, 10).send_frame(3, 1, b"12345").send(method)
    expect_error(client, 505, NON_BODY, (60, 40))


@pytest.mark.needs("personality rabbitmq-4.3")
@pytest.mark.deviates("0-9-1/content/body-overrun")
@rule("0-9-1/content/body-overrun")
@pytest.mark.parametrize("bodies", [[b"12345"], [b"12", b"34"]])
def test_body_larger_than_announced_closes_the_connection(server: Server, bodies: list[bytes]) -> None:
    client, other = server.client(), server.client()
    other.declare("q")
    announce(client, 3)
    for body in bodies:
        client.send_frame(3, 1, body)
    text = "content body frame exceeds remaining content size"
    expect_error(client, 505 if server.is_spec else 501, text, (60, 40))
    assert other.count("q") == 0


@rule("0-9-1/content/unsolicited-header#header", "0-9-1/content/unsolicited-header#body")
@pytest.mark.parametrize("frame_type", [2, 3])
def test_content_frame_without_method_closes_the_connection_with_505(client: Client, frame_type: int) -> None:
    client.send_frame(frame_type, 1, bytes.fromhex("003c 0000 0000000000000000 0000"))
    expect_error(client, 505, NON_METHOD, (0, 0))


@rule("0-9-1/content/unsolicited-header#body")
def test_body_frame_after_empty_content_closes_the_connection_with_505(client: Client) -> None:
    client.publish(b"", routing_key="q").send_frame(3, 1, b"")
    expect_error(client, 505, NON_METHOD, (0, 0))


@rule("0-9-1/content/weight-zero")
def test_content_header_with_nonzero_weight_closes_the_connection_with_505(client: Client) -> None:
    client.declare("q").publish(routing_key="q")
    assert fetch_bytes(client)[1][2:4] == b"\0\0"
    client.send(m.BasicPublish(routing_key="q"))
    send_header(client, 0, weight=1).expect_connection_close(505, at=(60, 40))


@rule("0-9-1/content/zero-body")
def test_message_with_empty_body_has_no_body_frames(client: Client) -> None:
    client.declare("q")
    announce(client, 0).declare("next-method-parses")
    payloads = fetch_bytes(client)
    assert len(payloads) == 2
    assert payloads[1][4:12] == bytes(8)


@pytest.mark.deviates("0-9-1/content/channel-zero#header", "0-9-1/content/channel-zero#body")
@rule("0-9-1/content/channel-zero#header", "0-9-1/content/channel-zero#body")
@pytest.mark.parametrize("frame_type", [2, 3])
def test_content_frame_on_channel_0_closes_the_connection(server: Server, frame_type: int) -> None:
    client = server.client().send_frame(frame_type, 0, bytes.fromhex("003c 0000 0000000000000000 0000"))
    client.expect_connection_close(504 if server.is_spec else 505, at=(0, 0))


@rule("0-9-1/content/interleave-channels#other-channels")
def test_interleaved_contents_of_two_channels_arrive_separately(connect: Callable[..., Client]) -> None:
    client = connect(channels=2).declare("q").declare("r")
    announce(client, 4)
    announce(client, 4, channel=2, queue="r")
    for part in (b"12", b"34"):
        client.send_frame(3, 2, part[::-1]).send_frame(3, 1, part)
    first, second = client.get("q"), client.get("r")
    assert first is not None
    assert second is not None
    assert (first.body, second.body) == (b"1234", b"2143")


@rule("0-9-1/content/interleave-channels#other-channels")
def test_method_of_another_channel_within_a_content_is_accepted(connect: Callable[..., Client]) -> None:
    client = announce(connect(channels=2).declare("q"), 2)
    client.send_frame(3, 1, b"1").declare("r", channel=2)
    assert client.send_frame(3, 1, b"2").fetch("q").body == b"12"


@rule("0-9-1/frame/strict-sequence#sequence", "0-9-1/content/interleave-channels#one-channel")
@pytest.mark.protocols("0-9-1")
def test_second_content_within_incomplete_content_of_one_channel_is_refused(client: Client) -> None:
    announce(client, 4)
    announce(client, 4)
    expect_error(client, 505, NON_BODY, (60, 40))


@pytest.mark.deviates("0-9-1/content/sender-abort")
@pytest.mark.protocols("0-9-1")
def test_method_after_partial_body_closes_the_connection_and_drops_the_message(server: Server) -> None:
    """The documents say both that it can and that it must not; RabbitMQ says not: docs/decisions-0-9-1.md."""
    client, other = server.client(), server.client()
    other.declare("q")
    announce(client, 10).send_frame(3, 1, b"1234").send(m.BasicQos(prefetch_count=1))
    expect_error(client, 505, NON_BODY, (60, 40))
    assert other.count("q") == 0


# --- properties --------------------------------------------------------------------------------------------
@rule("0-9-1/content/flags-order")
@pytest.mark.parametrize(
    ("name", "flags"),
    [("content_type", 0x8000), ("content_encoding", 0x4000), ("message_id", 0x0080), ("app_id", 0x0008)],
)
def test_property_flags_count_from_the_highest_bit(client: Client, name: str, flags: int) -> None:
    client.declare("q")
    octets = flags.to_bytes(2, "big") + short_string("value")
    client.publish_bytes(octets, routing_key="q")
    assert fetch_bytes(client)[1][12:] == octets
    message = client.publish_bytes(octets, routing_key="q").fetch("q")
    assert getattr(message.properties, name) == "value"


@pytest.mark.deviates("0-9-1/content/flags-continuation")
@rule("0-9-1/content/flags-continuation")
def test_second_word_of_property_flags_is_accepted_by_spec_personality(client: Client) -> None:
    client.declare("q").publish_bytes(b"\x80\x01\x00\x00" + short_string("a/b"), routing_key="q")
    if not client.explained_to:
        client.expect_connection_close(541)
        return
    assert client.fetch("q").properties.content_type == "a/b"


@rule("0-9-1/content/values-in-order#flagged", "0-9-1/content/values-in-order#order")
def test_only_properties_with_flags_are_read_in_layout_order(client: Client) -> None:
    client.declare("q").publish_bytes(b"\x08\x80" + b"\x09" + short_string("id"), b"body", routing_key="q")
    properties = client.fetch("q").properties
    present = {
        name: value for name, _ in properties.LAYOUT if (value := getattr(properties, name)) is not None
    }
    assert present == {"priority": 9, "message_id": "id"}


ALL_PROPERTIES = b"\xff\xfc" + b"".join(
    (
        short_string("text/plain"),
        short_string("gzip"),
        table(
            field("nested", b"F" + table(field("list", b"A" + long_string(b"b\x01t\x02")))),
            field("octets", b"S" + long_string(b"\0\xff")),
        ),
        b"\x02",
        b"\x05",
        short_string("correlation"),
        short_string("reply"),
        short_string("60000"),
        short_string("message"),
        (2**33).to_bytes(8, "big"),
        short_string("type"),
        short_string("guest"),
        short_string("app"),
        short_string("cluster"),
    )
)


@rule("0-9/basic/properties-order", "0-9-1/content/header-not-removed")
def test_properties_are_delivered_octet_by_octet_as_published(client: Client) -> None:
    client.declare("q").publish_bytes(ALL_PROPERTIES, b"body", routing_key="q")
    assert fetch_bytes(client)[1][12:] == ALL_PROPERTIES


@pytest.mark.deviates("0-9-1/content/header-not-removed")
def test_rabbitmq_removes_the_bcc_header_and_keeps_cc(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("q")
    client.publish(routing_key="q", headers={"BCC": ["elsewhere"], "CC": ["nowhere"]})
    assert client.fetch("q").properties.headers == {"CC": ["nowhere"]}


@rule("0-9-1/content/header-may-add")
def test_dead_lettering_keeps_published_headers_and_adds_its_own(client: Client) -> None:
    client.declare_exchange("e", "fanout")
    client.declare("dead").bind("dead", "e").declare("q", arguments={"x-dead-letter-exchange": "e"})
    client.publish(b"body", routing_key="q", headers={"mine": 1}, message_id="id")
    assert client.fetch("q").properties.headers == {"mine": 1}
    died = client.send(m.BasicReject(delivery_tag=1, requeue=False)).fetch("dead")
    assert died.properties.message_id == "id"
    assert died.properties.headers is not None
    assert died.properties.headers.items() > {"mine": 1}.items()


# --- bodies ------------------------------------------------------------------------------------------------
def publish_in_chunks(client: Client, body: bytes, size: int) -> None:
    announce(client, len(body))
    for start in range(0, len(body), size):
        client.send_frame(3, 1, body[start : start + size])


@rule("0-9-1/content/body-split")
def test_body_of_ten_one_octet_frames_is_delivered_in_one_frame(client: Client) -> None:
    client.declare("q")
    publish_in_chunks(client, b"0123456789", 1)
    assert fetch_bytes(client)[2:] == [b"0123456789"]
    assert client.count("q") == 0


@rule("0-9-1/content/body-split")
def test_empty_body_frames_within_a_body_are_accepted(client: Client) -> None:
    client.declare("q")
    announce(client, 2)
    for part in (b"", b"1", b"", b"2"):
        client.send_frame(3, 1, part)
    assert fetch_bytes(client)[2:] == [b"12"]


@rule("0-9-1/content/body-split-on-send")
def test_body_is_delivered_in_frames_of_frame_max_of_the_receiver(server: Server) -> None:
    body = random.Random(1).randbytes(100_000)
    server.client().declare("q").publish(body, routing_key="q")
    frame_max = server.state.personality.smallest_frame_max
    receiver = server.client(frame_max=frame_max)
    bodies = fetch_bytes(receiver)[2:]
    assert b"".join(bodies) == body
    assert {len(each) for each in bodies[:-1]} == {frame_max - 8}


@rule("0-9-1/content/body-unmodified")
@pytest.mark.parametrize("body", [b"\0", b"\xce" * 100, random.Random(2).randbytes(300_000)], ids=len)
def test_body_is_delivered_unchanged(client: Client, body: bytes) -> None:
    assert client.declare("q").publish(body, routing_key="q").fetch("q").body == body


@rule("0-9-1/content/chunks-any-size")
@pytest.mark.parametrize("size", [1, 7, 131072 - 8])
def test_body_in_frames_of_any_size_is_accepted(client: Client, size: int) -> None:
    body = random.Random(3).randbytes(200_000 if size > 7 else 500)
    client.declare("q")
    publish_in_chunks(client, body, size)
    assert client.fetch("q").body == body


# --- contents that come as a whole -------------------------------------------------------------------------

PUBLISH = bytes.fromhex("003c 0028 0000 00 01") + b"q" + b"\0"
PERSISTENT = b"\x10\x00\x02"


def content(
    *,
    header: int = 2,
    number: int = 1,
    class_id: int = 60,
    weight: int = 0,
    size: int = 4,
    properties: bytes = PERSISTENT,
    end: int = 0xCE,
    body: int = 3,
    body_number: int = 1,
    octets: bytes = b"body",
    body_end: int = 0xCE,
) -> tuple[RawFrame, RawFrame, RawFrame]:
    """A publish to queue q."""
    return (
        RawFrame(1, 1, PUBLISH, 0xCE),
        RawFrame(header, number, struct.pack(">HHQ", class_id, weight, size) + properties, end),
        RawFrame(body, body_number, octets, body_end),
    )


DEVIATIONS: dict[str, tuple[RawFrame, ...]] = {
    "none": content(),
    "other properties": content(properties=b"\x80\x00\x01t"),
    "malformed properties": content(properties=b"\x80\x00\x09t"),
    "no properties": content(properties=b""),
    "no content header": content(header=1),
    "an unknown frame type": content(header=7),
    "a heartbeat in place of the body": content(body=8),
    "a body in place of the header": content(header=3),
    "two headers": content(body=2),
    "the header on another channel": content(number=2),
    "the body on another channel": content(body_number=2),
    "header and body on another channel": content(number=2, body_number=2),
    "the body on a channel that is not open": content(body_number=3),
    "another class": content(class_id=50),
    "a weight": content(weight=1),
    "a body that is too long": content(size=3),
    "a body that is too long, with a frame-end in it": content(size=3, octets=b"bod\xce"),
    "a larger body": content(size=5, octets=b"large"),
    "a body that goes on": (*content(size=6), RawFrame(3, 1, b"56", 0xCE)),
    "a body that never ends": content(size=5),
    "an empty body": content(size=0)[:2],
    "a body where there is none": content(size=0),
    "an empty body in a frame": content(size=0, octets=b""),
    "an empty frame before the body": (*content(octets=b""), RawFrame(3, 1, b"body", 0xCE)),
    "no frame-end after the header": content(end=0),
    "no frame-end after the body": content(body_end=0),
    "a body of the largest frame": content(size=8184, octets=bytes(8184)),
    "a body of a frame that is too large": content(size=8192, octets=bytes(8192)),
    "a content that is too large": content(size=2**40),
    "a method between header and body": (*content()[:2], RawFrame(1, 1, PUBLISH, 0xCE), content()[2]),
}


@pytest.mark.needs("own broker")
@rule("0-9-1/content/follows-method")
@pytest.mark.protocols("0-9-1")
@pytest.mark.parametrize("name", DEVIATIONS)
@pytest.mark.parametrize("limits", [{}, {"largest_content": 4}, {"largest_message": 4}], ids=str)
def test_content_read_in_one_piece_is_handled_like_single_frames(
    server: Server, name: str, limits: dict[str, int]
) -> None:
    """Frames that come in one read, behind a method that the channel has seen, are no special case."""
    frames = [*content(), *content(), *DEVIATIONS[name], *content()]
    octets = [
        struct.pack(">BHI", each.type, each.channel, len(each.payload)) + each.payload + bytes((each.end,))
        for each in frames
    ]

    def answers(parts: list[bytes]) -> tuple[bytes, bool]:
        client = server.varied(**limits).client(channels=2, frame_max=8192)
        client.declare("q")
        client.consume("q", "c", channel=2, no_ack=True)
        for part in parts:
            client.send_bytes(part)
        return client.take_bytes(), client.closed

    whole = b"".join(octets)
    found = answers([whole])
    assert found[0].count(PERSISTENT) >= 2
    assert found == answers(octets)
    assert found == answers([bytes((each,)) for each in whole])
    for missing in (1, 5, 8, 12, 20):  # The end of the last content has not come yet.
        assert found == answers([whole[:-missing], whole[-missing:]])


@pytest.mark.needs("inspection")
@rule("0-9-1/content/follows-method")
@pytest.mark.protocols("0-9-1")
def test_publish_read_in_one_piece_is_not_queued_while_blocked(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("q").publish(routing_key="q")
    [connection] = rabbitmq.state.connections
    connection.set_blocked("low on memory")  # type: ignore[attr-defined]
    assert not client.publish(routing_key="q").connection.reading
    assert len(rabbitmq.vhost.queues["q"].ready) == 1
