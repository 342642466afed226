"""The body of a message.transfer: its bytes, or the name of the reference that gathers them.

One byte says which, a long string follows (0-9/domain.content/union).
"""

from __future__ import annotations

from typing import NamedTuple

from fakeamqp.protocols.codec.errors import FieldError

__all__ = ["NO_BODY", "Body", "decode_body", "encode_body"]

_INLINE = 0
_REFERENCE = 1


class Body(NamedTuple):
    """What a transfer carries: `octets` are the body itself, or name a reference."""

    octets: bytes = b""
    by_reference: bool = False


NO_BODY = Body()


def decode_body(payload: bytes, offset: int) -> tuple[Body, int]:
    """The body at `offset`, and where it ends.

    Raises:
        IndexError: the payload ends before.
        FieldError: the first byte is neither of the two.
    """
    kind = payload[offset]
    if kind not in (_INLINE, _REFERENCE):
        raise FieldError(f"a body is inline ({_INLINE}) or a reference ({_REFERENCE}), not {kind}")
    start = offset + 5
    end = start + int.from_bytes(payload[offset + 1 : start], "big")
    if end > len(payload):
        raise IndexError(end)
    return Body(payload[start:end], kind == _REFERENCE), end


def encode_body(body: Body) -> bytes:
    """The bytes of a body."""
    kind = _REFERENCE if body.by_reference else _INLINE
    return b"".join((bytes((kind,)), len(body.octets).to_bytes(4, "big"), body.octets))
