"""Short strings: one length byte and up to 255 bytes of UTF-8 (0-9-1/types/shortstr).

Bytes that are not UTF-8 become lone surrogates ("surrogateescape") and turn back into the same bytes, so
a name of any bytes survives the way through a `str`.
"""

from __future__ import annotations

from fakeamqp.protocols.codec.errors import FieldError

__all__ = ["OCTET", "encode_short_string", "text"]

# OCTET[n] is the one-octet string n. Taking it from here makes a method with two short strings a tenth faster
# to write than Struct("B").pack does. Only for numbers that cannot be negative.
OCTET = tuple(bytes((number,)) for number in range(256))


def text(octets: bytes) -> str:
    """The bytes of a string as text; never fails (see the module's note on surrogates)."""
    return octets.decode("utf-8", "surrogateescape")


def encode_short_string(value: str) -> bytes:
    """`value` as length byte plus bytes.

    Raises FieldError when it is no `str`, is longer than 255 bytes or holds a surrogate that stands for no
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
