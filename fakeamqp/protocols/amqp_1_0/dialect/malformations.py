"""Ways to send a frame of 1.0 malformed. The bytes are sent exactly as made here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.dialects import Malformation
from fakeamqp.protocols.amqp_1_0.codec.frames import DATA_OFFSET, FRAME_HEADER, HEADER_SIZE
from fakeamqp.protocols.amqp_1_0.dialect.frames import frame_type

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_1_0.dialect.groups import FrameOf10

_GARBAGE = b"\0\0\0\x14\x02\x2a\0\0" + bytes(range(0xB0, 0xBC))
"""Read as a frame it is small and of an unknown type, so no client waits for more."""


def _frame(group: FrameOf10, payload: bytes | None = None, **header: int) -> bytes:
    kind, octets = group.frames[0]
    octets = octets if payload is None else payload
    said = {
        "size": HEADER_SIZE + len(octets),
        "offset": DATA_OFFSET,
        "type": frame_type(kind) & 0xFF,
        "channel": group.channel,
    }
    said.update(header)
    return FRAME_HEADER.pack(*said.values()) + octets


def _oversize(group: FrameOf10) -> bytes:
    largest = min(group.port.largest_frame or 0xFFFF, 1 << 24)
    return _frame(group, group.frames[0][1].ljust(largest - HEADER_SIZE + 1, b"\0"))


MALFORMATIONS: dict[str, Malformation] = {
    "undersize": Malformation(
        "it announces a size smaller than its header", lambda group: _frame(group, size=HEADER_SIZE - 1)
    ),
    "truncated": Malformation(
        "it announces more bytes than it has",
        lambda group: _frame(group, size=2 * HEADER_SIZE + len(group.frames[0][1])),
    ),
    "oversize": Malformation("it is larger than was negotiated", _oversize),
    "data-offset": Malformation(
        "its body begins inside of its header", lambda group: _frame(group, offset=1)
    ),
    "unknown-type": Malformation("it is of an unknown type", lambda group: _frame(group, type=42)),
    "wrong-channel": Malformation(
        "on a channel that has no session",
        lambda group: _frame(group, channel=max((group.channel, *group.port.channels)) + 1),
    ),
    "unknown-method": Malformation(
        "of a code that no performative has",
        lambda group: _frame(group, b"\0\x53\xfa" + group.frames[0][1][3:]),
    ),
    "no-descriptor": Malformation(
        "its body is not described", lambda group: _frame(group, group.frames[0][1][3:])
    ),
    "cut-arguments": Malformation(
        "it ends inside its fields",
        lambda group: _frame(group, group.frames[0][1][: max(4, len(group.frames[0][1]) - 3)]),
    ),
    "list-count": Malformation(
        "its list announces more fields than it has",
        lambda group: _frame(group, group.frames[0][1][:3] + b"\xc0\x03\x7f\x40\x40"),
    ),
    "unknown-code": Malformation(
        "a field is of an unknown type",
        lambda group: _frame(group, group.frames[0][1][:3] + b"\xc0\x03\x02\x3f\x3f"),
    ),
    "garbage": Malformation("garbage bytes in its place", lambda group: _GARBAGE),
}
"""The malformations by name."""
