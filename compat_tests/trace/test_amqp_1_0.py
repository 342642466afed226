"""Traces of clients of AMQP 1.0: views show them, tshark reads them, and checks find what is wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from compat_tests.differential.amqp_1_0.scenarios.sql_filters import sql
from compat_tests.scripted.amqp_1_0 import Client, message
from compat_tests.trace.dissected import needs_tshark, tshark
from compat_tests.unit.faults.amqp_1_0.server import FaultServer
from compat_tests.unit.trace.pages import rows_of
from fakeamqp.dialects import dialect_named
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.frames import SASL_HEADER
from fakeamqp.protocols.amqp_1_0.codec.types import Symbol
from fakeamqp.trace import FrameEvent, ModelEvent, Trace, load

LARGE = b"x" * 5000


@pytest.fixture
def server() -> FaultServer:
    return FaultServer()


def trace_of(server: FaultServer) -> Trace:
    assert server.recorder is not None
    return server.recorder.trace()


def conversation(server: FaultServer) -> Client:
    """A bit of everything: messages of one and of several transfers, outcomes, a drain, a refusal."""
    client = server.session(max_frame_size=1024)
    sender = client.sender(handle=0, name="out")
    sender.publish(message(b"two apples", properties=c.Properties(subject="fruit", message_id="1")))
    whole = message(LARGE)
    sender.transfer(whole[:3000], more=True)
    sender.transfer(whole[3000:], delivery_id=None, delivery_tag=None)
    assert sender.outcome() == c.Accepted()
    receiver = client.receiver(handle=1, credit=2, name="in")
    client.take_all()
    receiver.settle(c.Accepted(), 0).settle(c.Rejected(), 1)
    receiver.flow(link_credit=1, delivery_count=2, drain=True)
    assert client.expect(c.Flow).drain
    client.refused(True, "/queues/missing", handle=2)
    sender.detach()
    return client


def frames(trace: Trace) -> list[FrameEvent]:
    return [event for event in trace.events if isinstance(event, FrameEvent)]


def test_timeline_has_performatives_and_what_becomes_of_messages(server: FaultServer) -> None:
    conversation(server)
    trace = trace_of(server)
    said = trace.timeline()
    for line in (
        "c1 -> 0    sasl-init mechanism='PLAIN' initial_response=(12 bytes)",
        "c1 -> 0    transfer handle=0 delivery_id=0 delivery_tag=30 b'two apples'",
        "c1 <- 0    disposition role first=0 settled state=accepted",
        "c1 -> 0    disposition role first=1 settled state=rejected",
        "c1 <- 0    detach handle=2 closed error=error(condition='amqp:not-found', description=\"no queue",
    ):
        assert line in said, line
    assert "guest" not in said.replace("user 'guest'", "")
    events = [event.event for event in trace.events if isinstance(event, ModelEvent)]
    assert [each for each in events if each in ("published", "delivered", "acked", "rejected")] == [
        *["published"] * 2,
        *["delivered"] * 2,
        *["acked", "rejected"],
    ]


def test_timeline_has_filters_without_effect_and_the_reason(server: FaultServer) -> None:
    server.vhost.queues.declare("s", QueueDeclaration(durable=True, arguments={"x-queue-type": "stream"}))
    client = server.session()
    for handle, wanted in enumerate((sql("n >"), {Symbol("rabbitmq:stream-offset-spec"): "first"})):
        client.receiver("/queues/s", handle, terminus={"filter": wanted})
    said = trace_of(server).timeline()
    assert "filter left out: 'sql-filter': end instead of an operand" in said
    assert "filter left out: 'rabbitmq:stream-offset-spec': it is no described value" in said


def test_frames_give_the_original_bytes(server: FaultServer) -> None:
    client = conversation(server)
    made = [
        dialect_named("1-0").frame(each.type, each.channel, each.payload)
        for each in frames(trace_of(server))
        if each.direction == "sent"
    ]
    client.take_bytes()
    assert SASL_HEADER + b"".join(made) == client.bytes_in


def test_recording_is_the_same_when_read_back(server: FaultServer, tmp_path: Path) -> None:
    conversation(server)
    trace = trace_of(server)
    trace.jsonl(tmp_path / "trace.jsonl")
    read = load(tmp_path / "trace.jsonl")
    assert read.timeline() == trace.timeline()
    assert read.html() == trace.html()
    assert b"guest:guest" not in (tmp_path / "trace.jsonl").read_bytes()


def test_page_has_a_row_for_each_frame(server: FaultServer) -> None:
    conversation(server)
    trace = trace_of(server)
    shown = Counter(row.name for row in rows_of(trace.html()))
    for name in ("attach", "transfer", "disposition", "flow", "detach"):
        assert shown[name] == sum(each.name == name for each in frames(trace)), name


@needs_tshark
def test_tshark_finds_each_performative_and_nothing_malformed(server: FaultServer, tmp_path: Path) -> None:
    """Of messages in several transfers tshark takes each part for a whole one, and complains."""
    client = server.session()
    sender = client.sender(handle=0)
    sender.publish(message(b"two apples", properties=c.Properties(subject="fruit")))
    client.receiver(handle=1, credit=1).settle(c.Accepted(), 0)
    client.take_all()
    client.send(c.End()).send(c.Close())
    trace = trace_of(server)
    trace.pcapng(tmp_path / "trace.pcapng")
    assert tshark(tmp_path / "trace.pcapng", "-Y", "_ws.malformed") == []
    lines = tshark(tmp_path / "trace.pcapng", "-T", "fields", "-e", "_ws.col.Info", "-Y", "amqp")
    seen = Counter(word.replace("sasl.", "sasl-") for line in lines for word in line.split() if word)
    for name in ("open", "begin", "attach", "flow", "transfer", "disposition", "end", "close", "sasl-init"):
        assert seen[name] == sum(each.name == name for each in frames(trace)), name


def test_conversation_without_faults_has_no_findings(server: FaultServer) -> None:
    conversation(server)
    trace_of(server).expect_no_findings(at_end=True)


@pytest.mark.parametrize(
    ("name", "direction", "finding"),
    [
        ("transfer", "received", "unanswered"),
        ("disposition", "sent", "unanswered"),
        ("transfer", "sent", "message-lost"),
        ("disposition", "received", "left-unacked"),
        ("flow", "received", "unanswered"),
        ("detach", "received", "unanswered"),
    ],
)
def test_dropped_frame_is_found(server: FaultServer, name: str, direction: str, finding: str) -> None:
    client = server.session()
    sender, receiver = client.sender(handle=0), client.receiver(handle=1, credit=1)
    conditions = {"drain": True} if name == "flow" else {}
    server.faults.on(name, direction=direction, **conditions).drop().once()  # type: ignore[arg-type]
    sender.transfer(message(b"x"))
    receiver.settle(c.Accepted(), 0)
    receiver.flow(link_credit=1, delivery_count=1, drain=True)
    client.send(c.Detach(handle=0, closed=True))
    found = trace_of(server).findings(at_end=True)
    assert [each.rule for each in found] == [finding]


def test_duplicate_delivery_is_found(server: FaultServer) -> None:
    client = server.session()
    server.faults.on("transfer", direction="sent").duplicate().once()
    client.sender(handle=0).publish(message(b"x"))
    client.receiver(handle=1, credit=1).settle(c.Accepted(), 0)
    assert [each.rule for each in trace_of(server).findings(at_end=True)] == ["sent-twice"]


def test_end_of_a_session_answers_what_is_open(server: FaultServer) -> None:
    client = server.session()
    server.faults.on("transfer").drop().once()
    client.sender().transfer(message(b"x"))
    client.send(c.End())
    trace_of(server).expect_no_findings(at_end=True)
