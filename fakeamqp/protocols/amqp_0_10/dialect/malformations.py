"""Ways to send a command or control of 0-10 malformed. The bytes are sent exactly as made here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.dialects import Malformation
from fakeamqp.protocols.amqp_0_10.codec.frames import (
    BEGINNING,
    BODY,
    COMMAND,
    CONTROL,
    FRAME_HEADER,
    HEADER,
    HEADER_SIZE,
    LARGEST_FRAME,
)
from fakeamqp.protocols.amqp_0_10.dialect.frames import TYPE_MASK

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_10.dialect.groups import CommandGroup

_UNKNOWN = 250
_GARBAGE = b"\xa0\xa1\x00\x14" + bytes(range(0xB0, 0xC0))
"""Read as a frame it is small and of an unknown version and type, so no client waits for more."""


def _frame(group: CommandGroup, kind: int, payload: bytes, **header: int) -> bytes:
    """One frame; `header` has the wrong values of its header."""
    segment_type = kind & TYPE_MASK
    said = {
        "flags": kind >> 8 & 0xFF,
        "type": segment_type,
        "size": HEADER_SIZE + len(payload),
        "reserved": 0,
        "track": 0 if group.frames[0][0] & TYPE_MASK == CONTROL else 1,
        "channel": group.channel,
        "reserved_2": 0,
    }
    said.update(header)
    return FRAME_HEADER.pack(*said.values()) + payload


def _framed(group: CommandGroup, frames: list[tuple[int, bytes]], **header: int) -> bytes:
    """All frames; `header` has the wrong values of every header."""
    return b"".join(_frame(group, kind, payload, **header) for kind, payload in frames)


def _first(group: CommandGroup, payload: bytes, **header: int) -> bytes:
    """The first frame with another payload or header; the others are unchanged."""
    return _frame(group, group.frames[0][0], payload, **header) + _framed(group, group.frames[1:])


def _bad_flags(group: CommandGroup) -> bytes:
    kind, payload = group.frames[0]
    return _first(group, payload, flags=kind >> 8 & ~BEGINNING)


def _wrong_track(group: CommandGroup) -> bytes:
    return _framed(group, group.frames, track=1 if group.frames[0][0] & TYPE_MASK == CONTROL else 0)


def _wrong_channel(group: CommandGroup) -> bytes:
    return _framed(group, group.frames, channel=max((group.channel, *group.port.channels)) + 1)


def _oversize(group: CommandGroup) -> bytes:
    kind, payload = group.frames[-1]
    largest = min(group.port.largest_frame or LARGEST_FRAME, LARGEST_FRAME - 1)
    too_much = payload.ljust(largest - HEADER_SIZE + 1, b"\0")
    return _framed(group, [*group.frames[:-1], (kind, too_much)])


def _truncated(group: CommandGroup) -> bytes:
    """The last frame announces more bytes than it has: the next frames are read as part of it."""
    kind, payload = group.frames[-1]
    whole = _frame(group, kind, payload, size=min(LARGEST_FRAME, 2 * HEADER_SIZE + len(payload)))
    return _framed(group, group.frames[:-1]) + whole


def _unknown_packing(group: CommandGroup) -> bytes:
    """Sets the flag of the sixteenth field: no method has so many fields."""
    at = 5 if group.is_command else 3
    payload = group.frames[0][1]
    return _first(group, payload[:at] + bytes([payload[at] | 0x80]) + payload[at + 1 :])


def _session_header(group: CommandGroup) -> bytes:
    payload = group.frames[0][1]
    return _first(group, payload[:2] + b"\x09" + payload[3:] if group.is_command else payload + b"\x09")


def _with_header(group: CommandGroup, change: bytes, *, twice: bool = False) -> bytes:
    pieces = []
    changed = False
    for kind, payload in group.frames:
        if kind & TYPE_MASK == HEADER and not changed:
            changed = True
            payload = payload + payload if twice else change + payload[len(change) :]
        pieces.append((kind, payload))
    return _framed(group, pieces)


def _reordered(group: CommandGroup, *order: int) -> bytes:
    return b"".join(
        _framed(group, [each for each in group.frames if each[0] & TYPE_MASK == which]) for which in order
    )


MALFORMATIONS: dict[str, Malformation] = {
    "bad-flags": Malformation("the flags of its first frame say that it continues something", _bad_flags),
    "frame-version": Malformation(
        "its frames are of an unknown version",
        lambda group: _framed(group, group.frames, flags=0x40 | group.frames[0][0] >> 8),
    ),
    "reserved-bits": Malformation(
        "reserved bits of its frames are set",
        lambda group: _framed(group, group.frames, reserved=0xFF),
    ),
    "wrong-track": Malformation("on the wrong track", _wrong_track),
    "wrong-channel": Malformation("on a channel that has no session", _wrong_channel),
    "oversize": Malformation("its last frame is larger than was negotiated", _oversize),
    "undersize": Malformation(
        "its first frame announces a size smaller than its header",
        lambda group: _first(group, group.frames[0][1], size=HEADER_SIZE - 1),
    ),
    "truncated": Malformation("its last frame announces more bytes than it has", _truncated),
    "cut-arguments": Malformation(
        "it ends inside its fields",
        lambda group: _first(group, group.frames[0][1][: max(3, len(group.frames[0][1]) - 3)]),
    ),
    "trailing-bytes": Malformation(
        "with bytes behind its last field", lambda group: _first(group, group.frames[0][1] + b"\0\0\0")
    ),
    "unknown-type": Malformation(
        "its first segment is of an unknown type",
        lambda group: _first(group, group.frames[0][1], type=42),
    ),
    "unknown-class": Malformation(
        "of an unknown class",
        lambda group: _first(group, bytes([_UNKNOWN]) + group.frames[0][1][1:]),
    ),
    "unknown-method": Malformation(
        "of a code that its class does not have",
        lambda group: _first(group, group.frames[0][1][:1] + bytes([_UNKNOWN]) + group.frames[0][1][2:]),
    ),
    "unknown-packing": Malformation("with a flag for a field that it does not have", _unknown_packing),
    "session-header": Malformation("with a session header of a wrong size", _session_header),
    "struct-size": Malformation(
        "a struct of its header announces more bytes than there are",
        lambda group: _with_header(group, b"\0\xff\xff\xff"),
        content_only=True,
    ),
    "struct-twice": Malformation(
        "with each struct of its header twice",
        lambda group: _with_header(group, b"", twice=True),
        content_only=True,
    ),
    "header-first": Malformation(
        "its header comes before its command",
        lambda group: _reordered(group, HEADER, COMMAND, BODY),
        content_only=True,
    ),
    "body-before-header": Malformation(
        "its body comes before its header",
        lambda group: _reordered(group, COMMAND, BODY, HEADER),
        content_only=True,
    ),
    "header-without-method": Malformation(
        "its content without the command", lambda group: _reordered(group, HEADER, BODY), content_only=True
    ),
    "second-header": Malformation(
        "with two headers",
        lambda group: _reordered(group, COMMAND, HEADER, HEADER, BODY),
        content_only=True,
    ),
    "garbage": Malformation(
        "garbage bytes in its place",
        lambda group: _GARBAGE * max(1, len(group.data) // len(_GARBAGE)),
    ),
}
"""The malformations by name."""
