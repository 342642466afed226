"""The pcapng file format: blocks and the options that the trace needs.

Source: the IETF draft "PCAP Now Generic (pcapng) Capture File Format".
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

__all__ = ["interface", "packet", "section_header"]

_SECTION_HEADER = 0x0A0D0D0A
_INTERFACE = 1
_ENHANCED_PACKET = 6

_BYTE_ORDER = 0x1A2B3C4D
_LENGTH_UNKNOWN = -1
_ETHERNET = 1
_NO_LIMIT = 0
_NANOSECONDS = 9

_LATEST = 2**64 - 1
"""In nanoseconds since 1970: the year 2554. A virtual clock may be later."""
_COMMENT = 1
_USER_APPLICATION = 4
_INTERFACE_NAME = 2
_INTERFACE_DESCRIPTION = 3
_TIMESTAMP_RESOLUTION = 9
_LONGEST_OPTION = 4096
"""The most bytes of an option. The format allows 65535; readers do not need more."""


def section_header(application: str, comments: Iterable[str] = ()) -> bytes:
    """The first block of a file, with the name of the program that wrote it."""
    fields = struct.pack("<IHHq", _BYTE_ORDER, 1, 0, _LENGTH_UNKNOWN)
    options = [(_COMMENT, _text(comment)) for comment in comments]
    return _block(_SECTION_HEADER, fields + _options([*options, (_USER_APPLICATION, _text(application))]))


def interface(name: str, description: str) -> bytes:
    """The block of the interface of all packets: Ethernet, with times in nanoseconds."""
    options = [
        (_INTERFACE_NAME, _text(name)),
        (_INTERFACE_DESCRIPTION, _text(description)),
        (_TIMESTAMP_RESOLUTION, bytes([_NANOSECONDS])),
    ]
    return _block(_INTERFACE, struct.pack("<HHI", _ETHERNET, 0, _NO_LIMIT) + _options(options))


def packet(nanoseconds: int, octets: bytes, comments: Iterable[str] = ()) -> bytes:
    """The block of one packet. Its time is in nanoseconds since 1970."""
    nanoseconds = min(nanoseconds, _LATEST)
    fields = struct.pack("<IIIII", 0, nanoseconds >> 32, nanoseconds & 0xFFFFFFFF, len(octets), len(octets))
    options = _options([(_COMMENT, _text(comment)) for comment in comments])
    return _block(_ENHANCED_PACKET, fields + _padded(octets) + options)


def _block(kind: int, body: bytes) -> bytes:
    size = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + size + body + size


def _options(options: list[tuple[int, bytes]]) -> bytes:
    if not options:
        return b""
    written = [struct.pack("<HH", code, len(value)) + _padded(value) for code, value in options]
    return b"".join((*written, struct.pack("<HH", 0, 0)))


def _padded(octets: bytes) -> bytes:
    """Pad to a multiple of four bytes, as all fields of a block are."""
    return octets + bytes(-len(octets) % 4)


def _text(text: str) -> bytes:
    octets = text.encode("utf-8", "backslashreplace")
    if len(octets) <= _LONGEST_OPTION:
        return octets
    return octets[: _LONGEST_OPTION - 3].decode("utf-8", "ignore").encode() + b"..."
