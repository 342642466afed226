"""Frames, and the assemblies that they are parts of: a command or control, and its content.

A frame is a header of twelve bytes and the payload, without an end byte (frame/layout). Octet 0 has the
version (two bits, 0), two reserved bits and four flags, byte 1 the segment's type; the size, two bytes,
counts the header as well (frame/size-includes-header). Octet 5 has the track, bytes 6 and 7 the channel.

An assembly is a command segment with an optional header segment and an optional body segment, in this order,
or a control segment alone (assembly/*). A segment is one frame or more. All frames of a segment carry its
first- and last-segment flags; first-frame and last-frame mark where it begins and ends. One table says which
frames are legal:

| After | a segment's first frame may come, of type | a further frame may come |
|---|---|---|
| nothing | control (which must be the last), command; with first-segment | no |
| a frame that is not the last of its segment | none | yes, of the same type and segment flags |
| the last frame of a command | header, body; without first-segment | no |
| the last frame of a header | body; without first-segment | no |

The last frame of a last segment completes the assembly.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from fakeamqp.protocols.amqp_0_10.codec.constants import SegmentType
from fakeamqp.protocols.amqp_0_10.codec.errors import FramingError
from fakeamqp.protocols.base.codec import add_piece

#: flags, segment type, size, reserved, track, channel, reserved
FRAME_HEADER: Final = Struct(">BBHBBHI")
HEADER_SIZE: Final = FRAME_HEADER.size
FIRST_SEGMENT: Final = 8
LAST_SEGMENT: Final = 4
FIRST_FRAME: Final = 2
LAST_FRAME: Final = 1
LARGEST_FRAME: Final = 0xFFFF
#: flags of the first and of the last frame of an assembly
BEGINNING: Final = FIRST_SEGMENT | FIRST_FRAME
END: Final = LAST_SEGMENT | LAST_FRAME
#: flags of a segment of one frame: the first of several, one between, the last, the only one
WHOLE_COMMAND: Final = FIRST_SEGMENT | FIRST_FRAME | LAST_FRAME
WHOLE_HEADER: Final = FIRST_FRAME | LAST_FRAME
WHOLE_BODY: Final = LAST_SEGMENT | FIRST_FRAME | LAST_FRAME
WHOLE: Final = WHOLE_COMMAND | WHOLE_BODY
#: types of segments
CONTROL, COMMAND, HEADER, BODY = map(int, SegmentType)

_OF_SEGMENT: Final = FIRST_SEGMENT | LAST_SEGMENT
_pack = FRAME_HEADER.pack


def check_header(
    flags: int, segment_type: int, size: int, reserved: int, track: int, reserved_2: int
) -> None:
    """Raise FramingError for an illegal frame header; the arguments are the fields of `FRAME_HEADER`."""
    if flags > WHOLE:
        what = (
            f"frame format version {flags >> 6}"
            if flags >> 6
            else f"reserved bits of the flags 0x{flags:02x}"
        )
        raise FramingError(f"{what}: only 0 is known")  # frame/format-version, frame/reserved-zero
    if segment_type > BODY:
        raise FramingError(f"there is no segment type {segment_type}")  # frame/segment-types
    if size < HEADER_SIZE:
        raise FramingError(f"a frame of {size} bytes is smaller than its header")  # frame/size-too-small
    if reserved or reserved_2 or track > WHOLE:
        raise FramingError("reserved bits of a frame header are set")  # frame/reserved-zero
    if track > 1:
        raise FramingError(f"there is no track {track}")
    if (track == CONTROL) is not (segment_type == CONTROL):  # frame/track-control, frame/track-command
        raise FramingError(f"segments of type {segment_type} do not belong on track {track}")


def control_frame(channel: int, octets: bytes, max_frame_size: int = LARGEST_FRAME) -> bytes:
    """A control, as one frame unless it is larger than `max_frame_size`."""
    size = HEADER_SIZE + len(octets)
    if size <= max_frame_size:
        return _pack(WHOLE, CONTROL, size, 0, 0, channel, 0) + octets
    return encode_frames(channel, ((CONTROL, octets),), max_frame_size)


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
    track = 0 if segments[0][0] == CONTROL else 1
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


# --- assemblies ---------------------------------------------------------------------------------------------

_NAMES: Final = ("a control", "a command", "a header", "a body")

_FIRST: Final = (CONTROL, COMMAND)
#: type of a segment -> types of the segments that may follow it
_NEXT: Final[dict[int, tuple[int, ...]]] = {
    CONTROL: (),
    COMMAND: (HEADER, BODY),
    HEADER: (BODY,),
    BODY: (),
}


class Assembly(NamedTuple):
    """A control or a command, with its content: the bytes of its segments, None for an absent one."""

    first: bytes
    header: bytes | None
    body: bytes | None
    is_command: bool


class _Segment:
    """A segment as far as it is received."""

    __slots__ = ("complete", "flags", "kind", "pieces", "size")

    def __init__(self, kind: int, flags: int, payload: bytes, complete: int) -> None:
        self.kind = kind
        self.flags = flags
        self.pieces: list[bytes | bytearray] = [payload]
        self.size = len(payload)
        self.complete = complete

    def cut(self, size: int) -> None:
        """Keep the first `size` bytes, and expect more."""
        self.pieces = [b"".join(self.pieces)[:size]]
        self.size = size
        self.complete = False


class Assembler:
    """Joins the frames of one track."""

    __slots__ = ("received", "segments")

    def __init__(self) -> None:
        self.received: int = 0
        """Bytes of the unfinished assembly, without frame headers."""
        self.segments: list[_Segment] = []
        """What is received of the unfinished assembly."""

    def add(self, flags: int, segment_type: int, payload: bytes) -> Assembly | None:
        """Add a frame. Returns the assembly that it completes, if it does.

        Raises:
            FramingError: flags or type do not fit the frames before (assembly/flag-consistency,
                assembly/segment-order, assembly/first-segment-type, assembly/no-interleave-track).
        """
        segments = self.segments
        current = segments[-1] if segments else None
        if current is None:
            if not flags & FIRST_SEGMENT or not flags & FIRST_FRAME or segment_type not in _FIRST:
                raise FramingError(f"{_describe(flags, segment_type)} has come where an assembly begins")
            if flags == WHOLE:
                return Assembly(payload, None, None, segment_type == COMMAND)
            if segment_type == CONTROL and not flags & LAST_SEGMENT:
                raise FramingError("a control has one segment")  # assembly/control-single-segment
        elif current.complete:
            if flags & FIRST_SEGMENT or not flags & FIRST_FRAME or segment_type not in _NEXT[current.kind]:
                raise FramingError(f"{_describe(flags, segment_type)} has come behind {_NAMES[current.kind]}")
        elif flags & FIRST_FRAME or segment_type != current.kind or flags & _OF_SEGMENT != current.flags:
            raise FramingError(
                f"{_describe(flags, segment_type)} has come in the middle of {_NAMES[current.kind]}"
            )
        if current is None or current.complete:
            segments.append(_Segment(segment_type, flags & _OF_SEGMENT, payload, flags & LAST_FRAME))
        else:
            add_piece(current.pieces, payload)
            current.size += len(payload)
            current.complete = flags & LAST_FRAME
        if flags & LAST_FRAME and flags & LAST_SEGMENT:
            return self._complete()
        self.received += len(payload)
        return None

    @property
    def partial(self) -> Assembly | None:
        """The unfinished command as far as it is received; None until its first segment is complete."""
        segments = self.segments
        if not segments or segments[0].kind != COMMAND or not segments[0].complete:
            return None
        octets = {each.kind: b"".join(each.pieces) for each in segments}
        return Assembly(octets[COMMAND], octets.get(HEADER), octets.get(BODY), True)

    def _complete(self) -> Assembly:
        octets = {each.kind: b"".join(each.pieces) for each in self.segments}
        first = self.segments[0].kind
        self.clear()
        return Assembly(octets[first], octets.get(HEADER), octets.get(BODY), first == COMMAND)

    def rewind(self, offset: int) -> None:
        """Forget all but the first `offset` bytes of the unfinished assembly, which must have come."""
        if not 0 <= offset <= self.received:
            raise ValueError(f"{self.received} bytes have come, not {offset}")
        if offset == self.received:
            return
        left = self.received = offset
        for number, segment in enumerate(self.segments):
            if left < segment.size or not left:
                if left:
                    segment.cut(left)
                    number += 1
                del self.segments[number:]
                return
            left -= segment.size

    def clear(self) -> None:
        """Forget the unfinished assembly."""
        self.received = 0
        self.segments = []


def _describe(flags: int, segment_type: int) -> str:
    """A frame, for errors."""
    kind = _NAMES[segment_type] if segment_type < len(_NAMES) else f"a segment of type {segment_type}"
    place = "the first" if flags & FIRST_FRAME else "a further"
    of = "of the first segment" if flags & FIRST_SEGMENT else "of a later segment"
    return f"{place} frame of {kind} ({of})"
