"""The bounds of what a client of 0-10 can make the broker keep, and the memory alarm."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compat_tests.protocol.amqp_0_9_1.test_unfinished_contents import COUNT, little_memory
from compat_tests.scripted.amqp_0_10 import Server, Session, SessionFailed
from fakeamqp.model.limits import Bounds
from fakeamqp.model.memory import MESSAGE
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c, structs
from fakeamqp.protocols.amqp_0_10.codec.constants import CloseCode, ErrorCode
from fakeamqp.protocols.amqp_0_10.codec.frames import control_frame
from fakeamqp.protocols.amqp_0_10.command_streams import LARGEST_HEAD
from fakeamqp.protocols.base.handshakes import MOST_WARNINGS, PERIOD

LIMIT = 100_000
BODY = bytes(20_000)


def test_subscription_above_consumer_limit_ends_session_with_not_allowed() -> None:
    session = Server(bounds=Bounds(consumers_per_channel=2)).session().declare("q")
    for number in range(2):
        session.subscribe("q", f"d{number}")
    with pytest.raises(SessionFailed, match="reached maximum") as failed:
        session.subscribe("q", "d2")
    assert failed.value.code == ErrorCode.NOT_ALLOWED


def test_binding_above_virtual_host_limit_ends_session_with_resource_limit_exceeded() -> None:
    session = Server("spec", bounds=Bounds(bindings_per_virtual_host=1)).session()
    session.declare("q").bind("q", "amq.direct", "1")
    with pytest.raises(SessionFailed, match="binding limit") as failed:
        session.perform(x.ExchangeBind(queue="q", exchange="amq.direct", binding_key="2"))
    assert failed.value.code == ErrorCode.RESOURCE_LIMIT_EXCEEDED


def test_consecutive_heartbeats_above_idle_frame_limit_close_connection() -> None:
    client = Server(bounds=Bounds(idle_frames=100)).open()
    heartbeat = control_frame(0, c.ConnectionHeartbeat().encode())
    client.send_bytes(heartbeat * 100).expect_nothing()
    assert client.send_bytes(heartbeat).expect(c.ConnectionClose).reply_code == CloseCode.CONNECTION_FORCED


def test_session_detached_longest_ends_when_limit_of_detached_sessions_is_exceeded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Server(bounds=Bounds(detached_sessions=2))
    client = server.open()
    for name in (b"1", b"2"):
        client.session(name, timeout=100).detach()
    client.session(b"1", timeout=100).detach()
    client.session(b"3", timeout=100).detach()
    assert [key[2] for key in server.state.sessions] == [b"1", b"3"]
    assert "session '2', detached longest, ends" in caplog.text


def test_warnings_about_ended_detached_sessions_are_limited(caplog: pytest.LogCaptureFixture) -> None:
    server = Server(bounds=Bounds(detached_sessions=1))
    client = server.open()
    for number in range(MOST_WARNINGS + 8):
        client.session(b"%d" % number, timeout=100).detach()
    assert len(caplog.records) == MOST_WARNINGS
    server.advance(PERIOD)
    assert caplog.messages[MOST_WARNINGS:] == [
        "7 more warnings about detached sessions that end, within 10 seconds, were left out"
    ]


def test_publisher_is_not_read_from_while_memory_alarm_is_set() -> None:
    server = Server(memory_limit=LIMIT)
    session = server.session().declare("q")
    for _ in range(5):
        session.publish(BODY)
    assert server.state.memory.alarm
    assert not session.publish(b"waits").client.connection.reading
    server.state.virtual_hosts["/"].queues["q"].purge()
    server.state.memory.settle()
    assert session.client.connection.reading


def test_transfer_kept_for_replay_counts_as_memory_until_completed() -> None:
    server = Server(memory_limit=LIMIT)
    session = server.open().session(timeout=10).declare("q")
    got = session.subscribe("q", accept_mode=1).publish(BODY).transfer()
    assert len(BODY) < server.state.memory.messages.octets < len(BODY) + 2 * MESSAGE
    session.completed(got.id)
    assert server.state.memory.messages.octets == 0


def test_transfer_above_largest_message_size_is_refused_before_its_last_frame(lenient: Server) -> None:
    session = Server(replace(lenient.state.personality, largest_message=100_000)).session()
    client, channel = session.client, session.channel
    transfer = x.MessageTransfer(destination="", accept_mode=1).encode()
    client.send_frame(transfer, flags=0x0B, kind=1, track=1, channel=channel)
    flags = 0x06
    sent = 0
    while not client.inbox:
        client.send_frame(bytes(60_000), flags=flags, kind=3, track=1, channel=channel)
        flags = 0x04
        sent += 60_000
        assert sent < 2_000_000, "the broker never refused it"
    assert sent > 100_000 + LARGEST_HEAD
    failure = session.news(x.ExecutionException)
    assert failure.error_code == 506 and failure.command_id == 0


def test_unfinished_controls_on_all_channels_are_limited_together(server: Server) -> None:
    client = server.dial().send_bytes(b"AMQP\x01\x01\0\x0a")
    assert isinstance(client.take().what, c.ConnectionStart)
    for number in range(1024 * 1024 // 4000):
        first = 0x0E if number < 10 else 0x0C
        client.send_frame(bytes(4000), flags=first, kind=0, track=0, channel=number % 10)
    client.expect_nothing()
    client.send_frame(bytes(4000), flags=0x0C, kind=0, track=0).expect_close(501)


def test_finished_controls_in_several_frames_are_not_limited_in_number(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fakeamqp.protocols.amqp_0_10.server_connection._LARGEST_CONTROLS", 100)
    request = c.SessionRequestTimeout(timeout=0).encode()
    for _ in range(100):
        session.client.send_frame(request[:4], flags=0x0E, channel=session.channel)
        session.client.send_frame(request[4:], flags=0x0D, channel=session.channel)
    assert session.query("nothing").queue is None


@pytest.mark.parametrize("piece", [b"", b"ab"])
def test_tiny_frames_of_segment_are_joined_with_little_memory(session: Session, piece: bytes) -> None:
    session.declare("q")
    client, channel = session.client, session.channel
    transfer = x.MessageTransfer(destination="", accept_mode=1).encode()
    header = structs.encode_header([structs.DeliveryProperties(routing_key="q")])
    client.send_frame(transfer, flags=0x0B, kind=1, track=1, channel=channel)
    client.send_frame(header, flags=0x03, kind=2, track=1, channel=channel)
    client.send_frame(b"begin", flags=0x06, kind=3, track=1, channel=channel)
    with little_memory():
        for _ in range(COUNT):
            client.send_frame(piece, flags=0x04, kind=3, track=1, channel=channel)
    client.send_frame(b"end", flags=0x05, kind=3, track=1, channel=channel)
    assert session.subscribe().bodies() == [b"begin" + piece * COUNT + b"end"]
