from __future__ import annotations

from dataclasses import replace

import pytest

from compat_tests.protocol.amqp_0_9_1.test_unfinished_contents import COUNT, little_memory
from compat_tests.scripted.amqp_0_10 import Server, Session
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c, structs
from fakeamqp.protocols.amqp_0_10.command_streams import LARGEST_HEAD


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
    client = server.dial()
    client.send_bytes(b"AMQP\x01\x01\0\x0a")
    assert isinstance(client.take().what, c.ConnectionStart)
    for number in range(1024 * 1024 // 4000):
        first = 0x0E if number < 10 else 0x0C
        client.send_frame(bytes(4000), flags=first, kind=0, track=0, channel=number % 10)
    client.expect_nothing()
    client.send_frame(bytes(4000), flags=0x0C, kind=0, track=0)
    client.expect_close(501)


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
    session.subscribe()
    assert session.bodies() == [b"begin" + piece * COUNT + b"end"]
