"""Ways to send a method of 0-9-x malformed. The bytes are sent exactly as made here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakeamqp.dialects import Malformation
from fakeamqp.protocols.amqp_0_9_1.codec.frames import (
    CONTENT_HEADER,
    FRAME_BODY,
    FRAME_CONTENT_HEADER,
    FRAME_HEADER,
    FRAME_OVERHEAD,
    frame,
)

if TYPE_CHECKING:
    from fakeamqp.faults.frame_group import FrameGroup

_UNKNOWN = 4242
_GARBAGE = b"\xa0\xa1\xa2\0\0\0\x08" + bytes(range(0xB0, 0xB9))
"""Read as a frame it is small and of an unknown type, so no client waits for the rest of it."""
_DEFAULT_LARGEST = 131_072


def _framed(group: FrameGroup, pieces: list[tuple[int, bytes]]) -> bytes:
    return b"".join(frame(kind, group.channel, payload) for kind, payload in pieces)


def _bad_frame_end(group: FrameGroup) -> bytes:
    return group.data[:-1] + b"\x00"


def _wrong_channel(group: FrameGroup) -> bytes:
    elsewhere = max((group.channel, *group.port.channels)) + 1
    return b"".join(frame(kind, elsewhere, payload) for kind, payload in group.frames)


def _oversize(group: FrameGroup) -> bytes:
    largest = group.port.largest_frame or _DEFAULT_LARGEST
    kind, payload = group.frames[-1]
    too_much = payload.ljust(largest - FRAME_OVERHEAD + 1, b"\0")
    pieces = [*group.frames[:-1], (kind, too_much)]
    if kind == FRAME_BODY:
        header = group.frames[1][1]
        class_id, weight, _ = CONTENT_HEADER.unpack_from(header)
        pieces[1] = (
            FRAME_CONTENT_HEADER,
            CONTENT_HEADER.pack(class_id, weight, len(too_much)) + header[CONTENT_HEADER.size :],
        )
    return _framed(group, pieces)


def _truncated(group: FrameGroup) -> bytes:
    """The last frame announces more bytes than it has: the next frames are read as part of it."""
    kind, payload = group.frames[-1]
    whole = FRAME_HEADER.pack(kind, group.channel, len(payload) + FRAME_OVERHEAD) + payload + b"\xce"
    return _framed(group, group.frames[:-1]) + whole


def _cut_arguments(group: Any) -> bytes:
    """A whole frame whose method ends inside its arguments."""
    payload = group.payload
    return _framed(group, [group.first_frame(payload[: max(5, len(payload) - 3)]), *group.frames[1:]])


def _with_ids(group: Any, class_id: int | None, method_id: int | None) -> bytes:
    payload = group.payload
    ids = payload[:2] if class_id is None else class_id.to_bytes(2, "big")
    ids += payload[2:4] if method_id is None else method_id.to_bytes(2, "big")
    return _framed(group, [group.first_frame(ids + payload[4:]), *group.frames[1:]])


def _pieces(group: FrameGroup) -> list[tuple[int, bytes]]:
    """Method, header and bodies. A method with the message inside gets a header that it cannot have."""
    if group.has_content:
        return group.frames
    return [group.frames[0], (FRAME_CONTENT_HEADER, CONTENT_HEADER.pack(group.index >> 16, 0, 0) + bytes(2))]


def _longer_body(group: FrameGroup) -> bytes:
    return _framed(group, [*_pieces(group), (FRAME_BODY, b"more than was announced")])


def _shorter_body(group: FrameGroup) -> bytes:
    """The next frame on the channel comes in place of the rest of the body."""
    method, (_, header), *rest = _pieces(group)
    class_id, weight, size = CONTENT_HEADER.unpack_from(header)
    longer = CONTENT_HEADER.pack(class_id, weight, size + 1) + header[CONTENT_HEADER.size :]
    return _framed(group, [method, (FRAME_CONTENT_HEADER, longer), *rest, method])


def _header_first(group: FrameGroup) -> bytes:
    method, header, *rest = _pieces(group)
    return _framed(group, [header, method, *rest])


def _body_before_header(group: FrameGroup) -> bytes:
    method, header, *rest = _pieces(group)
    return _framed(group, [method, *(rest or [(FRAME_BODY, b"?")]), header])


MALFORMATIONS: dict[str, Malformation] = {
    "bad-frame-end": Malformation("the last byte of its last frame is not the frame end", _bad_frame_end),
    "wrong-channel": Malformation("on a channel that is not open", _wrong_channel),
    "oversize": Malformation("its last frame is larger than was negotiated", _oversize),
    "truncated": Malformation("its last frame announces more bytes than it has", _truncated),
    "cut-arguments": Malformation("its method ends inside its arguments", _cut_arguments),
    "unknown-type": Malformation(
        "its first frame is of an unknown type",
        lambda group: _framed(group, [(42, group.frames[0][1]), *group.frames[1:]]),
    ),
    "unknown-class": Malformation("of an unknown class", lambda group: _with_ids(group, _UNKNOWN, None)),
    "unknown-method": Malformation("of an unknown method", lambda group: _with_ids(group, None, _UNKNOWN)),
    "longer-body": Malformation("with more body than its header announces", _longer_body, content_only=True),
    "shorter-body": Malformation(
        "with less body than its header announces", _shorter_body, content_only=True
    ),
    "header-first": Malformation("its header comes before its method", _header_first, content_only=True),
    "body-before-header": Malformation(
        "its body comes before its header", _body_before_header, content_only=True
    ),
    "header-without-method": Malformation(
        "its content without the method", lambda group: _framed(group, _pieces(group)[1:]), content_only=True
    ),
    "second-header": Malformation(
        "with two headers",
        lambda group: _framed(group, [*_pieces(group)[:2], *_pieces(group)[1:]]),
        content_only=True,
    ),
    "garbage": Malformation(
        "garbage bytes in its place",
        lambda group: _GARBAGE * max(1, len(group.data) // len(_GARBAGE)),
    ),
}
"""The malformations by name."""
