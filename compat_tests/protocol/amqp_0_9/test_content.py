"""Contents of 0-9: their header, what breaks them off, and contents inside of contents."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9 import Child, Client, Server
from compat_tests.tools.matrix import marked_rows
from fakeamqp.protocols.amqp_0_9.codec import BasicProperties, StreamProperties, methods as m

rule = pytest.mark.rule


def header(class_id: int = 60, size: int = 0) -> bytes:
    return struct.pack(">HHQH", class_id, 0, size, 0)


PUBLISH, DECLARE = m.BasicPublish(routing_key="q"), m.QueueDeclare(queue="other")
BEGUN = [PUBLISH, (2, header(size=5)), (3, b"123")]
BROKEN_OFF = (
    rule("0-9/content/incomplete", "0-9/reply-code/no-unexpected-frame"),
    pytest.mark.deviates("0-9/content/sender-abort"),
)
ONE_CHANNEL = rule("0-9/content/interleave-channels#one-channel", "0-9/frame/strict-sequence#sequence")


@marked_rows(
    "frames",
    (BROKEN_OFF, [PUBLISH, DECLARE]),
    (BROKEN_OFF, [*BEGUN, DECLARE]),
    (rule("0-9/reply-code/no-unexpected-frame"), [(2, header())]),
    (rule("0-9/reply-code/no-unexpected-frame"), [(3, header())]),
    (rule("0-9/content/class-id-matches"), [PUBLISH, (2, header(70))]),
    (ONE_CHANNEL, [*BEGUN, PUBLISH]),
    ids=[
        "method before header",
        "method in body",
        "header without method",
        "body without method",
        "header of another class",
        "content in body",
    ],
)
@pytest.mark.letter
def test_frames_of_content_out_of_order_close_connection_with_501(client: Client, frames: list[Any]) -> None:
    for frame in frames:
        if isinstance(frame, tuple):
            client.send_frame(frame[0], 1, frame[1])
        else:
            client.send(frame)
    client.expect_connection_close(501)


@rule("0-9/content/channel-zero#header", "0-9/content/channel-zero#body")
@pytest.mark.parametrize("kind", [2, 3], ids=["header", "body"])
@pytest.mark.letter
def test_no_content_travels_on_channel_0(client: Client, kind: int) -> None:
    client.send_frame(kind, 0, struct.pack(">HHQH", 60, 0, 0, 0)).expect_connection_close(504)


@rule("0-9/content/flags-continuation")
@pytest.mark.parametrize("more", [1, 2])
def test_property_flags_may_continue_in_further_words(spec: Server, more: int) -> None:
    client = spec.client().declare("q")
    words = struct.pack(">H", 0x0800 | 1) + b"\x00\x01" * (more - 1) + b"\x00\x00"
    got = client.publish_bytes(words + b"\x07", b"body", routing_key="q").fetch("q")
    assert (got.properties, got.body) == (BasicProperties(priority=7), b"body")


CHILDREN = (
    Child(60, BasicProperties(content_type="first").encode(), b"a" * 5000),
    Child(60, BasicProperties().encode(), b"", (Child(60, BasicProperties(priority=1).encode(), b"inner"),)),
)


@rule("0-9/content/weight", "0-9/content/child-contents")
@pytest.mark.letter
def test_children_travel_with_their_content_to_any_depth(server: Server) -> None:
    client = server.client(frame_max=4096).declare("q")
    client.send_content(
        m.BasicPublish(routing_key="q"),
        BasicProperties(type="parent"),
        b"own body",
        children=CHILDREN,
        frame_size=4088,
    )
    got = client.send(m.BasicGet(queue="q", no_ack=True)).expect_content(m.BasicGetOk)
    assert (got.properties.type, got.body, got.children) == ("parent", b"own body", CHILDREN)


@rule("0-9/content/child-contents")
@pytest.mark.letter
def test_children_travel_to_consumers_too(server: Server) -> None:
    client = server.client().declare("q")
    client.send_content(m.BasicPublish(routing_key="q"), body=b"own", children=CHILDREN)
    got = client.consume("q", "t").expect_content(m.BasicDeliver)
    assert (got.body, got.children) == (b"own", CHILDREN)
    first = got.method
    assert (first.consumer_tag, first.delivery_tag, first.exchange, first.routing_key) == ("t", 1, "", "q")
    assert not first.redelivered
    again = client.close_channel().open_channel().consume("q", "u").expect_content(m.BasicDeliver)
    assert again.children == CHILDREN
    assert (again.method.consumer_tag, again.method.redelivered) == ("u", True)


@rule("0-9/content/weight", "0-9/content/child-contents")
def test_a_content_is_whole_when_all_its_children_are(client: Client) -> None:
    client.open_channel(2).declare("q").send(m.BasicPublish(routing_key="q"))
    assert client.send_frame(2, 1, struct.pack(">HHQH", 60, 1, 0, 0)).count("q", 2) == 0
    client.send_frame(2, 1, struct.pack(">HHQH", 60, 0, 2, 0))
    assert client.send_frame(3, 1, b"ab").count("q", 2) == 1


@rule("0-9/content/weight")
def test_a_method_in_the_place_of_a_child_is_a_frame_error(client: Client) -> None:
    client.send(m.BasicPublish(routing_key="q"))
    client.send_frame(2, 1, struct.pack(">HHQH", 60, 1, 0, 0)).ends(m.QueueDeclare(queue="q"), 501)


@rule("0-9/content/max-weight")
def test_content_with_65535_children_is_published_after_the_last_child(client: Client) -> None:
    client.open_channel(2).declare("q").send(m.BasicPublish(routing_key="q"))
    client.send_frame(2, 1, struct.pack(">HHQH", 60, 65535, 0, 0))
    for _ in range(65534):
        client.send_frame(2, 1, struct.pack(">HHQH", 60, 0, 0, 0))
    assert client.count("q", 2) == 0
    assert client.send_frame(2, 1, struct.pack(">HHQH", 60, 0, 0, 0)).count("q", 2) == 1


@rule("0-9/content/mixed-classes", "0-9/queue/any-content#mix", "0-9/queue/any-content#independent")
def test_queue_holds_contents_of_several_classes_and_gives_each_to_its_own_consumers(client: Client) -> None:
    client.declare("q")
    client.send_content(m.StreamPublish(routing_key="q"), StreamProperties(content_type="s"), b"stream 1")
    client.publish(b"basic", routing_key="q")
    client.send_content(m.StreamPublish(routing_key="q"), StreamProperties(), b"stream 2")
    assert client.empty("q") == [b"basic"]
    client.send(m.StreamConsume(queue="q", consumer_tag="s")).expect(m.StreamConsumeOk)
    assert client.expect_content(m.StreamDeliver).body == b"stream 1"
    assert client.expect_content(m.StreamDeliver).body == b"stream 2"
    client.publish(b"more basic", routing_key="q").expect_nothing()
    assert client.consume("q", "b").delivery().body == b"more basic"
