"""Frames in words: every method, whatever the bytes."""

from __future__ import annotations

import pytest

from fakeamqp.dialects import dialect_named
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import CONTENT_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.dialect import DIALECT
from fakeamqp.trace.truncation import Truncated


def header(body_size: int, octets: bytes, class_id: int = 60) -> bytes:
    return CONTENT_HEADER.pack(class_id, 0, body_size) + octets


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (m.BasicPublish(exchange="", routing_key="orders"), "basic.publish exchange='' routing_key='orders'"),
        (
            m.BasicPublish(exchange="e", routing_key="k", mandatory=True),
            "basic.publish exchange='e' routing_key='k' mandatory",
        ),
        (
            m.QueueDeclare(queue="q", durable=True, arguments={"x-max-length": 1}),
            "queue.declare queue='q' durable arguments={'x-max-length': 1}",
        ),
        (
            m.QueueDeclareOk(queue="q", message_count=0, consumer_count=2),
            "queue.declare-ok queue='q' message_count=0 consumer_count=2",
        ),
        (m.BasicAck(delivery_tag=0, multiple=True), "basic.ack delivery_tag=0 multiple"),
        (m.BasicQos(prefetch_count=3, global_=True), "basic.qos prefetch_size=0 prefetch_count=3 global"),
        (m.ChannelOpen(), "channel.open"),
        (m.ChannelFlow(active=False), "channel.flow"),
        (
            m.ChannelClose(reply_code=404, reply_text="NOT_FOUND - no queue", class_id=50, method_id=10),
            "channel.close reply_code=404 reply_text='NOT_FOUND - no queue' method=queue.declare",
        ),
        (
            m.ChannelClose(reply_code=504, reply_text="x", class_id=1, method_id=2),
            "channel.close reply_code=504 reply_text='x' method=1.2",
        ),
        (
            m.ConnectionClose(reply_code=200, reply_text="bye"),
            "connection.close reply_code=200 reply_text='bye'",
        ),
        (
            m.ConnectionStart(
                server_properties={"product": "RabbitMQ", "version": "4", "copyright": "long"},
                mechanisms=b"PLAIN AMQPLAIN",
                locales=b"en_US",
            ),
            "connection.start version_major=0 version_minor=0 "
            "server_properties={'product': 'RabbitMQ', 'version': '4'} mechanisms='PLAIN AMQPLAIN' "
            "locales='en_US'",
        ),
    ],
)
def test_method_is_described_by_its_name_and_fields(method: Method, words: str):
    assert DIALECT.describe(1, method.encode()) == words
    assert DIALECT.decode_method(method.encode()) == method
    assert DIALECT.frame_name(1, method.encode()) == words.split()[0]


def test_a_reply_text_is_shown_whole():
    text = "PRECONDITION_FAILED - " + "x" * 230
    assert text in DIALECT.describe(1, m.ChannelClose(reply_code=406, reply_text=text).encode())


@pytest.mark.parametrize("kind", m.METHODS.values(), ids=lambda kind: kind.NAME)
def test_description_of_each_method_begins_with_its_name(kind: type[Method]):
    payload = kind().encode()
    assert DIALECT.describe(1, payload).split()[0] == kind.NAME == DIALECT.frame_name(1, payload)


def test_content_header_is_described_by_size_and_properties():
    octets = BasicProperties(delivery_mode=2, headers={"shop": "north"}, message_id="m").encode()
    payload = header(10, octets)
    assert DIALECT.describe(2, payload) == (
        "content header body_size=10 headers={'shop': 'north'} delivery_mode=2 message_id='m'"
    )
    assert DIALECT.decode_header(payload) == (10, BasicProperties.decode(octets, 0, _grammar()))
    assert DIALECT.describe(2, header(0, b"\0\0")) == "content header body_size=0"
    assert DIALECT.describe(2, header(1, b"\0\0", class_id=50)) == "content header class_id=50 body_size=1"


def _grammar():
    from fakeamqp.protocols.amqp_0_9_1.codec.tables import RABBITMQ

    return RABBITMQ


def test_a_table_of_the_published_grammar_can_be_read():
    short_string = b"\x01as\x03abc"  # Tag s is a short string there, two bytes in RabbitMQ's.
    table = len(short_string).to_bytes(4, "big") + short_string
    payload = header(0, b"\x20\x00" + table)
    assert DIALECT.describe(2, payload) == "content header body_size=0 headers={'a': 'abc'}"


def test_body_and_heartbeat_frames_are_described_in_words():
    assert DIALECT.describe(3, b"two apples") == "content body b'two apples'"
    assert DIALECT.describe(3, b"x" * 100) == f"content body b'{'x' * 60}'... (100 bytes)"
    assert (
        DIALECT.describe(3, Truncated(b"x" * 10_000, 4096)) == f"content body b'{'x' * 60}'... (10000 bytes)"
    )
    assert DIALECT.describe(8, b"") == "heartbeat"


@pytest.mark.parametrize(
    ("frame_type", "payload", "start"),
    [
        (1, b"", "malformed method: cannot be read (0 bytes: )"),
        (1, b"\0\x3c\0", "malformed method: cannot be read (3 bytes: 003c00)"),
        (1, b"\0\x3c\0\x63rest", "unknown method 60.99: cannot be read (8 bytes: 003c006372657374)"),
        (1, m.BasicAck(delivery_tag=1).encode()[:-1], "basic.ack: malformed: "),
        (1, m.BasicAck(delivery_tag=1).encode() + b"\0", "basic.ack: malformed: "),
        (2, b"\0\x3c", "content header: cannot be read (2 bytes: 003c)"),
        (2, header(1, b"\xff\xff"), "content header: malformed: "),
        (2, header(1, b""), "content header: "),
        (8, b"x", "heartbeat: cannot be read (1 bytes: 78)"),
        (77, b"x", "unknown frame type 77: cannot be read (1 bytes: 78)"),
        (
            1,
            Truncated(m.BasicAck(delivery_tag=1).encode(), 6),
            "basic.ack: too long to be kept whole (13 bytes)",
        ),
    ],
)
def test_malformed_frame_is_described_in_a_printable_line(frame_type: int, payload: bytes, start: str):
    line = DIALECT.describe(frame_type, payload)
    assert line.startswith(start)
    assert line.isprintable()


def test_the_reason_of_a_malformed_frame_names_the_field():
    payload = m.QueueDeclare(queue="orders").encode()[:8]
    assert "field queue" in DIALECT.describe(1, payload)


def test_only_methods_with_a_content_begin_a_content() -> None:
    begins = dialect_named("0-9-1").begins_content
    assert begins(1, m.BasicPublish().encode())
    assert not begins(1, m.QueuePurge().encode())
    assert not begins(1, b"\0\x63\0\x01")
    assert not begins(2, m.BasicPublish().encode())
