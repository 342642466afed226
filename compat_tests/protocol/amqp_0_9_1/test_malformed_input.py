"""Malformed input: what RabbitMQ answers (measured on 4.0.5 and 4.3.6), and what trace and log say.

The cases of `compat_tests/differential/cases/malformed.py` compare far more of it with RabbitMQ itself.
"""

from __future__ import annotations

import logging
import struct

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.scripted.octets import arguments, field, queue_declare, table
from compat_tests.tools.matrix import rows
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import FRAME_HEADER, frame
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
from fakeamqp.trace import Recorder

PUBLISH = m.BasicPublish(routing_key="nobody", mandatory=True)


def header(properties: bytes = b"\0\0", size: int = 0, class_id: int = 60, weight: int = 0) -> bytes:
    return struct.pack(">HHQ", class_id, weight, size) + properties


# --- texts -------------------------------------------------------------------------------------------------

TEXTS = [
    (frame(5, 1, b"abc"), 'type 5, all octets = <<"abc">>: unknown_frame'),
    (
        frame(200, 0, b"\0" * 17),
        "type 200, first 16 octets = <<0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0>>: unknown_frame",
    ),
    (frame(8, 0, b"x"), 'type 8, all octets = <<"x">>: unknown_frame'),
    (frame(1, 1, b"\0\x32\0"), "type 1, all octets = <<0,50,0>>: unknown_frame"),
    (frame(2, 1, b"\0\x3c"), "type 2, all octets = <<0,60>>: unknown_frame"),
    (frame(1, 1, queue_declare("q")[:9]), "cannot decode <<0,0,1,113,0>>"),
    (frame(1, 2, arguments(60, 80, b"\0")), "cannot decode <<0>>"),
]


@pytest.mark.parametrize(("octets", "text"), TEXTS)
def test_rabbitmq_prints_the_bytes_as_an_erlang_term(rabbitmq: Server, octets: bytes, text: str) -> None:
    client = rabbitmq.client().send_bytes(octets)
    assert client.expect_connection_close(501).reply_text == f"FRAME_ERROR - {text}"


END_OF_FRAMES = [
    (
        frame(1, 1, b"\0\x14\0\x0a\0")[:-1] + b"\0",
        "type 1, all octets = <<0,20,0,10,0>>: {invalid_frame_end_marker,0}",
    ),
    (
        frame(1, 1, bytes(13))[:-1] + b"\x07",
        "type 1, all octets = <<0,0,0,0,0,0,0,0,0,0,0,0,0>>: {invalid_frame_end_marker,\n" + " " * 53 + "7}",
    ),
    (FRAME_HEADER.pack(3, 1, 140_000), "type 3, all octets = <<>>: {frame_too_large,140000,131064}"),
]


@pytest.mark.needs("virtual time")
@pytest.mark.parametrize(("octets", "text"), END_OF_FRAMES)
def test_rabbitmq_prints_wrong_frame_end_and_too_large_frame_as_erlang_term(
    rabbitmq: Server, octets: bytes, text: str
) -> None:
    client = rabbitmq.client()
    assert client.send_bytes(octets).expect_end_of_frames().reply_text == f"FRAME_ERROR - {text}"


def test_reply_text_with_long_bytes_is_cut_to_255_characters(rabbitmq: Server) -> None:
    client = rabbitmq.client().send_frame(1, 1, queue_declare("q") + b"\xff" * 255)
    text = client.expect_connection_close(501).reply_text
    assert len(text) == 255 and text.endswith(",255,25...")


UNEXPECTED = [
    (frame(8, 1, b""), "type 8, all octets = <<>>"),
    (frame(3, 0, b"x"), 'type 3, all octets = <<"x">>'),
]


@pytest.mark.parametrize(("octets", "text"), UNEXPECTED)
def test_unexpected_frame_is_printed_in_reply_text_of_505(rabbitmq: Server, octets: bytes, text: str) -> None:
    client = rabbitmq.client().send_bytes(octets)
    assert client.expect_connection_close(505).reply_text == f"UNEXPECTED_FRAME - {text}"


def test_a_method_before_open_is_an_unexpected_frame(rabbitmq: Server) -> None:
    client = rabbitmq.tuned(channel_max=10, frame_max=8192, heartbeat=0)
    text = "UNEXPECTED_FRAME - type 1, all octets = <<0,20,0,10,0>>"
    client.send(m.ChannelOpen()).expect_connection_close(505, text=text)


@rows("octets, text", UNEXPECTED[0], (frame(9, 1, b"x"), 'type 9, all octets = <<"x">>'))
def test_heartbeat_or_unknown_frame_on_channel_1_before_open_is_unexpected_frame(
    rabbitmq: Server, octets: bytes, text: str
) -> None:
    client = rabbitmq.tuned(channel_max=10, frame_max=8192, heartbeat=0).send_bytes(octets)
    assert client.expect_connection_close(505).reply_text == f"UNEXPECTED_FRAME - {text}"


# --- ends without a close ----------------------------------------------------------------------------------

CRASHES = [
    frame(1, 1, arguments(99, 1)),
    frame(1, 0, arguments(99, 1)),
    frame(1, 7, arguments(99, 1)),
    frame(1, 1, queue_declare("q", fields=table(field("a", b"Z")))),
    frame(1, 1, queue_declare("q", fields=table(field("a", b"d" + struct.pack(">d", float("nan")))))),
    frame(1, 1, queue_declare("q", fields=table(field("a", b"F\0\0\0\x09\1b")))),
]


@pytest.mark.needs("inspection")
@pytest.mark.parametrize("octets", CRASHES)
def test_input_that_crashes_rabbitmqs_connection_ends_transport(rabbitmq: Server, octets: bytes) -> None:
    client = rabbitmq.client()
    client.send_bytes(octets).expect_silent_end()
    assert client.connection not in rabbitmq.state.connections


# --- contents ----------------------------------------------------------------------------------------------
def test_properties_are_read_once_the_content_is_complete(rabbitmq: Server) -> None:
    client = rabbitmq.client().send(PUBLISH).send_frame(2, 1, header(b"\x80\0\x20ab", size=3))
    client.send_frame(3, 1, b"ab").expect_nothing()
    assert client.send_frame(3, 1, b"c").expect_connection_close(541).reply_text == "INTERNAL_ERROR"


def test_the_exchange_is_looked_up_before_properties_are_read(rabbitmq: Server) -> None:
    client = rabbitmq.client().send(m.BasicPublish(exchange="missing"))
    client.send_frame(2, 1, header(b"\x80\0\x20ab")).expect_channel_close(404)


@pytest.mark.parametrize("flags", [b"\0\1", b"\0\2", b"\0\3"])
def test_spare_property_flags_are_cleared_in_delivered_header(rabbitmq: Server, flags: bytes) -> None:
    client = rabbitmq.client().declare("q").publish_bytes(flags, routing_key="q")
    client.send(m.BasicGet(queue="q", no_ack=True)).expect(m.BasicGetOk)
    assert client.take_frame().payload[12:] == b"\0\0"


def test_a_message_with_spare_flags_and_a_property_is_read(rabbitmq: Server) -> None:
    message = rabbitmq.client().declare("q").publish_bytes(b"\x80\3\1a", routing_key="q").get("q")
    assert message is not None and message.properties.content_type == "a"


# --- channels that are not open ----------------------------------------------------------------------------
def closing(server: Server) -> Client:
    """A client that was sent channel.close, and has not answered."""
    client = server.client()
    client.send(m.QueueDeclare(queue="missing", passive=True)).expect(m.ChannelClose)
    return client


def test_publish_with_content_on_closing_channel_is_ignored(rabbitmq: Server) -> None:
    client = closing(rabbitmq).send(PUBLISH).send_frame(2, 1, header(size=1))
    client.send_frame(3, 1, b"x").expect_nothing()
    client.send(m.ChannelCloseOk()).open_channel()


MISPLACED = [
    (frame(3, 1, b"x"), "expected method frame, got non method frame instead", (0, 0)),
    (
        frame(1, 1, PUBLISH.encode()) + frame(3, 1, b"x"),
        "expected content header for class 60, got non content header frame instead",
        (60, 40),
    ),
    (
        frame(1, 1, PUBLISH.encode()) + frame(2, 1, header(size=4)) * 2,
        "expected content body, got non content body frame instead",
        (60, 40),
    ),
    (
        frame(1, 1, PUBLISH.encode()) + frame(2, 1, header(class_id=50)),
        "expected content header for class 60, got one for class 50 instead",
        (60, 40),
    ),
]


@pytest.mark.parametrize(("octets", "text", "ids"), MISPLACED)
@pytest.mark.parametrize("state", ["closing", "unopened"])
def test_misplaced_frame_on_closing_or_unopened_channel_closes_connection_with_505(
    rabbitmq: Server, octets: bytes, text: str, ids: tuple[int, int], state: str
) -> None:
    client = closing(rabbitmq) if state == "closing" else rabbitmq.client(channels=0)
    client.send_bytes(octets)
    close = client.expect_connection_close(505)
    assert close.reply_text == f"UNEXPECTED_FRAME - {text}"
    assert (close.class_id, close.method_id) == ids


def test_publish_on_unopened_channel_closes_connection_after_its_content(rabbitmq: Server) -> None:
    client = rabbitmq.client(channels=0)
    client.send(PUBLISH, 5).expect_nothing()
    client.send_frame(2, 5, header(size=1)).send_frame(3, 5, b"x")
    client.expect_connection_close(504, text="CHANNEL_ERROR - expected 'channel.open'", at=(60, 40))


NAMELESS = [
    m.QueueBind(exchange="amq.direct"),
    m.QueueUnbind(exchange="amq.direct"),
    m.QueuePurge(),
    m.QueueDelete(),
    m.BasicConsume(),
    m.BasicGet(),
]


@pytest.mark.parametrize("method", NAMELESS, ids=lambda method: method.NAME)
@pytest.mark.parametrize("state", ["closing", "unopened"])
def test_method_without_queue_name_on_closing_or_unopened_channel_fails_with_404(
    rabbitmq: Server, method: Method, state: str
) -> None:
    client = closing(rabbitmq) if state == "closing" else rabbitmq.client(channels=0)
    close = client.fails(method, 404)
    assert close.reply_text == "NOT_FOUND - no previously declared queue"
    assert (close.class_id << 16 | close.method_id) == method.INDEX
    client.call(m.ChannelOpen(), m.ChannelOpenOk)


def test_method_without_queue_name_on_closing_channel_is_not_answered(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("q")
    client.send(m.BasicGet(queue="nope")).expect(m.ChannelClose)
    client.send(m.BasicGet()).expect_nothing()


UNUSED = [
    (arguments(60, 200, b"\1c\0\0\0\1\0"), 503, "COMMAND_INVALID - unimplemented method"),
    (arguments(60, 201, b"\0\0\0\1"), 503, "COMMAND_INVALID - unimplemented method"),
    (arguments(60, 202, b"\1c\0\0\0\1"), 503, "COMMAND_INVALID - unimplemented method"),
    (arguments(60, 200), 501, "FRAME_ERROR - cannot decode <<>>"),
    (arguments(60, 201, b"\0\1"), 501, "FRAME_ERROR - cannot decode <<0,1>>"),
    (arguments(60, 202, b"\2c"), 501, "FRAME_ERROR - cannot decode <<2,99>>"),
]


@pytest.mark.parametrize(("payload", "code", "text"), UNUSED)
def test_rabbitmq_decodes_unimplemented_methods_before_it_refuses_them(
    rabbitmq: Server, payload: bytes, code: int, text: str
) -> None:
    client = rabbitmq.client().send_frame(1, 1, payload)
    client.expect_connection_close(code, text=text, at=(60, int.from_bytes(payload[2:4], "big")))


def test_unknown_method_203_of_class_60_ends_transport(rabbitmq: Server) -> None:
    rabbitmq.client().send_frame(1, 1, arguments(60, 203)).expect_silent_end()


def test_publish_without_content_on_unopened_channel_counts_against_channel_max(rabbitmq: Server) -> None:
    client = rabbitmq.client(channels=1, channel_max=2)
    text = client.send(PUBLISH, 2).ends(m.ChannelOpen(), 530, channel=3).reply_text
    assert text == "NOT_ALLOWED - number of channels opened (2) has reached the negotiated channel_max (2)"


# --- what the test is told ---------------------------------------------------------------------------------

EXPLAINED = [
    (frame(5, 1, b"abc"), "type 5, unknown (channel 1, bytes: 61 62 63)"),
    (frame(1, 1, arguments(99, 1)), "there is no method 1 in class 99 (channel 1, bytes: 00 63 00 01)"),
    (
        frame(1, 1, bytes(5))[:-1] + b"\0",
        "invalid frame end marker 0, expected 206 (channel 1, bytes: 00 00 00 00 00)",
    ),
    (
        frame(1, 1, queue_declare("q", fields=table(field("a", b"Z")))),
        "queue.declare, field arguments: field 'a' has the unknown tag 'Z' "
        "(channel 1, bytes: 00 00 01 71 00 00 00 00 03 01 61 5a)",
    ),
    (
        frame(1, 1, PUBLISH.encode()) + frame(2, 1, header(b"\x80\0\x20ab")),
        "basic properties, field content_type: 33 bytes are due at offset 14, the payload ends at 17 "
        "(channel 1, bytes: 80 00 20 61 62)",
    ),
    (frame(5, 1, bytes(70)), f"type 5, unknown (channel 1, bytes: {bytes(64).hex(' ')} and 6 more)"),
]


@pytest.mark.needs("virtual time", "inspection")
@pytest.mark.parametrize(("octets", "text"), EXPLAINED)
def test_trace_and_log_explain_malformed_input(
    rabbitmq: Server, octets: bytes, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = rabbitmq.client()
    recorder = rabbitmq.state.tap = Recorder(rabbitmq.state.clock.now)
    client.send_bytes(octets)
    [event] = [each for each in recorder.trace().events if each.name == "malformed input"]
    assert event.text == f"malformed input: {text}"
    assert f"malformed input: {text}" in caplog.text
    assert caplog.records[0].levelno == logging.WARNING


@pytest.mark.parametrize("end", [b"\0", b"\xce"])
def test_credentials_of_malformed_start_ok_are_not_logged(
    rabbitmq: Server, end: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    client = rabbitmq.client()
    start_ok = m.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0secret", locale="en_US").encode()
    client.send_bytes(frame(1, 0, start_ok[:-3])[:-1] + end)
    assert "bytes with credentials)" in caplog.text
    assert b"secret".hex(" ") not in caplog.text


@pytest.mark.needs("personality of choices")
def test_rabbitmq_personality_with_explains_malformed_input_closes_with_540(rabbitmq: Server) -> None:
    client = rabbitmq.varied(explains_malformed_input=True).client().send_frame(1, 1, arguments(99, 1))
    assert (
        client.expect_connection_close(540).reply_text == "NOT_IMPLEMENTED - there is no method 1 in class 99"
    )
