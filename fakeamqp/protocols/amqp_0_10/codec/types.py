"""Values with a type code: scalars, and the types that hold them, map, list, array and struct32 (types/*).

| Scalar types | In Python |
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

A `Map`, `List` or `Array` that was read keeps its bytes, and is written from these as far as its values have
not changed; so type codes, which Python's values do not show, stay the same. Every other value gets the code
that suits it:

| Value | Type |
|---|---|
| bool, None | boolean, void |
| int | int64, from 2**63 on uint64 |
| float | double |
| Decimal | dec32, or dec64 where it does not fit |
| str | str16 |
| bytes | vbin32 |
| Timestamp, datetime | datetime |
| UUID | uuid |
| a struct | struct32 |
| mapping; list or tuple; Array | map; list; array |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from operator import attrgetter, methodcaller
from struct import Struct, error
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fakeamqp.protocols.amqp_0_10.codec.errors import IllegalValue, SegmentError
from fakeamqp.timestamps import Timestamp

if TYPE_CHECKING:
    from uuid import UUID


# --- scalars -----------------------------------------------------------------------------------------------

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
    read = partial(str, encoding=encoding, errors=errors)
    return Scalar(name, code, 0, prefix, read, methodcaller("encode", encoding, errors))


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


def _character(name: str, code: int, width: int, encoding: str) -> Scalar:
    def read(octets: bytes) -> str:
        try:
            return octets.decode(encoding)
        except UnicodeDecodeError:
            raise IllegalValue(f"0x{octets.hex()} is no UTF-32 character") from None

    def write(value: str) -> bytes:
        octets = value.encode(encoding)
        if len(octets) != width:
            raise SegmentError(f"{value!r:.40} is not one character")
        return octets

    return Scalar(name, code, width, 0, read, write)


def read_uuid(octets: bytes) -> UUID:
    """The UUID of 16 bytes. Raises ValueError where they are more or fewer."""
    from uuid import UUID  # on first use: importing it takes as long as a fifth of this package

    return UUID(bytes=octets)


_read_datetime = Struct(">Q").unpack


def _write_datetime(value: Any) -> bytes:
    if not hasattr(value, "__index__"):
        from calendar import timegm

        value = timegm(value.utctimetuple())
    return int(value).to_bytes(8, "big")


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

#: type code -> type
SCALARS: Final[dict[int, Scalar]] = {
    scalar.code: scalar
    for scalar in (
        *(_binary(f"bin{8 << n}", n << 4, 1 << n) for n in range(8)),
        _number("int8", 0x01, "b"),
        _number("uint8", 0x02, "B"),
        _character("char", 0x04, 1, _LATIN),
        Scalar(
            "boolean", 0x08, 1, 0, lambda octets: octets != b"\0", lambda value: b"\1" if value else b"\0"
        ),
        _number("int16", 0x11, "h"),
        _number("uint16", 0x12, "H"),
        _number("int32", 0x21, "i"),
        _number("uint32", 0x22, "I"),
        _number("float", 0x23, "f"),
        _character("char-utf32", 0x27, 4, "utf-32-be"),
        _number("int64", 0x31, "q"),
        _number("uint64", 0x32, "Q"),
        _number("double", 0x33, "d"),
        Scalar("datetime", 0x38, 8, 0, lambda octets: Timestamp(_read_datetime(octets)[0]), _write_datetime),
        Scalar("uuid", 0x48, 16, 0, read_uuid, attrgetter("bytes")),
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
}

# --- types that hold values --------------------------------------------------------------------------------

#: Maps, lists and arrays may nest this deep. The protocol names no limit, Python's stack does.
MAX_DEPTH: Final = 100
#: Elements without bytes cost the sender nothing, so this many are the limit of an array.
MAX_EMPTY_ELEMENTS: Final = 255

MAP, LIST, ARRAY, STRUCT32 = 0xA8, 0xA9, 0xAA, 0xAB
_STR8, _STR16, _UUID, _DATETIME, _VOID, _BIT = 0x85, 0x95, 0x48, 0x38, 0xF0, 0xF1

#: class code << 8 | struct code -> class of a coded struct, with `decode`; `structs` fills it.
STRUCTS: Final[dict[int, type[Any]]] = {}
#: name -> class of every struct; `structs` fills it.
NESTED: Final[dict[str, type[Any]]] = {}

#: name of a type -> its code
CODES: Final = {scalar.name: scalar.code for scalar in SCALARS.values()}
CODES.update({"map": MAP, "list": LIST, "array": ARRAY, "struct32": STRUCT32})

_read_uint32 = Struct(">I").unpack_from
_read_uint16 = Struct(">H").unpack_from
_pack_uint32 = Struct(">I").pack
_pack_two = Struct(">II").pack
_pack_array = Struct(">IBI").pack


class Map(dict[str, Any]):
    """A map; it keeps the bytes it was read from."""

    __slots__ = ("octets",)
    #: as it was read, its size included; None for a map that was not read
    octets: bytes | None

    def __init__(self, *values: Any, **entries: Any) -> None:
        super().__init__(*values, **entries)
        self.octets = None

    @classmethod
    def of_entries(cls, entries: Iterable[tuple[str, Any, int]]) -> Map:
        """A map that is written with these types: (key, value, code). Raises SegmentError."""
        listed = list(entries)
        made = cls((key, value) for key, value, _ in listed)
        made.octets = _map_of(
            [
                encode_value(key, _STR8) + bytes((code,)) + encode_value(value, code)
                for key, value, code in listed
            ]
        )
        return made


class List(list[Any]):
    """A list; it keeps the bytes it was read from."""

    __slots__ = ("octets",)
    octets: bytes | None

    def __init__(self, values: Iterable[Any] = ()) -> None:
        super().__init__(values)
        self.octets = None


class Array(list[Any]):
    """Values of one type: `code`, else the one that suits them; str16 for an empty array without code."""

    __slots__ = ("code", "octets")
    code: int | None
    octets: bytes | None

    def __init__(self, values: Iterable[Any] = (), code: int | None = None) -> None:
        super().__init__(values)
        self.code = code
        self.octets = None

    @classmethod
    def of(cls, type_name: str, values: Iterable[Any]) -> Array:
        """Values of the type of this name, such as "str16". Raises KeyError for an unknown type."""
        return cls(values, CODES[type_name])


class UnknownStruct:
    """A coded struct of an unknown code; `octets` are those behind the code."""

    __slots__ = ("code", "octets")
    NAME = "unknown struct"

    def __init__(self, code: int, octets: bytes) -> None:
        self.code: int = code
        self.octets: bytes = octets

    def encode(self) -> bytes:
        """Size, code and bytes."""
        return _pack_uint32(len(self.octets) + 2) + self.code.to_bytes(2, "big") + self.octets

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UnknownStruct):
            return NotImplemented
        return self.code == other.code and self.octets == other.octets

    def __repr__(self) -> str:
        return f"UnknownStruct(0x{self.code:04x}, {self.octets!r})"


_PLAIN: Final = {
    CODES[name]: (packer.size, packer.unpack_from, name == "str16")
    for name, packer in (
        ("int32", Struct(">i")),
        ("int64", Struct(">q")),
        ("uint32", Struct(">I")),
        ("double", Struct(">d")),
        ("str16", Struct(">H")),
    )
}
"""Code -> width of a number, its reader, and True where the number is the size of a text behind it."""

# --- reading -----------------------------------------------------------------------------------------------


def _extent(octets: bytes, offset: int, end: int, what: str) -> tuple[int, int]:
    """Where the bytes behind a size begin and end."""
    start = offset + 4
    if start > end:
        raise SegmentError(f"{what} is cut short inside its size")
    stop = start + int(_read_uint32(octets, offset)[0])
    if stop > end:
        raise SegmentError(f"{what} announces {stop - start} bytes, {end - start} are left")
    return start, stop


def _count(octets: bytes, start: int, stop: int, what: str) -> int:
    if start + 4 > stop:
        raise SegmentError(f"{what} is cut short inside its count")
    return int(_read_uint32(octets, start)[0])


def _read_value(octets: bytes, offset: int, end: int, code: int, depth: int) -> tuple[Any, int]:
    """A value of the type, and the offset behind it."""
    if code == _STR16:  # before the table: two of three values in real maps are such
        start = offset + 2
        stop = start + _read_uint16(octets, offset)[0] if start <= end else end + 1
        if stop > end:
            raise SegmentError("a str16 is cut short")
        return octets[start:stop].decode("utf-8", "surrogateescape"), stop
    scalar = SCALARS.get(code)
    if scalar is None:
        reader = _CONTAINERS.get(code)
        if reader is None:
            raise IllegalValue(f"there is no type with the code 0x{code:02x}")
        return reader(octets, offset, end, depth + 1)
    start = offset + scalar.prefix
    stop = start + scalar.width
    if start <= end and scalar.prefix:
        stop += int.from_bytes(octets[offset:start], "big")
    if stop > end:
        raise SegmentError(f"a value of type {scalar.name} is cut short")
    try:
        return scalar.read(octets[start:stop]), stop
    except ValueError:
        raise IllegalValue(f"0x{octets[start:stop].hex():.80} is no {scalar.name}") from None


def entries(octets: bytes, start: int, stop: int, depth: int) -> Iterator[tuple[str, Any, int, int]]:
    """Key, value, start and end of each entry of a map."""
    offset = start
    while offset < stop:
        behind_key = offset + 1 + octets[offset]
        if behind_key >= stop:
            raise SegmentError("a map is cut short inside a key")
        key = octets[offset + 1 : behind_key].decode("utf-8", "surrogateescape")
        try:
            value, behind = _read_value(octets, behind_key + 1, stop, octets[behind_key], depth)
        except SegmentError as problem:
            raise type(problem)(f"{key!r:.40}: {problem}") if depth < 8 else problem from None
        yield key, value, offset, behind
        offset = behind


def read_map(octets: bytes, offset: int, end: int | None = None, depth: int = 0) -> tuple[Map, int]:
    """The map whose size stands at `offset`, and the offset behind it. A size of 0 is an empty map.

    Raises SegmentError when lengths or counts do not fit or it nests too deep, IllegalValue for an unknown
    type code or a key that comes twice (types/map-distinct-keys).
    """
    start, stop = _extent(octets, offset, len(octets) if end is None else end, "a map")
    _check_depth(depth)
    fields = Map()
    if start != stop:
        count = _count(octets, start, stop, "a map")
        position = start + 4
        try:
            while position < stop:
                behind_key = position + 1 + octets[position]
                # A shortcut for the commonest types: 1.6 times as many maps a second as `entries` alone.
                plain = _PLAIN.get(octets[behind_key]) if behind_key < stop else None
                if plain is not None and behind_key + plain[0] < stop:
                    key = octets[position + 1 : behind_key].decode("utf-8", "surrogateescape")
                    value: Any = plain[1](octets, behind_key + 1)[0]
                    position = behind_key + 1 + plain[0]
                    if plain[2]:
                        begin, position = position, position + value
                        value = octets[begin:position].decode("utf-8", "surrogateescape")
                        if position > stop:
                            raise SegmentError(f"{key!r:.40}: a str16 is cut short")
                else:
                    key, value, _, position = next(entries(octets, position, stop, depth))
                if key in fields:
                    raise IllegalValue(f"a map has the key {key!r:.40} twice")
                fields[key] = value
        except RecursionError:
            raise SegmentError("values nest deeper than the caller's stack allows") from None
        if len(fields) != count:
            raise SegmentError(f"a map announces {count} entries and has {len(fields)}")
    fields.octets = octets[offset:stop]
    return fields, stop


def read_list(octets: bytes, offset: int, end: int | None = None, depth: int = 0) -> tuple[List, int]:
    """The list whose size stands at `offset`, and the offset behind it; see `read_map`."""
    start, stop = _extent(octets, offset, len(octets) if end is None else end, "a list")
    _check_depth(depth)
    items = List()
    if start != stop:
        count = _count(octets, start, stop, "a list")
        _read_items(items, octets, start + 4, stop, None, depth)
        if len(items) != count:
            raise SegmentError(f"a list announces {count} items and has {len(items)}")
    items.octets = octets[offset:stop]
    return items, stop


def read_array(octets: bytes, offset: int, end: int | None = None, depth: int = 0) -> tuple[Array, int]:
    """The array whose size stands at `offset`, and the offset behind it; see `read_map`."""
    start, stop = _extent(octets, offset, len(octets) if end is None else end, "an array")
    _check_depth(depth)
    items = Array()
    if start != stop:
        count = _count(octets, start + 1, stop, "an array")
        items.code = code = octets[start]
        if code not in SCALARS and code not in _CONTAINERS:
            raise IllegalValue(f"there is no type with the code 0x{code:02x}")
        if code in (_VOID, _BIT):
            if count > MAX_EMPTY_ELEMENTS or start + 5 < stop:
                raise SegmentError(
                    f"an array announces {count} elements without bytes: too many, or it has some"
                )
            items.extend([None if code == _VOID else True] * count)
        _read_items(items, octets, start + 5, stop, code, depth)
        if len(items) != count:
            raise SegmentError(f"an array announces {count} elements, and its bytes hold more or fewer")
    items.octets = octets[offset:stop]
    return items, stop


def _read_items(
    items: list[Any], octets: bytes, position: int, stop: int, code: int | None, depth: int
) -> None:
    """Append all values up to `stop`: of the type `code`, or each behind the code of its own."""
    try:
        while position < stop:
            if code is None:
                item, position = _read_value(octets, position + 1, stop, octets[position], depth)
            else:
                item, position = _read_value(octets, position, stop, code, depth)
            items.append(item)
    except RecursionError:
        raise SegmentError("values nest deeper than the caller's stack allows") from None


def read_struct32(octets: bytes, offset: int, end: int | None = None, depth: int = 0) -> tuple[Any, int]:
    """The coded struct whose size stands at `offset`, and the offset behind it."""
    start, stop = _extent(octets, offset, len(octets) if end is None else end, "a struct32")
    if start + 2 > stop:
        raise SegmentError("a struct32 is cut short inside its code")  # types/struct32
    _check_depth(depth)
    code: int = _read_uint16(octets, start)[0]
    struct = STRUCTS.get(code)
    if struct is None:
        return UnknownStruct(code, octets[start + 2 : stop]), stop
    return struct.decode(octets[offset:stop]), stop


def _check_depth(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise SegmentError(f"values nest deeper than {MAX_DEPTH} levels")


_CONTAINERS: dict[int, Callable[[bytes, int, int, int], tuple[Any, int]]] = {
    MAP: read_map,
    LIST: read_list,
    ARRAY: read_array,
    STRUCT32: read_struct32,
}


# --- writing ------------------------------------------------------------------------------------------------

#: bytes that a size has -> how it is written
_LENGTHS = {1: Struct(">B").pack, 2: Struct(">H").pack, 4: Struct(">I").pack}
#: What Python raises for a value that does not fit its type
_UNFIT = (AttributeError, TypeError, ValueError, OverflowError, ArithmeticError, error)


def code_of(value: object) -> int:
    """The code that suits a value. Raises SegmentError for a value that no type suits."""
    for kind, code in _NATURAL:
        if isinstance(value, kind):
            return code(value) if callable(code) else code
    # By name, to spare most processes the import:
    if type(value).__name__ == "UUID":
        return _UUID
    if hasattr(value, "utctimetuple"):
        return _DATETIME
    if hasattr(value, "encode"):
        return STRUCT32
    raise SegmentError(f"a map cannot hold a {type(value).__name__}: {value!r:.40}")


def _code_of_decimal(value: Decimal) -> int:
    try:
        dec32.write(value)
    except (*_UNFIT, SegmentError):
        return dec64.code
    return dec32.code


_NATURAL: tuple[tuple[type[Any], int | Callable[[Any], int]], ...] = (
    (str, _STR16),
    (bool, 0x08),
    (Timestamp, _DATETIME),
    (int, lambda value: 0x31 if value < 1 << 63 else 0x32),
    (type(None), _VOID),
    (float, 0x33),
    (bytes, 0xA0),
    (bytearray, 0xA0),
    (Mapping, MAP),
    (Array, ARRAY),
    (list, LIST),
    (tuple, LIST),
    (Decimal, _code_of_decimal),
)


def encode_value(value: Any, code: int, depth: int = 0) -> bytes:
    """A value without its code, as the type of that code. Raises SegmentError where it is no such value."""
    scalar = SCALARS.get(code)
    if scalar is None:
        writer = _WRITERS.get(code)
        if writer is None:
            raise SegmentError(f"there is no type with the code 0x{code:02x}")
        return writer(value, depth + 1)
    try:
        octets = scalar.write(value)
        return _LENGTHS[scalar.prefix](len(octets)) + octets if scalar.prefix else octets
    except _UNFIT:
        raise SegmentError(f"{value!r:.80} is no {scalar.name}") from None


def _entry(value: Any, depth: int) -> bytes:
    """Code and value."""
    code = code_of(value)
    return bytes((code,)) + encode_value(value, code, depth)


def encode_map(value: Mapping[str, Any], depth: int = 0) -> bytes:
    """A map with its size. Raises SegmentError for what it cannot hold."""
    _check_depth(depth)
    kept: dict[str, tuple[Any, bytes]] = {}
    octets = value.octets if isinstance(value, Map) else None
    if octets is not None:
        kept = map_entries(octets)
        if list(kept) == list(value) and all(same(kept[key][0], value[key]) for key in kept):
            return octets
    found = []
    for key, item in value.items():
        known = kept.get(key)
        if known is not None and same(known[0], item):
            found.append(known[1])
            continue
        try:
            found.append(encode_value(key, _STR8) + _entry(item, depth))
        except RecursionError:
            raise SegmentError("values nest deeper than the caller's stack allows") from None
        except SegmentError as problem:
            raise type(problem)(f"{key!r:.40}: {problem}") if depth < 8 else problem from None
    return _map_of(found)


def _map_of(octets: list[bytes]) -> bytes:
    body = b"".join(octets)
    return _pack_two(len(body) + 4, len(octets)) + body


def encode_list(value: Iterable[Any], depth: int = 0) -> bytes:
    """A list with its size; see `encode_map`."""
    _check_depth(depth)
    items = list(value)
    octets = value.octets if isinstance(value, List) else None
    if octets is not None and same(read_list(octets, 0)[0], value):
        return octets
    parts = [_entry(item, depth) for item in items]
    body = b"".join(parts)
    return _pack_two(len(body) + 4, len(items)) + body


def encode_array(value: Iterable[Any], depth: int = 0) -> bytes:
    """An array with its size; see `encode_map`."""
    _check_depth(depth)
    items = list(value)
    code = None
    if isinstance(value, Array):
        code = value.code
        if value.octets is not None and same(read_array(value.octets, 0)[0], value):
            return value.octets
    if code is None:
        codes = {code_of(item) for item in items} or {_STR16}
        if len(codes) > 1:
            names = ", ".join(f"0x{each:02x}" for each in sorted(codes))
            raise SegmentError(f"the elements of an array are of one type, not of {names}")
        code = codes.pop()
    body = b"".join([encode_value(item, code, depth) for item in items])
    return _pack_array(len(body) + 5, code, len(items)) + body


def encode_struct32(value: Any, depth: int = 0) -> bytes:
    """A coded struct with its size. Raises SegmentError for anything else."""
    if not hasattr(value, "NAME") or not getattr(value, "INDEX", True):
        raise SegmentError(f"{value!r:.80} is no struct with a code")
    octets: bytes = value.encode()
    return octets


_WRITERS: dict[int, Callable[[Any, int], bytes]] = {
    MAP: encode_map,
    LIST: encode_list,
    ARRAY: encode_array,
    STRUCT32: encode_struct32,
}


# --- keeping the bytes of what was read --------------------------------------------------------------------


def map_entries(octets: bytes) -> dict[str, tuple[Any, bytes]]:
    """Key -> value and bytes (key, code and value) of each entry of a valid map."""
    return {
        key: (value, octets[start:stop]) for key, value, start, stop in entries(octets, 8, len(octets), 0)
    }


def splice_map(
    octets: bytes, changes: Mapping[str, Any], remove: Iterable[str] = (), *, ordered: bool = False
) -> bytes:
    """The bytes of a valid map after some changes; every other entry keeps its bytes.

    A changed entry keeps its place, a new one comes last; `ordered` sorts all by the bytes of their keys.
    Raises SegmentError for a value that a map cannot hold.
    """
    found = {key: entry for key, (_, entry) in map_entries(octets).items()}
    for key in remove:
        found.pop(key, None)
    for key, value in changes.items():
        found[key] = encode_value(key, _STR8) + _entry(value, 0)
    if ordered:
        found = dict(sorted(found.items(), key=lambda entry: entry[0].encode("utf-8", "surrogateescape")))
    return _map_of(list(found.values()))


def same(one: object, other: object) -> bool:
    """True for equal values of equal types, nested ones too: True is not 1 here, and nan is nan."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        if isinstance(one, Array) and isinstance(other, Array) and one.code != other.code:
            return False
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, Decimal) and isinstance(other, Decimal):
        return one.as_tuple() == other.as_tuple()
    return one == other or (one != one and other != other)
