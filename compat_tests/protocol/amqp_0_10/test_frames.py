"""Frames, segments and assemblies as a broker takes and sends them."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_10 import Client, Server, Session
from compat_tests.tools.matrix import rows
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c, structs
from fakeamqp.protocols.amqp_0_10.codec.frames import FRAME_HEADER, control_frame

rule = pytest.mark.rule

_HEARTBEAT = c.ConnectionHeartbeat().encode()
_CLOSE_OK = FRAME_HEADER.pack(15, 0, 16, 0, 0, 0, 0) + c.ConnectionCloseOk().encode()


@rule("0-10/frame/layout", "0-10/frame/size-includes-header", "0-10/frame/flags")
def test_heartbeat_and_close_frames_have_specified_encoding(client: Client) -> None:
    # Flags: first and last of segment and frame. Size: 12 + 2 of the control + 2 of the empty packing flags.
    client.send_bytes(bytes.fromhex("0f 00 0010 00 00 0000 00000000") + _HEARTBEAT).expect_nothing()
    client.send_bytes(bytes.fromhex("0f 00 0010 00 00 0000 00000000") + c.ConnectionClose().encode())
    octets = client.take_bytes()
    assert octets == bytes.fromhex("0f 00 0010 00 00 0000 00000000 01 0c 0000")


@rule("0-10/frame/framing-error")
@rows(
    "wrong",
    pytest.param({"flags": 0x4F}, marks=rule("0-10/frame/format-version"), id="version 1"),
    pytest.param({"flags": 0xCF}, marks=rule("0-10/frame/format-version"), id="version 3"),
    pytest.param({"flags": 0x1F}, marks=rule("0-10/frame/reserved-zero"), id="reserved flag"),
    pytest.param({"reserved": 1}, marks=rule("0-10/frame/reserved-zero"), id="byte 4"),
    pytest.param({"reserved_2": 1}, marks=rule("0-10/frame/reserved-zero"), id="bytes 8 to 11"),
    pytest.param({"track": 0x10}, marks=rule("0-10/frame/reserved-zero"), id="track's bits"),
    pytest.param({"track": 2}, id="track 2"),
    pytest.param({"kind": 4}, marks=rule("0-10/frame/segment-types"), id="segment type 4"),
    pytest.param({"size": 11}, marks=rule("0-10/frame/size-too-small"), id="size 11"),
    pytest.param({"size": 0}, marks=rule("0-10/frame/size-too-small"), id="size 0"),
    pytest.param({"track": 1}, marks=rule("0-10/frame/track-control#taken"), id="control on track 1"),
    pytest.param({"kind": 1}, marks=rule("0-10/frame/track-command#taken"), id="command on track 0"),
)
def test_invalid_frame_closes_connection_with_framing_error(client: Client, wrong: dict[str, int]) -> None:
    client.send_frame(_HEARTBEAT, **wrong).expect_close(501)


@rule("0-10/frame/track-control#sent", "0-10/frame/track-command#sent")
def test_broker_sends_controls_on_track_0_and_commands_on_track_1(server: Server) -> None:
    client = server.open()
    session = client.session().declare("q").publish()
    assert session.subscribe().bodies() == [b"body"]
    octets, tracks = client.bytes_in.removeprefix(client.header), set()
    while octets:
        _, kind, size, _, track, _, _ = FRAME_HEADER.unpack_from(octets)
        tracks.add((kind, track))
        octets = octets[size:]
    assert tracks == {(0, 0), (1, 1), (2, 1), (3, 1)}


def test_after_framing_error_broker_waits_for_close_ok_and_ignores_other_octets(client: Client) -> None:
    client.send_frame(_HEARTBEAT, flags=0xFF).expect(c.ConnectionClose)
    for octet in b"garbage" + _CLOSE_OK:
        assert not client.closed
        client.send_bytes(bytes([octet]))
    client.expect_silent_end()


@pytest.mark.parametrize("before", [0, 1, 5])
@pytest.mark.parametrize("behind", [b"", b"garbage"])
def test_close_ok_after_invalid_frame_ends_connection(client: Client, before: int, behind: bytes) -> None:
    heartbeats = (FRAME_HEADER.pack(15, 0, 12 + len(_HEARTBEAT), 0, 0, 0, 0) + _HEARTBEAT) * before
    broken = FRAME_HEADER.pack(0xFF, 0, 16, 0, 0, 0, 0)
    client.send_bytes(heartbeats + broken + _CLOSE_OK + behind).expect(c.ConnectionClose)
    client.expect_silent_end()


@pytest.mark.parametrize("first", [1, 6, 12, 15])
def test_close_ok_split_after_invalid_frame_header_ends_connection(client: Client, first: int) -> None:
    client.send_bytes(FRAME_HEADER.pack(0xFF, 0, 16, 0, 0, 0, 0) + _CLOSE_OK[:first])
    client.expect(c.ConnectionClose)
    assert not client.closed
    client.send_bytes(_CLOSE_OK[first:]).expect_silent_end()


@pytest.mark.parametrize("inside", [1, 2, 3, 4, 7, 10, 11])  # In channel 0 all of them.
def test_close_ok_starting_inside_invalid_frame_header_is_ignored(client: Client, inside: int) -> None:
    client.send_bytes(b"\xff" + bytes(11 - inside) + _CLOSE_OK).expect(c.ConnectionClose)
    assert not client.closed


def test_octets_of_close_ok_in_frame_before_invalid_header_are_ignored(client: Client) -> None:
    attach = control_frame(0, c.SessionAttach(name=_CLOSE_OK, force=False).encode())
    client.send_bytes(attach + FRAME_HEADER.pack(0xFF, 0, 16, 0, 0, 0, 0)).expect(c.SessionAttached)
    client.expect(c.ConnectionClose)
    assert not client.closed
    client.send_bytes(_CLOSE_OK).expect_silent_end()


def test_unknown_control_closes_connection_with_framing_error(client: Client) -> None:
    client.send_frame(b"\x02\xff\x00\x00").expect_close(501)


@rule("0-10/execution.exception/correlates#code", "0-10/execution.exception/correlates#method")
def test_unknown_command_ends_session_with_503(session: Session) -> None:
    session.client.send_frame(b"\x04\xee\x01\x00\x00\x00", kind=1, track=1)
    exception = session.expect(x.ExecutionException)
    assert (exception.error_code, exception.class_code, exception.command_code) == (503, 4, 0xEE)


@rule("0-10/assembly/structure", "0-10/assembly/split-frames")
def test_segments_split_into_frames_of_any_size_are_assembled(server: Server) -> None:
    session = server.session().declare("q")
    body = bytes(range(256))
    for size in (13, 14, 20, 64, 65535):
        session.client.max_frame_size = size
        session.publish(body)
    session.client.max_frame_size = 65535
    assert [each.message.body for each in server.vhost.queues["q"].ready] == [body] * 5


@rule("0-10/assembly/split-frames")
def test_control_split_into_frames_is_assembled(client: Client) -> None:
    client.max_frame_size = 14
    client.send(c.SessionAttach(name=b"a long name"))
    client.max_frame_size = 65535
    client.expect(c.SessionAttached)


@rule("0-10/assembly/control-single-segment")
def test_control_of_two_segments_closes_connection_with_framing_error(client: Client) -> None:
    client.send_frame(_HEARTBEAT, flags=0x0B).send_frame(b"", flags=0x07).expect_close(501)


@rule("0-10/assembly/first-segment-type")
@pytest.mark.parametrize("kind", [2, 3])
def test_assembly_without_command_closes_connection_with_framing_error(session: Session, kind: int) -> None:
    session.client.send_frame(b"", kind=kind, track=1)
    session.client.expect_close(501)


@rule("0-10/assembly/segment-order")
def test_header_segment_after_body_closes_connection_with_framing_error(session: Session) -> None:
    client = session.client
    client.send_frame(x.MessageTransfer().encode(), flags=0x0B, kind=1, track=1)
    client.send_frame(b"body", flags=0x03, kind=3, track=1)
    client.send_frame(structs.encode_header([structs.DeliveryProperties()]), flags=0x07, kind=2, track=1)
    client.expect_close(501)


@rule("0-10/assembly/flag-consistency")
@pytest.mark.parametrize(
    "frames",
    [[(0x0B, 1), (0x0F, 1)], [(0x0A, 1), (0x0E, 1)], [(0x07, 1)], [(0x0D, 1)], [(0x0B, 1), (0x05, 3)]],
    ids=[
        "first segment twice",
        "first frame twice",
        "no first segment",
        "no first frame",
        "body without first",
    ],
)
def test_frame_flags_that_contradict_earlier_frames_close_connection_with_framing_error(
    session: Session, frames: list[tuple[int, int]]
) -> None:
    for flags, kind in frames:
        session.client.send_frame(x.MessageTransfer().encode(), flags=flags, kind=kind, track=1)
    session.client.expect_close(501)


@rule("0-10/assembly/interleave-tracks#tracks", "0-10/assembly/no-interleave-track")
def test_controls_are_accepted_between_frames_of_command(server: Server) -> None:
    client = server.session().declare("q").client
    client.send_frame(x.MessageTransfer().encode(), flags=0x0B, kind=1, track=1)
    client.send(c.SessionFlush(completed=True))
    header = structs.encode_header([structs.DeliveryProperties(routing_key="q")])
    client.send_frame(header, flags=0x03, kind=2, track=1)
    client.send(c.ConnectionHeartbeat()).send_frame(b"bo", flags=0x06, kind=3, track=1)
    client.send(c.SessionFlush(completed=True)).send_frame(b"dy", flags=0x05, kind=3, track=1)
    assert [each.message.body for each in server.vhost.queues["q"].ready] == [b"body"]


@rule("0-10/assembly/interleave-tracks#channels")
def test_frames_of_commands_on_two_channels_may_be_interleaved(server: Server) -> None:
    client = server.open()
    one, two = client.session(b"one", 0), client.session(b"two", 1)
    one.declare("q")
    del two
    header = structs.encode_header([structs.DeliveryProperties(routing_key="q")])
    for flags, kind, payload in ((0x0B, 1, x.MessageTransfer().encode()), (0x03, 2, header)):
        for channel in (0, 1):
            client.send_frame(payload, flags=flags, kind=kind, track=1, channel=channel)
    for channel in (1, 0):
        client.send_frame(b"%d" % channel, flags=0x07, kind=3, track=1, channel=channel)
    assert [each.message.body for each in server.vhost.queues["q"].ready] == [b"1", b"0"]


@rule("0-10/assembly/header-entries#once")
def test_duplicate_header_struct_fails_with_illegal_argument(session: Session) -> None:
    entry = structs.DeliveryProperties(routing_key="q")
    octets = structs.encode_header([entry]) * 2
    session.fails(x.MessageTransfer(), 531, header=octets, body=b"")


@rule("0-10/assembly/body-opaque")
def test_message_bodies_are_delivered_unchanged(server: Server) -> None:
    session = server.session().declare("q")
    bodies = [b"", b"\x00", bytes(range(256)), b"x" * 200_000]
    for body in bodies:
        session.publish(body)
    assert session.subscribe("q").bodies() == bodies


def test_frame_received_octet_by_octet_is_decoded(server: Server) -> None:
    client = server.open()
    octets = b"".join(
        FRAME_HEADER.pack(15, 0, 12 + len(attach), 0, 0, 0, 0) + attach
        for attach in [c.SessionAttach(name=b"slow").encode()]
    )
    for octet in octets:
        client.send_bytes(bytes([octet]))
    client.expect(c.SessionAttached)
