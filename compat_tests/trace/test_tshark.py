"""Wireshark understands what is written for it: tshark finds each method, and nothing that is malformed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import aio_pika
import pika
import pytest

from compat_tests.scripted.amqp_0_9_1 import Server
from compat_tests.trace.dissected import needs_tshark, tshark
from fakeamqp import Broker
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.trace import FrameEvent, Recorder, Trace

pytestmark = needs_tshark


def columns(path: Path, *fields: str) -> list[list[str]]:
    """Of each packet the values of these fields."""
    wanted = [part for field in fields for part in ("-e", field)]
    return [line.split("\t") for line in tshark(path, "-T", "fields", *wanted)]


def ids(method: m.Method) -> str:
    return f"{method.CLASS_ID}.{method.METHOD_ID}"


def understood(trace: Trace, path: Path) -> None:
    """tshark sees in the file what the trace has, and nothing to complain of."""
    trace.pcapng(path)
    wrong = "_ws.malformed || tcp.analysis.flags || tcp.checksum.status == 0 || ip.checksum.status == 0"
    # Warnings are about what clients did: a channel closed with a reply code, say.
    assert tshark(path, "-Y", f"{wrong} || _ws.expert.severity >= 0x800000") == []
    frames = [event for event in trace.events if isinstance(event, FrameEvent)]
    methods = Counter(ids(event.method) for event in frames if event.method is not None)
    seen: Counter[str] = Counter()
    types: Counter[str] = Counter()
    for kinds, classes, numbers in columns(path, "amqp.type", "amqp.method.class", "amqp.method.method"):
        types.update(filter(None, kinds.split(",")))
        seen.update(map(".".join, zip(classes.split(","), numbers.split(","), strict=True)))
    seen.pop(".", None)
    assert seen == methods
    # A stream that begins in the middle may have a heartbeat more.
    known = Counter(str(event.type) for event in frames)
    assert types - Counter({"8": 1}) <= known <= types
    assert not any("unknown version" in line for line in tshark(path))


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def whole(broker: Broker) -> Trace:
    """The trace when every client has gone."""
    broker.wait_for(lambda: not broker.connections)
    return broker.trace


def test_tshark_dissects_a_trace_of_pika_without_errors(broker: Broker, tmp_path: Path):
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare(
            "orders", durable=True, arguments={"x-max-length": 10, "x-overflow": "drop-head"}
        )
        channel.exchange_declare("events", "topic")
        channel.queue_bind("orders", "events", "order.#")
        properties = pika.BasicProperties(
            headers={"attempt": 1, "tags": ["a", {"b": True}], "none": None}, message_id="m1", timestamp=7
        )
        channel.basic_publish("events", "order.placed", b'{"n": 1}', properties)
        channel.basic_publish("", "orders", b"")
        # Longer than a segment, a frame, and what the trace keeps of it.
        channel.basic_publish("", "orders", bytes(range(256)) * 1000)
        for method, _, _ in channel.consume("orders", inactivity_timeout=10):
            channel.basic_nack(method.delivery_tag, requeue=False)
            if method.delivery_tag == 3:
                break
        channel.cancel()
        channel.basic_get("orders")
        with pytest.raises(pika.exceptions.ChannelClosedByBroker):
            channel.queue_declare("missing", passive=True)
    understood(whole(broker), tmp_path / "trace.pcapng")


def test_tshark_dissects_a_trace_of_aio_pika_without_errors(broker: Broker, tmp_path: Path):
    async def talk() -> None:
        async with await aio_pika.connect(broker.url) as connection:
            channel = await connection.channel()
            await channel.set_qos(1)
            queue = await channel.declare_queue(exclusive=True)
            for number in range(3):
                message = aio_pika.Message(b"%d" % number, headers={"n": number}, reply_to="somewhere")
                await channel.default_exchange.publish(message, queue.name)
            async with queue.iterator() as messages:
                async for message in messages:
                    await message.ack()
                    if message.body == b"2":
                        break

    asyncio.run(talk())
    understood(whole(broker), tmp_path / "trace.pcapng")


@pytest.fixture
def raw() -> tuple[Server, Recorder]:
    server = Server()
    recorder = Recorder(server.clock.now)
    server.state.tap = recorder
    return server, recorder


def test_tshark_dissects_traces_of_ipv4_and_ipv6_connections(raw: tuple[Server, Recorder], tmp_path: Path):
    server, recorder = raw
    for peer in ({"host": "::1", "server_host": "::1"}, {"host": "127.0.0.2", "server_host": "127.0.0.3"}):
        client = server.connect(**peer)
        client.handshake()
        client.open_channel()
        client.call(m.TxSelect(), m.TxSelectOk)
        client.call(m.QueueDeclare(queue="q"), m.QueueDeclareOk)
        client.publish(b"x" * 300_000, routing_key="q", frame_size=70_000)
        client.call(m.TxCommit(), m.TxCommitOk)
        client.send_frame(8, 0, b"")
        client.call(m.ConnectionClose(reply_code=200), m.ConnectionCloseOk, channel=0)
    path = tmp_path / "trace.pcapng"
    understood(recorder.trace(), path)
    streams = {(stream, bool(v6)) for stream, v6 in columns(path, "tcp.stream", "ipv6.addr")}
    assert streams == {("0", True), ("1", False)}


def test_events_are_packet_comments_in_tshark(raw: tuple[Server, Recorder], tmp_path: Path):
    server, recorder = raw
    client = server.client()
    client.publish(b"lost", routing_key="nowhere")
    path = tmp_path / "trace.pcapng"
    recorder.trace().pcapng(path)
    texts = {comment for line in columns(path, "frame.comment") for comment in line}
    assert any("opened: virtual host '/'" in text for text in texts)
    assert any("unroutable" in text for text in texts)


def test_tshark_dissects_a_trace_without_its_beginning(raw: tuple[Server, Recorder], tmp_path: Path):
    server, recorder = raw
    client = server.client()
    client.publish(b"x" * 200_000, routing_key="q", frame_size=100_000)
    client.call(m.QueueDeclare(queue="q"), m.QueueDeclareOk)
    events = recorder.trace().events
    contents = [n for n, event in enumerate(events) if isinstance(event, FrameEvent) and event.type != 1]
    assert len(contents) == 3
    for first in (1, *contents, contents[-1] + 1):
        understood(Trace.of(events[first:], first), tmp_path / f"{first}.pcapng")
