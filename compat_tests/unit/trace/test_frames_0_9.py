"""Frames of 0-9 in words, as values, and without what is secret: also those that cannot be read."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from fakeamqp.dialects import dialect_named
from fakeamqp.protocols.amqp_0_9.codec import METHODS, FileProperties, methods as m, version_0_8
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9.codec.contents import ContentHeader, encode_header
from fakeamqp.protocols.amqp_0_9.codec.requests import (
    Request,
    Response,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
from fakeamqp.trace.events import FrameEvent
from fakeamqp.trace.json_form import event_to_json
from fakeamqp.trace.truncation import Truncated

PASSWORD = b"swordfish"
TRANSFER = m.MessageTransfer(
    destination="e",
    routing_key="k",
    security_token=PASSWORD,
    application_headers={"n": 1},
    body=Body(b"two apples"),
)


def frame(kind: int, payload: bytes, *, channel: int = 1, protocol: str = "0-9") -> FrameEvent:
    return FrameEvent(0.0, "a", "c1", "received", kind, channel, payload, protocol)


def request(method: Method, number: int = 7, mark: int = 6, *, reserved: bool = True) -> FrameEvent:
    return frame(9, encode_request(Request(number, mark, method.encode(), reserved)))


def response(method: Method, offset: int = 0) -> FrameEvent:
    return frame(10, encode_response(Response(3, 7, offset, method.encode())))


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (
            request(TRANSFER),
            "message.transfer (request 7, mark 6) destination='e' routing_key='k' "
            "security_token=(9 bytes) application_headers={'n': 1} body=b'two apples'",
        ),
        (
            request(m.MessageTransfer(body=Body(b"r1", by_reference=True)), reserved=False),
            "message.transfer (request 7, mark 6) destination='' reference=b'r1'",
        ),
        (response(m.MessageOk()), "message.ok (response 3 to 7)"),
        (response(m.MessageReject(1, "no"), 4), "message.reject (response 3 to 7-11) code=1 text='no'"),
        (frame(9, b"\0" * 19), "malformed request: malformed: a request has at least 20 bytes, got 19"),
        (frame(10, b""), "malformed response: malformed: a response has at least 24 bytes, got 0"),
        (
            frame(9, encode_request(Request(1, 0, b"\0\x78\0\x63"))),
            "unknown method 120.99 (request 1, mark 0): cannot be read",
        ),
        (
            frame(9, encode_request(Request(1, 0, m.MessageCancel("d").encode()[:-1]))),
            "message.cancel (request 1, mark 0): malformed: message.cancel, field destination: ",
        ),
        (frame(7, b"look here", channel=0), "trace b'look here'"),
        (frame(4, b""), "out-of-band method"),
        (frame(5, b""), "out-of-band header"),
        (frame(6, b"x"), "out-of-band body b'x'"),
        (frame(11, b"x"), "unknown frame type 11: cannot be read"),
        (
            frame(2, encode_header(ContentHeader(70, 2, 5, FileProperties(filename="f").encode()))),
            "content header class_id=70 weight=2 body_size=5 filename='f'",
        ),
        (frame(9, b"\0" * 24, protocol="0-8"), "unknown frame type 9: cannot be read"),
        (
            frame(1, version_0_8.ConnectionClose(320, "x").encode(), protocol="0-8"),
            "connection.close reply_code=320 reply_text='x'",
        ),
        (
            frame(1, m.ConnectionClose(320, "x").encode(), protocol="0-8"),
            "connection.redirect: malformed: ",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_frame_of_0_9_is_described_in_words(event: FrameEvent, words: str) -> None:
    assert event.text.startswith(words)
    if "malformed" not in words and "unknown" not in words:
        assert event.text == words
    assert event.text.startswith(event.name)


@pytest.mark.parametrize("kind", METHODS.values(), ids=lambda kind: kind.NAME)
def test_method_is_decoded_in_a_frame_a_request_and_a_response(kind: type[Method]) -> None:
    method = kind()
    for event in (frame(1, method.encode()), request(method), response(method)):
        assert event.method == method
        assert event.name == kind.NAME
        assert event.part == "method"
        assert event.text.startswith(kind.NAME)


def test_frame_type_decides_the_part_of_a_0_9_frame() -> None:
    assert [frame(kind, b"").part for kind in range(12)] == [
        "",
        "method",
        "header",
        "body",
        "",
        "",
        "",
        "",
        "heartbeat",
        "method",
        "method",
        "",
    ]
    assert frame(9, b"", protocol="0-8").part == ""
    assert [kind for kind in range(256) if dialect_named("0-9").may_begin(kind)] == list(range(1, 11))
    assert [kind for kind in range(256) if dialect_named("0-8").may_begin(kind)] == list(range(1, 9))


def test_json_form_of_0_9_frames_has_their_fields() -> None:
    said = event_to_json(request(TRANSFER))
    assert said["request"] == {"id": 7, "response_mark": 6}
    assert said["fields"]["body"] == "two apples"
    assert said["fields"]["security_token"] == {"secret": 9}
    assert (said["readable"], said["part"], said["protocol"]) == (True, "method", "0-9")
    said = event_to_json(request(m.MessageTransfer(body=Body(b"r1", by_reference=True))))
    assert (said["fields"]["reference"], "body" in said["fields"]) == ("r1", False)
    said = event_to_json(response(m.MessageOk(), 4))
    assert said["response"] == {"id": 3, "request_id": 7, "batch_offset": 4}
    assert event_to_json(frame(9, b""))["readable"] is False
    said = event_to_json(
        frame(2, encode_header(ContentHeader(70, 2, 5, FileProperties(filename="f").encode())))
    )
    assert (said["class_id"], said["weight"], said["body_size"]) == (70, 2, 5)
    assert said["properties"] == {"filename": "f"}
    assert event_to_json(frame(7, b"look here"))["octets"] == "look here"


# --- secrets ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda method: frame(1, method.encode()), request, response])
@pytest.mark.parametrize(
    ("method", "left"),
    [
        (
            m.ConnectionStartOk({"url": "amqp://me:swordfish@h/"}, "PLAIN", b"\0me\0" + PASSWORD, "en"),
            m.ConnectionStartOk({"url": "amqp://me:*********@h/"}, "PLAIN", b"\0me\0*********", "en"),
        ),
        (m.ConnectionSecureOk(PASSWORD), m.ConnectionSecureOk(b"*********")),
        (m.ChannelOpen("tcp://me:swordfish@h"), m.ChannelOpen("tcp://me:*********@h")),
        (
            TRANSFER,
            m.MessageTransfer(
                destination="e",
                routing_key="k",
                security_token=b"*********",
                application_headers={"n": 1},
                body=Body(b"two apples"),
            ),
        ),
    ],
    ids=lambda value: getattr(value, "NAME", ""),
)
def test_secrets_are_redacted_and_other_fields_are_kept(make: object, method: Method, left: Method) -> None:
    event = make(method)  # type: ignore[operator]
    assert event.redacted.method == left
    assert len(event.redacted.payload) == len(event.payload)
    assert "swordfish" not in event.text
    assert "swordfish" not in str(event_to_json(event))


def test_unreadable_request_is_redacted_after_its_header() -> None:
    payload = encode_request(Request(1, 0, TRANSFER.encode() + b"x"))
    event = frame(9, payload)
    assert PASSWORD not in event.redacted.payload
    assert event.redacted.payload[:24] == payload[:24]
    assert "swordfish" not in event.text


def test_method_without_secrets_is_not_redacted() -> None:
    event = request(m.MessageConsume(queue="q"))
    assert event.redacted is event


# --- what was cut -------------------------------------------------------------------------------------


def test_truncated_transfer_is_redacted_and_filled_without_its_fields() -> None:
    transfer = m.MessageTransfer(destination="e", security_token=PASSWORD, body=Body(b"x" * 100_000))
    whole = encode_request(Request(7, 6, transfer.encode()))
    event = frame(9, Truncated(whole, 4096))
    assert (
        event.text
        == f"message.transfer (request 7, mark 6): too long to be kept whole ({len(whole) - 20} bytes)"
    )
    hidden = event.redacted.payload
    assert isinstance(hidden, Truncated)
    assert (hidden.size, PASSWORD in hidden, b"xxx" in hidden) == (len(whole), False, True)
    payload, remark = dialect_named("0-9").filled(9, hidden)
    assert remark == "its fields are not shown"
    filled = decode_request(payload)
    assert (filled.request_id, filled.response_mark) == (7, 6)
    assert filled.method == m.MessageTransfer().encode()


def test_truncated_response_is_filled_without_its_fields() -> None:
    whole = encode_response(Response(3, 7, 2, TRANSFER.encode()))
    payload, remark = dialect_named("0-9").filled(10, Truncated(whole, 40))
    assert remark == "its fields are not shown"
    filled = decode_response(payload)
    assert (filled.response_id, filled.request_id, filled.batch_offset) == (3, 7, 2)
    assert filled.method == m.MessageTransfer().encode()


def test_malformed_content_header_is_read_by_its_class() -> None:
    fourth_property = 1 << 12  # The priority of a file, the delivery mode of a basic message.
    payload = encode_header(ContentHeader(70, 0, 1, FileProperties(priority=4).encode()))
    assert payload.endswith(fourth_property.to_bytes(2, "big") + b"\x04")
    assert "field priority" in frame(2, payload[:-1]).text


@pytest.mark.parametrize("protocol", ["0-9-1", "0-9", "0-8"])
@given(
    st.integers(0, 11) | st.integers(0, 255),
    st.binary(max_size=60)
    | st.builds(
        lambda index, rest: index.to_bytes(4, "big") + rest,
        st.sampled_from(sorted(METHODS)),
        st.binary(max_size=60),
    ),
    st.integers(0, 70),
)
def test_any_bytes_of_a_frame_have_a_printable_line(
    protocol: str, kind: int, payload: bytes, more: int
) -> None:
    for event in (
        frame(kind, payload, protocol=protocol),
        frame(kind, Truncated.of(payload, len(payload) + more + 1), channel=0, protocol=protocol),
    ):
        assert event.text.isprintable()
        assert event.name
        assert event_to_json(event)["part"] == event.part
        assert len(event.redacted.payload) == len(event.payload)
        assert event.properties is None or event.part == "header"
        reader = dialect_named(protocol)
        if isinstance(event.payload, Truncated):
            octets, remark = reader.filled(kind, event.payload)
            assert octets is not None and remark


def test_columns_of_a_0_9_transfer_depend_on_its_direction() -> None:
    columns = dialect_named("0-9").columns
    transfer = m.MessageTransfer(destination="d", routing_key="k", message_id="m1", body=Body(b"abc"))
    assert (
        columns(transfer, "received").items()
        >= {
            "exchange": "d",
            "routing_key": "k",
            "message_id": "m1",
            "body_size": 3,
        }.items()
    )
    assert "consumer_tag" not in columns(transfer, "received")
    assert columns(transfer, "sent")["consumer_tag"] == "d"
    assert columns(m.MessageTransfer(body=Body(b"")), "sent")["message_id"] is None
    assert columns(m.MessageReject(code=3), "sent")["reply_code"] == 3
