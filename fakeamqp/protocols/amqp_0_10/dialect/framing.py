"""Frames of 0-10. The kind of a frame is its flags and the type of its segment."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from fakeamqp.dialects import Dialect
from fakeamqp.protocols.amqp_0_10.codec.frames import FIRST_FRAME, FIRST_SEGMENT, FRAME_HEADER, HEADER_SIZE
from fakeamqp.protocols.base.codec import FieldError

if TYPE_CHECKING:
    from fakeamqp.dialects import Part

__all__ = [
    "BODY",
    "COMMAND",
    "CONTROL",
    "HEADER",
    "OFF_TRACK",
    "TYPE_MASK",
    "Framing010",
    "is_heartbeat",
    "starts",
]

TYPE_MASK = 0xFF
"""Masks the segment's type in a kind; the flags are above it."""
OFF_TRACK = 0x10000
"""Set in the kind of a frame that is on the wrong track."""
CONTROL, COMMAND, HEADER, BODY = range(4)
"""The types of segments."""

_PARTS: dict[int, Part] = {CONTROL: "method", COMMAND: "method", HEADER: "header", BODY: "body"}
_FLAGS = 0xFF
_BEGINNING = FIRST_SEGMENT | FIRST_FRAME
_HEARTBEAT = b"\x01\x0a"


def is_heartbeat(kind: int, payload: bytes) -> bool:
    """True for a frame with the control connection.heartbeat."""
    return payload[:2] == _HEARTBEAT and kind & TYPE_MASK == CONTROL


def starts(kind: int) -> bool:
    """True if an assembly begins with a frame of that kind."""
    return kind >> 8 & _BEGINNING == _BEGINNING


class Framing010(Dialect):
    """A header of 12 bytes, which has the size of the whole frame, and the payload.

    The track is 0 for controls and 1 for everything else, unless the kind has `OFF_TRACK`.
    """

    protocol_header = b"AMQP\1\1\0\x0a"
    answer = protocol_header
    heartbeat = b"\x0f\0\0\x10\0\0\0\0\0\0\0\0" + _HEARTBEAT + b"\0\0"
    heartbeat_prefix = _HEARTBEAT
    overhead: int = HEADER_SIZE
    header_size: int = HEADER_SIZE

    def length(self, header: bytes) -> int:
        return max(HEADER_SIZE, int.from_bytes(header[2:4], "big"))

    def may_begin(self, octet: int) -> bool:
        """The first byte has the version, 0, and the flags."""
        return octet <= 0x0F

    def cut(self, octets: bytes) -> list[tuple[int, int, bytes, int]]:
        """An incomplete header counts as one on channel 0."""
        found = []
        position, end = 0, len(octets)
        while end - position >= HEADER_SIZE:
            flags, segment_type, size, _, track, channel, _ = FRAME_HEADER.unpack_from(octets, position)
            size = max(HEADER_SIZE, size)
            payload = octets[position + HEADER_SIZE : position + size]
            kind = flags << 8 | segment_type
            if track != (segment_type != CONTROL):
                kind |= OFF_TRACK
            found.append((kind, channel, payload, size - HEADER_SIZE))
            position += size
        if position < end:
            kind = int.from_bytes(octets[position : position + 2].ljust(2, b"\0"), "big")
            found.append((kind, 0, octets[position + 2 :], HEADER_SIZE))
        return found

    def frame(self, kind: int, channel: int, payload: bytes) -> bytes:
        segment_type = kind & TYPE_MASK
        track = (segment_type != CONTROL) ^ bool(kind & OFF_TRACK)
        size = HEADER_SIZE + len(payload)
        try:
            header = FRAME_HEADER.pack(kind >> 8 & _FLAGS, segment_type, size, 0, track, channel, 0)
        except struct.error:
            raise FieldError(
                f"no frame of kind {kind!r} and {size} bytes on channel {channel!r}: number out of range"
            ) from None
        return header + payload

    def part(self, kind: int, payload: bytes) -> Part:
        """What the segment's type says; heartbeats are controls of their own kind."""
        part = _PARTS.get(kind & TYPE_MASK, "")
        return "heartbeat" if part == "method" and is_heartbeat(kind, payload) else part

    def starts(self, kind: int) -> bool:
        return starts(kind)

    def stands_alone(self, kind: int) -> bool:
        """Controls: they have a track of their own."""
        return kind & TYPE_MASK == CONTROL
