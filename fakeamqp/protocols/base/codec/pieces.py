"""The parts of a content that arrives in frames, joined as they come where they are small.

A frame can have a payload of two bytes, or of none. As objects of their own such payloads take 20 times their
size, and more.
"""

from __future__ import annotations

__all__ = ["SMALL", "add_piece"]

#: Pieces below this size, in bytes, are joined with the small one before them.
SMALL = 1024


def add_piece(pieces: list[bytes | bytearray], octets: bytes) -> None:
    """Add bytes behind the others. A single piece stays the object that it is, and is never copied."""
    if pieces and len(octets) < SMALL:
        last = pieces[-1]
        if isinstance(last, bytearray):
            last += octets
            return
        if len(last) < SMALL:
            pieces[-1] = bytearray(last + octets)
            return
    pieces.append(octets)
