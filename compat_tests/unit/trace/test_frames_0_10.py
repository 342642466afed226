"""Frames of AMQP 0-10 in words, as values and without passwords, whatever the bytes."""

from __future__ import annotations

import base64
import json
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from fakeamqp.dialects import dialect_named, protocol_names, protocol_of
from fakeamqp.protocols.amqp_0_9.codec import version_0_8
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c, structs
from fakeamqp.protocols.amqp_0_10.codec.frames import FRAME_HEADER, control_frame, encode_frames
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet
from fakeamqp.protocols.amqp_0_10.codec.structs import Command, Control
from fakeamqp.protocols.amqp_0_10.dialect import DIALECT
from fakeamqp.trace import FrameEvent, Trace
from fakeamqp.trace.json_form import event_to_json
from fakeamqp.trace.truncation import Truncated

WHOLE_CONTROL, WHOLE_COMMAND = 0x0F00, 0x0F01
HEADER, BODY = 0x0302, 0x0703


def event(kind: int, payload: bytes, **more: Any) -> FrameEvent:
    return FrameEvent(1.5, "a -> b", "c1", more.get("direction", "received"), kind, 3, payload, "0-10")


def of(method: Command | Control, sync: bool = False) -> FrameEvent:
    if isinstance(method, Control):
        return event(WHOLE_CONTROL, method.encode())
    return event(WHOLE_COMMAND, method.encode(sync))


def header(*entries: Any) -> FrameEvent:
    return event(HEADER, structs.encode_header(entries))


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (
            x.MessageTransfer(destination="e", accept_mode=1, acquire_mode=0),
            "message.transfer destination='e' accept_mode=none acquire_mode=pre-acquired",
        ),
        (x.MessageAccept(transfers=SequenceSet.between(0, 4)), "message.accept transfers=0-4"),
        (
            x.QueueDeclare(queue="q", durable=True, arguments={"qpid.max_count": 1}),
            "queue.declare queue='q' durable arguments={'qpid.max_count': 1}",
        ),
        (
            x.ExecutionException(
                error_code=404, command_id=3, class_code=8, command_code=2, description="no such queue"
            ),
            "execution.exception error_code=404 not-found command_id=3 class_code=8 command_code=2 "
            "description='no such queue'",
        ),
        (
            x.ExecutionResult(command_id=2, value=structs.QueueQueryResult(queue="q", message_count=1)),
            "execution.result command_id=2 value=queue-query-result(queue='q', message_count=1)",
        ),
        (c.SessionAttach(name=b"s-1", force=True), "session.attach name='s-1' force"),
        (c.SessionDetached(name=b"s", code=1), "session.detached name='s' code=session-busy"),
        (
            c.ConnectionClose(reply_code=320, reply_text="go"),
            "connection.close reply_code=320 connection-forced reply_text='go'",
        ),
        (
            c.ConnectionStartOk(
                client_properties={"product": "qpid", "x": 1},
                mechanism="PLAIN",
                response=b"\0a\0b",
                locale="en",
            ),
            "connection.start-ok client_properties={'product': 'qpid'} mechanism='PLAIN' response=(4 bytes) "
            "locale='en'",
        ),
        (c.ConnectionHeartbeat(), "connection.heartbeat"),
    ],
)
def test_control_or_command_is_described_by_its_name_and_fields(
    method: Command | Control, words: str
) -> None:
    seen = of(method)
    assert seen.text == words
    assert seen.name == words.split()[0]
    assert seen.method == method


def test_sync_flag_is_shown_in_the_description_of_a_command() -> None:
    assert of(x.ExecutionSync(), sync=True).text == "execution.sync sync"


def test_header_and_body_of_0_10_are_described_in_words() -> None:
    seen = header(
        structs.DeliveryProperties(routing_key="q", ttl=500),
        structs.MessageProperties(content_type="text/plain", application_headers={"a": 1}),
    )
    assert seen.text == (
        "header delivery(ttl=500, routing_key='q') "
        "message(content_type='text/plain', application_headers={'a': 1})"
    )
    assert seen.properties.content_type == "text/plain"
    assert event(BODY, b"two apples").text == "body b'two apples'"
    assert [
        each.part for each in (seen, event(BODY, b""), of(c.ConnectionHeartbeat()), of(x.TxSelect()))
    ] == [
        "header",
        "body",
        "heartbeat",
        "method",
    ]


@pytest.mark.parametrize(
    ("kind", "payload", "words"),
    [
        (WHOLE_COMMAND, b"\x04\x63\x01\x00\x00\x00", "unknown command 4.99: cannot be read (6 bytes"),
        (WHOLE_CONTROL, b"\x01", "malformed control: cannot be read (1 bytes: 01)"),
        (WHOLE_COMMAND, b"\x08\x03\x01\x00\x01\x00\x09q", "queue.purge: malformed: "),
        (0x0F2A, b"xy", "unknown segment type 42: cannot be read (2 bytes: 7879)"),
        (0x0E01, x.TxSelect().encode(), "tx.select: a part of its segment (6 bytes)"),
        (0x0D01, b"rest", "command, continued: a part of its segment (4 bytes)"),
        (HEADER, b"\0\0\0\x09", "header: malformed: "),
        (
            WHOLE_CONTROL,
            Truncated(x.TxSelect().encode() * 20, 7),
            "unknown control 5.1: too long to be kept whole",
        ),
    ],
)
def test_unreadable_frame_is_described_and_has_no_method(kind: int, payload: bytes, words: str) -> None:
    seen = event(kind, payload)
    assert seen.text.startswith(words)
    assert (seen.method, seen.properties) == (None, None)
    assert event_to_json(seen)["readable"] is False


@given(
    st.sampled_from((WHOLE_CONTROL, WHOLE_COMMAND, HEADER, BODY, 0x0B01, 0x0E00, 0x0042, 0xFFFF)),
    st.one_of(
        st.binary(max_size=64),
        st.sampled_from((b"\x01\x02", b"\x04\x01\x01\x00", b"\x08\x04\x01")).flatmap(
            lambda start: st.binary(max_size=40).map(lambda rest: start + rest)
        ),
    ),
)
def test_any_bytes_of_a_0_10_frame_have_a_printable_line(kind: int, payload: bytes) -> None:
    seen = event(kind, payload)
    assert seen.text.startswith(seen.name) and seen.text.isprintable()
    assert len(seen.redacted.payload) == len(payload)
    json.dumps(event_to_json(seen))


# --- values -------------------------------------------------------------------------------------------


def test_json_form_of_a_command_has_its_fields_and_sync_flag() -> None:
    said = event_to_json(of(x.MessageReject(transfers=SequenceSet.of(1, 2, 9), code=1, text="no"), sync=True))
    assert said["protocol"] == "0-10" and said["part"] == "method" and said["sync"] is True
    assert said["fields"] == {"transfers": "1-2,9", "code": 1, "text": "no"}


def test_json_form_of_a_header_has_its_structs() -> None:
    said = event_to_json(
        header(
            structs.DeliveryProperties(routing_key="q", priority=4),
            structs.MessageProperties(
                content_length=10,
                message_id=UUID(int=5),
                reply_to=structs.ReplyTo(exchange="e", routing_key="k"),
                application_headers={"id": UUID(int=7)},
            ),
        )
    )
    assert said["body_size"] == 10
    assert said["structs"] == {
        "message.delivery-properties": {"priority": 4, "routing_key": "q"},
        "message.message-properties": {
            "content_length": 10,
            "message_id": str(UUID(int=5)),
            "reply_to": {"message.reply-to": {"exchange": "e", "routing_key": "k"}},
            "application_headers": {"id": {"uuid": str(UUID(int=7))}},
        },
    }
    assert said["properties"]["priority"] == 4


# --- secrets ------------------------------------------------------------------------------------------

PASSWORD = b"swordfish"
URL = "amqp://guest:swordfish@host/"


@pytest.mark.parametrize(
    "control",
    [
        c.ConnectionStartOk({"url": URL}, "PLAIN", b"\0guest\0" + PASSWORD, "en"),
        c.ConnectionStartOk({"url": URL}, "CRAM-MD5", PASSWORD),
        c.ConnectionStartOk({"url": URL}, "PLAIN"),
        c.ConnectionStartOk({"url": URL}, response=PASSWORD),
        c.ConnectionStartOk(mechanism="CRAM-MD5", response=PASSWORD),
        c.ConnectionStartOk(response=PASSWORD),
        c.ConnectionSecure(challenge=PASSWORD),
        c.ConnectionSecureOk(response=PASSWORD),
    ],
)
def test_passwords_are_redacted_and_other_fields_are_kept(control: Control) -> None:
    seen = of(control)
    hidden = seen.redacted
    assert PASSWORD not in hidden.payload and len(hidden.payload) == len(seen.payload)
    assert PASSWORD.decode() not in json.dumps(event_to_json(seen)) + seen.text
    readable = hidden.method
    assert type(readable) is type(control)
    for name in ("mechanism", "locale"):
        assert getattr(readable, name, None) == getattr(control, name, None)
    assert seen.method == control  # Who asks for it gets it.


def test_the_user_of_a_plain_login_is_shown() -> None:
    hidden = of(c.ConnectionStartOk({}, "PLAIN", b"\0guest\0" + PASSWORD)).redacted.method
    assert hidden.response == b"\0guest\0*********"


@pytest.mark.parametrize("kind", [0x0E00, WHOLE_COMMAND])
def test_partial_login_is_redacted_after_its_class_and_code(kind: int) -> None:
    payload = c.ConnectionStartOk({}, "PLAIN", b"\0guest\0" + PASSWORD).encode()
    assert event(kind, payload).redacted.payload == payload[:2] + b"*" * (len(payload) - 2)
    assert event(0x0D00, PASSWORD).redacted.payload == b"*" * len(PASSWORD)


def test_body_that_begins_like_a_login_is_not_redacted() -> None:
    body = b"\x01\x02" + PASSWORD
    assert event(BODY, body).redacted.payload == body


# --- bytes -------------------------------------------------------------------------------------------


def test_bytes_are_cut_into_frames_and_joined_again_unchanged() -> None:
    octets = control_frame(0, c.SessionAttach(name=b"s").encode()) + encode_frames(
        7, ((1, x.MessageTransfer(destination="").encode()), (2, b""), (3, b"b" * 100)), 60
    )
    frames = list(DIALECT.cut(octets))
    assert [(kind >> 8, kind & 0xFF, channel) for kind, channel, _, _ in frames] == [
        (15, 0, 0),
        (11, 1, 7),
        (3, 2, 7),
        (6, 3, 7),
        (4, 3, 7),
        (5, 3, 7),
    ]
    assert b"".join(DIALECT.frame(kind, channel, payload) for kind, channel, payload, _ in frames) == octets
    *_, (_, _, payload, size) = DIALECT.cut(octets[:-1])
    assert len(payload) == size - 1


def test_frame_on_the_wrong_track_keeps_its_track() -> None:
    for octets in (
        FRAME_HEADER.pack(15, 0, 16, 0, 1, 3, 0) + c.ConnectionHeartbeat().encode(),
        FRAME_HEADER.pack(15, 1, 18, 0, 0, 3, 0) + x.TxSelect().encode(),
    ):
        [(kind, channel, payload, _)] = DIALECT.cut(octets)
        assert DIALECT.frame(kind, channel, payload) == octets
        assert event(kind, payload).text.endswith(" (on the wrong track)")


@given(st.binary(max_size=40))
@pytest.mark.parametrize("protocol", protocol_names())
def test_any_bytes_can_be_cut_into_frames(protocol: str, octets: bytes) -> None:
    assert sum(len(payload) for _, _, payload, _ in dialect_named(protocol).cut(octets)) <= len(octets)


def test_protocol_is_known_by_its_protocol_header() -> None:
    assert [protocol_of(dialect_named(each).protocol_header) for each in protocol_names()] == list(
        protocol_names()
    )
    assert {protocol_of(header) for header in version_0_8.PROTOCOL_HEADERS} == {"0-8"}
    assert protocol_of(b"AMQP\0\1\0\0") is None


def test_recording_of_0_10_frames_is_read_back_unchanged(tmp_path: Any) -> None:
    events = (
        of(x.TxSelect(), sync=True),
        event(BODY, Truncated(b"b" * 5000, 4096)),
        of(c.ConnectionHeartbeat()),
    )
    path = tmp_path / "trace.jsonl"
    Trace.of(events).jsonl(path)
    read = Trace.load(path).events
    assert read == events
    lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    assert [line["protocol"] for line in lines] == ["0-10"] * 3
    # A recording of old has one protocol only, and does not say so.
    frame = {**lines[0], "type": 8, "octets": base64.b64encode(b"").decode(), "channel": 0}
    del frame["protocol"]
    first = json.dumps({**json.loads(path.read_text().splitlines()[0]), "events": 1})
    path.write_text(first + "\n" + json.dumps(frame) + "\n")
    (old,) = Trace.load(path).events
    assert isinstance(old, FrameEvent) and (old.protocol, old.name) == ("0-9-1", "heartbeat")


def test_json_form_of_a_truncated_body_is_not_readable() -> None:
    assert event_to_json(event(BODY, b"abc"))["readable"] is True
    assert event_to_json(event(BODY, Truncated.of(b"ab", 3)))["readable"] is False


def test_a_command_begins_a_content_if_another_segment_follows() -> None:
    begins = dialect_named("0-10").begins_content
    transfer = x.MessageTransfer().encode()
    assert begins(0x0B01, transfer)
    assert not begins(WHOLE_COMMAND, transfer)
    assert not begins(HEADER, structs.encode_header([structs.DeliveryProperties()]))
    assert not begins(BODY & ~0x0400, b"body")


def test_columns_of_a_command_name_its_queue_exchange_or_consumer() -> None:
    columns = dialect_named("0-10").columns
    assert columns(x.ExchangeBind(queue="q", exchange="e", binding_key="k"), "received") == {
        "exchange": "e",
        "queue": "q",
        "routing_key": "k",
    }
    assert columns(x.MessageTransfer(destination="d"), "received") == {"exchange": "d"}
    assert columns(x.MessageTransfer(destination="d"), "sent") == {"consumer_tag": "d"}
    assert columns(x.ExecutionException(error_code=404), "sent") == {"reply_code": 404}
