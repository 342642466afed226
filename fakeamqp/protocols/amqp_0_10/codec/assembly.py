"""Frames of one track of one channel, put together to assemblies: a command or control, and its content.

An assembly is a command segment, perhaps a header segment, perhaps a body segment, in this order, or a
control segment alone (assembly/*). All frames of a segment carry its first- and last-segment flags;
first-frame and last-frame say where it begins and ends. What may come is one table:

| After | a segment's first frame may come, of type | a further frame may come |
|---|---|---|
| nothing | control (which must be the last), command; with first-segment | no |
| a frame that is not the last of its segment | none | yes, of the same type and segment flags |
| the last frame of a command | header, body; without first-segment | no |
| the last frame of a header | body; without first-segment | no |

The last frame of a last segment ends the assembly, and the next begins with nothing.
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

__all__ = ["Assembler", "Assembly", "content_behind"]

_CONTROL, _COMMAND, _HEADER, _BODY = range(4)
_NAMES: Final = ("a control", "a command", "a header", "a body")
_WHOLE: Final = FIRST_SEGMENT | LAST_SEGMENT | FIRST_FRAME | LAST_FRAME
_unpack_frame = FRAME_HEADER.unpack_from
_OF_SEGMENT: Final = FIRST_SEGMENT | LAST_SEGMENT

_FIRST: Final = (_CONTROL, _COMMAND)
#: type of a segment -> types of those that may come behind it
_NEXT: Final[dict[int, tuple[int, ...]]] = {
    _CONTROL: (),
    _COMMAND: (_HEADER, _BODY),
    _HEADER: (_BODY,),
    _BODY: (),
}


class Assembly(NamedTuple):
    """A control or a command, with its content: bytes of its segments, None for one that is not there."""

    first: bytes
    header: bytes | None
    body: bytes | None
    is_command: bool


class _Segment:
    """A segment as far as it has come."""

    __slots__ = ("complete", "flags", "kind", "pieces", "size")

    def __init__(self, kind: int, flags: int, payload: bytes, complete: int) -> None:
        self.kind = kind
        self.flags = flags
        self.pieces = [payload]
        self.size = len(payload)
        self.complete = complete

    @property
    def octets(self) -> bytes:
        return self.pieces[0] if len(self.pieces) == 1 else b"".join(self.pieces)

    def cut(self, size: int) -> None:
        """Keep that many bytes, and expect more."""
        octets = self.octets[:size]
        self.pieces = [octets]
        self.size = size
        self.complete = False


class Assembler:
    """Puts the frames of one track together; an assembly has at most `limit` bytes, if that is set."""

    __slots__ = ("_segments", "limit", "received")

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.received = 0
        """Bytes of the assembly under way, headers of frames not counted."""
        self._segments: list[_Segment] = []

    def add(self, flags: int, segment_type: int, payload: bytes) -> Assembly | None:
        """Take a frame; answers with the assembly that it completes.

        Raises:
            FramingError: flags or type do not fit what has come (assembly/flag-consistency,
                assembly/segment-order, assembly/first-segment-type, assembly/no-interleave-track).
            OversizeAssembly: it would have more bytes than the limit.
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
                current.pieces.append(payload)
                current.size += len(payload)
                current.complete = flags & LAST_FRAME
        if flags & LAST_FRAME and flags & LAST_SEGMENT:
            return self._complete()
        self.received += len(payload)
        return None

    @property
    def idle(self) -> bool:
        """Whether no assembly is under way."""
        return not self._segments

    @property
    def partial(self) -> Assembly | None:
        """The command under way as far as it has come; None where its first segment is not whole."""
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
        """Forget what has come behind that many bytes of the assembly under way.

        Raises:
            ValueError: so many have not come.
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
        """Forget the assembly under way."""
        self.received = 0
        self._segments = []


_HEADER_BEFORE_BODY: Final = FIRST_FRAME | LAST_FRAME
_LAST: Final = LAST_SEGMENT | FIRST_FRAME | LAST_FRAME


def content_behind(
    octets: bytes, offset: int, end: int, channel: int, max_frame_size: int
) -> tuple[bytes, bytes, int] | None:
    """Header and body behind the frame of a command that ends at `offset`, and the offset behind them.

    None where they are not both there, or not one sound frame each: then frames are to be taken one by one.
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
    """A frame, in words."""
    kind = _NAMES[segment_type] if segment_type < len(_NAMES) else f"a segment of type {segment_type}"
    place = "the first" if flags & FIRST_FRAME else "a further"
    of = "of the first segment" if flags & FIRST_SEGMENT else "of a later segment"
    return f"{place} frame of {kind} ({of})"
