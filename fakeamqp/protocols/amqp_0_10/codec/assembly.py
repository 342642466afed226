"""Joins the frames of one track of one channel to assemblies: a command or control, and its content.

An assembly is a command segment with an optional header segment and an optional body segment, in this order,
or a control segment alone (assembly/*). All frames of a segment carry its first- and last-segment flags;
first-frame and last-frame mark where it begins and ends. One table says which frames are legal:

| After | a segment's first frame may come, of type | a further frame may come |
|---|---|---|
| nothing | control (which must be the last), command; with first-segment | no |
| a frame that is not the last of its segment | none | yes, of the same type and segment flags |
| the last frame of a command | header, body; without first-segment | no |
| the last frame of a header | body; without first-segment | no |

The last frame of a last segment completes the assembly.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from fakeamqp.protocols.amqp_0_10.codec.errors import FramingError, OversizeAssembly
from fakeamqp.protocols.amqp_0_10.codec.frames import (
    FIRST_FRAME,
    FIRST_SEGMENT,
    FRAME_HEADER,
    HEADER_SIZE,
    LAST_FRAME,
    LAST_SEGMENT,
)
from fakeamqp.protocols.base.codec.pieces import add_piece

__all__ = ["Assembler", "Assembly", "content_behind"]

_CONTROL, _COMMAND, _HEADER, _BODY = range(4)
_NAMES: Final = ("a control", "a command", "a header", "a body")
_WHOLE: Final = FIRST_SEGMENT | LAST_SEGMENT | FIRST_FRAME | LAST_FRAME
_unpack_frame = FRAME_HEADER.unpack_from
_OF_SEGMENT: Final = FIRST_SEGMENT | LAST_SEGMENT

_FIRST: Final = (_CONTROL, _COMMAND)
#: type of a segment -> types of the segments that may follow it
_NEXT: Final[dict[int, tuple[int, ...]]] = {
    _CONTROL: (),
    _COMMAND: (_HEADER, _BODY),
    _HEADER: (_BODY,),
    _BODY: (),
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

    @property
    def octets(self) -> bytes:
        return b"".join(self.pieces)

    def cut(self, size: int) -> None:
        """Keep the first `size` bytes, and expect more."""
        octets = self.octets[:size]
        self.pieces = [octets]
        self.size = size
        self.complete = False


class Assembler:
    """Joins the frames of one track; an assembly has at most `limit` bytes, if that is set."""

    __slots__ = ("_segments", "limit", "received")

    def __init__(self, limit: int | None = None) -> None:
        self.limit: int | None = limit
        self.received: int = 0
        """Bytes of the unfinished assembly, without frame headers."""
        self._segments: list[_Segment] = []

    def add(self, flags: int, segment_type: int, payload: bytes) -> Assembly | None:
        """Add a frame. Returns the assembly that it completes, if it does.

        Raises:
            FramingError: flags or type do not fit the frames before (assembly/flag-consistency,
                assembly/segment-order, assembly/first-segment-type, assembly/no-interleave-track).
            OversizeAssembly: the assembly would have more bytes than the limit.
        """
        segments = self._segments
        if self.limit is not None and self.received + len(payload) > self.limit:
            raise OversizeAssembly(f"an assembly has more than {self.limit} bytes")
        if not segments:
            if not flags & FIRST_SEGMENT or not flags & FIRST_FRAME or segment_type not in _FIRST:
                raise FramingError(f"{_describe(flags, segment_type)} has come where an assembly begins")
            if flags == _WHOLE:
                return Assembly(payload, None, None, segment_type == _COMMAND)
            if segment_type == _CONTROL and not flags & LAST_SEGMENT:
                raise FramingError("a control has one segment")  # assembly/control-single-segment
            segments.append(_Segment(segment_type, flags & _OF_SEGMENT, payload, flags & LAST_FRAME))
        else:
            current = segments[-1]
            if current.complete:
                if (
                    flags & FIRST_SEGMENT
                    or not flags & FIRST_FRAME
                    or segment_type not in _NEXT[current.kind]
                ):
                    raise FramingError(
                        f"{_describe(flags, segment_type)} has come behind {_NAMES[current.kind]}"
                    )
                segments.append(_Segment(segment_type, flags & _OF_SEGMENT, payload, flags & LAST_FRAME))
            else:
                if (
                    flags & FIRST_FRAME
                    or segment_type != current.kind
                    or flags & _OF_SEGMENT != current.flags
                ):
                    raise FramingError(
                        f"{_describe(flags, segment_type)} has come in the middle of {_NAMES[current.kind]}"
                    )
                add_piece(current.pieces, payload)
                current.size += len(payload)
                current.complete = flags & LAST_FRAME
        if flags & LAST_FRAME and flags & LAST_SEGMENT:
            return self._complete()
        self.received += len(payload)
        return None

    @property
    def idle(self) -> bool:
        """True while there is no unfinished assembly."""
        return not self._segments

    @property
    def partial(self) -> Assembly | None:
        """The unfinished command as far as it is received; None until its first segment is complete."""
        segments = self._segments
        if not segments or segments[0].kind != _COMMAND or not segments[0].complete:
            return None
        header = next((each.octets for each in segments if each.kind == _HEADER), None)
        body = next((each.octets for each in segments if each.kind == _BODY), None)
        return Assembly(segments[0].octets, header, body, True)

    def _complete(self) -> Assembly:
        first, header, body = self._segments[0], None, None
        for segment in self._segments[1:]:
            if segment.kind == _HEADER:
                header = segment.octets
            else:
                body = segment.octets
        self.clear()
        return Assembly(first.octets, header, body, first.kind == _COMMAND)

    def rewind(self, offset: int) -> None:
        """Forget all but the first `offset` bytes of the unfinished assembly.

        Raises:
            ValueError: fewer bytes are received.
        """
        if not 0 <= offset <= self.received:
            raise ValueError(f"{self.received} bytes have come, not {offset}")
        if offset == self.received:
            return
        left = self.received = offset
        for number, segment in enumerate(self._segments):
            if left < segment.size or not left:
                if left:
                    segment.cut(left)
                    number += 1
                del self._segments[number:]
                return
            left -= segment.size

    def clear(self) -> None:
        """Forget the unfinished assembly."""
        self.received = 0
        self._segments = []


_HEADER_BEFORE_BODY: Final = FIRST_FRAME | LAST_FRAME
_LAST: Final = LAST_SEGMENT | FIRST_FRAME | LAST_FRAME


def content_behind(
    octets: bytes, offset: int, end: int, channel: int, max_frame_size: int
) -> tuple[bytes, bytes, int] | None:
    """Header and body of the command whose frame ends at `offset`, and the offset behind them.

    None unless each is one valid frame that is fully received; then the caller takes frames one by one.
    """
    start = offset + HEADER_SIZE
    if start + HEADER_SIZE > end:
        return None
    flags, kind, size, reserved, track, number, reserved_2 = _unpack_frame(octets, offset)
    behind = offset + size
    if (
        flags != _HEADER_BEFORE_BODY
        or kind != _HEADER
        or size > max_frame_size
        or reserved
        or reserved_2
        or track != 1
        or number != channel
        or behind + HEADER_SIZE > end
        or behind < start
    ):
        return None
    header = octets[start:behind]
    flags, kind, size, reserved, track, number, reserved_2 = _unpack_frame(octets, behind)
    start = behind + HEADER_SIZE
    behind += size
    if (
        flags != _LAST
        or kind != _BODY
        or size > max_frame_size
        or reserved
        or reserved_2
        or track != 1
        or number != channel
        or behind > end
        or behind < start
    ):
        return None
    return header, octets[start:behind], behind


def _describe(flags: int, segment_type: int) -> str:
    """A frame, for errors."""
    kind = _NAMES[segment_type] if segment_type < len(_NAMES) else f"a segment of type {segment_type}"
    place = "the first" if flags & FIRST_FRAME else "a further"
    of = "of the first segment" if flags & FIRST_SEGMENT else "of a later segment"
    return f"{place} frame of {kind} ({of})"
