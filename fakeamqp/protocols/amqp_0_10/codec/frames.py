"""Frames: a header of twelve bytes and the payload, without an end byte (frame/layout).

Octet 0 has the version (two bits, 0), two reserved bits and four flags, byte 1 the segment's type; the size,
two bytes, counts the header as well (frame/size-includes-header). Octet 5 has the track, bytes 6 and 7 the
channel. A segment is one frame or more, an assembly one segment or more.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final

from fakeamqp.protocols.amqp_0_10.codec.errors import FramingError

__all__ = ["FIRST_FRAME", "FIRST_SEGMENT", "FRAME_HEADER", "HEADER_SIZE", "LARGEST_FRAME", "LAST_FRAME"]
__all__ += ["LAST_SEGMENT", "check_header", "control_frame", "encode_frames", "encode_pieces"]

#: flags, segment type, size, reserved, track, channel, reserved
FRAME_HEADER: Final = Struct(">BBHBBHI")
HEADER_SIZE: Final = FRAME_HEADER.size
FIRST_SEGMENT: Final = 8
LAST_SEGMENT: Final = 4
FIRST_FRAME: Final = 2
LAST_FRAME: Final = 1
LARGEST_FRAME: Final = 0xFFFF

_WHOLE: Final = 0x0F
_CONTROL: Final = 0
_LAST_TYPE: Final = 3
_pack = FRAME_HEADER.pack


def check_header(
    flags: int, segment_type: int, size: int, reserved: int, track: int, reserved_2: int
) -> None:
    """Raise FramingError for an illegal frame header; the arguments are the fields of `FRAME_HEADER`."""
    if flags > _WHOLE:
        what = (
            f"frame format version {flags >> 6}"
            if flags >> 6
            else f"reserved bits of the flags 0x{flags:02x}"
        )
        raise FramingError(f"{what}: only 0 is known")  # frame/format-version, frame/reserved-zero
    if segment_type > _LAST_TYPE:
        raise FramingError(f"there is no segment type {segment_type}")  # frame/segment-types
    if size < HEADER_SIZE:
        raise FramingError(f"a frame of {size} bytes is smaller than its header")  # frame/size-too-small
    if reserved or reserved_2 or track > _WHOLE:
        raise FramingError("reserved bits of a frame header are set")  # frame/reserved-zero
    if track > 1:
        raise FramingError(f"there is no track {track}")
    if (track == _CONTROL) is not (segment_type == _CONTROL):  # frame/track-control, frame/track-command
        raise FramingError(f"segments of type {segment_type} do not belong on track {track}")


def control_frame(channel: int, octets: bytes, max_frame_size: int = LARGEST_FRAME) -> bytes:
    """A control, as one frame unless it is larger than `max_frame_size`."""
    size = HEADER_SIZE + len(octets)
    if size <= max_frame_size:
        return _pack(_WHOLE, _CONTROL, size, 0, 0, channel, 0) + octets
    return encode_frames(channel, ((_CONTROL, octets),), max_frame_size)


def encode_frames(
    channel: int, segments: Sequence[tuple[int, bytes]], max_frame_size: int, offset: int = 0
) -> bytes:
    """As `encode_pieces`, joined."""
    return b"".join(encode_pieces(channel, segments, max_frame_size, offset))


def encode_pieces(
    channel: int, segments: Sequence[tuple[int, bytes]], max_frame_size: int, offset: int = 0
) -> list[bytes | memoryview]:
    """One assembly: (type, bytes) of each segment, as frames of at most `max_frame_size` bytes each.

    The pieces are frame headers and payloads; a payload that is a part of a segment is a view.

    A segment without bytes is one frame without payload. An `offset` leaves out that many bytes of the
    assembly, which were sent before (session.command-point/nonzero-offset); the frame behind them has no flag
    of a first frame where its segment has begun.
    """
    limit = min(max_frame_size, LARGEST_FRAME) - HEADER_SIZE
    track = 0 if segments[0][0] == _CONTROL else 1
    last = len(segments) - 1
    parts: list[bytes | memoryview] = []
    for number, (segment_type, octets) in enumerate(segments):
        flags = (FIRST_SEGMENT if number == 0 else 0) | (LAST_SEGMENT if number == last else 0)
        size = len(octets)
        begin = 0
        if offset:
            begin, offset = min(offset, size), max(0, offset - size)
            if offset or (begin and begin == size):
                continue
        if size <= limit and not begin:
            flags |= FIRST_FRAME | LAST_FRAME
            parts += (_pack(flags, segment_type, size + HEADER_SIZE, 0, track, channel, 0), octets)
            continue
        view = memoryview(octets)
        for start in range(begin, size, limit):
            piece = view[start : start + limit]
            place = (0 if start else FIRST_FRAME) | (LAST_FRAME if start + limit >= size else 0)
            size_of_frame = len(piece) + HEADER_SIZE
            parts += (_pack(flags | place, segment_type, size_of_frame, 0, track, channel, 0), piece)
    return parts
