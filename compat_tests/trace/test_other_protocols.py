"""Traces of clients of AMQP 0-10, 0-9 and 0-8: every view has them, tshark reads them, replay says no."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from compat_tests.scripted import amqp_0_9, amqp_0_9_1, amqp_0_10
from compat_tests.scripted.amqp_0_9 import Child, Server as Server09
from compat_tests.scripted.amqp_0_10 import Server as Server10, c, structs, x
from compat_tests.scripted.requesting import Requester
from compat_tests.trace.dissected import needs_tshark, tshark
from compat_tests.unit.trace.pages import rows_of
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
from fakeamqp.protocols.amqp_0_10.codec.frames import LAST_FRAME, LAST_SEGMENT
from fakeamqp.protocols.amqp_0_10.codec.structs import Command
from fakeamqp.replay import ReplayError, replay
from fakeamqp.trace import FrameEvent, ModelEvent, Recorder, Trace, load

PASSWORD = b"swordfish"
CLIENTS: dict[str, Any] = {"0-9": amqp_0_9.Client, "0-10": amqp_0_10.Client}
only_0_9 = pytest.mark.parametrize("protocol", ["0-9"])
only_0_10 = pytest.mark.parametrize("protocol", ["0-10"])


@pytest.fixture(params=["0-9", "0-10"])
def protocol(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def server(protocol: str) -> Any:
    return Server09() if protocol == "0-9" else Server10()


@pytest.fixture
def recorder(server: Any) -> Recorder:
    server.state.tap = Recorder(server.clock.now, time=server.clock.time)
    return server.state.tap


@pytest.fixture
def trace(protocol: str, server: Any, recorder: Recorder) -> Trace:
    """The trace of a conversation in that protocol."""
    (conversation_0_9 if protocol == "0-9" else conversation_0_10)(server)
    return recorder.trace()


def conversation_0_9(server: Server09, *, requests: bool = True) -> None:
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


def conversation_0_10(server: Server10) -> None:
    """Content of all lengths, settlement, a transaction, an exception, and both protocols."""
    session = server.session(b"orders", max_frame_size=4096)
    session.declare("q", arguments={"qpid.max_count": 10, "list": [1, "two", None]})
    session.declare_exchange("e", "topic")
    session.bind("q", "e", "a.#")
    session.publish(
        b"two apples", exchange="e", key="a.b", message=structs.MessageProperties(content_type="text")
    )
    session.publish(b"x" * 10_000)
    session.publish(b"")
    session.subscribe("q", credit=2)
    one, other = session.transfers()
    session.accept(one.id)
    session.release(other.id, set_redelivered=True)
    session.call(x.TxSelect())
    session.publish(b"three")
    session.call(x.TxCommit())
    session.query("q")
    session.client.send(c.ConnectionHeartbeat())
    publisher = server.client()
    publisher.declare("r")
    publisher.publish(b"from 0-9-1", routing_key="q")
    session.fails(x.QueuePurge(queue="nowhere"), 404)
    session.client.call(c.ConnectionClose(reply_code=200), c.ConnectionCloseOk)
    publisher.drop()


def frames(trace: Trace) -> list[FrameEvent]:
    return [event for event in trace.events if isinstance(event, FrameEvent)]


def methods(trace: Trace) -> list[str]:
    """The names of the methods, commands and controls of 0-10."""
    return [
        event.name
        for event in frames(trace)
        if event.protocol == "0-10" and event.part in ("method", "heartbeat")
    ]


def names(trace: Trace) -> list[tuple[str, str]]:
    return [(event.name, getattr(event, "direction", "")) for event in trace.events]


@only_0_9
def test_frames_and_events_of_a_0_9_transfer_are_in_order(server: Server09, recorder: Recorder) -> None:
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
    assert names(trace) == [
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


@only_0_10
def test_frames_and_events_of_a_0_10_transfer_are_in_order(server: Server10, recorder: Recorder) -> None:
    session = server.session(b"s")
    session.declare("q")
    session.subscribe("q")
    recorder.clear()
    session.publish(b"two apples", key="q")
    transfer = session.transfer()
    session.accept(transfer.id)
    trace = recorder.trace()
    assert names(trace) == [
        ("message.transfer", "received"),
        ("header", "received"),
        ("body", "received"),
        ("published", ""),
        ("enqueued", ""),
        ("delivered", ""),
        ("session.command-point", "sent"),
        ("message.transfer", "sent"),
        ("header", "sent"),
        ("body", "sent"),
        ("session.completed", "sent"),
        ("message.accept", "received"),
        ("acked", ""),
        ("session.completed", "sent"),
    ]
    delivered = next(event for event in trace.events if event.name == "delivered")
    assert isinstance(delivered, ModelEvent)
    assert (delivered.consumer, delivered.queue, delivered.channel) == ("d", "q", 0)
    assert delivered.facts["delivery_tag"] == transfer.id


@only_0_9
def test_timeline_describes_0_9_methods_contents_and_requests(trace: Trace) -> None:
    said = trace.timeline()
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


@only_0_10
def test_trace_has_the_0_10_handshake_and_the_protocol_of_each_connection(trace: Trace) -> None:
    assert methods(trace)[:6] == [
        "connection.start",
        "connection.start-ok",
        "connection.tune",
        "connection.tune-ok",
        "connection.open",
        "connection.open-ok",
    ]
    assert {event.alias: event.protocol for event in frames(trace)} == {"c1": "0-10", "c2": "0-9-1"}
    for line in (
        "c1 -> 0    connection.start-ok client_properties={} mechanism='PLAIN' response=(12 bytes)",
        "c1 <- 0    message.transfer destination='d' accept_mode=explicit acquire_mode=pre-acquired "
        "delivery(",
        "session 'orders' failed on c1 channel 0: ",
    ):
        assert line in trace.timeline(), line


def test_frames_after_clear_are_read_in_the_protocol_of_their_connection(
    protocol: str, server: Any, recorder: Recorder
) -> None:
    if protocol == "0-9":
        client = server.client()
        recorder.clear()
        Requester(client).call(m.ChannelPing(), m.ChannelOk)
        assert [event.name for event in frames(recorder.trace())] == [
            "channel.ping",
            "channel.ok",
            "channel.pong",
        ]
        return
    session = server.session(b"s")
    recorder.clear()
    session.declare("q")
    assert methods(recorder.trace()) == ["queue.declare", "session.completed"]
    recorder.clear()
    session.client.drop()
    server.client()
    assert {event.protocol for event in frames(recorder.trace())} == {"0-9-1"}


def test_a_recording_is_the_same_when_read_back(trace: Trace, tmp_path: Path) -> None:
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
    protocol: str, server: Any, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    octets = {"received": b"", "sent": b""}
    send, take = CLIENTS[protocol].send_bytes, CLIENTS[protocol].take_bytes

    def sending(client: Any, data: bytes) -> Any:
        octets["received"] += data
        return send(client, data)

    def taking(client: Any) -> bytes:
        data = take(client)
        octets["sent"] += data
        return data

    monkeypatch.setattr(CLIENTS[protocol], "send_bytes", sending)
    monkeypatch.setattr(CLIENTS[protocol], "take_bytes", taking)
    if protocol == "0-9":
        conversation_0_9(server)
    else:
        session = server.session(b"s", max_frame_size=4096)
        session.declare("q")
        session.subscribe("q")
        message = structs.MessageProperties(application_headers={"a": [1, None]})
        session.publish(b"x" * 10_000, message=message)
        session.accept(session.transfer().id)
        session.client.send_frame(c.ConnectionHeartbeat().encode(), track=1)
        session.client.expect_close(501)
    dialect = dialect_named(protocol)
    # A trace has only the beginning of the long body that the broker of 0-9 sends.
    for direction in ("received",) if protocol == "0-9" else ("received", "sent"):
        made = [
            dialect.frame(each.type, each.channel, each.payload)
            for each in frames(recorder.trace())
            if each.direction == direction
        ]
        assert octets[direction] == dialect.protocol_header + b"".join(made)


@only_0_9
def test_row_of_a_0_9_method_on_the_page_includes_its_content(trace: Trace) -> None:
    rows = rows_of(trace.html())
    publishes = [row for row in rows if row.name == "basic.publish"]
    assert [row.size for row in publishes] == [10, 10_000]
    assert publishes[0].body == "two apples"
    assert len(publishes[0].events) == 8  # With the contents inside of it.
    (transfer,) = (row for row in rows if row.name == "message.transfer" and row.direction == 0)
    assert (transfer.body, transfer.size) == ("by request", 10)
    (delivery,) = (row for row in rows if row.name == "message.transfer" and row.direction == 1)
    assert delivery.queues == ["r"]
    for name in ("stream.consume", "stream.consume-ok", "stream.deliver"):
        (of_stream,) = (row for row in rows if row.name == name)
        assert of_stream.queues == ["files"]
    (stage,) = (row for row in rows if row.name == "file.stage")
    assert stage.body == "abc"
    assert [name for _, name, _, _ in stage.properties or ()] == ["filename"]
    assert [row.name for row in rows if row.kind == "frame"] == ["trace"]


@only_0_10
def test_row_of_a_0_10_command_on_the_page_includes_its_content(trace: Trace) -> None:
    rows = rows_of(trace.html())
    transfers = [row for row in rows if row.name == "message.transfer" and row.direction == 0]
    assert [row.size for row in transfers] == [10, 10_000, 0, 5]
    assert transfers[0].body == "two apples"
    assert [name for _, name, _, _ in transfers[0].properties or ()] == [
        "delivery-properties",
        "routing_key",
        "message-properties",
        "content_type",
    ]
    sent = [row for row in rows if row.name == "message.transfer" and row.direction == 1]
    assert [row.queues for row in sent] == [["q"]] * 2
    # Whatever was cut into frames is in one of the rows, and no row is of a part.
    assert not [row for row in rows if row.kind == "frame"]
    assert [row.name for row in rows if row.kind == "heartbeat"] == ["connection.heartbeat"]
    assert next(row for row in rows if row.name == "execution.exception").problem


COLUMNS: dict[str, list[tuple[str, str, dict[str, Any]]]] = {
    "0-9": [
        (
            "basic.publish",
            "received",
            {"exchange": "", "routing_key": "q", "body_size": 10, "message_id": "1"},
        ),
        ("message.transfer", "received", {"exchange": "", "routing_key": "r", "body_size": 10}),
        ("message.transfer", "sent", {"consumer_tag": "d"}),
        ("message.consume", "received", {"consumer_tag": "d"}),
        ("connection.close", "sent", {"reply_code": 540}),
    ],
    "0-10": [
        ("message.transfer", "received", {"exchange": "e", "routing_key": "a.b", "body_size": 10}),
        ("message.subscribe", "received", {"consumer_tag": "d"}),
        ("message.transfer", "sent", {"consumer_tag": "d"}),
        ("execution.exception", "sent", {"reply_code": 404}),
    ],
}


def test_parquet_table_has_the_columns_of_methods_and_commands(
    protocol: str, trace: Trace, tmp_path: Path
) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    trace.parquet(tmp_path / "trace.parquet")
    rows = pq.read_table(tmp_path / "trace.parquet").to_pylist()
    for name, direction, columns in COLUMNS[protocol]:
        row = next(row for row in rows if (row["name"], row["direction"]) == (name, direction))
        assert {column: row[column] for column in columns} == columns, name
    if protocol == "0-10":
        assert [row["delivery_tag"] for row in rows if row["name"] == "delivered"] == [0, 1]
    assert PASSWORD not in (tmp_path / "trace.parquet").read_bytes()


# --- 0-8 ----------------------------------------------------------------------------------------------


def old_client(server: Server09, header: bytes) -> amqp_0_9.Client:
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


@only_0_9
@pytest.mark.parametrize("header", version_0_8.PROTOCOL_HEADERS, ids=bytes.hex)
def test_frames_of_a_0_8_client_are_traced_as_0_8(
    server: Server09, recorder: Recorder, header: bytes, tmp_path: Path
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


CALLED_BY_TSHARK = {
    "0-9": {"basic.recover": "basic.recover-async"},
    "0-10": {"tx.commit": "tx.select", "tx.rollback": "tx.select"},
}
"""It knows one method by what 0-9-1 made of it, and up to 4.0 it calls all commands of class tx tx.select."""


def called_by_tshark(protocol: str, name: str) -> str:
    return CALLED_BY_TSHARK[protocol].get(name, name)


@needs_tshark
def test_tshark_and_the_trace_agree_on_every_name(protocol: str, tmp_path: Path) -> None:
    if protocol == "0-9":
        # Of class message and of what Qpid has added it knows nothing.
        added = ("exchange.bound", "basic.recover-sync")
        kinds = [
            (1, int(kind.CLASS_ID > 10), kind)
            for kind in METHODS.values()
            if kind.CLASS_ID != 120 and not kind.NAME.startswith(added)
        ]
    else:
        kinds = [
            (0x0F00 | issubclass(kind, Command), 0, kind)
            for kind in (*c.CONTROLS.values(), *x.COMMANDS.values())
        ]
    events = [
        FrameEvent(0.0, "a", "c1", "received", number, channel, kind().encode(), protocol)
        for number, channel, kind in kinds
    ]
    path = tmp_path / "trace.pcapng"
    Trace.of(events).pcapng(path)
    assert tshark(path, "-Y", "_ws.malformed") == []
    lines = [line.split() for line in tshark(path, "-Y", "amqp", "-T", "fields", "-e", "_ws.col.Info")]
    told = [words[0].lower() for words in lines if words and words[0] != "Protocol-Header"]
    assert told == [called_by_tshark(protocol, event.name) for event in events]


@needs_tshark
@only_0_9
def test_tshark_dissects_a_0_9_trace_without_requests(
    server: Server09, recorder: Recorder, tmp_path: Path
) -> None:
    conversation_0_9(server, requests=False)
    trace = recorder.trace()
    path = tmp_path / "trace.pcapng"
    trace.pcapng(path)
    assert tshark(path, "-Y", "_ws.malformed || tcp.analysis.flags") == []
    lines = tshark(path, "-Y", "amqp", "-T", "fields", "-e", "_ws.col.Info")
    header, *told = [line.split()[0].lower() for line in lines if line.split()]
    assert header == "protocol-header"
    assert told == [
        event.name.replace("content ", "content-") for event in frames(trace) if event.name != "trace"
    ]


@needs_tshark
@only_0_9
def test_frames_unknown_to_tshark_are_described_in_comments(trace: Trace, tmp_path: Path) -> None:
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
@only_0_10
def test_tshark_dissects_a_0_10_trace_without_errors(trace: Trace, tmp_path: Path) -> None:
    path = tmp_path / "trace.pcapng"
    trace.pcapng(path)
    assert tshark(path, "-Y", "_ws.malformed || _ws.expert.severity >= 0x800000 || tcp.analysis.flags") == []
    mine = ("-Y", "amqp && tcp.stream == 0", "-T", "fields", "-e", "_ws.col.Info")
    seen = [name for line in tshark(path, *mine) for name in line.split()]
    assert seen[:4] == ["Protocol-Header", "0-10", "Protocol-Header", "0-10"]
    told = Counter(name for name in seen if "." in name)
    assert told == Counter(called_by_tshark("0-10", name) for name in methods(trace))
    sent = [event for event in frames(trace) if event.protocol == "0-10"]
    assert Counter(seen)["message-body"] == sum(event.part == "body" for event in sent)
    positions = tshark(path, "-Y", "tcp.stream == 0", "-T", "fields", "-e", "amqp.frame-position")
    last = LAST_SEGMENT | LAST_FRAME
    wholes = sum(int(each, 0) & last == last for line in positions for each in line.split(",") if each)
    assert wholes == sum(event.type >> 8 & last == last for event in sent)


@needs_tshark
@only_0_10
def test_tshark_dissects_a_0_10_trace_without_its_beginning(
    server: Server10, recorder: Recorder, tmp_path: Path
) -> None:
    session = server.session(b"s")
    recorder.clear()
    session.declare("q")
    session.publish(b"x" * 100_000)
    path = tmp_path / "trace.pcapng"
    recorder.trace().pcapng(path)
    assert tshark(path, "-Y", "_ws.malformed || _ws.expert.severity >= 0x800000") == []
    seen = [line for line in tshark(path, "-T", "fields", "-e", "_ws.col.Info") if "." in line]
    assert [line.strip() for line in seen if not line.startswith(("[", "TCP"))][:3] == [
        "queue.declare",
        "session.completed",
        "message.transfer",
    ]


# --- replay -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alone", [True, False])
def test_replay_skips_connections_of_other_protocols_and_gives_the_reason(
    protocol: str, server: Any, recorder: Recorder, alone: bool
) -> None:
    if protocol == "0-9":
        server.client()
    else:
        server.session(b"s").declare("q")
    if alone:
        with pytest.raises(ReplayError, match=f"use AMQP {protocol}; replay supports only 0-9-1 and 1-0"):
            replay(recorder.trace())
        return
    usual = amqp_0_9_1.Server.connect(server)
    usual.protocol_header = amqp_0_9_1.PROTOCOL_HEADERS["0-9-1"]
    usual.handshake()
    usual.call(shared.ChannelOpen(), shared.ChannelOpenOk)
    usual.call(shared.QueueDeclare(queue="r"), shared.QueueDeclareOk)
    usual.drop()
    found = replay(recorder.trace())
    assert not found.same
    assert [(each.alias, each.skipped) for each in found.connections] == [
        ("c1", f"it uses AMQP {protocol}; replay supports only 0-9-1 and 1-0"),
        ("c2", ""),
    ]
