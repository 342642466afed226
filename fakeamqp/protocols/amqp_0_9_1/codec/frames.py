"""Frames: type byte, channel, payload size, payload, frame-end byte (0-9-1/frame/layout).

This module only writes frames. The connection reads them from its own buffer.
"""

from __future__ import annotations

import struct

from fakeamqp.protocols.base.codec import FieldError

FRAME_METHOD = 1
FRAME_CONTENT_HEADER = 2
FRAME_BODY = 3
FRAME_HEARTBEAT = 8
FRAME_END = 206

#: What precedes every payload: type, channel, payload size.
FRAME_HEADER = struct.Struct(">BHI")
#: What precedes the property flags in a content header's payload: class id, weight, body size.
CONTENT_HEADER = struct.Struct(">HHQ")
#: Bytes of a frame that are not payload: a frame-max of n allows a payload of n - 8 bytes.
FRAME_OVERHEAD = 8

HEARTBEAT_FRAME = b"\x08\x00\x00\x00\x00\x00\x00\xce"

#: The largest body, in bytes, of which every frame is a copy; the frames of a larger one refer to it.
SHARED_BODY = 32 * 1024

_END = b"\xce"
_pack_header = FRAME_HEADER.pack
_pack_content_header = struct.Struct(">BHIHHQ").pack


def frame(frame_type: int, channel: int, payload: bytes | memoryview) -> bytes:
    """One frame around `payload`. Raises FieldError when type, channel or size do not fit their fields."""
    try:
        return b"".join((_pack_header(frame_type, channel, len(payload)), payload, _END))
    except struct.error:
        raise FieldError(
            f"no frame of type {frame_type!r} on channel {channel!r}: number out of range"
        ) from None


def method_frame(channel: int, payload: bytes) -> bytes:
    """The method frame around an encoded method. Raises FieldError for an impossible channel number."""
    try:
        return b"".join((_pack_header(FRAME_METHOD, channel, len(payload)), payload, _END))
    except struct.error:
        raise FieldError(f"no method frame on channel {channel!r}: number out of range") from None


def header_frame(channel: int, class_id: int, body_size: int, properties: bytes) -> bytes:
    """The content header frame for a body of `body_size` bytes; `properties` are flags and values, encoded.

    Weight is 0 (0-9-1/content/weight-zero). Raises FieldError for a number that does not fit its field.
    """
    try:
        prefix = _pack_content_header(
            FRAME_CONTENT_HEADER, channel, 12 + len(properties), class_id, 0, body_size
        )
    except struct.error:
        raise FieldError(
            f"no content header of class {class_id!r} and {body_size!r} bytes on channel {channel!r}: "
            "number out of range"
        ) from None
    return b"".join((prefix, properties, _END))


def split_body(body: bytes, channel: int, limit: int) -> list[bytes]:
    """The body frames of `body`, each with at most `limit` payload bytes; none when it is empty.

    Every byte is copied once, into its frame. Raises FieldError for an impossible channel or a limit
    below 1. Source: 0-9-1/content/body-split-on-send, 0-9-1/content/zero-body.
    """
    size = len(body)
    if limit < 1:
        raise FieldError(f"no body frame has room for {limit} bytes; the smallest limit is 1")
    if size <= limit:
        return [frame(FRAME_BODY, channel, body)] if size else []
    view = memoryview(body)
    return [frame(FRAME_BODY, channel, view[start : start + limit]) for start in range(0, size, limit)]


def body_pieces(body: bytes, channel: int, limit: int) -> list[bytes | memoryview]:
    """The body frames of `body` in pieces: what is between the payloads as bytes, the payloads as views.

    Arguments and errors are those of `split_body`. A small body is one piece, since a copy costs less.
    """
    size = len(body)
    if size <= SHARED_BODY or limit < 1:
        return [*split_body(body, channel, limit)]
    view = memoryview(body)
    pieces: list[bytes | memoryview] = []
    before = b""
    try:
        for start in range(0, size, limit):
            payload = view[start : start + limit]
            pieces += (before + _pack_header(FRAME_BODY, channel, len(payload)), payload)
            before = _END
    except struct.error:
        raise FieldError(f"no body frame on channel {channel!r}: number out of range") from None
    pieces.append(_END)
    return pieces


def content_pieces(
    channel: int, class_id: int, properties: bytes, body: bytes, limit: int
) -> list[bytes | memoryview]:
    """As `content_frames`, but with the body in pieces, see `body_pieces`."""
    return [header_frame(channel, class_id, len(body), properties), *body_pieces(body, channel, limit)]


def content_frames(channel: int, class_id: int, properties: bytes, body: bytes, limit: int) -> list[bytes]:
    """Header and body frames of one content; `limit` bounds the payload of a body frame."""
    return [header_frame(channel, class_id, len(body), properties), *split_body(body, channel, limit)]
