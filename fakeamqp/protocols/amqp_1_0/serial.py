"""Serial numbers of 32 bits, which wrap around (RFC 1982): transfer ids and delivery counts."""

from __future__ import annotations

from typing import Final

from fakeamqp.protocols.amqp_1_0.replies import SessionCrash

MASK: Final = 0xFFFFFFFF
_HALF: Final = 0x80000000


def wrapped(number: int) -> int:
    """A difference of serial numbers, between minus half and half of all numbers."""
    return ((number + _HALF) & MASK) - _HALF


def difference(one: int, other: int) -> int:
    """How far a serial number of 32 bits is ahead of another; negative if it is behind (RFC 1982).

    EndFault if it is as far ahead as it is behind, at which RabbitMQ crashes (measured on 4.3.6).
    """
    found = wrapped(one - other)
    if found == -_HALF:
        raise SessionCrash(f"undefined difference of serial numbers {one} and {other}")
    return found


def beyond(seen: int, count: int, here: int) -> int:
    """How many of the `count` serial numbers from `seen` on come after `here`. EndFault for too many."""
    if count >= _HALF:
        raise SessionCrash(f"undefined addition of {count} to a serial number")
    return difference((seen + count) & MASK, here)
