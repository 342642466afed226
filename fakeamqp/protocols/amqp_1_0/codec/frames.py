"""Frames and protocol headers of AMQP 1.0 (spec/amqp-1-0.toml, `frame`)."""

from __future__ import annotations

from struct import Struct
from typing import Final

AMQP: Final = 0
"""The type of frames with performatives."""
SASL: Final = 1
HEADER_SIZE: Final = 8
DATA_OFFSET: Final = 2
"""Words of four bytes before the body, without an extended header."""
MIN_MAX_FRAME_SIZE: Final = 512

PROTOCOL_HEADER: Final = b"AMQP\0\1\0\0"
SASL_HEADER: Final = b"AMQP\3\1\0\0"

HEADER_KIND: Final = 0x100
"""The kind of a protocol header, which stands among the frames; its payload is what follows `AMQP`."""
DATA_OFFSET_SHIFT: Final = 9
"""Where the kind of a frame has its data offset, if there is an extended header."""
BEGINS_HEADER: Final = int.from_bytes(b"AMQP", "big")
"""What stands in the place of a frame's size there."""

FRAME_HEADER: Final = Struct(">IBBH")
"""Size, data offset, type, channel."""
_pack = FRAME_HEADER.pack

EMPTY_FRAME: Final = _pack(HEADER_SIZE, DATA_OFFSET, AMQP, 0)
"""Keeps a connection alive."""


def frame(kind: int, channel: int, body: bytes) -> bytes:
    """A frame of a type with this body."""
    return _pack(HEADER_SIZE + len(body), DATA_OFFSET, kind, channel) + body


def frame_body(kind: int, payload: bytes) -> bytes:
    """What follows the extended header in what follows the header of a frame."""
    offset = kind >> DATA_OFFSET_SHIFT
    return payload[offset * 4 - HEADER_SIZE :] if offset else payload
