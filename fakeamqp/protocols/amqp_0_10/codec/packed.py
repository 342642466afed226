"""What the generated classes of controls, commands and structs have in common.

All are packed: two bytes of flags, then those fields whose flag is set (encoding/packing-flags). Field n has
bit n mod 8 of byte n div 8; a field of type bit is its flag and nothing else.

A generated `decode` reads straight through and does not look at lengths on the way: a read behind the end
raises IndexError or struct.error, a slice that comes up short shows in the final comparison. Only then does
`unreadable` go through the fields again, slowly, to say which is to blame. `encode` works the same way with
`unwritable`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

from fakeamqp.protocols.amqp_0_10.codec.errors import IllegalValue, SegmentError
from fakeamqp.protocols.amqp_0_10.codec.serial import (
    ByteRanges,
    SequenceSet,
    read_byte_ranges,
    read_sequence_set,
)
from fakeamqp.protocols.amqp_0_10.codec.types import CODES, UnknownStruct, read_array, read_map, read_struct32
from fakeamqp.protocols.amqp_0_10.codec.writing import encode_array, encode_map, encode_struct32, encode_value
from fakeamqp.protocols.codec.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Container

    from typing_extensions import Self

    Fields: TypeAlias = tuple[tuple[str, str], ...]

__all__ = [
    "NESTED",
    "UNREADABLE",
    "UNWRITABLE",
    "Command",
    "Control",
    "Packed",
    "Struct",
    "decode_header",
    "encode_fragments",
    "encode_header",
    "header_entries",
    "read_fragments",
    "unreadable",
    "unwritable",
]

#: What reading malformed bytes may raise before `unreadable` explains it.
UNREADABLE = (IndexError, ValueError, struct.error, WireError)
#: What writing unfit values may raise before `unwritable` explains it.
UNWRITABLE = (AttributeError, IndexError, TypeError, ValueError, OverflowError, struct.error, WireError)

_read_flags = struct.Struct(">H").unpack_from
_pack_uint32 = struct.Struct(">I").pack
_STRUCT32 = 0xAB


class Packed:
    """Named values with a layout on the wire; None is a field that is not there. Compares by value."""

    __slots__ = ()

    NAME: ClassVar[str]
    #: 0 where it has no code
    CLASS: ClassVar[int] = 0
    CODE: ClassVar[int] = 0
    #: class << 8 | code
    INDEX: ClassVar[int] = 0
    #: (field, type on the wire), in the order of the wire
    FIELDS: ClassVar[Fields] = ()
    #: fields that the protocol calls required; real peers leave them out, so nothing here insists
    REQUIRED: ClassVar[tuple[str, ...]] = ()
    #: field -> the values it may have; where it is not listed, what its type can hold
    DOMAINS: ClassVar[Mapping[str, Container[int]]] = {}
    #: where its flags are in its bytes; None where it has none, and all fields are there
    FLAGS_AT: ClassVar[int | None] = 2
    #: how many bytes its size has
    SIZE_WIDTH: ClassVar[int] = 0

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """Read a whole one, from its size, or else its code, to its end.

        Raises SegmentError for sizes that do not fit or bytes that are left over, IllegalValue for a value
        outside of its domain or flags that stand for no field (encoding/packing-unused).
        """
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name, _ in self.FIELDS)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Only what is there."""
        values = ((name, getattr(self, name)) for name, _ in self.FIELDS)
        # A number may be 0, which equals False and is there all the same.
        there = ((name, value) for name, value in values if value is not None and value is not False)
        shown = ", ".join(f"{name}={value!r}" for name, value in there)
        return f"{type(self).__name__}({shown})"


class Control(Packed):
    """A control: `encode` gives its whole segment, `decode` reads it back."""

    __slots__ = ()

    #: the sides that must or may deal with it: client, server, sender, receiver
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ()
    #: the controls that answer it
    RESPONSES: ClassVar[tuple[str, ...]] = ()

    def encode(self) -> bytes:
        """The whole control segment. Raises SegmentError for a value that its field cannot hold."""
        raise NotImplementedError


class Command(Packed):
    """A command: `encode` gives its command segment, `decode` reads it back."""

    __slots__ = ()
    FLAGS_AT: ClassVar[int | None] = 4

    #: the sides that must or may deal with it: client, server
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ()
    #: the commands that answer it
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    #: the struct of its result
    RESULT: ClassVar[str | None] = None
    #: the structs that its header segment may have; None where it has no header segment
    HEADER: ClassVar[tuple[str, ...] | None] = None
    #: whether it may have a body segment
    BODY: ClassVar[bool] = False

    def encode(self, sync: bool = False) -> bytes:
        """The whole command segment. Raises SegmentError for a value that its field cannot hold."""
        raise NotImplementedError


class Struct(Packed):
    """A struct: `encode` gives it with its size and code, `decode` reads it back."""

    __slots__ = ()

    def encode(self) -> bytes:
        """Size, code and fields. Raises SegmentError for a value that its field cannot hold."""
        raise NotImplementedError


_S = TypeVar("_S", bound=Struct)

# --- arrays of structs without code ------------------------------------------------------------------------


def encode_fragments(fragments: Any) -> bytes:
    """The array of session.command-fragment: elements of type struct32, whose size no code follows.

    The documents leave open how a struct that has neither size nor code can be in an array.
    """
    octets = [fragment.encode() for fragment in fragments]
    body = b"".join([_pack_uint32(len(each)) + each for each in octets])
    return struct.pack(">IBI", len(body) + 5, _STRUCT32, len(octets)) + body


def read_fragments(octets: bytes, offset: int, fragment: type[_S]) -> tuple[list[_S], int]:
    """The array of `fragment`, and the offset behind it; see `encode_fragments`."""
    start, end = offset + 4, len(octets)
    stop = start + int.from_bytes(octets[offset:start], "big")
    if start > end or stop > end:
        raise SegmentError("an array is cut short")
    if start == stop:
        return [], stop
    if start + 5 > stop:
        raise SegmentError("an array is cut short inside its count")
    code, count = octets[start], int.from_bytes(octets[start + 1 : start + 5], "big")
    found: list[_S] = []
    offset = start + 5
    if offset < stop and code != _STRUCT32:
        raise IllegalValue(f"an array of type 0x{code:02x} cannot hold {fragment.NAME}")
    while offset < stop:
        behind = offset + 4 + int.from_bytes(octets[offset : offset + 4], "big")
        if behind > stop:
            raise SegmentError(f"{fragment.NAME} is cut short")
        found.append(fragment.decode(octets[offset + 4 : behind]))
        offset = behind
    if len(found) != count:
        raise SegmentError(f"an array announces {count} elements and has {len(found)}")
    return found, stop


# --- header segments ---------------------------------------------------------------------------------------


def header_entries(octets: bytes) -> Iterator[tuple[Struct | UnknownStruct, bytes]]:
    """The structs of a header segment as they come, each with its bytes (assembly/header-entries).

    Raises SegmentError, and IllegalValue for one that comes twice.
    """
    codes: list[bytes] = []
    offset, end = 0, len(octets)
    while offset < end:
        start = offset
        entry, offset = read_struct32(octets, offset)
        code = octets[start + 4 : start + 6]
        if code in codes:
            raise IllegalValue(f"a header has the struct 0x{code.hex()} twice")
        codes.append(code)
        yield entry, octets[start:offset]


def decode_header(octets: bytes) -> tuple[Struct | UnknownStruct, ...]:
    """The structs of a header segment, as they come; see `header_entries`."""
    return tuple([entry for entry, _ in header_entries(octets)])


def encode_header(structs: Iterable[Struct | UnknownStruct]) -> bytes:
    """A header segment of these structs, in their order. Raises SegmentError."""
    return b"".join([each.encode() for each in structs])


# --- saying what is wrong ----------------------------------------------------------------------------------

_NUMBERS = {
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
    "datetime": "Q",
    "sequence-no": "I",
}
_SIZES = {"str8": "B", "vbin8": "B", "str16": "H", "vbin16": "H", "vbin32": "I"}
_READERS: dict[str, Callable[[bytes, int], tuple[Any, int]]] = {
    "map": read_map,
    "array": read_array,
    "struct32": read_struct32,
    "sequence-set": read_sequence_set,
    "byte-ranges": read_byte_ranges,
}
_SETS: dict[str, type[Any]] = {"sequence-set": SequenceSet, "byte-ranges": ByteRanges}


def _behind(octets: bytes, offset: int, kind: str, domain: Container[int] | None) -> int:
    """The offset behind a value; raises SegmentError when there is none of that type."""
    reader = _READERS.get(kind)
    if reader is not None:
        return reader(octets, offset)[1]
    if kind.startswith("array:"):
        return read_fragments(octets, offset, _struct_named(kind[6:]))[1]
    left = len(octets) - offset
    if kind.startswith("struct:"):
        owner = _struct_named(kind[7:])
        size = owner.SIZE_WIDTH + int.from_bytes(octets[offset : offset + owner.SIZE_WIDTH], "big")
        if size > left or left < owner.SIZE_WIDTH:
            raise SegmentError(f"{owner.NAME} announces {size} bytes, {left} are left")
        owner.decode(octets[offset : offset + size])
        return offset + size
    size = 16 if kind == "uuid" else struct.calcsize(_NUMBERS.get(kind) or _SIZES[kind])
    if size <= left and kind in _SIZES:
        size += int.from_bytes(octets[offset : offset + size], "big")
    if size > left:
        raise SegmentError(f"{size} bytes are due at offset {offset}, {left} are left")
    if domain is not None:
        value = int.from_bytes(octets[offset : offset + size], "big")
        if value not in domain:
            raise IllegalValue(f"{value} is none of its values")
    return offset + size


#: name -> class of every struct, for those that are fields of others; `structs` fills it
NESTED: dict[str, type[Struct]] = {}


def _struct_named(name: str) -> type[Struct]:
    return NESTED[name]


def unreadable(owner: type[Packed], octets: bytes) -> SegmentError:
    """Say why `octets` are not one of `owner`."""
    width = owner.SIZE_WIDTH
    if len(octets) < width or (width and int.from_bytes(octets[:width], "big") != len(octets) - width):
        return SegmentError(f"{owner.NAME}: its size does not fit its {len(octets)} bytes")
    at = owner.FLAGS_AT
    flags = 0xFFFF
    if at is None:
        offset = width
    else:
        if issubclass(owner, Command) and octets[2:3] != b"\1":
            return SegmentError(f"{owner.NAME}: the session header is not one byte long")
        if issubclass(owner, Command) and octets[3:4] > b"\1":
            return IllegalValue(f"{owner.NAME}: flags of the session header stand for no field")
        if len(octets) < at + 2:
            return SegmentError(f"{owner.NAME}: it ends inside its flags")
        if owner.INDEX and octets[at - 2 if width else 0 :][:2] != owner.INDEX.to_bytes(2, "big"):
            return SegmentError(f"{owner.NAME}: the code is not 0x{owner.INDEX:04x}")
        flags = _read_flags(octets, at)[0]
        offset = at + 2
        if flags & ~sum(map(flag_of, range(len(owner.FIELDS)))):
            return IllegalValue(f"{owner.NAME}: flags 0x{flags:04x} stand for no field")
    for index, (name, kind) in enumerate(owner.FIELDS):
        if kind == "bit" or not flags & flag_of(index):
            continue
        try:
            offset = _behind(octets, offset, kind, owner.DOMAINS.get(name))
        except SegmentError as problem:
            return type(problem)(f"{owner.NAME}, field {name}: {problem}", index)
    left = len(octets) - offset
    return SegmentError(f"{owner.NAME}: {left} bytes are left over after the last field")


def flag_of(index: int) -> int:
    """The flag of a field in two bytes of flags, read as one number."""
    return 1 << (index % 8 + (8 if index < 8 else 0))


def unwritable(record: Packed) -> SegmentError:
    """Say which value of `record` its field cannot hold."""
    for index, (name, kind) in enumerate(record.FIELDS):
        value = getattr(record, name)
        if kind == "bit" or (value is None and record.FLAGS_AT is not None):
            continue
        try:
            _write(value, kind)
        except SegmentError as problem:
            return type(problem)(f"{record.NAME}, field {name}: {problem}", index)
        except UNWRITABLE:
            return SegmentError(f"{record.NAME}, field {name}: {value!r:.80} is no {kind}", index)
    return SegmentError(f"{record.NAME}: {record!r:.200} cannot be written")


def _write(value: Any, kind: str) -> None:
    if kind in _NUMBERS:
        struct.pack(">" + _NUMBERS[kind], value)
    elif kind == "map":
        encode_map(value)
    elif kind == "array":
        encode_array(value)
    elif kind == "struct32":
        encode_struct32(value)
    elif kind.startswith("array:"):
        encode_fragments(value)
    elif kind.startswith("struct:") or kind in ("sequence-set", "byte-ranges"):
        expected: type[Any] = _SETS.get(kind) or NESTED[kind[7:]]
        if not isinstance(value, expected):
            raise SegmentError(f"{value!r:.80} is no {expected.__name__}")
        value.encode()
    else:
        encode_value(value, CODES[kind])
