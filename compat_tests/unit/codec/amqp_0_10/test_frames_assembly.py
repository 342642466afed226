"""Assemblies: what may follow what, and beginning again in the middle of one."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, strategies as st

from compat_tests.fuzz.profile import examples
from compat_tests.unit.codec.amqp_0_10.cutting import assemblies, cut
from fakeamqp.protocols.amqp_0_10.codec.errors import FramingError
from fakeamqp.protocols.amqp_0_10.codec.frames import (
    FIRST_FRAME,
    FIRST_SEGMENT,
    FRAME_HEADER,
    HEADER_SIZE,
    LAST_FRAME,
    LAST_SEGMENT,
    Assembler,
    Assembly,
    encode_frames,
)
from fakeamqp.protocols.amqp_0_10.server_connection import content_behind

rule = pytest.mark.rule
CONTROL, COMMAND, HEADER, BODY = range(4)
WHOLE = FIRST_SEGMENT | LAST_SEGMENT | FIRST_FRAME | LAST_FRAME
BOTH = FIRST_FRAME | LAST_FRAME

#: frames of a transfer: command, header in two frames, body in three
TRANSFER = [
    (FIRST_SEGMENT | BOTH, COMMAND, b"cc"),
    (FIRST_FRAME, HEADER, b"hh"),
    (LAST_FRAME, HEADER, b"h"),
    (LAST_SEGMENT | FIRST_FRAME, BODY, b"b1"),
    (LAST_SEGMENT, BODY, b"b2"),
    (LAST_SEGMENT | LAST_FRAME, BODY, b"b3"),
]


def feed(assembler: Assembler, frames: list) -> Assembly | None:
    found = None
    for frame in frames:
        assert found is None
        found = assembler.add(*frame)
    return found


def test_content_behind_a_command_is_read_at_once_only_from_whole_frames() -> None:
    octets = encode_frames(7, [(COMMAND, b"cc"), (HEADER, b"hh"), (BODY, b"bbb")], 100)
    offset, end = HEADER_SIZE + 2, len(octets)
    assert content_behind(octets + b"more", offset, end + 4, 7, 15) == (b"hh", b"bbb", end)
    assert content_behind(octets, offset, end, 7, 14) is None, "the body is larger than a frame may be"
    assert content_behind(octets, offset, end, 7, 13) is None, "the header is"
    assert content_behind(octets, offset, end, 8, 15) is None, "it is of another channel"
    for received in range(offset, end):
        assert content_behind(octets[:received], offset, received, 7, 15) is None
    for header in (offset, offset + HEADER_SIZE + 2):
        for position in range(header, header + HEADER_SIZE):
            changed = bytearray(octets)
            changed[position] ^= 4
            assert content_behind(bytes(changed), offset, end, 7, 1000) is None, position


@rule("0-10/assembly/structure")
@rule("0-10/assembly/empty-body#header")
@rule("0-10/assembly/empty-body#body")
@rule("0-10/assembly/control-single-segment")
def test_segments_are_joined_to_an_assembly_with_its_last_frame() -> None:
    assembler = Assembler()
    assert assembler.add(WHOLE, CONTROL, b"x") == Assembly(b"x", None, None, False)
    assert assembler.add(WHOLE, COMMAND, b"x") == Assembly(b"x", None, None, True)
    assert feed(assembler, TRANSFER) == Assembly(b"cc", b"hhh", b"b1b2b3", True)
    assert feed(assembler, TRANSFER) == Assembly(b"cc", b"hhh", b"b1b2b3", True)
    without_header = [TRANSFER[0], (LAST_SEGMENT | BOTH, BODY, b"")]
    assert feed(assembler, without_header) == Assembly(b"cc", None, b"", True)
    without_body = [TRANSFER[0], (LAST_SEGMENT | BOTH, HEADER, b"h")]
    assert feed(assembler, without_body) == Assembly(b"cc", b"h", None, True)


@rule("0-10/assembly/split-frames")
def test_body_split_into_ten_frames_is_one_assembly() -> None:
    octets = encode_frames(0, ((COMMAND, b"c"), (BODY, b"0123456789")), 13)
    assert len(cut(octets)) == 11
    assert assemblies(octets) == [Assembly(b"c", None, b"0123456789", True)]


def test_assembler_counts_received_bytes_until_the_assembly_ends_or_is_cleared() -> None:
    assembler = Assembler()
    counts = []
    for frame in TRANSFER:
        assembler.add(*frame)
        counts.append(assembler.received)
    assert counts == [2, 4, 5, 7, 9, 0]
    feed(assembler, TRANSFER[:3])
    assembler.clear()
    assert assembler.received == 0
    assert feed(assembler, TRANSFER) is not None


def test_partial_shows_received_segments_once_the_command_segment_is_whole() -> None:
    assembler = Assembler()
    assert assembler.partial is None
    assembler.add(FIRST_SEGMENT | FIRST_FRAME, COMMAND, b"c")
    assert assembler.partial is None
    assembler.add(FIRST_SEGMENT | LAST_FRAME, COMMAND, b"c")
    feed(assembler, TRANSFER[1:5])
    assert assembler.partial == Assembly(b"cc", b"hhh", b"b1b2", True)


# --- what may follow what ------------------------------------------------------------------------------

STARTED = {
    "nothing": [],
    "the middle of a control": [(FIRST_SEGMENT | LAST_SEGMENT | FIRST_FRAME, CONTROL, b"x")],
    "the middle of a command": [(FIRST_SEGMENT | FIRST_FRAME, COMMAND, b"x")],
    "a command": TRANSFER[:1],
    "the middle of a header": TRANSFER[:2],
    "a header": TRANSFER[:3],
    "the middle of a body": TRANSFER[:4],
}
#: what came before -> (flags that must be set, flags that must not, types)
ALLOWED = {
    "nothing": [
        (FIRST_SEGMENT | FIRST_FRAME, 0, {COMMAND}),
        (FIRST_SEGMENT | LAST_SEGMENT | FIRST_FRAME, 0, {CONTROL}),
    ],
    "the middle of a control": [(FIRST_SEGMENT | LAST_SEGMENT, FIRST_FRAME, {CONTROL})],
    "the middle of a command": [(FIRST_SEGMENT, LAST_SEGMENT | FIRST_FRAME, {COMMAND})],
    "a command": [(FIRST_FRAME, FIRST_SEGMENT, {HEADER, BODY})],
    "the middle of a header": [(0, FIRST_SEGMENT | LAST_SEGMENT | FIRST_FRAME, {HEADER})],
    "a header": [(FIRST_FRAME, FIRST_SEGMENT, {BODY})],
    "the middle of a body": [(LAST_SEGMENT, FIRST_SEGMENT | FIRST_FRAME, {BODY})],
}


@rule("0-10/assembly/first-segment-type")
@rule("0-10/assembly/segment-order")
@rule("0-10/assembly/flag-consistency")
@rule("0-10/assembly/no-interleave-track")
@pytest.mark.parametrize("before", STARTED)
def test_only_frames_allowed_by_segment_order_and_flags_are_accepted(before: str) -> None:
    for flags, kind in itertools.product(range(16), range(4)):
        assembler = Assembler()
        feed(assembler, STARTED[before])
        sound = any(
            flags & needed == needed and not flags & banned and kind in kinds
            for needed, banned, kinds in ALLOWED[before]
        )
        if sound:
            assembler.add(flags, kind, b"y")
        else:
            with pytest.raises(FramingError, match=r"frame of|one segment") as problem:
                assembler.add(flags, kind, b"y")
            assert problem.value.condition == "framing-error"


# --- going back ----------------------------------------------------------------------------------------

SEGMENTS = ((COMMAND, b"command"), (HEADER, b"head"), (BODY, b"0123456789"))
STREAM = b"".join(octets for _, octets in SEGMENTS)
WANTED = Assembly(b"command", b"head", b"0123456789", True)


def rest(offset: int, size: int) -> list:
    """The frames of what comes from that byte on, as a peer sends them that goes on there."""
    frames = []
    start = 0
    for number, (kind, octets) in enumerate(SEGMENTS):
        end = start + len(octets)
        if end > offset:
            begin = max(offset, start)
            of_segment = (FIRST_SEGMENT if number == 0 else 0) | (LAST_SEGMENT if number == 2 else 0)
            for position in range(begin, end, size):
                flags = of_segment | (FIRST_FRAME if position == start else 0)
                flags |= LAST_FRAME if position + size >= end else 0
                frames.append((flags, kind, STREAM[position : min(position + size, end)]))
        start = end
    return frames


@examples(100)
@given(st.integers(1, 22), st.integers(1, 22), st.data())
def test_assembly_rewound_to_any_octet_completes_with_the_rest(
    size: int, other: int, data: st.DataObject
) -> None:
    frames = rest(0, size)
    sent = data.draw(st.integers(0, len(frames) - 1))
    assembler = Assembler()
    assert feed(assembler, frames[:sent]) is None
    received = sum(len(payload) for *_, payload in frames[:sent])
    assert assembler.received == received
    offset = data.draw(st.integers(0, received))
    assembler.rewind(offset)
    assert assembler.received == offset
    assert feed(assembler, rest(offset, other)) == WANTED
    assert assembler.received == 0


def test_rewind_beyond_the_received_bytes_raises_value_error() -> None:
    assembler = Assembler()
    assembler.rewind(0)
    feed(assembler, TRANSFER[:2])
    for offset in (5, -1):
        with pytest.raises(ValueError, match="4 bytes have come"):
            assembler.rewind(offset)
    assembler.rewind(0)
    with pytest.raises(
        FramingError,
        match=r"^a further frame of a header \(of a later segment\) has come where an assembly begins",
    ):
        assembler.add(*TRANSFER[2])


def test_body_in_50000_frames_of_one_byte_is_assembled() -> None:
    """Joined once, not at every frame: two bytes copied for each one received, however many frames."""
    count = 50_000
    assembler = Assembler()
    assembler.add(FIRST_SEGMENT | BOTH, COMMAND, b"c")
    assembler.add(LAST_SEGMENT | FIRST_FRAME, BODY, b"x")
    for _ in range(count - 2):
        assembler.add(LAST_SEGMENT, BODY, b"x")
    found = assembler.add(LAST_SEGMENT | LAST_FRAME, BODY, b"x")
    assert found is not None and found.body == b"x" * count


# --- the rest of an assembly whose beginning went another way (session.command-point/nonzero-offset) ---


WIRE_SEGMENTS = ((1, b"command!"), (2, b""), (3, b"body" * 5))
OCTETS = sum(len(octets) for _, octets in WIRE_SEGMENTS)


def feed_octets(assembler: Assembler, frames: bytes, enough: int | None = None) -> Assembly | None:
    """Give frames to an assembler, until it has enough bytes."""
    found = None
    while frames and (enough is None or assembler.received < enough):
        flags, kind, size, *_ = FRAME_HEADER.unpack_from(frames)
        found = assembler.add(flags, kind, frames[HEADER_SIZE:size])
        frames = frames[size:]
    return found


@pytest.mark.parametrize("size", [13, 14, 20, 4096])
@pytest.mark.parametrize("offset", range(OCTETS))
def test_frames_encoded_from_an_offset_complete_a_partial_assembly(offset: int, size: int) -> None:
    assembler = Assembler()
    feed_octets(assembler, encode_frames(0, WIRE_SEGMENTS, HEADER_SIZE + 1), offset)
    assert assembler.received == offset
    whole = feed_octets(assembler, encode_frames(0, WIRE_SEGMENTS, size, offset))
    assert whole is not None
    assert (whole.first, whole.header, whole.body) == tuple(octets for _, octets in WIRE_SEGMENTS)
