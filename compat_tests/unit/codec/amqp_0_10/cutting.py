"""Frames cut and put together again, as a peer would."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_10.codec.frames import (
    FRAME_HEADER,
    HEADER_SIZE,
    Assembler,
    Assembly,
    check_header,
)

Frame = tuple[int, int, int, int, bytes]


def cut(octets: bytes) -> list[Frame]:
    """Flags, segment type, track, channel and payload of each frame."""
    found, offset = [], 0
    while offset < len(octets):
        flags, kind, size, reserved, track, channel, reserved_2 = FRAME_HEADER.unpack_from(octets, offset)
        check_header(flags, kind, size, reserved, track, reserved_2)
        payload = octets[offset + HEADER_SIZE : offset + size]
        assert len(payload) == size - HEADER_SIZE
        found.append((flags, kind, track, channel, payload))
        offset += size
    return found


def assemblies(octets: bytes) -> list[Assembly]:
    """The assemblies of one track."""
    assembler = Assembler()
    found = [assembler.add(flags, kind, payload) for flags, kind, _, _, payload in cut(octets)]
    assert assembler.received == 0
    return [assembly for assembly in found if assembly is not None]
