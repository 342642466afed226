"""Every bound of what a peer can make the broker keep, reached, and the answer of each protocol."""

from __future__ import annotations

import logging
import struct

import pytest

from compat_tests.scripted.amqp_0_9_1 import Server
from compat_tests.tools.conformance import SHARING
from fakeamqp.dialects import protocol_names
from fakeamqp.model.limits import Bounds, BoundsError
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import HEARTBEAT_FRAME, content_frames, frame
from fakeamqp.protocols.amqp_0_9_1.codec.tables import MAX_DEPTH
from fakeamqp.protocols.base.handshakes import PendingHandshakes
from fakeamqp.trace import Recorder

FRAMED = [each for each in SHARING if each in protocol_names()]


def server_of(protocol: str, **bounds: int) -> Server:
    name = "rabbitmq-4.3" if protocol == "0-9-1" else "spec"
    return Server(name, protocol=protocol, bounds=Bounds(**bounds))


@pytest.mark.needs("own broker")
@pytest.mark.parametrize("value", [0, -1, True, "1", 1.5])
def test_bounds_reject_values_other_than_positive_integers(value: object) -> None:
    with pytest.raises(BoundsError, match="idle_frames must be a whole number above 0"):
        Bounds(idle_frames=value)  # type: ignore[arg-type]


class TestConsumers:
    @pytest.mark.needs("settings")
    @pytest.mark.parametrize("protocol", FRAMED)
    def test_consumer_beyond_the_bound_of_its_channel_closes_the_connection_with_530(
        self, protocol: str
    ) -> None:
        """RabbitMQ has the same bound as a setting: its code and text (consumer_max_per_channel: 4.3.6)."""
        client = server_of(protocol, consumers_per_channel=3).client(channels=2).declare("q")
        for number in range(3):
            client.consume("q", f"c{number}")
        client.perform(m.BasicCancel(consumer_tag="c0"))
        client.consume("q", "c3").consume("q", "of another channel", channel=2)
        closed = client.ends(m.BasicConsume(queue="q", consumer_tag="c4"), 530)
        assert "reached maximum (3) of consumers per channel" in closed.reply_text


class TestBindings:
    @pytest.mark.needs("settings")
    @pytest.mark.parametrize("protocol", FRAMED)
    def test_binding_beyond_the_bound_of_its_virtual_host_is_refused(self, protocol: str) -> None:
        """RabbitMQ closes the channel for limits of virtual hosts; in the documents the code is 506."""
        client = server_of(protocol, bindings_per_virtual_host=3).client(channels=2).declare("q")
        for key in ("1", "2", "3", "1"):  # The last one is there already.
            client.bind("q", "amq.direct", key)
        client.send(m.QueueBind(queue="q", exchange="amq.topic", routing_key="4"))
        rabbitmq = protocol == "0-9-1"
        closed = client.expect_channel_close(406) if rabbitmq else client.expect_connection_close(506)
        assert "binding limit in vhost '/' (3) is reached" in closed.reply_text

    @pytest.mark.needs("inspection", "settings")
    def test_unbind_exchange_delete_and_queue_delete_reduce_the_binding_count(self) -> None:
        server = server_of("0-9-1", bindings_per_virtual_host=3)
        client = server.client()
        for _ in range(3):
            client.declare("q").declare_exchange("x", "fanout")
            client.bind("q", "x").bind("q", "amq.direct", "k").bind("q", "amq.direct", "l")
            unbind = m.QueueUnbind(queue="q", exchange="amq.direct", routing_key="k")
            client.call(unbind, m.QueueUnbindOk)
            client.perform(m.ExchangeDelete(exchange="x"))
            assert server.vhost.bindings.count == 1
            client.perform(m.QueueDelete(queue="q"))
            assert server.vhost.bindings.count == 0 == len(server.vhost.bindings.all())


class TestPendingHandshakes:
    @pytest.mark.needs("settings")
    def test_oldest_pending_handshake_beyond_the_bound_is_aborted(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        server = server_of("0-9-1", pending_handshakes=2)
        open_one = server.client()
        silent, halfway, late = server.connect(), server.connect(), server.connect()
        halfway.send_bytes(b"AMQP\0\0\x09\x01")
        assert silent.connection.aborted
        assert "more than 2 connections have not logged in" in caplog.text
        another = server.connect()
        assert [each.connection.aborted for each in (late, halfway, another)] == [True, False, False]
        another.handshake()
        server.connect()
        assert not halfway.connection.aborted
        assert not open_one.connection.aborted

    @pytest.mark.needs("inspection", "settings")
    @pytest.mark.parametrize("octets", [b"", b"AM", b"AMQP\0\0\x09\x01", b"AMQP\x01\x01\0\x0a", b"GET "])
    def test_disconnected_handshakes_do_not_count_as_pending(self, octets: bytes) -> None:
        server = server_of("0-9-1", pending_handshakes=2)
        for _ in range(5):
            server.connect().send_bytes(octets).connection.receive_eof()
        assert len(server.state.extensions[PendingHandshakes]) == 0

    @pytest.mark.needs("own broker")
    def test_warnings_about_pending_handshakes_are_limited(self, caplog: pytest.LogCaptureFixture) -> None:
        server = server_of("0-9-1", pending_handshakes=1)
        for _ in range(1000):
            server.connect()
        assert sum("have not logged in" in each.getMessage() for each in caplog.records) <= 50
        server.advance(10)
        assert caplog.records[-1].levelno == logging.WARNING


class TestIdleFrames:
    @pytest.mark.needs("settings")
    @pytest.mark.parametrize("protocol", FRAMED)
    def test_consecutive_heartbeats_beyond_the_bound_close_the_connection_with_506(
        self, protocol: str
    ) -> None:
        client = server_of(protocol, idle_frames=100).client()
        client.send_bytes(HEARTBEAT_FRAME * 100).expect_nothing()
        client.send_bytes(HEARTBEAT_FRAME)
        assert "more than 100 heartbeats" in client.expect_connection_close(506).reply_text

    @pytest.mark.needs("settings")
    @pytest.mark.parametrize("protocol", FRAMED)
    def test_consecutive_empty_body_frames_beyond_the_bound_close_the_connection_with_506(
        self, protocol: str
    ) -> None:
        client = server_of(protocol, idle_frames=100).client().send(m.BasicPublish(routing_key="q"))
        header, *_ = content_frames(1, 60, bytes(2), b"body", 100_000)
        client.send_bytes(header)
        for _ in range(101):
            client.send_bytes(frame(3, 1, b""))
        client.expect_connection_close(506)

    @pytest.mark.needs("settings")
    def test_publish_between_heartbeats_resets_the_idle_frame_count(self) -> None:
        client = server_of("0-9-1", idle_frames=100).client().declare("q")
        for _ in range(5):
            client.send_bytes(HEARTBEAT_FRAME * 90).fill("q", b"1")
        assert client.count("q") == 5

    @pytest.mark.needs("virtual time", "settings")
    def test_heartbeats_at_intervals_never_reach_the_idle_frame_bound(self) -> None:
        server = server_of("0-9-1", idle_frames=100)
        client = server.client()
        for _ in range(1000):
            server.clock.advance(5)
            client.send_bytes(HEARTBEAT_FRAME)
        client.expect_nothing()


class TestNesting:
    @pytest.mark.parametrize("name", ["rabbitmq-4.3", "spec"])
    @pytest.mark.parametrize("depth", [MAX_DEPTH, 1500, 15_000])
    def test_field_tables_of_0_9_1_have_no_nesting_limit(self, name: str, depth: int) -> None:
        client = Server(name).client()
        client.send_frame(1, 1, declaration(depth)).expect(m.QueueDeclareOk)
        octets = (1 << 13).to_bytes(2, "big") + declaration(depth)[9:]
        client.publish_bytes(octets, b"body", routing_key="q")
        client.send(m.BasicGet(queue="q")).expect(m.BasicGetOk)
        assert client.take_frame().payload[12:] == octets


def declaration(depth: int) -> bytes:
    """queue.declare whose arguments nest so deep."""
    table = b""
    for _ in range(depth):
        table = b"\x01aF" + struct.pack(">I", len(table)) + table
    return struct.pack(">HHHB", 50, 10, 0, 1) + b"q\0" + struct.pack(">I", len(table)) + table


class TestHistoryAndTrace:
    @pytest.mark.needs("inspection", "settings")
    def test_message_headers_count_in_history_octets(self) -> None:
        server = Server(bounds=Bounds(history_octets=1_000_000), history=1000)
        client = server.client().declare("q")
        for _ in range(30):
            client.fill("q", b"", headers={"long": "x" * 90_000})
        assert server.state.published is not None
        assert len(server.state.published) == 11

    @pytest.mark.needs("virtual time", "inspection", "settings")
    def test_message_headers_count_in_the_size_of_the_trace(self) -> None:
        server = Server(bounds=Bounds())
        recorder = Recorder(server.clock.now, 10_000, most_octets=1_000_000)
        server.state.tap = recorder
        client = server.client().declare("q")
        for number in range(60):
            client.fill("q", b"", headers={"long": f"{number:02}" * 45_000})
        recorder._sized_at = -10_000  # Have it look anew.
        assert 0 < recorder.size() < 2_000_000
        assert recorder.trace().dropped > 0
