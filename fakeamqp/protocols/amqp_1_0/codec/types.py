"""The type system of AMQP 1.0: values, and their encodings (spec/amqp-1-0.toml, `types`).

A value knows its type by its class. The classes of Python stand for null, boolean, string, binary, long,
double, uuid, list and map; the others have a class of their own. So a value that is read and written again
keeps its type, but not the width of its encoding: the shortest one is written.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any, ClassVar, Final, TypeAlias
from uuid import UUID

from fakeamqp.protocols.amqp_1_0.codec.errors import DecodeError
from fakeamqp.protocols.base.codec import encoded

MAX_DEPTH: Final = 100
"""Values that nest deeper are refused: RabbitMQ has no such bound."""


class Symbol(str):
    """A symbol: text of ASCII characters."""

    __slots__ = ()


class Char(str):
    """One Unicode character."""

    __slots__ = ()


class WideBoolean(int):
    """A boolean that is written with two bytes, as RabbitMQ writes those of 0-9-1."""


class Number(int):
    """An integer of a type that Python lacks; `field_tag` is that of its values in 0-9-1."""

    field_tag: ClassVar[str] = "T"

    def __init_subclass__(cls, tag: str) -> None:
        cls.field_tag = tag


class UByte(Number, tag="B"):
    """8 bits, unsigned."""


class UShort(Number, tag="u"):
    """16 bits, unsigned."""


class UInt(Number, tag="i"):
    """32 bits, unsigned."""


class ULong(Number, tag="l"):
    """64 bits, unsigned."""


class Byte(Number, tag="b"):
    """8 bits, signed."""


class Short(Number, tag="s"):
    """16 bits, signed."""


class Int(Number, tag="I"):
    """32 bits, signed."""


class Milliseconds(Number, tag="T"):
    """A timestamp: milliseconds since 1970."""


class Float(float):
    """32 bits, as in IEEE 754."""

    field_tag = "f"


class Decimal32(bytes):
    """Four bytes of a decimal number, as they came."""


class Decimal64(bytes):
    """Eight bytes of a decimal number, as they came."""


class Decimal128(bytes):
    """Sixteen bytes of a decimal number, as they came."""


class Blank(bytes):
    """An array as it came: of items without octets, such as null, or of described items without any.

    Its count may be anything, so that reading the items could take all memory; RabbitMQ does not (4.3.6).
    """


class Array(list[Any]):
    """Values of one type. `of` is the class of its items; an empty one has that of its constructor."""

    def __init__(self, items: Iterable[Any] = (), of: type[Any] | None = None) -> None:
        super().__init__(items)
        self.of: type[Any] = of or (type(self[0]) if self else Symbol)


class Described:
    """A value with a descriptor: a symbol or a number that says what it means."""

    __slots__ = ("descriptor", "value")

    def __init__(self, descriptor: Any, value: Any) -> None:
        self.descriptor: Any = descriptor
        self.value: Any = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Described):
            return NotImplemented
        return bool(self.descriptor == other.descriptor and self.value == other.value)

    def __hash__(self) -> int:
        return hash((Described, self.descriptor))

    def __repr__(self) -> str:
        return f"Described({self.descriptor!r}, {self.value!r})"


# --- reading -----------------------------------------------------------------------------------------------

Reader = Callable[[bytes, int, int], "tuple[Any, int]"]
"""From bytes, the offset behind the code, and the depth: the value, and the offset behind it."""

_uint32 = struct.Struct(">I").unpack_from


def _fixed(code: str, make: Callable[[Any], Any] | None) -> Reader:
    packed = struct.Struct(code)
    unpack, size = packed.unpack_from, packed.size

    def read(data: bytes, offset: int, depth: int) -> tuple[Any, int]:
        (value,) = unpack(data, offset)
        return (value if make is None else make(value)), offset + size

    return read


def _constant(value: Any) -> Reader:
    return lambda data, offset, depth: (value, offset)


def _variable(width: int, make: Callable[[bytes], Any]) -> Reader:
    def read(data: bytes, offset: int, depth: int) -> tuple[Any, int]:
        start = offset + width
        end = start + (data[offset] if width == 1 else _uint32(data, offset)[0])
        if end > len(data):
            raise DecodeError("a value is cut short")
        return make(data[start:end]), end

    return read


def _boolean(octet: int) -> bool:
    if octet not in (0, 1):
        raise DecodeError(f"0x{octet:02x} is no boolean")
    return octet == 1


def _text(octets: bytes) -> str:
    """Bytes that are not UTF-8 are kept: RabbitMQ does not look at them (measured on 4.0.5 and 4.3.6)."""
    return octets.decode("utf-8", "surrogateescape")


def _symbol(octets: bytes) -> Symbol:
    return Symbol(octets.decode("latin-1"))


def _char(number: int) -> Char:
    try:
        return Char(chr(number))
    except (ValueError, OverflowError):
        raise DecodeError(f"0x{number:x} is no character") from None


def _extent(data: bytes, offset: int, width: int) -> tuple[int, int, int]:
    """The count of a compound value, where its items begin, and where it ends."""
    if width == 1:
        size, count, start = data[offset], data[offset + 1], offset + 2
    else:
        (size,), (count,), start = _uint32(data, offset), _uint32(data, offset + 4), offset + 8
    end = offset + width + size
    if end > len(data) or end < start:
        raise DecodeError("a compound value is cut short")
    return count, start, end


def _items(data: bytes, offset: int, width: int, depth: int) -> tuple[list[Any], int]:
    """The values that fill a list or a map; RabbitMQ ignores their count (measured on 4.0.5 and 4.3.6)."""
    _, offset, end = _extent(data, offset, width)
    depth += 1
    if depth > MAX_DEPTH:
        raise DecodeError(f"values nest deeper than {MAX_DEPTH} levels")
    items = []
    while offset < end:
        reader = _READERS[data[offset]]  # As `read_value` does, for 0.8 times its instructions.
        if reader is None:
            raise DecodeError(f"there is no type with code 0x{data[offset]:02x}")
        item, offset = reader(data, offset + 1, depth)
        items.append(item)
    if offset != end:
        raise DecodeError("the items of a compound value do not fill it")
    return items, end


def _list(width: int) -> Reader:
    return lambda data, offset, depth: _items(data, offset, width, depth)


def _map(width: int) -> Reader:
    def read(data: bytes, offset: int, depth: int) -> tuple[Any, int]:
        items, end = _items(data, offset, width, depth)
        if len(items) % 2:
            raise DecodeError("a map has a key without a value")
        found: dict[Any, Any] = {}
        try:
            for key, value in zip(items[::2], items[1::2], strict=True):
                found.setdefault(key, value)  # RabbitMQ finds the first of two entries of one key.
        except TypeError:
            raise DecodeError("a key of a map is a list or a map") from None
        return found, end

    return read


_NOT_IN_ARRAYS: Final = frozenset((0x52, 0x53, 0x54, 0x55, 0x74, 0x84, 0x94, 0xC0, 0xC1, 0xE0))
"""Codes that RabbitMQ does not read as constructors of arrays (measured on 4.0.5 and 4.3.6)."""


def _array(width: int) -> Reader:
    def read(data: bytes, offset: int, depth: int) -> tuple[Any, int]:
        whole = offset
        count, offset, end = _extent(data, offset, width)
        descriptor: Any = None
        if data[offset] == 0:
            descriptor, offset = read_value(data, offset + 1, depth + 1)
        code = data[offset]
        offset += 1
        reader = _READERS[code]
        of = TYPE_OF_CODE.get(code)
        if reader is None or of is None or code in _NOT_IN_ARRAYS:
            raise DecodeError(f"{{failed_to_parse_constructor,{code}}}")
        if offset == end and (code >> 4 == 4 if descriptor is None else not count):
            return Blank(bytes((0xE0 if width == 1 else 0xF0,)) + data[whole:end]), end
        if count > end - offset:
            raise DecodeError(f"an array announces {count} items in {end - offset} bytes")
        items = []
        for _ in range(count):
            item, offset = reader(data, offset, depth + 1)
            items.append(item if descriptor is None else Described(descriptor, item))
        if offset != end:
            raise DecodeError("the items of an array do not fill it")
        return Array(items, of if descriptor is None else Described), end

    return read


def _described(data: bytes, offset: int, depth: int) -> tuple[Any, int]:
    descriptor, offset = read_value(data, offset, depth + 1)
    value, offset = read_value(data, offset, depth + 1)
    return Described(descriptor, value), offset


_BY_CODE: dict[int, tuple[type[Any], Reader]] = {
    0x40: (type(None), _constant(None)),
    0x41: (bool, _constant(True)),
    0x42: (bool, _constant(False)),
    0x56: (bool, _fixed(">B", _boolean)),
    0x50: (UByte, _fixed(">B", UByte)),
    0x60: (UShort, _fixed(">H", UShort)),
    0x43: (UInt, _constant(UInt(0))),
    0x52: (UInt, _fixed(">B", UInt)),
    0x70: (UInt, _fixed(">I", UInt)),
    0x44: (ULong, _constant(ULong(0))),
    0x53: (ULong, _fixed(">B", ULong)),
    0x80: (ULong, _fixed(">Q", ULong)),
    0x51: (Byte, _fixed(">b", Byte)),
    0x61: (Short, _fixed(">h", Short)),
    0x54: (Int, _fixed(">b", Int)),
    0x71: (Int, _fixed(">i", Int)),
    0x55: (int, _fixed(">b", None)),
    0x81: (int, _fixed(">q", None)),
    0x72: (Float, _fixed(">f", Float)),
    0x82: (float, _fixed(">d", None)),
    0x74: (Decimal32, _fixed(">4s", Decimal32)),
    0x84: (Decimal64, _fixed(">8s", Decimal64)),
    0x94: (Decimal128, _fixed(">16s", Decimal128)),
    0x73: (Char, _fixed(">I", _char)),
    0x83: (Milliseconds, _fixed(">q", Milliseconds)),
    0x98: (UUID, _fixed(">16s", lambda octets: UUID(bytes=octets))),
    0xA0: (bytes, _variable(1, bytes)),
    0xB0: (bytes, _variable(4, bytes)),
    0xA1: (str, _variable(1, _text)),
    0xB1: (str, _variable(4, _text)),
    0xA3: (Symbol, _variable(1, _symbol)),
    0xB3: (Symbol, _variable(4, _symbol)),
    0x45: (list, lambda data, offset, depth: ([], offset)),
    0xC0: (list, _list(1)),
    0xD0: (list, _list(4)),
    0xC1: (dict, _map(1)),
    0xD1: (dict, _map(4)),
    0xE0: (Array, _array(1)),
    0xF0: (Array, _array(4)),
}
"""Code of an encoding -> class of its values, and how one is read."""

TYPE_OF_CODE: Final[Mapping[int, type[Any]]] = {code: of for code, (of, _) in _BY_CODE.items()}
_READERS: list[Reader | None] = [None] * 256
for _code, (_type, _reader) in _BY_CODE.items():
    _READERS[_code] = _reader
_READERS[0] = _described


def read_value(data: bytes, offset: int = 0, depth: int = 0) -> tuple[Any, int]:
    """The value that begins at an offset, and the offset behind it.

    Raises:
        DecodeError: there is no whole value, or it nests deeper than `MAX_DEPTH`.
    """
    if depth > MAX_DEPTH:
        raise DecodeError(f"values nest deeper than {MAX_DEPTH} levels")
    try:
        reader = _READERS[data[offset]]
        if reader is None:
            raise DecodeError(f"there is no type with code 0x{data[offset]:02x}")
        return reader(data, offset + 1, depth)
    except (IndexError, struct.error):
        raise DecodeError("a value is cut short") from None


_WIDTHS: dict[int, int] = {0x4: 0, 0x5: 1, 0x6: 2, 0x7: 4, 0x8: 8, 0x9: 16}
"""First half of a code -> bytes of a value of fixed width."""


def skip_value(data: bytes, offset: int) -> int:
    """The offset behind the value at an offset, whose inside is not looked at. DecodeError if it is cut."""
    try:
        code = data[offset]
        offset += 1
        if code == 0:
            return skip_value(data, skip_value(data, offset))
        kind = code >> 4
        width = _WIDTHS.get(kind)
        if code not in TYPE_OF_CODE:
            raise DecodeError(f"there is no type with code 0x{code:02x}")
        if width is not None:
            offset += width
        elif kind in (0xA, 0xC, 0xE):
            offset += 1 + data[offset]
        else:
            offset += 4 + int(_uint32(data, offset)[0])
    except (IndexError, struct.error, RecursionError):
        raise DecodeError("a value is cut short") from None
    if offset > len(data):
        raise DecodeError("a value is cut short")
    return offset


# --- writing -----------------------------------------------------------------------------------------------


_pack_byte = struct.Struct(">BB").pack
_pack_uint = struct.Struct(">BI").pack


_Encoder: TypeAlias = "Callable[[Any], bytes]"


def _shortest(
    short: int, small: str, long: int, large: str, zero: int | None = None
) -> Callable[[int], bytes]:
    """How integers are written that have a short encoding, a long one, and perhaps one for 0."""
    pack_short, pack_long = struct.Struct(f">B{small}").pack, struct.Struct(f">B{large}").pack
    least, end = (0, 256) if small == "B" else (-128, 128)
    zeros = pack_short(short, 0) if zero is None else bytes((zero,))

    def encode(value: int) -> bytes:
        if value == 0:
            return zeros
        return pack_short(short, value) if least <= value < end else pack_long(long, value)

    return encode


encode_uint: _Encoder = _shortest(0x52, "B", 0x70, "I", zero=0x43)
encode_ulong: _Encoder = _shortest(0x53, "B", 0x80, "Q", zero=0x44)


def _sized(short: int, long: int, octets: bytes) -> bytes:
    size = len(octets)
    return (_pack_byte(short, size) if size < 256 else _pack_uint(long, size)) + octets


def encode_binary(value: bytes) -> bytes:
    """The shortest encoding of a binary."""
    return _sized(0xA0, 0xB0, value)


def encode_string(value: str) -> bytes:
    """The shortest encoding of a string."""
    return _sized(0xA1, 0xB1, encoded(value))


def encode_symbol(value: str) -> bytes:
    """The shortest encoding of a symbol."""
    return _sized(0xA3, 0xB3, symbol_octets(value))


def symbol_octets(value: str) -> bytes:
    """The bytes of a symbol."""
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        return encoded(value)


def encode_items(items: list[bytes], short: int = 0xC0, long: int = 0xD0) -> bytes:
    """A list, or a map with other codes, of encoded items."""
    body = b"".join(items)
    if len(body) < 255 and len(items) < 256:  # As `_counted` does, for each delivery.
        return bytes((short, len(body) + 1, len(items))) + body
    return _counted(len(items), body, short, long)


def _counted(count: int, body: bytes, short: int, long: int) -> bytes:
    if len(body) < 255 and count < 256:
        return bytes((short, len(body) + 1, count)) + body
    return struct.pack(">BII", long, len(body) + 4, count) + body


def _encode_list(value: Iterable[Any]) -> bytes:
    items = [encode_value(item) for item in value]
    return encode_items(items) if items else b"\x45"


def _encode_map(value: Mapping[Any, Any]) -> bytes:
    return encode_items([encode_value(each) for pair in value.items() for each in pair], 0xC1, 0xD1)


_WIDEST: dict[type[Any], tuple[int, _Encoder]] = {
    bool: (0x56, lambda value: b"\1" if value else b"\0"),
    UByte: (0x50, struct.Struct(">B").pack),
    UShort: (0x60, struct.Struct(">H").pack),
    UInt: (0x70, struct.Struct(">I").pack),
    ULong: (0x80, struct.Struct(">Q").pack),
    Byte: (0x51, struct.Struct(">b").pack),
    Short: (0x61, struct.Struct(">h").pack),
    Int: (0x71, struct.Struct(">i").pack),
    int: (0x81, struct.Struct(">q").pack),
    Float: (0x72, struct.Struct(">f").pack),
    float: (0x82, struct.Struct(">d").pack),
    Decimal32: (0x74, bytes),
    Decimal64: (0x84, bytes),
    Decimal128: (0x94, bytes),
    Milliseconds: (0x83, struct.Struct(">q").pack),
    Char: (0x73, lambda value: struct.pack(">I", ord(value))),
    UUID: (0x98, lambda value: value.bytes),
    bytes: (0xB0, lambda value: _with_size(value)),
    str: (0xB1, lambda value: _with_size(encoded(value))),
    Symbol: (0xB3, lambda value: _with_size(encoded(value))),
    type(None): (0x40, lambda value: b""),
    list: (0xD0, lambda value: _compound(len(value), map(encode_value, value))),
    dict: (0xD1, lambda value: _compound(2 * len(value), map(encode_value, chain(*value.items())))),
    Array: (0xF0, lambda value: _array_in_array(value)),
}
"""Class -> the code of its widest encoding, and the bytes of a value without the code: for arrays."""


def _with_size(octets: bytes) -> bytes:
    return struct.pack(">I", len(octets)) + octets


def _compound(count: int, items: Iterable[bytes]) -> bytes:
    body = b"".join(items)
    return struct.pack(">II", len(body) + 4, count) + body


def _array_octets(value: Array) -> bytes:
    """The constructor of an array and its items."""
    of = value.of
    if of is Described:
        inner = Array([each.value for each in value])
        code, pack = _WIDEST[inner.of]
        constructor = b"\0" + encode_value(value[0].descriptor) + bytes((code,))
        return constructor + b"".join(pack(each) for each in inner)
    code, pack = _WIDEST[of]
    return bytes((code,)) + b"".join(pack(each) for each in value)


def _array_in_array(value: Array | Blank) -> bytes:
    """An array without its code, with the widest size and count."""
    if isinstance(value, Blank):
        return value[1:] if value[0] == 0xF0 else struct.pack(">II", len(value) + 1, value[2]) + value[3:]
    return _compound(len(value), (_array_octets(value),))


def _encode_array(value: Array) -> bytes:
    return _counted(len(value), _array_octets(value), 0xE0, 0xF0)


def _always_widest(code: int, pack: _Encoder) -> _Encoder:
    octet = bytes((code,))
    return lambda value: octet + pack(value)


def _encode_described(value: Described) -> bytes:
    return b"\0" + encode_value(value.descriptor) + encode_value(value.value)


_ENCODERS: dict[type[Any], _Encoder] = {
    **{of: _always_widest(*widest) for of, widest in _WIDEST.items()},
    bool: lambda value: b"\x41" if value else b"\x42",
    WideBoolean: lambda value: _pack_byte(0x56, value),
    UInt: encode_uint,
    ULong: encode_ulong,
    Int: _shortest(0x54, "b", 0x71, "i"),
    int: _shortest(0x55, "b", 0x81, "q"),
    bytes: encode_binary,
    str: encode_string,
    Symbol: encode_symbol,
    list: _encode_list,
    tuple: _encode_list,
    dict: _encode_map,
    Array: _encode_array,
    Blank: bytes,
    Described: _encode_described,
}


def encode_value(value: Any) -> bytes:
    """The shortest encoding of a value.

    Raises:
        DecodeError: it is of no class that stands for a type, out of range, or nests too deep.
    """
    encoder = _ENCODERS.get(value.__class__)
    if encoder is None:
        encoder = next((_ENCODERS[each] for each in type(value).__mro__ if each in _ENCODERS), None)
    if encoder is None:
        raise DecodeError(f"{value!r:.40} is of no type of AMQP 1.0")
    try:
        return encoder(value)
    except (struct.error, RecursionError, UnicodeEncodeError, TypeError):
        raise DecodeError(f"{value!r:.40} cannot be encoded") from None


def encode_section(code: int, value: Any) -> bytes:
    """A section of a message: a value whose descriptor is a number."""
    return b"\0" + encode_ulong(code) + encode_value(value)
