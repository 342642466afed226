"""Finds the frames in a stream of bytes that a proxy passes on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Final

LARGEST_FRAME: Final = 16 * 1024 * 1024
"""Bytes of a frame that a proxy waits for. What claims to be larger passes without being looked at."""


class FrameCutter(ABC):
    """Finds the frames of a stream of bytes. From the first bytes that are no frame on, it finds none.

    `malformed` says what was wrong with these bytes; it is empty until then.
    """

    HEADER_SIZE: ClassVar[int]

    def __init__(self) -> None:
        self.malformed: str = ""
        self._parts: list[bytes] = []
        self._size = 0
        self._needed = 0

    @abstractmethod
    def _measure(self, data: bytes, position: int) -> tuple[int, str]:
        """The size of the frame that begins here, and what is wrong with it."""

    @abstractmethod
    def _read(self, octets: bytes) -> tuple[int, int, bytes]:
        """Kind, channel and payload of a frame."""

    def cut(self, data: bytes) -> Iterator[tuple[int, int, bytes, bytes]]:
        """Kind, channel, payload and bytes of each frame that is complete now; the rest of the data waits.

        Bytes that belong to no frame come as they are, with kind -1 and without a payload.
        """
        if self.malformed:
            yield -1, 0, b"", data
            return
        self._parts.append(data)
        self._size += len(data)
        if self._size < self._needed:
            return
        data = self.rest()
        position, end = 0, len(data)
        self._needed = self.HEADER_SIZE
        while end - position >= self.HEADER_SIZE:
            size, self.malformed = self._measure(data, position)
            if self.malformed:
                yield -1, 0, b"", data[position:]
                return
            if end - position < size:
                self._needed = size
                break
            octets = data[position : position + size]
            kind, channel, payload = self._read(octets)
            yield kind, channel, payload, octets
            position += size
        if position < end:
            self._parts, self._size = [data[position:] if position else data], end - position

    def rest(self) -> bytes:
        """Take the bytes of an incomplete frame, at the end of the stream."""
        rest = b"".join(self._parts)
        self._parts, self._size = [], 0
        return rest
