"""The rest of an assembly whose beginning went another way (session.command-point/nonzero-offset)."""

from __future__ import annotations

import pytest

from fakeamqp.protocols.amqp_0_10.codec.frames import (
    FRAME_HEADER,
    HEADER_SIZE,
    Assembler,
    Assembly,
    encode_frames,
)

SEGMENTS = ((1, b"command!"), (2, b""), (3, b"body" * 5))
OCTETS = sum(len(octets) for _, octets in SEGMENTS)


def feed(assembler: Assembler, frames: bytes, enough: int | None = None) -> Assembly | None:
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
    feed(assembler, encode_frames(0, SEGMENTS, HEADER_SIZE + 1), offset)
    assert assembler.received == offset
    whole = feed(assembler, encode_frames(0, SEGMENTS, size, offset))
    assert whole is not None
    assert (whole.first, whole.header, whole.body) == tuple(octets for _, octets in SEGMENTS)
