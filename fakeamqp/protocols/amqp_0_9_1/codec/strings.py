"""Short strings: one length byte and up to 255 bytes of UTF-8 (0-9-1/types/shortstr).

Bytes that are not UTF-8 become lone surrogates ("surrogateescape") and are encoded to the same bytes again,
so any name can be decoded and encoded without a change.
"""

from __future__ import annotations

from fakeamqp.protocols.base.codec import FieldError

__all__ = ["OCTET", "encode_short_string", "text"]

# OCTET[n] is the one-octet string n. For a method with two short strings this is a tenth faster than
# Struct("B").pack. Only for numbers that cannot be negative.
OCTET = tuple(bytes((number,)) for number in range(256))


def text(octets: bytes) -> str:
    """The bytes of a string as text; never fails (see the module's note on surrogates)."""
    return octets.decode("utf-8", "surrogateescape")


def encode_short_string(value: str) -> bytes:
    """`value` as length byte plus bytes.

    Raises FieldError when it is no `str`, is longer than 255 bytes, or holds a surrogate that encodes no
    byte.
    """
    if not isinstance(value, str):
        raise FieldError(f"a short string must be a str, not {type(value).__name__}")
    try:
        octets = value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as problem:
        raise FieldError(f"a short string must be encodable as UTF-8: {problem.reason}") from None
    if len(octets) > 255:
        raise FieldError(f"a short string holds at most 255 bytes, not {len(octets)}: {value[:40]!r}...")
    return OCTET[len(octets)] + octets
