"""Frames of 0-10 for traces and faults; see `fakeamqp.adapters.Framing`."""

from __future__ import annotations

import struct

from fakeamqp.adapters import Part
from fakeamqp.protocols.base.codec.errors import FieldError

__all__ = ["FRAMING", "HEADER", "OFF_TRACK", "TYPE_MASK", "is_heartbeat"]

HEADER = struct.Struct(">BBHBBHI")
"""Flags, segment type, size of the whole frame, reserved, track, channel, reserved."""
TYPE_MASK = 0xFF
"""Masks the segment's type in a kind; the flags are above it."""
OFF_TRACK = 0x10000
"""Set in the kind of a frame that is on the wrong track."""

_CONTROL = 0
_PARTS: dict[int, Part] = {0: "method", 1: "method", 2: "header", 3: "body"}
_FLAGS = 0xFF
_HEARTBEAT = b"\x01\x0a"


class _Framing:
    """A header of 12 bytes, which has the size of the whole frame, and the payload.

    The track is 0 for controls and 1 for everything else, unless the kind has `OFF_TRACK`.
    """

    protocol_header = b"AMQP\1\1\0\x0a"
    answer = protocol_header
    heartbeat = b"\x0f\0\0\x10\0\0\0\0\0\0\0\0" + _HEARTBEAT + b"\0\0"
    overhead: int = HEADER.size
    header_size: int = HEADER.size

    def length(self, header: bytes) -> int:
        return max(HEADER.size, int.from_bytes(header[2:4], "big"))

    def may_begin(self, octet: int) -> bool:
        """The first byte has the version, 0, and the flags."""
        return octet <= 0x0F

    def cut(self, octets: bytes) -> list[tuple[int, int, bytes, int]]:
        """An incomplete header counts as one on channel 0."""
        found = []
        position, end = 0, len(octets)
        while end - position >= HEADER.size:
            flags, segment_type, size, _, track, channel, _ = HEADER.unpack_from(octets, position)
            size = max(HEADER.size, size)
            payload = octets[position + HEADER.size : position + size]
            kind = flags << 8 | segment_type
            if track != (segment_type != _CONTROL):
                kind |= OFF_TRACK
            found.append((kind, channel, payload, size - HEADER.size))
            position += size
        if position < end:
            kind = int.from_bytes(octets[position : position + 2].ljust(2, b"\0"), "big")
            found.append((kind, 0, octets[position + 2 :], HEADER.size))
        return found

    def frame(self, kind: int, channel: int, payload: bytes) -> bytes:
        """The kind is flags and type."""
        segment_type = kind & TYPE_MASK
        track = (segment_type != _CONTROL) ^ bool(kind & OFF_TRACK)
        size = HEADER.size + len(payload)
        try:
            header = HEADER.pack(kind >> 8 & _FLAGS, segment_type, size, 0, track, channel, 0)
        except struct.error:
            raise FieldError(
                f"no frame of kind {kind!r} and {size} bytes on channel {channel!r}: number out of range"
            ) from None
        return header + payload

    def part(self, kind: int, payload: bytes) -> Part:
        """What the segment's type says; heartbeats are controls of their own kind."""
        part = _PARTS.get(kind & TYPE_MASK, "")
        return "heartbeat" if part == "method" and is_heartbeat(kind, payload) else part


def is_heartbeat(kind: int, payload: bytes) -> bool:
    """True for a frame with the control connection.heartbeat."""
    return payload[:2] == _HEARTBEAT and kind & TYPE_MASK == _CONTROL


FRAMING = _Framing()
