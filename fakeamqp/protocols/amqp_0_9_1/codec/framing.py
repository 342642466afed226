"""Frames of 0-9-1, and of 0-9, as traces and faults see them; see `fakeamqp.adapters.Framing`."""

from __future__ import annotations

from collections.abc import Mapping

from fakeamqp.adapters import Part
from fakeamqp.protocols.amqp_0_9_1.codec.constants import PROTOCOL_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.frames import (
    FRAME_BODY,
    FRAME_CONTENT_HEADER,
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    FRAME_OVERHEAD,
    HEARTBEAT_FRAME,
    frame,
)

__all__ = ["FRAMING", "PARTS", "Framing091"]

#: frame type -> what the frame holds, for the types of 0-9-1
PARTS: dict[int, Part] = {
    FRAME_METHOD: "method",
    FRAME_CONTENT_HEADER: "header",
    FRAME_BODY: "body",
    FRAME_HEARTBEAT: "heartbeat",
}


class Framing091:
    """A frame is type, channel, size, payload and the frame-end byte.

    Args:
        protocol_header: the first bytes that a client of the protocol sends.
        parts: frame type -> what the frame holds.
    """

    answer = b""
    heartbeat = HEARTBEAT_FRAME
    overhead = FRAME_OVERHEAD
    header_size: int = FRAME_HEADER.size

    def __init__(self, protocol_header: bytes, parts: Mapping[int, Part] = PARTS) -> None:
        self.protocol_header = protocol_header
        self._parts = parts

    def length(self, header: bytes) -> int:
        size: int = FRAME_HEADER.unpack(header)[2]
        return FRAME_OVERHEAD + size

    def may_begin(self, octet: int) -> bool:
        """The first byte is the type."""
        return octet in self._parts

    def cut(self, octets: bytes) -> list[tuple[int, int, bytes, int]]:
        """Fewer bytes than a frame header count as the beginning of a frame on channel 0."""
        found = []
        position, end = 0, len(octets)
        while end - position >= FRAME_HEADER.size:
            kind, channel, size = FRAME_HEADER.unpack_from(octets, position)
            start = position + FRAME_HEADER.size
            found.append((kind, channel, octets[start : start + size], size))
            position += size + FRAME_OVERHEAD
        if position < end:
            found.append((octets[position], 0, octets[position + 1 :], FRAME_HEADER.size))
        return found

    def frame(self, kind: int, channel: int, payload: bytes) -> bytes:
        """The kind is the type."""
        return frame(kind, channel, payload)

    def part(self, kind: int, payload: bytes) -> Part:
        """The type decides."""
        return self._parts.get(kind, "")


FRAMING = Framing091(PROTOCOL_HEADER)
