"""The statements that read and write the value of a field, by its type. `codec` makes methods of them."""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple

from fakeamqp.protocols.amqp_0_10.codec.errors import IllegalValue, SegmentError
from fakeamqp.protocols.amqp_0_10.codec.scalars import read_uuid
from fakeamqp.protocols.amqp_0_10.codec.serial import (
    ByteRanges,
    SequenceSet,
    read_byte_ranges,
    read_sequence_set,
)
from fakeamqp.protocols.amqp_0_10.codec.types import NESTED, read_array, read_map, read_struct32
from fakeamqp.protocols.amqp_0_10.codec.writing import encode_array, encode_map, encode_struct32

__all__ = ["FieldType", "check_struct", "encode_fragments", "namespace", "read_fragments", "type_of"]

# --- structs inside of others ------------------------------------------------------------------------------

_STRUCT32 = 0xAB
_pack_uint32 = struct.Struct(">I").pack


def check_struct(data: bytes, offset: int, owner: type[Any]) -> None:
    """Raise SegmentError where the struct whose size stands at `offset` is cut short."""
    width: int = owner.SIZE_WIDTH
    size = width + int.from_bytes(data[offset : offset + width], "big")
    left = len(data) - offset
    if size > left:
        raise SegmentError(f"{owner.NAME} announces {size} bytes, {left} are left")


def encode_fragments(fragments: Any) -> bytes:
    """The array of session.command-fragment: elements of type struct32, whose size no code follows.

    The documents leave open how a struct that has neither size nor code can be in an array.
    """
    encoded = [fragment.encode() for fragment in fragments]
    body = b"".join([_pack_uint32(len(each)) + each for each in encoded])
    return struct.pack(">IBI", len(body) + 5, _STRUCT32, len(encoded)) + body


def read_fragments(data: bytes, offset: int, fragment: type[Any]) -> tuple[list[Any], int]:
    """The array of `fragment`, and the offset behind it; see `encode_fragments`."""
    start, end = offset + 4, len(data)
    stop = start + int.from_bytes(data[offset:start], "big")
    if start > end or stop > end:
        raise SegmentError("an array is cut short")
    if start == stop:
        return [], stop
    if start + 5 > stop:
        raise SegmentError("an array is cut short inside its count")
    code, count = data[start], int.from_bytes(data[start + 1 : start + 5], "big")
    found: list[Any] = []
    offset = start + 5
    if offset < stop and code != _STRUCT32:
        raise IllegalValue(f"an array of type 0x{code:02x} cannot hold {fragment.NAME}")
    while offset < stop:
        behind = offset + 4 + int.from_bytes(data[offset : offset + 4], "big")
        if behind > stop:
            raise SegmentError(f"{fragment.NAME} is cut short")
        found.append(fragment.decode(data[offset + 4 : behind]))
        offset = behind
    if len(found) != count:
        raise SegmentError(f"an array announces {count} elements and has {len(found)}")
    return found, stop


# --- statements --------------------------------------------------------------------------------------------


class FieldType(NamedTuple):
    """How a value of one type is read and written: Python statements, with `{x}` for the value."""

    read: str
    """Sets `{x}` from `data` at `end`, and moves `end` behind the value. Lengths are not checked."""
    write: str
    """Appends the bytes of `{x}` to the list `parts`."""
    width: int = 0
    """Bytes of a number, or of the size in front of a text."""
    holds: tuple[type[Any], ...] = ()
    """The classes of the values, where more than these can be written."""
    default: str = "0"
    """What a struct without flags has for None."""


_BYTES = (bytes, bytearray, memoryview)
_ENCODE = '.encode("utf-8", "surrogateescape")'
_DECODE = '.decode("utf-8", "surrogateescape")'
_LETTERS: Final = "BHIQ"


def _number(letter: str) -> FieldType:
    width = struct.calcsize(letter)
    return FieldType(f"{{x}} = {_read(letter)}\nend += {width}", f"parts.append(pack_{letter}({{x}}))", width)


def _read(letter: str) -> str:
    return "data[end]" if letter == "B" else f"read_{letter}(data, end)[0]"


def _sized(letter: str, *, text: bool) -> FieldType:
    width = struct.calcsize(letter)
    read = f"start = end + {width}\nend = start + {_read(letter)}\n{{x}} = data[start:end]"
    if text:
        write = f"text = {{x}}{_ENCODE}\nparts += (pack_{letter}(len(text)), text)"
        return FieldType(read + _DECODE, write, width)
    return FieldType(read, f"parts += (pack_{letter}(len({{x}})), {{x}})", width, _BYTES)


def _called(reader: str, writer: str, *holds: type[Any]) -> FieldType:
    default = f"{holds[0].__name__}()" if holds else ""
    return FieldType(f"{{x}}, end = {reader}", f"parts.append({writer}({{x}}))", 0, holds, default)


_TYPES: Final[dict[str, FieldType]] = {
    "uint8": _number("B"),
    "uint16": _number("H"),
    "uint32": _number("I"),
    "uint64": _number("Q"),
    "datetime": _number("Q"),
    "sequence-no": _number("I"),
    "str8": _sized("B", text=True),
    "str16": _sized("H", text=True),
    "vbin8": _sized("B", text=False),
    "vbin16": _sized("H", text=False),
    "vbin32": _sized("I", text=False),
    "uuid": FieldType(
        "start = end\nend += 16\n{x} = read_uuid(data[start:end])", "parts.append({x}.bytes)", 16
    ),
    "map": _called("read_map(data, end)", "encode_map"),
    "array": _called("read_array(data, end)", "encode_array"),
    "struct32": _called("read_struct32(data, end)", "encode_struct32"),
    # Through the class: then nothing else that has `encode` is written, such as a text.
    "sequence-set": _called("read_sequence_set(data, end)", "SequenceSet.encode", SequenceSet),
    "byte-ranges": _called("read_byte_ranges(data, end)", "ByteRanges.encode", ByteRanges),
}


def type_of(kind: str) -> FieldType:
    """The type of this name: that of the protocol, "struct:" or "array:" with the name of a struct."""
    what, _, name = kind.partition(":")
    if not name:
        return _TYPES[kind]
    owner = NESTED[name]
    if what == "array":
        return _called(f"read_fragments(data, end, {owner.__name__})", "encode_fragments")
    size = f"{owner.SIZE_WIDTH} + {_read('HI'[owner.SIZE_WIDTH == 4])}"
    read = f"start = end\nend += {size}\n{{x}} = {owner.__name__}.decode(data[start:end])"
    return FieldType(read, f"parts.append({owner.__name__}.encode({{x}}))", 0, (owner,))


def namespace() -> dict[str, Any]:
    """The names that the statements use."""
    readers = {f"read_{letter}": struct.Struct(f">{letter}").unpack_from for letter in _LETTERS}
    writers = {f"pack_{letter}": struct.Struct(f">{letter}").pack for letter in _LETTERS}
    functions: tuple[Any, ...] = (
        *(read_array, read_byte_ranges, read_fragments, read_map, read_sequence_set),
        *(read_struct32, read_uuid, encode_array, encode_fragments, encode_map, encode_struct32),
        *(SequenceSet, ByteRanges, *NESTED.values()),
    )
    return {**readers, **writers, **{each.__name__: each for each in functions}}
