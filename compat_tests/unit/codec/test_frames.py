"""Frames, byte for byte."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, strategies as st

from fakeamqp.protocols.amqp_0_9_1.codec import frames
from fakeamqp.protocols.base.codec import FieldError

rule = pytest.mark.rule
both = pytest.mark.protocols("0-9-1", "0-9")


def cut(octets: bytes) -> list[tuple[int, int, bytes]]:
    """Type, channel and payload of each frame."""
    found, offset = [], 0
    while offset < len(octets):
        kind, channel, size = frames.FRAME_HEADER.unpack_from(octets, offset)
        end = offset + 7 + size
        assert octets[end] == frames.FRAME_END
        found.append((kind, channel, octets[offset + 7 : end]))
        offset = end + 1
    return found


@both
@rule("0-9-1/content/body-split-on-send")
@rule("0-9-1/frame/type-body")
@given(st.binary(max_size=200), st.integers(1, 60), st.integers(0, 65535))
def test_a_body_is_split_into_frames_within_the_limit(body: bytes, limit: int, channel: int) -> None:
    parts = frames.split_body(body, channel, limit)
    assert all(isinstance(part, bytes) for part in parts)
    contents = cut(b"".join(parts))
    assert len(contents) == len(parts) == -(-len(body) // limit)
    assert b"".join(payload for _, _, payload in contents) == body
    assert all(
        kind == 3 and number == channel and 0 < len(payload) <= limit for kind, number, payload in contents
    )


def test_content_frames_are_a_header_and_its_body_frames() -> None:
    kinds = [kind for kind, _, _ in cut(b"".join(frames.content_frames(7, 60, bytes(2), b"abcde", 2)))]
    assert kinds == [2, 3, 3, 3]


@both
@rule("0-9-1/frame/limits-channel-class-method#channel")
def test_channels_have_16_bits() -> None:
    assert frames.method_frame(65535, b"")[1:3] == b"\xff\xff"
    for channel in (-1, 65536, None):
        with pytest.raises(FieldError):
            frames.method_frame(channel, b"")
        with pytest.raises(FieldError):
            frames.frame(1, channel, b"")
        with pytest.raises(FieldError):
            frames.header_frame(channel, 60, 0, b"")
        with pytest.raises(FieldError):
            frames.split_body(b"x", channel, 1)


def test_numbers_out_of_range_are_field_errors() -> None:
    with pytest.raises(FieldError):
        frames.frame(256, 1, b"")
    with pytest.raises(FieldError):
        frames.header_frame(1, 65536, 0, b"")
    with pytest.raises(FieldError):
        frames.header_frame(1, 60, 2**64, b"")
    for limit in (0, -8):
        with pytest.raises(FieldError):
            frames.split_body(b"x", 1, limit)


def test_the_frame_types_are_those_of_the_protocol() -> None:
    types = (frames.FRAME_METHOD, frames.FRAME_CONTENT_HEADER, frames.FRAME_BODY, frames.FRAME_HEARTBEAT)
    assert types == (1, 2, 3, 8)
    assert frames.FRAME_END == 206
    assert struct.calcsize(">BHI") + 1 == frames.FRAME_OVERHEAD
