"""Short strings: one length octet and up to 255 octets of UTF-8 (0-9-1/types/shortstr).

Octets that are not UTF-8 become lone surrogates ("surrogateescape") and turn back into the same octets, so
a name of any octets survives the way through a `str`.
"""

from __future__ import annotations

from fakeamqp.wire.errors import FieldError

__all__ = ["OCTET", "encode_short_string", "text"]

# OCTET[n] is the one-octet string n. Taking it from here makes a method with two short strings a tenth faster
# to write than Struct("B").pack does. Only for numbers that cannot be negative.
OCTET = tuple(bytes((number,)) for number in range(256))


def text(octets: bytes) -> str:
    """The octets of a string as text; never fails (see the module's note on surrogates)."""
    return octets.decode("utf-8", "surrogateescape")


def encode_short_string(value: str) -> bytes:
    """`value` as length octet plus octets.

    Raises FieldError when it is no `str`, is longer than 255 octets or holds a surrogate that stands for no
    octet.
    """
    if not isinstance(value, str):
        raise FieldError(f"a short string must be a str, not {type(value).__name__}")
    try:
        octets = value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as problem:
        raise FieldError(f"a short string must be encodable as UTF-8: {problem.reason}") from None
    if len(octets) > 255:
        raise FieldError(f"a short string holds at most 255 octets, not {len(octets)}: {value[:40]!r}...")
    return OCTET[len(octets)] + octets
