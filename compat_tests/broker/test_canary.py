"""A password of its own is in no output of the broker: reprs, logs, traces, exports, texts of errors."""

from __future__ import annotations

import base64
import gc
import json
import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest

from compat_tests.scripted.octets import field, long_string
from fakeamqp import Broker
from fakeamqp.errors import FakeAMQPError
from fakeamqp.protocols.amqp_0_9.codec import methods as m09
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import method_frame
from fakeamqp.protocols.amqp_0_10.codec import controls as c
from fakeamqp.protocols.amqp_0_10.codec.frames import control_frame

CANARY = "kanarienvogel-7f3a"
OPEN = [m.ConnectionTuneOk(channel_max=10, frame_max=131072), m.ConnectionOpen(virtual_host="/")]
URL = {"url": f"amqp://app:{CANARY}@host/"}


def framed(*methods: Any) -> bytes:
    return b"".join(method_frame(0, each.encode()) for each in methods)


def start_ok(kind: Any, mechanism: str, user: str = "app") -> bytes:
    """A login with the canary, which is in the client properties as well."""
    if mechanism == "PLAIN":
        response = f"\0{user}\0{CANARY}".encode()
    else:
        response = field("LOGIN", b"S" + long_string(user.encode()))
        response += field("PASSWORD", b"S" + long_string(CANARY.encode()))
    fields = {"client_properties": URL, "mechanism": mechanism, "response": response, "locale": "en_US"}
    if kind is c.ConnectionStartOk:
        return control_frame(0, kind(**fields).encode(), 4096)
    return framed(kind(**fields))


UPDATE = framed(m.ConnectionUpdateSecret(new_secret=CANARY.encode(), reason="because"))
CONVERSATIONS: dict[str, bytes] = {
    "0-9-1 PLAIN": b"AMQP\0\0\x09\x01" + start_ok(m.ConnectionStartOk, "PLAIN") + framed(*OPEN) + UPDATE,
    "0-9-1 AMQPLAIN": b"AMQP\0\0\x09\x01" + start_ok(m.ConnectionStartOk, "AMQPLAIN") + framed(*OPEN),
    "0-9": b"AMQP\1\1\0\x09" + start_ok(m09.ConnectionStartOk, "PLAIN") + framed(*OPEN),
    "0-10": b"AMQP\1\1\0\x0a" + start_ok(c.ConnectionStartOk, "PLAIN"),
    "another user": b"AMQP\0\0\x09\x01" + start_ok(m.ConnectionStartOk, "PLAIN", "nobody"),
    "another mechanism": b"AMQP\0\0\x09\x01"
    + framed(m.ConnectionStartOk(mechanism="X", response=CANARY.encode())),
    "cut short": b"AMQP\0\0\x09\x01" + start_ok(m.ConnectionStartOk, "PLAIN")[:-8],
    "a wrong end": b"AMQP\0\0\x09\x01" + start_ok(m.ConnectionStartOk, "PLAIN")[:-1] + b"\0",
    "too early": b"AMQP\0\0\x09\x01" + UPDATE,
}


@pytest.fixture(params=["rabbitmq-4.3", "spec"])
def broker(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> Iterator[Broker]:
    """With clients that have logged in and that were refused, and all logs."""
    caplog.set_level(logging.DEBUG)
    with Broker(personality=request.param, users={"app": CANARY}) as broker:
        broker.admin.add_user("other", CANARY)
        lines: list[socket.socket] = []
        for octets in CONVERSATIONS.values():
            lines.append(broker.connect())
            lines[-1].sendall(octets)
        connection = pika.BlockingConnection(pika.URLParameters(broker.url))
        connection.channel().queue_declare("orders")
        for line in lines:
            line.settimeout(30)
            line.recv(1)  # The broker has read the beginning.
        broker.wait_until_idle(timeout=30)
        yield broker
        connection.close()
        for line in lines:
            line.close()


def hidden(text: str) -> None:
    """The canary is not in the text, in no usual form."""
    octets = CANARY.encode()
    forms = (CANARY, octets.hex(), ",".join(map(str, octets)), base64.b64encode(octets).decode())
    found = [form for form in forms if form in text]
    at = text.find(found[0]) if found else 0
    assert not found, text[max(0, at - 200) : at + 100]


def test_logs_have_no_password(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    records = caplog.get_records("setup")
    assert any("Login was refused" in record.getMessage() for record in records)
    for record in records:
        hidden(record.getMessage())
        hidden(repr(record.__dict__))


def test_traces_have_no_password(broker: Broker, tmp_path: Path) -> None:
    trace = broker.trace
    assert "start-ok" in trace.timeline()
    hidden(trace.timeline())
    hidden(trace.html())
    hidden(str(trace.events))
    for event in trace.events:
        hidden(event.text)
        hidden(repr(event))
        hidden(repr(getattr(event, "method", None)))
    trace.jsonl(tmp_path / "trace.jsonl")
    trace.pcapng(tmp_path / "trace.pcapng")
    lines = (tmp_path / "trace.jsonl").read_text().splitlines()
    for line in map(json.loads, lines):
        hidden(json.dumps(line))
        hidden(base64.b64decode(line.get("octets", "")).decode("latin-1"))
    hidden((tmp_path / "trace.pcapng").read_bytes().decode("latin-1"))


def test_parquet_has_no_password(broker: Broker, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed (extra trace)")
    broker.trace.parquet(tmp_path / "trace.parquet")
    for row in parquet.read_table(tmp_path / "trace.parquet").to_pylist():
        hidden(str(row))
        hidden("".join(value.decode("latin-1") for value in row.values() if isinstance(value, bytes)))


def test_definitions_have_no_password(broker: Broker) -> None:
    exported = broker.definitions()
    assert {"app", "other"} <= {user["name"] for user in exported["users"]}
    hidden(json.dumps(exported))


def test_views_have_no_password(broker: Broker) -> None:
    assert broker.connections
    for each in (
        broker,
        broker.connections,
        broker.queues,
        broker.queue("orders"),
        broker.trace,
        broker.faults,
    ):
        hidden(repr(each))
        hidden(str(each))


def test_texts_of_errors_have_no_password(broker: Broker) -> None:
    user = {"name": "app", "password": CANARY}
    for wrong in ({"tags": 5}, {"tag": ""}, {"name": None}, {"limits": {"max": 1}}, {"password": [CANARY]}):
        with pytest.raises(FakeAMQPError) as caught:
            broker.load_definitions({"users": [{**user, **wrong}]})
        hidden(str(caught.value))
    for given in ({"pasword": CANARY}, {"password": CANARY, "limits": {"max": 1}}):
        with pytest.raises(FakeAMQPError) as caught:
            Broker(users={"app": given})
        hidden(str(caught.value))


def test_no_object_of_the_broker_shows_a_password(broker: Broker) -> None:
    seen = set()
    events = broker.trace.events
    assert events
    gc.collect()  # Brokers whose constructor has failed are not complete enough to be shown.
    for each in gc.get_objects():
        # A table is a value of the client's own.
        if str(type(each).__module__).startswith("fakeamqp") and not isinstance(each, dict):
            seen.add(type(each).__name__)
            hidden(repr(each))
    assert {"User", "FrameEvent", "Broker", "AccessControl"} <= seen
