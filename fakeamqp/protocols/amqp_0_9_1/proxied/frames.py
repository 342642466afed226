"""Cuts one direction of a proxied connection into frames, without a change of a byte."""

from __future__ import annotations

from collections.abc import Iterator

from fakeamqp.protocols.amqp_0_9_1.codec.frames import (
    FRAME_BODY,
    FRAME_CONTENT_HEADER,
    FRAME_END,
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    FRAME_OVERHEAD,
)

_FRAME_TYPES = frozenset((FRAME_METHOD, FRAME_CONTENT_HEADER, FRAME_BODY, FRAME_HEARTBEAT))
LARGEST_FRAME = 16 * 1024 * 1024
"""Bytes of a frame that a proxy waits for. What claims to be larger passes without being looked at."""


class FrameCutter:
    """Finds the frames of a stream of bytes. From the first bytes that are no frame on, it finds none.

    `malformed` says what was wrong with these bytes; it is empty until then.
    """

    def __init__(self) -> None:
        self.malformed: str = ""
        self._parts: list[bytes] = []
        self._size = 0
        self._needed = 0

    def cut(self, data: bytes) -> Iterator[tuple[int, int, bytes, bytes]]:
        """Type, channel, payload and bytes of each frame that is complete now; the rest of the data waits.

        Bytes that belong to no frame come as they are, with type -1 and without a payload.
        """
        if self.malformed:
            yield -1, 0, b"", data
            return
        if self._parts:
            self._parts.append(data)
            self._size += len(data)
            if self._size < self._needed:
                return
            data = b"".join(self._parts)
            self._parts.clear()
        position, end = 0, len(data)
        while end - position >= FRAME_HEADER.size:
            frame_type, channel, size = FRAME_HEADER.unpack_from(data, position)
            stop = position + FRAME_OVERHEAD + size
            if frame_type not in _FRAME_TYPES or stop - position > LARGEST_FRAME:
                self.malformed = f"a frame of type {frame_type} with {size} bytes"
            elif stop <= end and data[stop - 1] != FRAME_END:
                self.malformed = f"a frame that ends with {data[stop - 1]:#04x}"
            elif stop > end:
                self._needed = stop - position
                break
            if self.malformed:
                yield -1, 0, b"", data[position:]
                return
            yield frame_type, channel, data[position + 7 : stop - 1], data[position:stop]
            position = stop
        else:
            self._needed = FRAME_HEADER.size
        if position < end:
            self._parts.append(data[position:] if position else data)
            self._size = end - position

    def rest(self) -> bytes:
        """Take the bytes of an incomplete frame, at the end of the stream."""
        rest = b"".join(self._parts)
        self._parts.clear()
        return rest
