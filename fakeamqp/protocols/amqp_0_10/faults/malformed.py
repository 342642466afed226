"""Ways to break 0-10 in what the broker sends. Bytes go over the wire exactly as made here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.faults.adapter import Way
from fakeamqp.protocols.amqp_0_10.codec.frames import (
    FIRST_FRAME,
    FIRST_SEGMENT,
    FRAME_HEADER,
    HEADER_SIZE,
    LARGEST_FRAME,
)
from fakeamqp.protocols.amqp_0_10.codec.framing import TYPE_MASK

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_10.faults.units import CommandUnit

__all__ = ["MALFORMATIONS"]

_CONTROL, _COMMAND, _HEADER, _BODY = range(4)
_UNKNOWN = 250
_GARBAGE = b"\xa0\xa1\x00\x14" + bytes(range(0xB0, 0xC0))
"""Read as a frame, it is a small one of a version and a type that there are not: nobody waits for more."""


def _frame(unit: CommandUnit, kind: int, payload: bytes, **header: int) -> bytes:
    """One frame; `header` has what is wrong in its header."""
    segment_type = kind & TYPE_MASK
    said = {
        "flags": kind >> 8 & 0xFF,
        "type": segment_type,
        "size": HEADER_SIZE + len(payload),
        "reserved": 0,
        "track": 0 if unit.frames[0][0] & TYPE_MASK == _CONTROL else 1,
        "channel": unit.channel,
        "reserved_2": 0,
    }
    said.update(header)
    return FRAME_HEADER.pack(*said.values()) + payload


def _framed(unit: CommandUnit, frames: list[tuple[int, bytes]], **header: int) -> bytes:
    """All frames; `header` has what is wrong in each of their headers."""
    return b"".join(_frame(unit, kind, payload, **header) for kind, payload in frames)


def _first(unit: CommandUnit, payload: bytes, **header: int) -> bytes:
    """The first frame is changed, the others are as they were."""
    return _frame(unit, unit.frames[0][0], payload, **header) + _framed(unit, unit.frames[1:])


def _bad_flags(unit: CommandUnit) -> bytes:
    kind, payload = unit.frames[0]
    return _first(unit, payload, flags=kind >> 8 & ~(FIRST_SEGMENT | FIRST_FRAME))


def _wrong_track(unit: CommandUnit) -> bytes:
    return _framed(unit, unit.frames, track=1 if unit.frames[0][0] & TYPE_MASK == _CONTROL else 0)


def _wrong_channel(unit: CommandUnit) -> bytes:
    return _framed(unit, unit.frames, channel=max((unit.channel, *unit.line.channels)) + 1)


def _oversize(unit: CommandUnit) -> bytes:
    kind, payload = unit.frames[-1]
    largest = min(unit.line.largest_frame or LARGEST_FRAME, LARGEST_FRAME - 1)
    too_much = payload.ljust(largest - HEADER_SIZE + 1, b"\0")
    return _framed(unit, [*unit.frames[:-1], (kind, too_much)])


def _truncated(unit: CommandUnit) -> bytes:
    """The last frame announces more than it brings: what is sent next is read as part of it."""
    kind, payload = unit.frames[-1]
    whole = _frame(unit, kind, payload, size=min(LARGEST_FRAME, 2 * HEADER_SIZE + len(payload)))
    return _framed(unit, unit.frames[:-1]) + whole


def _unknown_packing(unit: CommandUnit) -> bytes:
    """The flag of the sixteenth field: nothing has so many."""
    at = 5 if unit.is_command else 3
    payload = unit.frames[0][1]
    return _first(unit, payload[:at] + bytes([payload[at] | 0x80]) + payload[at + 1 :])


def _session_header(unit: CommandUnit) -> bytes:
    payload = unit.frames[0][1]
    return _first(unit, payload[:2] + b"\x09" + payload[3:] if unit.is_command else payload + b"\x09")


def _with_header(unit: CommandUnit, change: bytes, *, twice: bool = False) -> bytes:
    pieces = []
    changed = False
    for kind, payload in unit.frames:
        if kind & TYPE_MASK == _HEADER and not changed:
            changed = True
            payload = payload + payload if twice else change + payload[len(change) :]
        pieces.append((kind, payload))
    return _framed(unit, pieces)


def _reordered(unit: CommandUnit, *order: int) -> bytes:
    return b"".join(
        _framed(unit, [each for each in unit.frames if each[0] & TYPE_MASK == which]) for which in order
    )


MALFORMATIONS: dict[str, Way] = {
    "bad-flags": Way("the flags of its first frame say that it goes on with something", _bad_flags),
    "frame-version": Way(
        "its frames are of a version that there is not",
        lambda unit: _framed(unit, unit.frames, flags=0x40 | unit.frames[0][0] >> 8),
    ),
    "reserved-bits": Way(
        "bits of its frames are set that have to be zero",
        lambda unit: _framed(unit, unit.frames, reserved=0xFF),
    ),
    "wrong-track": Way("on the track that it does not belong to", _wrong_track),
    "wrong-channel": Way("on a channel that has no session", _wrong_channel),
    "oversize": Way("its last frame is larger than was negotiated", _oversize),
    "undersize": Way(
        "its first frame is said to be smaller than its header",
        lambda unit: _first(unit, unit.frames[0][1], size=HEADER_SIZE - 1),
    ),
    "truncated": Way("its last frame announces more bytes than it has", _truncated),
    "cut-arguments": Way(
        "it ends in the midst of its fields",
        lambda unit: _first(unit, unit.frames[0][1][: max(3, len(unit.frames[0][1]) - 3)]),
    ),
    "trailing-octets": Way(
        "with bytes behind its last field", lambda unit: _first(unit, unit.frames[0][1] + b"\0\0\0")
    ),
    "unknown-type": Way(
        "its first segment is of a type that is not known",
        lambda unit: _first(unit, unit.frames[0][1], type=42),
    ),
    "unknown-class": Way(
        "of a class that there is not",
        lambda unit: _first(unit, bytes([_UNKNOWN]) + unit.frames[0][1][1:]),
    ),
    "unknown-method": Way(
        "of a code that its class does not have",
        lambda unit: _first(unit, unit.frames[0][1][:1] + bytes([_UNKNOWN]) + unit.frames[0][1][2:]),
    ),
    "unknown-packing": Way("with a flag for a field that it does not have", _unknown_packing),
    "session-header": Way("with a session header of a wrong size", _session_header),
    "struct-size": Way(
        "a struct of its header announces more bytes than there are",
        lambda unit: _with_header(unit, b"\0\xff\xff\xff"),
        content_only=True,
    ),
    "struct-twice": Way(
        "with each struct of its header twice",
        lambda unit: _with_header(unit, b"", twice=True),
        content_only=True,
    ),
    "header-first": Way(
        "its header comes before its command",
        lambda unit: _reordered(unit, _HEADER, _COMMAND, _BODY),
        content_only=True,
    ),
    "body-before-header": Way(
        "its body comes before its header",
        lambda unit: _reordered(unit, _COMMAND, _BODY, _HEADER),
        content_only=True,
    ),
    "header-without-method": Way(
        "its content without the command", lambda unit: _reordered(unit, _HEADER, _BODY), content_only=True
    ),
    "second-header": Way(
        "with two headers",
        lambda unit: _reordered(unit, _COMMAND, _HEADER, _HEADER, _BODY),
        content_only=True,
    ),
    "garbage": Way(
        "bytes without sense in its place",
        lambda unit: _GARBAGE * max(1, len(unit.octets) // len(_GARBAGE)),
    ),
}
"""By name: what it is in words, and how it is made."""
