"""The scalar types of AMQP 0-10, by type code (types/*).

| Types | In Python |
|---|---|
| int*, uint* | int |
| float, double | float |
| boolean | bool |
| char, char-utf32, str* | str |
| bin*, vbin* | bytes |
| dec32, dec64 | Decimal |
| datetime | Timestamp, seconds since 1970 |
| uuid | UUID |
| void | None |
| bit | True |

Bytes that are no UTF-8 become lone surrogates ("surrogateescape"), which are written as the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fakeamqp.protocols.amqp_0_10.codec.errors import IllegalValue, SegmentError
from fakeamqp.timestamps import Timestamp

if TYPE_CHECKING:
    from uuid import UUID

__all__ = ["SCALARS", "Scalar", "dec32", "dec64", "read_uuid"]

_LATIN = "iso8859-15"
_MOST_PLACES = 255


class Scalar(NamedTuple):
    """One type. A value has `width` bytes, or a size of `prefix` bytes in front that says how many."""

    name: str
    code: int
    width: int
    prefix: int
    read: Callable[[bytes], Any]
    """From the bytes of a value, without its size."""
    write: Callable[[Any], bytes]
    """To the bytes of a value, without its size. Raises SegmentError, or one of Python's errors."""


def _octets(width: int | None = None) -> Callable[[Any], bytes]:
    """Writes bytes, of exactly that width if one is given."""

    def write(value: Any) -> bytes:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise SegmentError(f"it must be bytes, not {type(value).__name__}")
        octets = bytes(value)
        if width is not None and len(octets) != width:
            raise SegmentError(f"it must have {width} bytes, not {len(octets)}")
        return octets

    return write


def _number(name: str, code: int, letter: str) -> Scalar:
    packer = Struct(">" + letter)
    unpack = packer.unpack
    return Scalar(name, code, packer.size, 0, lambda octets: unpack(octets)[0], packer.pack)


def _binary(name: str, code: int, width: int) -> Scalar:
    return Scalar(name, code, width, 0, bytes, _octets(width))


def _text(name: str, code: int, prefix: int, encoding: str, errors: str) -> Scalar:
    def read(octets: bytes) -> str:
        return octets.decode(encoding, errors)

    def write(value: str) -> bytes:
        return value.encode(encoding, errors)

    return Scalar(name, code, 0, prefix, read, write)


def _decimal(name: str, code: int, letter: str) -> Scalar:
    packer = Struct(">B" + letter)

    def read(octets: bytes) -> Decimal:
        places, mantissa = packer.unpack(octets)
        digits = tuple(map(int, str(abs(mantissa))))
        return Decimal((mantissa < 0, digits, -places))

    def write(value: Decimal) -> bytes:
        sign, digits, places = value.as_tuple()
        if not isinstance(places, int):
            raise SegmentError(f"{value} has no representation as {name}")
        exponent: int = places
        mantissa = int("".join(map(str, digits[:30])))
        if not mantissa:
            exponent = min(exponent, 0)
        elif 0 < exponent <= 20:
            mantissa, exponent = mantissa * 10**exponent, 0
        if len(digits) > 20 or not -_MOST_PLACES <= exponent <= 0:
            raise SegmentError(f"{value} does not fit {name}, which has 0 to {_MOST_PLACES} decimal places")
        return packer.pack(-exponent, -mantissa if sign else mantissa)

    return Scalar(name, code, packer.size, 0, read, write)


def _read_char(octets: bytes) -> str:
    return octets.decode(_LATIN)


def _write_char(value: str) -> bytes:
    octets = value.encode(_LATIN)
    if len(octets) != 1:
        raise SegmentError(f"{value!r:.40} is not one character")
    return octets


def _read_char_utf32(octets: bytes) -> str:
    try:
        return octets.decode("utf-32-be")
    except UnicodeDecodeError:
        raise IllegalValue(f"0x{octets.hex()} is no UTF-32 character") from None


def _write_char_utf32(value: str) -> bytes:
    octets = value.encode("utf-32-be")
    if len(octets) != 4:
        raise SegmentError(f"{value!r:.40} is not one character")
    return octets


def read_uuid(octets: bytes) -> UUID:
    """The UUID of 16 bytes. Raises ValueError where they are more or fewer."""
    from uuid import UUID  # on first use: importing it takes as long as a fifth of this package

    return UUID(bytes=octets)


def _write_uuid(value: UUID) -> bytes:
    return value.bytes


_read_datetime = Struct(">Q").unpack


def _write_datetime(value: Any) -> bytes:
    if not hasattr(value, "__index__"):
        from calendar import timegm

        value = timegm(value.utctimetuple())
    return int(value).to_bytes(8, "big")


def _write_boolean(value: object) -> bytes:
    return b"\1" if value else b"\0"


def _write_void(value: object) -> bytes:
    if value is not None:
        raise SegmentError(f"{value!r:.40} is not void")
    return b""


def _write_bit(value: object) -> bytes:
    if value is not True:
        raise SegmentError(f"a bit that is there is true, not {value!r:.40}")
    return b""


dec32: Final = _decimal("dec32", 0xC8, "i")
dec64: Final = _decimal("dec64", 0xD8, "q")
_uuid = Scalar("uuid", 0x48, 16, 0, read_uuid, _write_uuid)

_ALL = (
    _binary("bin8", 0x00, 1),
    _number("int8", 0x01, "b"),
    _number("uint8", 0x02, "B"),
    Scalar("char", 0x04, 1, 0, _read_char, _write_char),
    Scalar("boolean", 0x08, 1, 0, lambda octets: octets != b"\0", _write_boolean),
    _binary("bin16", 0x10, 2),
    _number("int16", 0x11, "h"),
    _number("uint16", 0x12, "H"),
    _binary("bin32", 0x20, 4),
    _number("int32", 0x21, "i"),
    _number("uint32", 0x22, "I"),
    _number("float", 0x23, "f"),
    Scalar("char-utf32", 0x27, 4, 0, _read_char_utf32, _write_char_utf32),
    _binary("bin64", 0x30, 8),
    _number("int64", 0x31, "q"),
    _number("uint64", 0x32, "Q"),
    _number("double", 0x33, "d"),
    Scalar("datetime", 0x38, 8, 0, lambda octets: Timestamp(_read_datetime(octets)[0]), _write_datetime),
    _binary("bin128", 0x40, 16),
    _uuid,
    _binary("bin256", 0x50, 32),
    _binary("bin512", 0x60, 64),
    _binary("bin1024", 0x70, 128),
    Scalar("vbin8", 0x80, 0, 1, bytes, _octets()),
    _text("str8-latin", 0x84, 1, _LATIN, "strict"),
    _text("str8", 0x85, 1, "utf-8", "surrogateescape"),
    _text("str8-utf16", 0x86, 1, "utf-16-be", "surrogatepass"),
    Scalar("vbin16", 0x90, 0, 2, bytes, _octets()),
    _text("str16-latin", 0x94, 2, _LATIN, "strict"),
    _text("str16", 0x95, 2, "utf-8", "surrogateescape"),
    _text("str16-utf16", 0x96, 2, "utf-16-be", "surrogatepass"),
    Scalar("vbin32", 0xA0, 0, 4, bytes, _octets()),
    _binary("bin40", 0xC0, 5),
    dec32,
    _binary("bin72", 0xD0, 9),
    dec64,
    Scalar("void", 0xF0, 0, 0, lambda octets: None, _write_void),
    Scalar("bit", 0xF1, 0, 0, lambda octets: True, _write_bit),
)

#: type code -> type
SCALARS: Final[dict[int, Scalar]] = {scalar.code: scalar for scalar in _ALL}
