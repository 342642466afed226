"""The codec of controls, commands and structs: makes their `__init__`, `encode` and `decode` on first use.

All three are packed: two bytes of flags, then the fields whose flag is set (encoding/packing-flags). Field n
has bit n mod 8 of byte n div 8; a field of type bit is its flag and nothing else.

`build` puts the statements of each field, which depend on its type, behind those of the head, and compiles
them all.
A reader does not check lengths on the way: a read behind the end raises IndexError or struct.error, and the
final comparison finds a slice that is too short. Only then does `unreadable` read field by field, with the
same statements, to find the one to blame. `encode` and `unwritable` work in the same way.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fakeamqp.protocols.amqp_0_10.codec import serial, types
from fakeamqp.protocols.amqp_0_10.codec.errors import IllegalValue, SegmentError
from fakeamqp.protocols.amqp_0_10.codec.serial import ByteRanges, SequenceSet
from fakeamqp.protocols.amqp_0_10.codec.types import NESTED, STRUCT32
from fakeamqp.protocols.base.codec import WireError

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_10.codec.structs import Packed


# --- structs inside of others ------------------------------------------------------------------------------

_pack_uint32 = struct.Struct(">I").pack


def encode_fragments(fragments: Any) -> bytes:
    """The array of session.command-fragment: elements of type struct32, whose size no code follows.

    The documents leave open how a struct that has neither size nor code can be in an array.
    """
    encoded = [fragment.encode() for fragment in fragments]
    body = b"".join([_pack_uint32(len(each)) + each for each in encoded])
    return struct.pack(">IBI", len(body) + 5, STRUCT32, len(encoded)) + body


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
    if offset < stop and code != STRUCT32:
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
    return FieldType(
        f"{{x}} = {_number_at(letter)}\nend += {width}", f"parts.append(pack_{letter}({{x}}))", width
    )


def _number_at(letter: str) -> str:
    return "data[end]" if letter == "B" else f"read_{letter}(data, end)[0]"


def _sized(letter: str, *, text: bool) -> FieldType:
    width = struct.calcsize(letter)
    read = f"start = end + {width}\nend = start + {_number_at(letter)}\n{{x}} = data[start:end]"
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
    size = f"{owner.SIZE_WIDTH} + {_number_at('HI'[owner.SIZE_WIDTH == 4])}"
    read = f"start = end\nend += {size}\n{{x}} = {owner.__name__}.decode(data[start:end])"
    return FieldType(read, f"parts.append({owner.__name__}.encode({{x}}))", 0, (owner,))


def namespace() -> dict[str, Any]:
    """The names that the statements use."""
    names = {**vars(types), **vars(serial), **globals()}
    names |= {each.__name__: each for each in NESTED.values()}
    for letter in _LETTERS:
        packer = struct.Struct(f">{letter}")
        names |= {f"read_{letter}": packer.unpack_from, f"pack_{letter}": packer.pack}
    return names


#: What reading malformed bytes may raise before `unreadable` explains it.
UNREADABLE = (IndexError, ValueError, struct.error, WireError)
#: What writing unfit values may raise before `unwritable` explains it.
UNWRITABLE = (AttributeError, IndexError, TypeError, ValueError, OverflowError, struct.error, WireError)


class _Head(NamedTuple):
    """What stands in front of the fields, the flags at its end."""

    letters: str
    names: str
    wrong: str
    """True for bytes that are no such record; `{code}` is its code."""
    values: str


#: `Packed.HEAD` -> head
_HEADS: Final = {
    "command": _Head(
        "HBBH", "code, size, sync, flags", "code != {code} or size != 1 or sync > 1", "{code}, 1, sync, flags"
    ),
    "control": _Head("HH", "code, flags", "code != {code}", "{code}, flags"),
    "coded struct": _Head(
        "IHH", "size, code, flags", "code != {code} or size != len(data) - 4", "len(body) + 4, {code}, flags"
    ),
    "struct": _Head("HH", "size, flags", "size != len(data) - 2", "len(body) + 2, flags"),
}


def build(owner: type[Packed], name: str) -> None:
    """Compile one of the methods of a class, and set it."""
    signature, body = _METHODS[name](owner)
    names = {**namespace(), **{f"domain_{field}": values for field, values in owner.DOMAINS.items()}}
    names["new"] = object.__new__
    head = _HEADS.get(owner.HEAD)
    if head is not None:
        packer = struct.Struct(">" + head.letters)
        names |= {"read_head": packer.unpack_from, "pack_head": packer.pack}
    function = _function(f"{owner.__name__}.{name}", signature, body, names)
    function.__doc__, function.__module__ = getattr(owner, name).__doc__, owner.__module__
    setattr(owner, name, classmethod(function) if name == "decode" else function)


def _function(name: str, signature: str, body: Iterable[str], names: dict[str, Any]) -> Callable[..., Any]:
    short = name.rpartition(".")[2]
    text = "\n".join([f"def {short}({signature}):", *_indented(body)])
    exec(compile(text, f"<{name} of AMQP 0-10>", "exec"), names)
    function: Callable[..., Any] = names[short]
    function.__qualname__ = name
    return function


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return ("    " + line for line in lines)


def flag_of(index: int) -> int:
    """The flag of a field in two bytes of flags, read as one number."""
    return 1 << (index % 8 + (8 if index < 8 else 0))


def _flags(owner: type[Packed]) -> int:
    """The flags that stand for a field."""
    return sum(map(flag_of, range(len(owner.FIELDS))))


# --- the statements of methods -----------------------------------------------------------------------------


def _init(owner: type[Packed]) -> tuple[str, list[str]]:
    parameters = [f"{field}={default!r}" for field, default in owner.DEFAULTS.items()]
    body = [f"self.{field} = {field}" for field in owner.DEFAULTS]
    return ", ".join(["self", *parameters]), body or ["pass"]


def _encode(owner: type[Packed]) -> tuple[str, list[str]]:
    lines = ["flags = 0", 'parts = [b""]']
    for index, (field, kind) in enumerate(owner.FIELDS):
        if kind == "bit":
            lines += [f"if self.{field}:", f"    flags |= 0x{flag_of(index):04X}"]
            continue
        lines.append(f"value = self.{field}")
        write = type_of(kind).write.format(x="value").splitlines()
        if not owner.HEAD:
            lines += ["if value is None:", f"    value = {type_of(kind).default}", *write]
        else:
            lines += ["if value is not None:", f"    flags |= 0x{flag_of(index):04X}", *_indented(write)]
    head = owner.HEAD and f"pack_head({_HEADS[owner.HEAD].values.format(code=owner.INDEX)})"
    if owner.HEAD and owner.SIZE_WIDTH:
        lines += ['body = b"".join(parts)', f"return {head} + body"]
    else:
        lines += [f"parts[0] = {head}"] if head else []
        lines.append('return b"".join(parts)')
    failed = ["except UNWRITABLE:", "    raise unwritable(self) from None"]
    signature = "self, sync=False" if owner.HEAD == "command" else "self"
    return signature, ["try:", *_indented(lines), *failed]


def _decode(owner: type[Packed]) -> tuple[str, list[str]]:
    head = _HEADS.get(owner.HEAD)
    lines = ["end = 0"]
    if head is not None:
        wrong = f"{head.wrong.format(code=owner.INDEX)} or flags & 0x{0xFFFF & ~_flags(owner):04X}"
        lines = [f"{head.names} = read_head(data)", f"if {wrong}:", "    raise ValueError"]
        lines.append(f"end = {struct.calcsize('>' + head.letters)}")
    for index, (field, kind) in enumerate(owner.FIELDS):
        target = f"packed.{field}"
        if kind == "bit":
            lines.append(f"{target} = flags & 0x{flag_of(index):04X} != 0")
            continue
        read = type_of(kind).read.format(x=target).splitlines()
        if field in owner.DOMAINS:
            read += [f"if {target} not in domain_{field}:", "    raise ValueError"]
        if head is None:
            lines += read
        else:
            lines += [f"if flags & 0x{flag_of(index):04X}:", *_indented(read)]
            lines += ["else:", f"    {target} = None"]
    lines += ["if end == len(data):", "    return packed"]
    failed = ["except UNREADABLE:", "    pass", "raise unreadable(cls, data)"]
    return "cls, data", ["packed = new(cls)", "try:", *_indented(lines), *failed]


_METHODS: Final[dict[str, Callable[[type[Packed]], tuple[str, Sequence[str]]]]] = {
    "__init__": _init,
    "encode": _encode,
    "decode": _decode,
}

# --- errors ------------------------------------------------------------------------------------------------


def unreadable(owner: type[Packed], data: bytes) -> SegmentError:
    """The error that says why `data` is not one of `owner`."""
    width = owner.SIZE_WIDTH
    if len(data) < width or (width and int.from_bytes(data[:width], "big") != len(data) - width):
        return SegmentError(f"{owner.NAME}: its size does not fit its {len(data)} bytes")
    at = owner.FLAGS_AT
    flags = 0xFFFF
    if at is None:
        offset = width
    else:
        if owner.HEAD == "command" and data[2:3] != b"\1":
            return SegmentError(f"{owner.NAME}: the session header is not one byte long")
        if owner.HEAD == "command" and data[3:4] > b"\1":
            return IllegalValue(f"{owner.NAME}: flags of the session header stand for no field")
        if len(data) < at + 2:
            return SegmentError(f"{owner.NAME}: it ends inside its flags")
        if owner.INDEX and data[at - 2 if width else 0 :][:2] != owner.INDEX.to_bytes(2, "big"):
            return SegmentError(f"{owner.NAME}: the code is not 0x{owner.INDEX:04x}")
        offset = at + 2
        flags = int.from_bytes(data[at:offset], "big")
        if flags & ~_flags(owner):
            return IllegalValue(f"{owner.NAME}: flags 0x{flags:04x} stand for no field")
    for index, (field, kind) in enumerate(owner.FIELDS):
        if kind == "bit" or not flags & flag_of(index):
            continue
        try:
            value, offset = _read(data, offset, kind)
            if value not in owner.DOMAINS.get(field, (value,)):
                raise IllegalValue(f"{value} is none of its values")
        except SegmentError as problem:
            return type(problem)(f"{owner.NAME}, field {field}: {problem}", index)
    return SegmentError(f"{owner.NAME}: {len(data) - offset} bytes are left over after the last field")


def _read(data: bytes, offset: int, kind: str) -> tuple[Any, int]:
    """One value, and the offset behind it. Raises SegmentError for one that is cut short."""
    if kind.startswith("struct:"):
        owner = NESTED[kind.partition(":")[2]]
        width = owner.SIZE_WIDTH
        size, left = width + int.from_bytes(data[offset : offset + width], "big"), len(data) - offset
        if size > left:
            raise SegmentError(f"{owner.NAME} announces {size} bytes, {left} are left")
    try:
        value, end = _reader(kind)(data, offset)
    except (IndexError, ValueError, struct.error):
        value, end = None, offset + type_of(kind).width
    if end > len(data):
        raise SegmentError(f"{end - offset} bytes are due at offset {offset}, {len(data) - offset} are left")
    return value, end


@cache
def _reader(kind: str) -> Callable[[bytes, int], tuple[Any, int]]:
    read = type_of(kind).read.format(x="value").splitlines()
    return _function("read", "data, end", [*read, "return value, end"], namespace())


def unwritable(record: Packed) -> SegmentError:
    """The error that says which value of `record` its field cannot hold."""
    for index, (field, kind) in enumerate(record.FIELDS):
        value = getattr(record, field)
        if kind == "bit" or value is None:
            continue
        holds = type_of(kind).holds
        try:
            if not isinstance(value, holds or object):
                if bytes in holds:
                    raise SegmentError(f"it must be bytes, not {type(value).__name__}")
                raise SegmentError(f"{value!r:.80} is no {holds[0].__name__}")
            _writer(kind)(value)
        except SegmentError as problem:
            return type(problem)(f"{record.NAME}, field {field}: {problem}", index)
        except UNWRITABLE:
            return SegmentError(f"{record.NAME}, field {field}: {value!r:.80} is no {kind}", index)
    return SegmentError(f"{record.NAME}: {record!r:.200} cannot be written")


@cache
def _writer(kind: str) -> Callable[[Any], list[bytes]]:
    write = type_of(kind).write.format(x="value").splitlines()
    return _function("write", "value", ["parts = []", *write, "return parts"], namespace())
