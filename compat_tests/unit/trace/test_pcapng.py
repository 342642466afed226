"""Packets that were made up, taken apart again."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from compat_tests.unit.trace.recordings import EVENTS, FRAMES
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.constants import PROTOCOL_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.frames import CONTENT_HEADER, HEARTBEAT_FRAME, frame
from fakeamqp.protocols.amqp_0_9_1.codec.tables import RABBITMQ
from fakeamqp.trace import ConnectionEvent, Event, FrameEvent, ModelEvent, Trace
from fakeamqp.trace.truncation import Truncated

ANY = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
NAME = "127.0.0.1:50000 -> 127.0.0.1:39481"
FIN, SYN, ACK = 1, 2, 16


@dataclass
class Segment:
    """What a packet says."""

    time: int
    source: tuple[str, int]
    target: tuple[str, int]
    sequence: int
    acknowledged: int
    flags: int
    data: bytes
    comments: list[str]


@dataclass
class File:
    application: str
    comments: list[str]
    segments: list[Segment]

    def sent_by(self, *sources: tuple[str, int]) -> bytes:
        return b"".join(each.data for each in self.segments if each.source in sources)


def options(octets: bytes) -> list[tuple[int, bytes]]:
    found, position = [], 0
    while position < len(octets):
        code, size = struct.unpack_from("<HH", octets, position)
        if code == 0:
            assert position + 4 == len(octets)
            return found
        found.append((code, octets[position + 4 : position + 4 + size]))
        position += 4 + size + -size % 4
    assert not octets, "options without an end"
    return found


def texts(octets: bytes, code: int) -> list[str]:
    return [value.decode() for number, value in options(octets) if number == code]


def sums_up(octets: bytes) -> bool:
    """Whether a checksum over these bytes is right: the plain way, word by word."""
    total = sum(struct.unpack(f">{(len(octets) + 1) // 2}H", octets + bytes(len(octets) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total == 0xFFFF


def segment(time: int, octets: bytes, comments: list[str]) -> Segment:
    kind = int.from_bytes(octets[12:14], "big")
    packet = octets[14:]
    if kind == 0x0800:
        assert packet[0] == 0x45 and packet[9] == 6 and sums_up(packet[:20])
        assert int.from_bytes(packet[2:4], "big") == len(packet)
        addresses, tcp = packet[12:20], packet[20:]
    else:
        assert kind == 0x86DD and packet[0] == 0x60 and packet[6] == 6
        addresses, tcp = packet[8:40], packet[40:]
        assert int.from_bytes(packet[4:6], "big") == len(tcp)
    assert sums_up(addresses + struct.pack(">II", len(tcp), 6) + tcp)
    source, target, sequence, acknowledged, offset, flags = struct.unpack_from(">HHIIBB", tcp)
    half = len(addresses) // 2
    return Segment(
        time,
        (str(ip_address(addresses[:half])), source),
        (str(ip_address(addresses[half:])), target),
        sequence,
        acknowledged,
        flags,
        tcp[(offset >> 4) * 4 :],
        comments,
    )


def blocks(octets: bytes) -> Iterator[tuple[int, bytes]]:
    position = 0
    while position < len(octets):
        kind, size = struct.unpack_from("<II", octets, position)
        assert size % 4 == 0
        assert octets[position + size - 4 : position + size] == struct.pack("<I", size)
        yield kind, octets[position + 8 : position + size - 4]
        position += size


def written(path: Path, events: list[Event], dropped: int = 0, wall_time: float | None = None) -> File:
    Trace.of(events, dropped, wall_time=wall_time).pcapng(path / "trace.pcapng")
    (kind, section), (interface, about), *packets = blocks((path / "trace.pcapng").read_bytes())
    assert (kind, interface) == (0x0A0D0D0A, 1)
    assert section[:8] == bytes.fromhex("4d3c2b1a01000000")
    assert about[:2] == b"\1\0" and (9, b"\x09") in options(about[8:])
    (application,) = texts(section[16:], 4)
    file = File(application, texts(section[16:], 1), [])
    for kind, block in packets:
        assert kind == 6
        _, high, low, size, original = struct.unpack_from("<IIIII", block)
        assert size == original
        end = 20 + size + -size % 4
        file.segments.append(segment(high << 32 | low, block[20 : 20 + size], texts(block[end:], 1)))
    return file


def received(
    frame_type: int, payload: bytes, alias: str = "c1", name: str = NAME, time: float = 0.0
) -> FrameEvent:
    return FrameEvent(time, name, alias, "received", frame_type, 1, payload)


def happened(event: str, detail: str = "", alias: str = "c1", name: str = NAME) -> ConnectionEvent:
    return ConnectionEvent(0.5, name, alias, event, detail)


CLIENT, SERVER = ("127.0.0.1", 50000), ("127.0.0.1", 5672)
PUBLISH = m.BasicPublish(routing_key="q").encode()


def test_connection_is_written_as_a_tcp_stream_from_syn_to_fin(tmp_path):
    events = [
        happened("connected"),
        received(1, PUBLISH, time=1.25),
        ModelEvent(1.25, NAME, "c1", "odd", {"n": 1}),
        FrameEvent(1.5, NAME, "c1", "sent", 8, 0, b""),
        happened("closed", "by the client"),
        FrameEvent(2.0, NAME, "c1", "sent", 1, 0, m.ConnectionCloseOk().encode()),
    ]
    file = written(tmp_path, events, wall_time=1_700_000_000.0)
    assert file.application.startswith("fakeamqp")
    assert file.sent_by(CLIENT) == PROTOCOL_HEADER + frame(1, 1, PUBLISH)
    assert file.sent_by(SERVER) == HEARTBEAT_FRAME + frame(1, 0, m.ConnectionCloseOk().encode())
    assert [each.flags for each in file.segments[:3]] == [SYN, SYN | ACK, ACK]
    # The end comes after the last frame, and who was asked to close ends first.
    assert [(each.flags, each.source) for each in file.segments[-3:]] == [
        (FIN | ACK, SERVER),
        (FIN | ACK, CLIENT),
        (ACK, SERVER),
    ]
    assert file.segments[4].time == 1_700_000_001_250_000_000
    assert [each.comments for each in file.segments[:7]] == [
        [f"c1 is {NAME} (port 5672 stands for 39481)"],
        [],
        [],
        [f"connected: {NAME}"],
        ["odd n=1"],
        ["closed: by the client"],
        [],
    ]


def test_client_ends_the_stream_first_if_its_transport_was_lost(tmp_path):
    file = written(tmp_path, [happened("connected"), happened("lost")])
    assert [each.source for each in file.segments[-3:]] == [CLIENT, SERVER, CLIENT]


def test_stream_begins_with_the_protocol_header_of_the_client(tmp_path):
    file = written(tmp_path, [happened("connected", "AMQP 1-1-0-9")])
    assert file.sent_by(CLIENT) == b"AMQP\x01\x01\x00\x09"


def test_stream_of_a_refused_connection_has_no_protocol_header(tmp_path):
    file = written(tmp_path, [happened("refused", "it sent b'GET / HT' instead of a protocol header")])
    assert file.sent_by(CLIENT, SERVER) == b""
    assert [each.flags for each in file.segments] == [SYN, SYN | ACK, ACK, FIN | ACK, FIN | ACK, ACK]
    assert any("GET" in comment for each in file.segments for comment in each.comments)


def test_stream_of_an_open_connection_has_no_fin(tmp_path):
    file = written(tmp_path, [happened("connected"), received(1, PUBLISH)])
    assert not any(each.flags & FIN for each in file.segments)


def test_ipv6_connection_keeps_its_addresses(tmp_path):
    name = "::1:50000 -> ::1:5672"
    file = written(tmp_path, [received(1, PUBLISH, name=name)])
    assert file.sent_by(("::1", 50000)) == PROTOCOL_HEADER + frame(1, 1, PUBLISH)
    assert file.segments[0].comments == [f"c1 is {name}"]


@pytest.mark.parametrize(
    "name", ["", "nobody", "a -> b", "a:1 -> b:2", "1.1.1.1:1 -> 1.1.1.1:70000", "x -> y -> z"]
)
def test_connection_without_an_address_gets_a_loopback_address(tmp_path, name):
    file = written(tmp_path, [received(1, PUBLISH, name=name), received(1, PUBLISH, "c2", name)])
    clients = {each.source for each in file.segments} - {SERVER}
    assert len(clients) == 2 and {host for host, _ in clients} == {"127.0.0.1"}
    # A lower one could have a dissector of its own.
    assert all(port > 5672 for _, port in clients)


def test_connection_with_a_reused_name_is_a_new_stream(tmp_path):
    events = [happened("connected"), happened("lost"), happened("connected", alias="c2")]
    file = written(tmp_path, events)
    starts = [each.sequence for each in file.segments if each.flags == SYN]
    assert len(set(starts)) == 2


def test_long_frame_is_split_into_acknowledged_segments(tmp_path):
    body = bytes(range(256)) * 10_000
    file = written(tmp_path, [happened("connected"), received(3, body)])
    assert file.sent_by(CLIENT) == PROTOCOL_HEADER + frame(3, 1, body)
    assert max(len(each.data) for each in file.segments) <= 65_495
    assert any(each.source == SERVER and each.flags == ACK for each in file.segments)


def test_heartbeat_is_written_before_a_long_first_frame(tmp_path):
    file = written(tmp_path, [received(3, bytes(100_000))], dropped=3)
    assert file.comments == ["3 earlier events are not in this file"]
    assert [each.data for each in file.segments if each.data][:2] == [PROTOCOL_HEADER, HEARTBEAT_FRAME]
    assert file.sent_by(CLIENT) == PROTOCOL_HEADER + frame(3, 1, bytes(100_000))


def test_truncated_frames_are_written_as_complete_frames(tmp_path):
    method = m.QueueDeclare(queue="q", arguments={"x": "y" * 70_000}).encode()
    header = CONTENT_HEADER.pack(60, 0, 7) + b"\x20\x00" + bytes(70_000)
    events = [
        received(1, Truncated(method, 4096)),
        received(2, Truncated(header, 4096)),
        received(3, Truncated(b"x" * 5000, 4096)),
        received(1, Truncated(b"\xff" * 70_000, 4096)),
        received(8, b""),
    ]
    file = written(tmp_path, events)
    short = m.QueueDeclare().encode()
    m.QueueDeclare.decode(short, RABBITMQ)
    unknown = b"\xff" * 4096 + bytes(70_000 - 4096)
    assert file.sent_by(CLIENT) == PROTOCOL_HEADER + b"".join(
        [
            frame(1, 1, short),
            frame(2, 1, CONTENT_HEADER.pack(60, 0, 7) + b"\0\0"),
            frame(3, 1, b"x" * 4096 + bytes(5000 - 4096)),
            frame(1, 1, unknown),
            frame(8, 1, b""),
        ]
    )
    said = [comment for each in file.segments for comment in each.comments]
    assert (
        f"queue.declare of {len(method)} bytes, of which the trace has 4096: its fields are not shown" in said
    )
    assert sum("the trace has 4096" in comment for comment in said) == 4


def test_events_without_packets_are_comments_of_the_file(tmp_path):
    file = written(
        tmp_path, [ModelEvent(0.0, None, "", "odd", {}), ModelEvent(0.0, None, "", "long", {"x": "é" * 9})]
    )
    assert file.comments[0] == "odd" and file.segments == []


def test_comment_is_cut_after_4096_bytes(tmp_path):
    file = written(tmp_path, [happened("connected"), happened("fault", "é" * 100_000)])
    (comment,) = [each for each in file.segments[-1].comments if each.startswith("fault")]
    assert comment.endswith("é...") and len(comment.encode()) <= 4096


@ANY
@given(EVENTS | st.lists(FRAMES, max_size=8))
def test_sequence_numbers_follow_each_other(tmp_path, events):
    file = written(tmp_path, events)
    next_number: dict[tuple[object, object], int] = {}
    for each in file.segments:
        way, back = (each.source, each.target), (each.target, each.source)
        if each.flags & SYN:
            next_number[way] = each.sequence
            if not each.flags & ACK:
                next_number.pop(back, None)
        assert each.sequence == next_number[way]
        if each.flags & ACK:
            assert each.acknowledged == next_number[back]
        next_number[way] = (each.sequence + len(each.data) + bool(each.flags & (SYN | FIN))) % 2**32
    frames = [each for each in events if isinstance(each, FrameEvent)]
    if not any(isinstance(each.payload, Truncated) for each in frames):
        headers = sum(each.flags == SYN for each in file.segments)
        octets = sum(each.size + 8 for each in frames) + 8 * headers
        assert sum(len(each.data) for each in file.segments) == octets
