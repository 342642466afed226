"""Cuts one direction of a proxied connection into frames, without a change of a byte."""

from __future__ import annotations

from typing import ClassVar

from fakeamqp.protocols.amqp_0_9_1.codec.frames import (
    FRAME_BODY,
    FRAME_CONTENT_HEADER,
    FRAME_END,
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    FRAME_OVERHEAD,
)
from fakeamqp.protocols.base.proxied.cutter import LARGEST_FRAME, FrameCutter

_FRAME_TYPES = frozenset((FRAME_METHOD, FRAME_CONTENT_HEADER, FRAME_BODY, FRAME_HEARTBEAT))


class Amqp091FrameCutter(FrameCutter):
    """See `FrameCutter`."""

    HEADER_SIZE: ClassVar[int] = FRAME_HEADER.size

    def _measure(self, data: bytes, position: int) -> tuple[int, str]:
        frame_type, _, size = FRAME_HEADER.unpack_from(data, position)
        whole = FRAME_OVERHEAD + size
        if frame_type not in _FRAME_TYPES or whole > LARGEST_FRAME:
            return whole, f"a frame of type {frame_type} with {size} bytes"
        end = data[position + whole - 1 : position + whole]
        return whole, f"a frame that ends with {end[0]:#04x}" if end and end[0] != FRAME_END else ""

    def _read(self, octets: bytes) -> tuple[int, int, bytes]:
        frame_type, channel, _ = FRAME_HEADER.unpack_from(octets)
        return frame_type, channel, octets[FRAME_HEADER.size : -1]
