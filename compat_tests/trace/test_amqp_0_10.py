"""Traces of clients that speak AMQP 0-10: every view has them, tshark understands them, replay says no."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from compat_tests.scripted.amqp_0_10 import Client, Server, c, structs, x
from fakeamqp.dialects import dialect_named
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_10.codec.frames import LAST_FRAME, LAST_SEGMENT
from fakeamqp.protocols.amqp_0_10.codec.structs import Command
from fakeamqp.replay import ReplayError, replay
from fakeamqp.trace import FrameEvent, ModelEvent, Recorder, Trace, load

TSHARK = shutil.which("tshark")
NAMES = (
    "connection.start",
    "connection.start-ok",
    "connection.tune",
    "connection.tune-ok",
    "connection.open",
    "connection.open-ok",
)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def recorder(server: Server) -> Recorder:
    recorder = Recorder(server.clock.now, time=server.clock.time)
    server.state.tap = recorder
    return recorder


def conversation(server: Server) -> None:
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


def methods(trace: Trace) -> list[str]:
    return [
        event.name
        for event in trace.events
        if isinstance(event, FrameEvent)
        and event.protocol == "0-10"
        and event.part in ("method", "heartbeat")
    ]


def test_frames_and_events_are_in_order(server: Server, recorder: Recorder) -> None:
    session = server.session(b"s")
    session.declare("q")
    session.subscribe("q")
    recorder.clear()
    session.publish(b"two apples", key="q")
    transfer = session.transfer()
    session.accept(transfer.id)
    seen = [(event.name, getattr(event, "direction", "")) for event in recorder.trace().events]
    assert seen == [
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
    delivered = next(event for event in recorder.trace().events if event.name == "delivered")
    assert isinstance(delivered, ModelEvent)
    assert (delivered.consumer, delivered.queue, delivered.channel) == ("d", "q", 0)
    assert delivered.facts["delivery_tag"] == transfer.id


def test_trace_has_the_0_10_handshake_and_the_protocol_of_each_connection(
    server: Server, recorder: Recorder
) -> None:
    conversation(server)
    trace = recorder.trace()
    assert tuple(methods(trace)[: len(NAMES)]) == NAMES
    spoken = {event.alias: event.protocol for event in trace.events if isinstance(event, FrameEvent)}
    assert spoken == {"c1": "0-10", "c2": "0-9-1"}
    assert "c1 -> 0    connection.start-ok client_properties={} mechanism='PLAIN' response=(12 bytes)" in (
        trace.timeline()
    )
    transfer = "message.transfer destination='d' accept_mode=explicit acquire_mode=pre-acquired delivery("
    assert f"c1 <- 0    {transfer}" in trace.timeline()
    assert "session 'orders' failed on c1 channel 0: " in trace.timeline()


def test_frames_after_clear_are_read_in_the_protocol_of_their_connection(
    server: Server, recorder: Recorder
) -> None:
    session = server.session(b"s")
    recorder.clear()
    session.declare("q")
    trace = recorder.trace()
    assert methods(trace) == ["queue.declare", "session.completed"]
    recorder.clear()
    session.client.drop()
    again = server.client()
    assert again is not None
    assert {event.protocol for event in recorder.trace().events if isinstance(event, FrameEvent)} == {"0-9-1"}


def test_a_recording_is_the_same_when_read_back(server: Server, recorder: Recorder, tmp_path: Path) -> None:
    conversation(server)
    trace = recorder.trace()
    trace.jsonl(tmp_path / "trace.jsonl")
    read = load(tmp_path / "trace.jsonl")
    assert read.timeline() == trace.timeline()
    assert read.html() == trace.html()
    assert b"guest:guest" not in (tmp_path / "trace.jsonl").read_bytes()


def test_frames_of_a_trace_give_the_original_bytes(
    server: Server, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    bytes_out = []
    send = Client.send_bytes

    def sending(client: Client, octets: bytes) -> None:
        bytes_out.append(octets)
        send(client, octets)

    monkeypatch.setattr(Client, "send_bytes", sending)
    session = server.session(b"s", max_frame_size=4096)
    session.declare("q")
    session.subscribe("q")
    session.publish(b"x" * 10_000, message=structs.MessageProperties(application_headers={"a": [1, None]}))
    session.accept(session.transfer().id)
    session.client.send_frame(c.ConnectionHeartbeat().encode(), track=1)
    session.client.expect_close(501)
    frame = dialect_named("0-10").frame
    frames = [event for event in recorder.trace().events if isinstance(event, FrameEvent)]
    for direction, octets in (("sent", session.client.bytes_in), ("received", b"".join(bytes_out))):
        made = b"".join(
            frame(each.type, each.channel, each.payload) for each in frames if each.direction == direction
        )
        assert octets == dialect_named("0-10").protocol_header + made


def test_row_of_a_command_on_the_page_includes_its_content(
    server: Server, recorder: Recorder, tmp_path: Path
) -> None:
    conversation(server)
    page = recorder.trace().html()
    data = json.JSONDecoder().raw_decode(page[page.index('{"title"') :])[0]
    pool = data["pool"]
    transfers = [row for row in data["rows"] if pool[row[6]] == "message.transfer" and row[4] == 0]
    assert [row[13] for row in transfers] == [10, 10_000, 0, 5]
    assert pool[transfers[0][12]] == ["text", "two apples"]
    properties = [name for _, name, _, _ in pool[transfers[0][11]]]
    assert properties == ["delivery-properties", "routing_key", "message-properties", "content_type"]
    sent = [row for row in data["rows"] if pool[row[6]] == "message.transfer" and row[4] == 1]
    assert [[pool[name] for name in row[8]] for row in sent] == [["q"]] * 2
    # Whatever was cut into frames is in one of the rows, and no row is of a part.
    kinds = data["kinds"]
    assert not [pool[row[6]] for row in data["rows"] if kinds[row[3]] == "frame"]
    assert [pool[row[6]] for row in data["rows"] if kinds[row[3]] == "heartbeat"] == ["connection.heartbeat"]
    assert next(row for row in data["rows"] if pool[row[6]] == "execution.exception")[9] == 1


def test_parquet_table_has_the_columns_of_0_10_commands(
    server: Server, recorder: Recorder, tmp_path: Path
) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    conversation(server)
    recorder.trace().parquet(tmp_path / "trace.parquet")
    rows = pq.read_table(tmp_path / "trace.parquet").to_pylist()

    def of(name: str, direction: str) -> list[dict[str, Any]]:
        return [row for row in rows if (row["name"], row["direction"]) == (name, direction)]

    sent = of("message.transfer", "received")[0]
    assert (sent["exchange"], sent["routing_key"], sent["body_size"]) == ("e", "a.b", 10)
    assert of("message.subscribe", "received")[0]["consumer_tag"] == "d"
    assert of("message.transfer", "sent")[0]["consumer_tag"] == "d"
    assert of("execution.exception", "sent")[0]["reply_code"] == 404
    assert [row["delivery_tag"] for row in rows if row["name"] == "delivered"] == [0, 1]


# --- tshark -------------------------------------------------------------------------------------------


def tshark(path: Path, *arguments: str) -> list[str]:
    assert TSHARK is not None
    done = subprocess.run(
        [TSHARK, "-2", "-r", str(path), *arguments], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def called_by_tshark(name: str) -> str:
    """Up to 4.0 it calls all commands of class tx tx.select."""
    return "tx.select" if name in ("tx.commit", "tx.rollback") else name


@pytest.mark.skipif(TSHARK is None, reason="tshark is not installed (Debian: apt-get install tshark)")
def test_tshark_and_the_trace_agree_on_every_name(tmp_path: Path) -> None:
    made = [kind() for kind in (*c.CONTROLS.values(), *x.COMMANDS.values())]
    events = [
        FrameEvent(0.0, "a", "c1", "received", 0x0F00 | isinstance(each, Command), 0, each.encode(), "0-10")
        for each in made
    ]
    path = tmp_path / "trace.pcapng"
    Trace.of(events).pcapng(path)
    assert tshark(path, "-Y", "_ws.malformed") == []
    lines = [line.strip() for line in tshark(path, "-Y", "amqp", "-T", "fields", "-e", "_ws.col.Info")]
    assert lines[2:] == [called_by_tshark(event.name) for event in events]


@pytest.mark.skipif(TSHARK is None, reason="tshark is not installed (Debian: apt-get install tshark)")
def test_tshark_dissects_a_0_10_trace_without_errors(
    server: Server, recorder: Recorder, tmp_path: Path
) -> None:
    conversation(server)
    trace = recorder.trace()
    path = tmp_path / "trace.pcapng"
    trace.pcapng(path)
    assert tshark(path, "-Y", "_ws.malformed || _ws.expert.severity >= 0x800000 || tcp.analysis.flags") == []
    mine = ("-Y", "amqp && tcp.stream == 0", "-T", "fields", "-e", "_ws.col.Info")
    seen = [name for line in tshark(path, *mine) for name in line.split()]
    assert seen[:4] == ["Protocol-Header", "0-10", "Protocol-Header", "0-10"]
    told = Counter(name for name in seen if "." in name)
    assert told == Counter(map(called_by_tshark, methods(trace)))
    frames = [event for event in trace.events if isinstance(event, FrameEvent) and event.protocol == "0-10"]
    bodies = sum(event.part == "body" for event in frames)
    assert Counter(seen)["message-body"] == bodies
    positions = tshark(path, "-Y", "tcp.stream == 0", "-T", "fields", "-e", "amqp.frame-position")
    last = LAST_SEGMENT | LAST_FRAME
    wholes = sum(int(each, 0) & last == last for line in positions for each in line.split(",") if each)
    assert wholes == sum(event.type >> 8 & last == last for event in frames)


@pytest.mark.skipif(TSHARK is None, reason="tshark is not installed (Debian: apt-get install tshark)")
def test_tshark_dissects_a_0_10_trace_without_its_beginning(
    server: Server, recorder: Recorder, tmp_path: Path
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


def test_replay_skips_0_10_connections_and_gives_the_reason(server: Server, recorder: Recorder) -> None:
    session = server.session(b"s")
    session.declare("q")
    publisher = server.client()
    publisher.call(m.QueueDeclare(queue="r"), m.QueueDeclareOk)
    publisher.drop()
    found = replay(recorder.trace())
    assert not found.same
    assert [(each.alias, each.skipped) for each in found.connections] == [
        ("c1", "it uses AMQP 0-10; replay supports only 0-9-1"),
        ("c2", ""),
    ]


def test_replay_of_only_0_10_connections_is_an_error(server: Server, recorder: Recorder) -> None:
    server.session(b"s")
    with pytest.raises(ReplayError, match="use AMQP 0-10; replay supports only 0-9-1"):
        replay(recorder.trace())
