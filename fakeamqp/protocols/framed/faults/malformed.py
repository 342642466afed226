"""Ways to break the family's protocol in what the broker sends. Bytes go over the wire just as made here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakeamqp.faults.adapter import Way
from fakeamqp.protocols.framed.codec.frames import (
    CONTENT_HEADER,
    FRAME_BODY,
    FRAME_CONTENT_HEADER,
    FRAME_HEADER,
    FRAME_OVERHEAD,
    frame,
)

if TYPE_CHECKING:
    from fakeamqp.faults.units import Unit

__all__ = ["MALFORMATIONS"]

_UNKNOWN = 4242
_GARBAGE = b"\xa0\xa1\xa2\0\0\0\x08" + bytes(range(0xB0, 0xB9))
"""Read as a frame, it is a small one of a type that is not known: nobody waits for the rest of it."""
_DEFAULT_LARGEST = 131_072


def _framed(unit: Unit, pieces: list[tuple[int, bytes]]) -> bytes:
    return b"".join(frame(kind, unit.channel, payload) for kind, payload in pieces)


def _bad_frame_end(unit: Unit) -> bytes:
    return unit.octets[:-1] + b"\x00"


def _wrong_channel(unit: Unit) -> bytes:
    elsewhere = max((unit.channel, *unit.line.channels)) + 1
    return b"".join(frame(kind, elsewhere, payload) for kind, payload in unit.frames)


def _oversize(unit: Unit) -> bytes:
    largest = unit.line.largest_frame or _DEFAULT_LARGEST
    kind, payload = unit.frames[-1]
    too_much = payload.ljust(largest - FRAME_OVERHEAD + 1, b"\0")
    pieces = [*unit.frames[:-1], (kind, too_much)]
    if kind == FRAME_BODY:
        header = unit.frames[1][1]
        class_id, weight, _ = CONTENT_HEADER.unpack_from(header)
        pieces[1] = (
            FRAME_CONTENT_HEADER,
            CONTENT_HEADER.pack(class_id, weight, len(too_much)) + header[CONTENT_HEADER.size :],
        )
    return _framed(unit, pieces)


def _truncated(unit: Unit) -> bytes:
    """The last frame announces more than it brings: what is sent next is read as part of it."""
    kind, payload = unit.frames[-1]
    whole = FRAME_HEADER.pack(kind, unit.channel, len(payload) + FRAME_OVERHEAD) + payload + b"\xce"
    return _framed(unit, unit.frames[:-1]) + whole


def _cut_arguments(unit: Any) -> bytes:
    """A whole frame whose method ends in the midst of its arguments."""
    payload = unit.payload
    return _framed(unit, [unit.first_frame(payload[: max(5, len(payload) - 3)]), *unit.frames[1:]])


def _with_ids(unit: Any, class_id: int | None, method_id: int | None) -> bytes:
    payload = unit.payload
    ids = payload[:2] if class_id is None else class_id.to_bytes(2, "big")
    ids += payload[2:4] if method_id is None else method_id.to_bytes(2, "big")
    return _framed(unit, [unit.first_frame(ids + payload[4:]), *unit.frames[1:]])


def _pieces(unit: Unit) -> list[tuple[int, bytes]]:
    """Method, header and bodies. Who has the message in the method is given a header that does not belong."""
    if unit.has_content:
        return unit.frames
    return [unit.frames[0], (FRAME_CONTENT_HEADER, CONTENT_HEADER.pack(unit.index >> 16, 0, 0) + bytes(2))]


def _resized(unit: Unit, more: int) -> list[tuple[int, bytes]]:
    method, (_, header), *rest = _pieces(unit)
    class_id, weight, size = CONTENT_HEADER.unpack_from(header)
    payload = CONTENT_HEADER.pack(class_id, weight, max(0, size + more)) + header[CONTENT_HEADER.size :]
    return [method, (FRAME_CONTENT_HEADER, payload), *rest]


def _longer_body(unit: Unit) -> bytes:
    return _framed(unit, [*_pieces(unit), (FRAME_BODY, b"more than was announced")])


def _shorter_body(unit: Unit) -> bytes:
    # Whatever is sent next on the channel comes where the rest of the body ought to.
    return _framed(unit, [*_resized(unit, 1), unit.frames[0]])


def _reordered(unit: Unit, order: tuple[int, ...]) -> bytes:
    pieces = _pieces(unit)
    frames = [pieces[each] for each in order if each < len(pieces)]
    return _framed(unit, [*frames, *pieces[max(order) + 1 :]])


def _body_before_header(unit: Unit) -> bytes:
    method, header, *rest = _pieces(unit)
    return _framed(unit, [method, *(rest or [(FRAME_BODY, b"?")]), header])


MALFORMATIONS: dict[str, Way] = {
    "bad-frame-end": Way("the last byte of its last frame is not the frame end", _bad_frame_end),
    "wrong-channel": Way("on a channel that is not open", _wrong_channel),
    "oversize": Way("its last frame is larger than was negotiated", _oversize),
    "truncated": Way("its last frame announces more bytes than it has", _truncated),
    "cut-arguments": Way("its method ends in the midst of its arguments", _cut_arguments),
    "unknown-type": Way(
        "its first frame is of a type that is not known",
        lambda unit: _framed(unit, [(42, unit.frames[0][1]), *unit.frames[1:]]),
    ),
    "unknown-class": Way("of a class that there is not", lambda unit: _with_ids(unit, _UNKNOWN, None)),
    "unknown-method": Way("of a method that there is not", lambda unit: _with_ids(unit, None, _UNKNOWN)),
    "longer-body": Way("with more body than its header announces", _longer_body, content_only=True),
    "shorter-body": Way("with less body than its header announces", _shorter_body, content_only=True),
    "header-first": Way(
        "its header comes before its method", lambda unit: _reordered(unit, (1, 0)), content_only=True
    ),
    "body-before-header": Way("its body comes before its header", _body_before_header, content_only=True),
    "header-without-method": Way(
        "its content without the method", lambda unit: _framed(unit, _pieces(unit)[1:]), content_only=True
    ),
    "second-header": Way(
        "with two headers",
        lambda unit: _framed(unit, [*_pieces(unit)[:2], *_pieces(unit)[1:]]),
        content_only=True,
    ),
    "garbage": Way(
        "bytes without sense in its place",
        lambda unit: _GARBAGE * max(1, len(unit.octets) // len(_GARBAGE)),
    ),
}
"""By name: what it is in words, and how it is made."""
