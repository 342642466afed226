"""Events as plain values: everything survives JSON, no password is in it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import CONTENT_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.codec.tables import RABBITMQ, Timestamp, encode_table
from fakeamqp.protocols.amqp_0_9_1.dialect import DIALECT
from fakeamqp.trace import ConnectionEvent, FrameEvent, ModelEvent, Trace
from fakeamqp.trace.json_form import event_to_json, value_to_json
from fakeamqp.trace.truncation import Truncated, TruncatedMessage

PASSWORD = "swordfish"
AMQPLAIN = encode_table({"LOGIN": "guest", "PASSWORD": PASSWORD})[4:]


def frame(frame_type: int, payload: bytes, direction: str = "received") -> FrameEvent:
    return FrameEvent(1.5, "a -> b", "c1", direction, frame_type, 1, payload)


def test_json_form_of_a_method_has_its_fields_and_text():
    event = frame(1, m.BasicPublish(exchange="e", routing_key="k", mandatory=True).encode())
    assert event_to_json(event) == {
        "time": 1.5,
        "connection": "a -> b",
        "alias": "c1",
        "kind": "frame",
        "protocol": "0-9-1",
        "part": "method",
        "name": "basic.publish",
        "text": "basic.publish exchange='e' routing_key='k' mandatory",
        "direction": "received",
        "channel": 1,
        "type": 1,
        "size": 11,
        "cut": False,
        "readable": True,
        "fields": {"exchange": "e", "routing_key": "k", "mandatory": True, "immediate": False},
    }


def test_json_form_uses_the_field_names_of_amqp():
    assert event_to_json(frame(1, m.BasicQos(prefetch_count=3, global_=True).encode()))["fields"] == {
        "prefetch_size": 0,
        "prefetch_count": 3,
        "global": True,
    }


def test_json_form_of_a_content_header_has_its_properties():
    properties = BasicProperties(message_id="m1", headers={"n": 1, "at": Timestamp(7), "x": b"a"}).encode()
    said = event_to_json(frame(2, CONTENT_HEADER.pack(60, 0, 3) + properties))
    assert (said["class_id"], said["body_size"], said["readable"]) == (60, 3, True)
    assert said["properties"] == {
        "message_id": "m1",
        "headers": {"n": 1, "at": {"timestamp": 7}, "x": {"base64": "YQ=="}},
    }


@pytest.mark.parametrize(
    ("octets", "body"),
    [
        (b"", ""),
        (b'{"n": 1}', '{"n": 1}'),
        ("grün".encode(), "grün"),
        (b"\x00\xff", {"base64": "AP8="}),
        # Cut in the middle of a character, and bytes that are no text wherever they are cut.
        (Truncated("grü".encode(), 3), "gr"),
        (Truncated(b"\xff\xffabcdef", 4), {"base64": "//9hYg=="}),
    ],
)
def test_json_form_of_a_body_is_text_or_base64(octets: bytes, body: object):
    said = event_to_json(frame(3, octets))
    assert said["body"] == body
    assert said["cut"] is isinstance(octets, Truncated)
    assert said["size"] == (octets.size if isinstance(octets, Truncated) else len(octets))


@pytest.mark.parametrize(
    ("frame_type", "payload", "readable"),
    [
        (8, b"", True),
        (8, b"x", False),
        (1, b"\0\x3c\0", False),
        (1, b"\0\x3c\0\x28", False),
        (2, b"\0", False),
    ],
)
def test_json_form_tells_whether_a_frame_is_readable(frame_type, payload, readable):
    said = event_to_json(frame(frame_type, payload))
    assert said["readable"] is readable
    assert said.get("fields") is None and said.get("properties") is None


def test_json_form_of_a_connection_event_has_its_name_and_detail():
    said = event_to_json(ConnectionEvent(0.0, "a -> b", "c1", "closed", "by the client"))
    assert (said["kind"], said["name"], said["event"], said["detail"]) == (
        "connection",
        "closed",
        "closed",
        "by the client",
    )


def test_json_form_of_a_published_event_has_message_and_outcome():
    message = SimpleNamespace(
        exchange="",
        routing_key="orders",
        body=b"two apples",
        publisher=SimpleNamespace(name="a -> b"),
        properties=BasicProperties(message_id="m1"),
    )
    queue = SimpleNamespace(name="orders")
    outcome = SimpleNamespace(queues=(queue,), refused=(), unconsumed=False, delays=())
    said = event_to_json(
        ModelEvent(0.0, None, "", "published", {"message": message, "outcome": outcome, "n": 1})
    )
    assert said["facts"]["message"] == {
        "message": {
            "number": 0,
            "exchange": "",
            "routing_key": "orders",
            "body": "two apples",
            "size": 10,
            "publisher": "a -> b",
            "properties": {"message_id": "m1"},
        }
    }
    assert said["facts"]["outcome"]["outcome"]["queues"] == ["orders"]
    assert said["facts"]["n"] == 1
    part = value_to_json(TruncatedMessage(message, 3))["message"]
    assert (part["body"], part["size"], part["properties"]) == ("two", 10, {"message_id": "m1"})


class Broken:
    def __str__(self) -> str:
        raise RuntimeError("broken")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (True, True),
        (Decimal("1.50"), {"decimal": "1.50"}),
        (float("inf"), {"float": "inf"}),
        ("\udcff", {"octets": "/w=="}),
        ({"a\n": [1, (2,)]}, {"a\n": [1, [2]]}),
        ({"decimal": 1}, {"table": {"decimal": 1}}),
        ({"decimal": 1, "float": 2}, {"decimal": 1, "float": 2}),
        (Broken(), {"object": "<Broken, which cannot be shown: RuntimeError>"}),
        (range(2), {"object": "range(0, 2)"}),
    ],
)
def test_values_of_every_type_have_a_json_form(value: object, said: object):
    assert value_to_json(value) == said


SECRETS = [
    m.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0" + PASSWORD.encode(), locale="en_US"),
    m.ConnectionStartOk(mechanism="AMQPLAIN", response=AMQPLAIN, locale="en_US"),
    m.ConnectionStartOk(mechanism="OTHER", response=PASSWORD.encode()),
    m.ConnectionStartOk(mechanism="PLAIN", response=PASSWORD.encode()),
    m.ConnectionStartOk(mechanism="AMQPLAIN", response=AMQPLAIN + AMQPLAIN),
    m.ConnectionStartOk(mechanism="AMQPLAIN", response=AMQPLAIN[:-2]),
    m.ConnectionSecureOk(response=PASSWORD.encode()),
    m.ConnectionSecure(challenge=PASSWORD.encode()),
    m.ConnectionUpdateSecret(new_secret=PASSWORD.encode(), reason="why"),
]


@pytest.mark.parametrize("method", SECRETS, ids=lambda method: f"{method.NAME}-{len(method.encode())}")
@pytest.mark.parametrize("cut_off", [0, 1, 3])
def test_no_password_is_shown_or_left_in_redacted_octets(method, cut_off):
    payload = method.encode()
    payload = payload[: len(payload) - cut_off]
    event = frame(1, payload)
    for known in (PASSWORD, PASSWORD[:6], PASSWORD[:6].encode().hex()):
        assert known not in json.dumps(event_to_json(event))
    hidden = DIALECT.redacted(1, payload, 0)
    assert PASSWORD[:6].encode() not in hidden
    assert len(hidden) == len(payload)
    if not cut_off:
        left = m.METHODS[method.INDEX].decode(hidden, RABBITMQ)
        assert event_to_json(frame(1, hidden)) == event_to_json(event)
        assert getattr(left, "mechanism", None) == getattr(method, "mechanism", None)


@pytest.mark.parametrize("method", SECRETS, ids=lambda method: f"{method.NAME}-{len(method.encode())}")
@pytest.mark.parametrize(
    "frame_type, channel, spoil",
    [
        (1, 0, lambda payload: payload + PASSWORD.encode()),
        (1, 7, lambda payload: payload[:-4] + PASSWORD.encode()),
        (1, 0, lambda payload: payload[:4] + b"\0\0\0\4" + payload[8:]),
        (2, 0, bytes),
        (3, 0, bytes),
        (8, 0, bytes),
        (9, 0, bytes),
    ],
    ids=["more-follows", "the-end-is-wrong", "wrong-size", "header", "body", "heartbeat", "unknown-type"],
)
def test_no_password_is_shown_of_a_login_that_cannot_be_read(method, frame_type, channel, spoil):
    event = replace(frame(frame_type, spoil(method.encode())), channel=channel)
    assert PASSWORD[:6] not in json.dumps(event_to_json(event)) + event.text
    assert PASSWORD[:6].encode().hex() not in event.text
    assert PASSWORD[:6].encode() not in event.redacted.payload
    assert event.redacted.size == event.size
    assert event_to_json(event.redacted) == event_to_json(event)


FORMATS: dict[str, Callable[..., object]] = {
    "timeline": lambda trace, path: path.write_text(trace.timeline()),
    "html": lambda trace, path: trace.html(path),
    "jsonl": Trace.jsonl,
    "pcapng": Trace.pcapng,
}


@pytest.mark.parametrize("method", SECRETS, ids=lambda method: f"{method.NAME}-{len(method.encode())}")
@pytest.mark.parametrize("extra", [b"", b"\0"], ids=["readable", "malformed"])
@pytest.mark.parametrize("name", FORMATS)
def test_no_format_of_a_trace_has_the_password_of_a_login(tmp_path, name, method, extra):
    FORMATS[name](Trace.of([replace(frame(1, method.encode() + extra), channel=0)]), tmp_path / name)
    written = (tmp_path / name).read_bytes()
    assert name in ("jsonl", "pcapng") or method.NAME.encode() in written
    for part in (PASSWORD.encode(), PASSWORD[:6].encode()):
        for known in (part, part.hex().encode(), base64.b64encode(part).rstrip(b"=")):
            assert known not in written


@pytest.mark.parametrize("write", [Trace.jsonl, Trace.pcapng])
def test_password_is_in_a_recording_that_is_not_redacted(tmp_path, write):
    login = replace(frame(1, SECRETS[0].encode()), channel=0)
    write(Trace.of([login]), tmp_path / "whole", redact=False)
    written = (tmp_path / "whole").read_bytes()
    assert login.payload in written or base64.b64encode(login.payload) in written
    write(Trace.of([login]), tmp_path / "redacted")
    hidden = login.payload.replace(PASSWORD.encode(), b"*********")
    written = (tmp_path / "redacted").read_bytes()
    assert hidden in written or base64.b64encode(hidden) in written


@pytest.mark.parametrize("method", [SECRETS[0], SECRETS[6], SECRETS[8]], ids=lambda method: method.NAME)
def test_body_that_equals_a_login_is_not_redacted(method):
    assert replace(frame(3, method.encode()), channel=1).redacted.payload == method.encode()


@pytest.mark.parametrize(
    "told, shown",
    [
        (f"amqp://alice:{PASSWORD}@host/", f"amqp://alice:{'*' * len(PASSWORD)}@host/"),
        (f"amqps://:{PASSWORD}@x@host", f"amqps://:{'*' * (len(PASSWORD) + 2)}@host"),
        ("amqp://host:5672/", "amqp://host:5672/"),
        ("http://host/a:b@c", "http://host/a:b@c"),
        ("alice:secret@host", "alice:secret@host"),
    ],
)
def test_passwords_in_urls_that_a_client_tells_are_hidden(told, shown):
    properties = {"connection_name": told, "product": "x", "more": {"urls": [told, told]}}
    event = frame(1, m.ConnectionStartOk(client_properties=properties, mechanism="PLAIN").encode())
    expected = {"connection_name": shown, "product": "x", "more": {"urls": [shown, shown]}}
    assert event_to_json(event)["fields"]["client_properties"] == expected
    assert event.redacted.method.client_properties == expected
    assert shown in event.text


def test_user_name_of_a_login_is_not_redacted():
    for method in SECRETS[:2]:
        assert b"guest" in DIALECT.redacted(1, method.encode(), 0)


@given(st.sampled_from([1, 2, 3, 8, 9]), st.binary(max_size=64))
def test_any_bytes_of_a_frame_have_a_json_form(frame_type, payload):
    json.dumps(event_to_json(frame(frame_type, payload)), allow_nan=False).encode("utf-8")
    assert len(DIALECT.redacted(frame_type, payload, 0)) == len(payload)
