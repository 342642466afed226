"""Bytes written by hand, for tests that do not trust the codec."""

from __future__ import annotations

import struct
from typing import NamedTuple


class RawFrame(NamedTuple):
    """A frame, field by field."""

    type: int
    channel: int
    payload: bytes
    end: int

    @property
    def size(self) -> int:
        """All of it: header, payload and frame-end."""
        return len(self.payload) + 8


def cut(octets: bytes) -> list[RawFrame]:
    """The frames in `octets`; nothing may be left over."""
    frames = []
    while octets:
        frame_type, channel, size = struct.unpack_from(">BHI", octets)
        frames.append(RawFrame(frame_type, channel, octets[7 : 7 + size], octets[7 + size]))
        octets = octets[8 + size :]
    return frames


def short_string(text: str | bytes) -> bytes:
    octets = text.encode() if isinstance(text, str) else text
    return bytes((len(octets),)) + octets


def long_string(octets: bytes) -> bytes:
    return len(octets).to_bytes(4, "big") + octets


def table(*fields: bytes) -> bytes:
    """A table of fields made with `field`."""
    return long_string(b"".join(fields))


def field(name: str, value: bytes) -> bytes:
    """Name, and a value that starts with its tag."""
    return short_string(name) + value


def arguments(class_id: int, method_id: int, *parts: bytes) -> bytes:
    """The payload of a method frame."""
    return struct.pack(">HH", class_id, method_id) + b"".join(parts)


def queue_declare(name: str | bytes, bits: int = 0, fields: bytes = b"\0\0\0\0") -> bytes:
    """The payload of queue.declare; the table comes with its length."""
    return arguments(50, 10, b"\0\0", short_string(name), bytes((bits,)), fields)
