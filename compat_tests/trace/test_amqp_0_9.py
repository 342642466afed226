"""Traces of clients that speak AMQP 0-9 and 0-8: every view has them, tshark reads them, replay says no."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from compat_tests.scripted import amqp_0_9_1
from compat_tests.scripted.amqp_0_9 import Child, Client, Server
from compat_tests.scripted.requesting import Requester
from fakeamqp.dialects import dialect_named
from fakeamqp.protocols.amqp_0_9.codec import (
    METHODS,
    BasicProperties,
    FileProperties,
    StreamProperties,
    TunnelProperties,
    methods as m,
    version_0_8,
)
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9_1.codec import methods as shared
from fakeamqp.replay import ReplayError, replay
from fakeamqp.trace import FrameEvent, ModelEvent, Recorder, Trace, load

TSHARK = shutil.which("tshark")
needs_tshark = pytest.mark.skipif(
    TSHARK is None, reason="tshark is not installed (Debian: apt-get install tshark)"
)
PASSWORD = b"swordfish"


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def recorder(server: Server) -> Recorder:
    recorder = Recorder(server.clock.now, time=server.clock.time)
    server.state.tap = recorder
    return recorder


def conversation(server: Server, *, requests: bool = True) -> None:
    """A bit of everything: contents of all classes and lengths, contents in contents, requests, errors."""
    client = server.client()
    client.call(m.AccessRequest(realm="/data", active=True, write=True, read=True), m.AccessRequestOk)
    client.declare("q", arguments={"x": [1, "two", None]})
    client.declare("files")
    client.send_content(
        m.BasicPublish(routing_key="q"),
        BasicProperties(content_type="text/plain", headers={"shop": "north"}, message_id="1"),
        b"two apples",
        children=[Child(60, b"\0\0", b"inner", (Child(80, b"\0\0", b"x"),)), Child(60, b"\0\0")],
    )
    client.send_content(m.BasicPublish(routing_key="q"), None, b"x" * 10_000, frame_size=4000)
    client.send(m.BasicGet(queue="q"))
    got = client.expect_content(m.BasicGetOk)
    assert len(got.children) == 2
    client.ack(got.method.delivery_tag)
    client.consume("q", "t")
    client.expect_content(m.BasicDeliver)
    client.call(m.FileOpen(identifier="f", content_size=3), m.FileOpenOk)
    client.send_content(m.FileStage(), FileProperties(filename="report"), b"abc")
    client.send(m.FilePublish(routing_key="files", identifier="f"))
    client.call(m.StreamConsume(queue="files", consumer_tag="s"), m.StreamConsumeOk)
    client.send_content(m.StreamPublish(routing_key="files"), StreamProperties(content_type="a/b"), b"packet")
    client.expect_content(m.StreamDeliver)
    client.send_frame(7, 0, b"seen by nobody")
    client.send_frame(8, 0, b"")
    if requests:
        client.declare("r")
        requester = Requester(client)
        requester.publish("r", b"by request", content_type="text/plain", security_token=PASSWORD)
        requester.consume("r")
        requester.answer(requester.transfer().number)
        requester.call(m.ChannelPing(), m.ChannelOk)
        requester.request(m.ChannelPong)
    client.send_content(
        m.TunnelRequest(meta_data={"a": None}), TunnelProperties(proxy_name="p"), b"tunnelled"
    )
    client.expect_connection_close(540)


def frames(trace: Trace) -> list[FrameEvent]:
    return [event for event in trace.events if isinstance(event, FrameEvent)]


def test_frames_and_events_are_in_order(server: Server, recorder: Recorder) -> None:
    client = server.client()
    client.declare("q")
    requester = Requester(client)
    requester.consume("q")
    recorder.clear()
    transfer = m.MessageTransfer(routing_key="q", message_id="7", body=Body(b"two apples"))
    requester.ask(transfer)
    delivery = requester.transfer()
    requester.response(m.MessageOk)
    requester.answer(delivery.number)
    trace = recorder.trace()
    assert [(event.name, getattr(event, "direction", "")) for event in trace.events] == [
        ("message.transfer", "received"),
        ("published", ""),
        ("enqueued", ""),
        ("delivered", ""),
        ("message.transfer", "sent"),
        ("message.ok", "sent"),
        ("message.ok", "received"),
        ("acked", ""),
    ]
    delivered = next(event for event in trace.events if event.name == "delivered")
    assert isinstance(delivered, ModelEvent)
    assert (delivered.consumer, delivered.queue, delivered.channel) == ("d", "q", 1)
    assert delivered.facts["delivery_tag"] == delivery.number
    received, *_ = frames(trace)
    assert received.method == transfer
    assert (received.protocol, received.type, received.part) == ("0-9", 9, "method")


def test_timeline_describes_0_9_methods_contents_and_requests(server: Server, recorder: Recorder) -> None:
    conversation(server)
    said = recorder.trace().timeline()
    for line in (
        "connected: 127.0.0.1:50001 -> 127.0.0.1:0 AMQP 1-1-0-9",
        "c1 -> 0    connection.start-ok mechanism='PLAIN' response=(12 bytes) locale='en_US'",
        "basic.publish ticket=0 exchange='' routing_key='q' weight=2 body_size=10 content_type='text/plain' "
        "headers={'shop': 'north'} message_id='1' [inside: weight=1 body_size=5, class_id=80 body_size=1, "
        "body=b'x', body=b'inner', body_size=0] body=b",
        "class_id=70 body_size=3 filename='report'",
        "-> 0    trace b'seen by nobody'",
        "message.transfer (request 1, mark 0) destination='' routing_key='r' content_type='text/plain' "
        "security_token=(9 bytes) body=b'by request'",
        "<- 1    message.ok (response 1 to 1)",
        "-> 1    message.ok (response 1 to 1)",
        "channel.pong (request 2, mark 1)",
        "tunnel.request meta_data={'a': None} class_id=110 body_size=9 proxy_name='p' body=",
    ):
        assert line in said, line
    assert "malformed" not in said
    assert "swordfish" not in said


def test_frames_after_clear_are_read_in_the_protocol_of_their_connection(
    server: Server, recorder: Recorder
) -> None:
    client = server.client()
    recorder.clear()
    Requester(client).call(m.ChannelPing(), m.ChannelOk)
    assert [event.name for event in frames(recorder.trace())] == [
        "channel.ping",
        "channel.ok",
        "channel.pong",
    ]


def test_a_recording_is_the_same_when_read_back(server: Server, recorder: Recorder, tmp_path: Path) -> None:
    conversation(server)
    trace = recorder.trace()
    trace.jsonl(tmp_path / "trace.jsonl")
    read = load(tmp_path / "trace.jsonl")
    assert read.timeline() == trace.timeline()
    assert read.html() == trace.html()
    written = (tmp_path / "trace.jsonl").read_bytes()
    assert b"guest:guest" not in written
    assert PASSWORD not in written
    assert PASSWORD.decode() not in trace.html()
    trace.jsonl(tmp_path / "whole.jsonl", redact=False)
    whole = [event.payload for event in frames(load(tmp_path / "whole.jsonl"))]
    assert whole == [bytes(event.payload) for event in frames(trace)]


def test_frames_of_a_trace_give_the_original_bytes(
    server: Server, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    bytes_out = []
    send = amqp_0_9_1.Client.send_bytes

    def sending(client: amqp_0_9_1.Client, octets: bytes) -> None:
        bytes_out.append(octets)
        send(client, octets)

    monkeypatch.setattr(amqp_0_9_1.Client, "send_bytes", sending)
    monkeypatch.setattr(Client, "send_bytes", sending, raising=False)
    conversation(server)
    framing = dialect_named("0-9")
    made = b"".join(
        framing.frame(each.type, each.channel, each.payload)
        for each in frames(recorder.trace())
        if each.direction == "received"
    )
    assert b"".join(bytes_out) == framing.protocol_header + made


def rows_of(page: str) -> tuple[list[Any], list[list[Any]], list[str]]:
    data = json.JSONDecoder().raw_decode(page[page.index('{"title"') :])[0]
    return data["pool"], data["rows"], data["kinds"]


def test_row_of_a_method_on_the_page_includes_its_content(server: Server, recorder: Recorder) -> None:
    conversation(server)
    pool, rows, kinds = rows_of(recorder.trace().html())
    publishes = [row for row in rows if pool[row[6]] == "basic.publish"]
    assert [row[13] for row in publishes] == [10, 10_000]
    assert pool[publishes[0][12]] == ["text", "two apples"]
    assert len(publishes[0][0]) == 8  # With the contents inside of it.
    (transfer,) = (row for row in rows if pool[row[6]] == "message.transfer" and row[4] == 0)
    assert pool[transfer[12]] == ["text", "by request"]
    assert transfer[13] == 10
    (delivery,) = (row for row in rows if pool[row[6]] == "message.transfer" and row[4] == 1)
    assert [pool[name] for name in delivery[8]] == ["r"]
    for name in ("stream.consume", "stream.consume-ok", "stream.deliver"):
        (of_stream,) = (row for row in rows if pool[row[6]] == name)
        assert [pool[queue] for queue in of_stream[8]] == ["files"]
    (stage,) = (row for row in rows if pool[row[6]] == "file.stage")
    assert pool[stage[12]] == ["text", "abc"]
    assert [name for _, name, _, _ in pool[stage[11]]] == ["filename"]
    others = [pool[row[6]] for row in rows if kinds[row[3]] == "frame"]
    assert others == ["trace"]


def test_parquet_table_has_the_columns_of_0_9_methods(
    server: Server, recorder: Recorder, tmp_path: Path
) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    conversation(server)
    recorder.trace().parquet(tmp_path / "trace.parquet")
    rows = pq.read_table(tmp_path / "trace.parquet").to_pylist()

    def of(name: str, direction: str) -> list[dict[str, Any]]:
        return [row for row in rows if (row["name"], row["direction"]) == (name, direction)]

    first = of("basic.publish", "received")[0]
    assert (first["exchange"], first["routing_key"], first["body_size"], first["message_id"]) == (
        "",
        "q",
        10,
        "1",
    )
    sent = of("message.transfer", "received")[0]
    assert (sent["exchange"], sent["routing_key"], sent["body_size"]) == ("", "r", 10)
    assert of("message.transfer", "sent")[0]["consumer_tag"] == "d"
    assert of("message.consume", "received")[0]["consumer_tag"] == "d"
    assert of("connection.close", "sent")[0]["reply_code"] == 540
    assert PASSWORD not in (tmp_path / "trace.parquet").read_bytes()


# --- 0-8 ----------------------------------------------------------------------------------------------


def old_client(server: Server, header: bytes) -> Client:
    """A client of 0-8."""
    client = server.connect()
    client.send_bytes(header)
    client.take_frame()
    client.login()
    client.take_frame()
    client.send(m.ConnectionTuneOk(channel_max=10, frame_max=4096), 0)
    client.send(m.ConnectionOpen(virtual_host="/"), 0)
    client.take_frame()
    client.send(m.ChannelOpen())
    client.take_bytes()
    return client


@pytest.mark.parametrize("header", version_0_8.PROTOCOL_HEADERS, ids=bytes.hex)
def test_frames_of_a_0_8_client_are_traced_as_0_8(
    server: Server, recorder: Recorder, header: bytes, tmp_path: Path
) -> None:
    client = old_client(server, header)
    client.send(version_0_8.BasicConsume(queue="nowhere"))
    client.send(version_0_8.ConnectionClose(reply_code=200), 0)
    trace = recorder.trace()
    assert {event.protocol for event in frames(trace)} == {"0-8"}
    assert "connection.start version_major=8 version_minor=0" in trace.timeline()
    assert "connection.close reply_code=200" in trace.timeline()
    assert "connection.close-ok" in trace.timeline()
    assert "malformed" not in trace.timeline()
    assert "unknown" not in trace.timeline()
    trace.jsonl(tmp_path / "trace.jsonl")
    assert load(tmp_path / "trace.jsonl").timeline() == trace.timeline()
    trace.pcapng(tmp_path / "trace.pcapng")
    assert header in (tmp_path / "trace.pcapng").read_bytes()


# --- tshark -------------------------------------------------------------------------------------------


def tshark(path: Path, *arguments: str) -> list[str]:
    assert TSHARK is not None
    done = subprocess.run(
        [TSHARK, "-2", "-r", str(path), *arguments], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def called_by_tshark(name: str) -> str:
    """It knows this one by what 0-9-1 made of it."""
    return "basic.recover-async" if name == "basic.recover" else name


@needs_tshark
def test_tshark_dissects_a_0_9_trace_without_requests(
    server: Server, recorder: Recorder, tmp_path: Path
) -> None:
    conversation(server, requests=False)
    trace = recorder.trace()
    path = tmp_path / "trace.pcapng"
    trace.pcapng(path)
    assert tshark(path, "-Y", "_ws.malformed || tcp.analysis.flags") == []
    seen = [
        line.split()[0]
        for line in tshark(path, "-Y", "amqp", "-T", "fields", "-e", "_ws.col.Info")
        if line.split()
    ]
    assert seen[0] == "Protocol-Header"
    told = [name.lower() for name in seen[1:]]
    expected = [
        event.name.replace("content ", "content-") for event in frames(trace) if event.name != "trace"
    ]
    assert told == expected


@needs_tshark
def test_frames_unknown_to_tshark_are_described_in_comments(
    server: Server, recorder: Recorder, tmp_path: Path
) -> None:
    conversation(server)
    trace = recorder.trace()
    path = tmp_path / "trace.pcapng"
    trace.pcapng(path)
    assert tshark(path, "-Y", "_ws.malformed || tcp.analysis.flags") == []
    wrong = tshark(path, "-Y", "_ws.expert.severity >= 0x800000", "-T", "fields", "-e", "_ws.expert.message")
    unknown = [event for event in frames(trace) if event.type in (7, 9, 10)]
    assert len(wrong) == len(unknown)
    assert all("Unknown frame type" in line for line in wrong)
    comments = "\n".join(tshark(path, "-T", "fields", "-e", "frame.comment"))
    for event in unknown:
        assert event.text in comments


@needs_tshark
def test_tshark_and_the_trace_agree_on_every_name(tmp_path: Path) -> None:
    # Of class message and of what Qpid has added it knows nothing.
    made = [
        kind()
        for kind in METHODS.values()
        if kind.CLASS_ID != 120 and not kind.NAME.startswith(("exchange.bound", "basic.recover-sync"))
    ]
    events = [
        FrameEvent(0.0, "a", "c1", "received", 1, int(each.CLASS_ID > 10), each.encode(), "0-9")
        for each in made
    ]
    path = tmp_path / "trace.pcapng"
    Trace.of(events).pcapng(path)
    assert tshark(path, "-Y", "_ws.malformed") == []
    _, *lines = (line.split() for line in tshark(path, "-Y", "amqp", "-T", "fields", "-e", "_ws.col.Info"))
    assert [line[0].lower() for line in lines if line] == [called_by_tshark(event.name) for event in events]


# --- replay -------------------------------------------------------------------------------------------


def test_replay_skips_0_9_connections_and_gives_the_reason(server: Server, recorder: Recorder) -> None:
    server.client()
    usual = amqp_0_9_1.Server.connect(server)
    usual.protocol_header = amqp_0_9_1.PROTOCOL_HEADERS["0-9-1"]
    usual.handshake()
    usual.call(shared.ChannelOpen(), shared.ChannelOpenOk)
    usual.call(shared.QueueDeclare(queue="r"), shared.QueueDeclareOk)
    usual.drop()
    found = replay(recorder.trace())
    assert not found.same
    assert [(each.alias, each.skipped) for each in found.connections] == [
        ("c1", "it uses AMQP 0-9; replay supports only 0-9-1"),
        ("c2", ""),
    ]


def test_replay_of_only_0_9_connections_is_an_error(server: Server, recorder: Recorder) -> None:
    server.client()
    with pytest.raises(ReplayError, match="use AMQP 0-9; replay supports only 0-9-1"):
        replay(recorder.trace())
