"""Frames, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from compat_tests.fuzz.profile import examples
from compat_tests.unit.codec.amqp_0_10.cutting import cut
from fakeamqp.protocols.amqp_0_10.codec import controls
from fakeamqp.protocols.amqp_0_10.codec.constants import MIN_MAX_FRAME_SIZE
from fakeamqp.protocols.amqp_0_10.codec.errors import FramingError
from fakeamqp.protocols.amqp_0_10.codec.frames import (
    FRAME_HEADER,
    Assembler,
    check_header,
    control_frame,
    encode_frames,
)

rule = pytest.mark.rule
ATTACH = bytes.fromhex("0f000017000000010000000002010100000573736e2d31")


@rule("0-10/frame/layout")
def test_control_frame_is_encoded_octet_for_octet() -> None:
    assert control_frame(1, controls.SessionAttach(b"ssn-1").encode()) == ATTACH
    assert cut(ATTACH) == [(0x0F, 0, 0, 1, ATTACH[12:])]
    assert control_frame(0x0102, b"x")[6:8] == b"\x01\x02"


@rule("0-10/frame/size-includes-header")
def test_frame_size_includes_the_frame_header() -> None:
    heartbeat = control_frame(0, controls.ConnectionHeartbeat().encode())
    assert heartbeat == bytes.fromhex("0f0000100000000000000000010a0000")
    assert len(heartbeat) == int.from_bytes(heartbeat[2:4], "big") == 16
    octets = encode_frames(0, ((1, b"c"), (3, bytes(100_000))), 1 << 20)
    assert max(12 + len(payload) for *_, payload in cut(octets)) == 65535


@rule("0-10/frame/flags")
@rule("0-10/assembly/split-frames")
def test_frame_flags_mark_first_and_last_segment_and_frame() -> None:
    octets = encode_frames(3, ((1, b"command"), (2, b"h" * 15), (3, b"b" * 10)), 22)
    assert [(flags, kind, payload) for flags, kind, _, _, payload in cut(octets)] == [
        (0b1011, 1, b"command"),
        (0b0010, 2, b"h" * 10),
        (0b0001, 2, b"h" * 5),
        (0b0111, 3, b"b" * 10),
    ]
    assert [flags for flags, *_ in cut(encode_frames(3, ((1, b"x" * 25),), 22))] == [0b1110, 0b1100, 0b1101]
    assert [flags for flags, *_ in cut(encode_frames(3, ((1, b"c"), (3, b"")), 22))] == [0b1011, 0b0111]


@rule("0-10/frame/track-control#sent")
@rule("0-10/frame/track-command#sent")
def test_controls_have_track_0_and_commands_track_1() -> None:
    assert [track for _, _, track, _, _ in cut(encode_frames(0, ((0, b"x" * 30),), 22))] == [0, 0, 0]
    octets = encode_frames(0, ((1, b"c"), (2, b"h"), (3, b"b")), 4096)
    assert [track for _, _, track, _, _ in cut(octets)] == [1, 1, 1]


def test_a_control_larger_than_a_frame_is_split() -> None:
    octets = control_frame(0, b"x" * 5000, MIN_MAX_FRAME_SIZE)
    assert octets == encode_frames(0, ((0, b"x" * 5000),), MIN_MAX_FRAME_SIZE)
    assert [len(payload) for *_, payload in cut(octets)] == [4084, 916]


@examples(100)
@given(
    st.lists(st.binary(max_size=200), min_size=1, max_size=3),
    st.integers(13, 64),
    st.sampled_from([(1, 2, 3), (1, 3)]),
    st.integers(0, 65535),
)
def test_any_assembly_survives_framing_and_assembling(
    segments: list[bytes], size: int, kinds: tuple, channel: int
) -> None:
    pairs = list(zip(kinds, segments, strict=False))
    octets = encode_frames(channel, pairs, size)
    assembler = Assembler()
    found = None
    for flags, kind, _, number, payload in cut(octets):
        assert found is None and number == channel and len(payload) <= size - 12
        found = assembler.add(flags, kind, payload)
    assert found is not None and found.is_command
    got = {1: found.first, 2: found.header, 3: found.body}
    assert got == {1: None, 2: None, 3: None, **dict(pairs)}


@pytest.mark.parametrize(
    ("header", "why"),
    [
        pytest.param((0xC0 | 15, 0, 12, 0, 0, 0), "version 3", marks=rule("0-10/frame/format-version")),
        pytest.param((0x40 | 15, 0, 12, 0, 0, 0), "version 1", marks=rule("0-10/frame/format-version")),
        pytest.param((0x20 | 15, 0, 12, 0, 0, 0), "reserved", marks=rule("0-10/frame/reserved-zero")),
        pytest.param((0x10 | 15, 0, 12, 0, 0, 0), "reserved", marks=rule("0-10/frame/reserved-zero")),
        pytest.param((15, 0, 12, 1, 0, 0), "reserved", marks=rule("0-10/frame/reserved-zero")),
        pytest.param((15, 0, 12, 0, 0x10, 0), "reserved", marks=rule("0-10/frame/reserved-zero")),
        pytest.param((15, 0, 12, 0, 0, 1), "reserved", marks=rule("0-10/frame/reserved-zero")),
        pytest.param((15, 0, 12, 0, 0, 1 << 31), "reserved", marks=rule("0-10/frame/reserved-zero")),
        pytest.param((15, 4, 12, 0, 1, 0), "segment type 4", marks=rule("0-10/frame/segment-types")),
        pytest.param((15, 255, 12, 0, 1, 0), "segment type 255", marks=rule("0-10/frame/segment-types")),
        pytest.param((15, 0, 11, 0, 0, 0), "smaller", marks=rule("0-10/frame/size-too-small")),
        pytest.param((15, 0, 0, 0, 0, 0), "smaller", marks=rule("0-10/frame/size-too-small")),
        pytest.param((15, 0, 12, 0, 1, 0), "type 0 .* track 1", marks=rule("0-10/frame/track-control#taken")),
        pytest.param((15, 1, 12, 0, 0, 0), "type 1 .* track 0", marks=rule("0-10/frame/track-command#taken")),
        pytest.param((15, 3, 12, 0, 0, 0), "type 3 .* track 0", marks=rule("0-10/frame/track-command#taken")),
        pytest.param((15, 1, 12, 0, 2, 0), "no track 2"),
    ],
)
def test_invalid_frame_header_is_a_framing_error(header: tuple, why: str) -> None:
    with pytest.raises(FramingError, match=why) as problem:
        check_header(*header)
    assert problem.value.condition == "framing-error"


@rule("0-10/frame/framing-error")
@examples(100)
@given(st.binary(min_size=12, max_size=12))
def test_any_twelve_octets_are_a_valid_header_or_a_framing_error(octets: bytes) -> None:
    flags, kind, size, reserved, track, _, reserved_2 = FRAME_HEADER.unpack(octets)
    sound = flags < 16 and kind < 4 and size >= 12 and not reserved and not reserved_2
    sound = sound and track == (0 if kind == 0 else 1)
    try:
        check_header(flags, kind, size, reserved, track, reserved_2)
    except FramingError:
        assert not sound
    else:
        assert sound
