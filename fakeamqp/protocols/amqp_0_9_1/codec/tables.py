"""Field tables (0-9-1/types/table-encoding): name, tag byte and value, behind a 32-bit byte length.

The published grammar and actual peers disagree about some tags, so decoding takes a `Grammar`:

| tag | `RABBITMQ`          | `PUBLISHED`                  |
|-----|---------------------|------------------------------|
| s   | int16               | short string                 |
| U   | unknown             | int16                        |
| l   | int64               | uint64                       |
| D   | unsigned mantissa   | signed mantissa              |
| x   | bytes               | unknown                      |

The published grammar also has a syntax for field names and forbids NUL in short strings. The text of 0-9 has
the same rules and only six tags; peers use three times as many. `PUBLISHED_0_9` reads the tags of RabbitMQ's
grammar, with a signed mantissa, and makes the checks of the text. `RABBITMQ_INPUT` refuses what RabbitMQ
refuses from its clients. Encoding needs no grammar: its tags have the same meaning in all, except `l` and
`x`, which only RabbitMQ's grammar reads as they are written.

Python types: t bool; all integers int; f and d float; D Decimal; S and a short s str; x bytes; T Timestamp;
F dict; A list; V None; tables and arrays below `MAX_DEPTH` DeepTable and DeepArray. Of several fields with
one name the first counts: 0-9 demands it, 0-9-1 leaves it open (0-9-1/types/table-duplicates).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeAlias, Union

from fakeamqp.protocols.base.codec import FieldError, FieldNameError, FrameError
from fakeamqp.timestamps import Timestamp as Timestamp

if TYPE_CHECKING:
    from datetime import datetime

#: How deep nested tables and arrays are decoded; below, they become `DeepTable` and `DeepArray`. The protocol
#: has no limit (0-9-1/types/table-nested), but Python's stack has one. Encoding refuses deeper values.
MAX_DEPTH = 200


class DeepTable(bytes):
    """The checked octets of a table that is nested deeper than `MAX_DEPTH`, without its length."""

    field_tag = "F"


class DeepArray(bytes):
    """The checked octets of an array that is nested deeper than `MAX_DEPTH`, without its length."""

    field_tag = "A"


class Removed(Enum):
    """The type of `REMOVED`."""

    REMOVED = "removed"


#: As a value in the changes of `edit_table`: remove the field.
REMOVED: Final = Removed.REMOVED

#: The values that decoding returns.
FieldValue: TypeAlias = Union[
    bool, int, float, str, bytes, Decimal, Timestamp, "dict[str, FieldValue]", "list[FieldValue]", None
]
#: The values that encoding accepts.
FieldInput: TypeAlias = Union[
    bool,
    int,
    float,
    str,
    bytes,
    bytearray,
    Decimal,
    Timestamp,
    "datetime",
    "Mapping[str, FieldInput]",
    "Sequence[FieldInput]",
    None,
]

_Reader: TypeAlias = "tuple[Callable[[bytes, int], tuple[Any, ...]], int]"

_read_uint32 = struct.Struct(">I").unpack_from
_read_int32 = struct.Struct(">i").unpack_from
_read_uint64 = struct.Struct(">Q").unpack_from


def _finite(reader: _Reader) -> _Reader:
    """The reader of a float, which refuses infinities and NaN: Erlang has none."""
    unpack, size = reader

    def read(buffer: bytes, offset: int) -> tuple[Any, ...]:
        value = unpack(buffer, offset)
        if not isfinite(value[0]):
            raise FieldError(f"a field has the value {value[0]}, which is not a number")
        return value

    return read, size


_COMMON_NUMBERS = {"b": "b", "B": "B", "u": "H", "I": "i", "i": "I", "L": "q", "f": "f", "d": "d"}


class Grammar:
    """The rules for decoding: tags, their meaning, checks. Immutable.

    Args:
        name: its name in this module.
        numbers: tag -> struct code of the tags that are one number, besides the common ones.
        mantissa: struct code of scale and mantissa, tag D.
        short_strings: tag s is a short string.
        octets: tag x is known.
        checks: field names must have the published syntax, and short strings must not hold a zero byte.
        lenient: the same tags for bytes that were checked before; this grammar then refuses floats that are
            not finite, and property flags that go on in further words.
    """

    def __init__(
        self,
        name: str,
        *,
        numbers: Mapping[str, str],
        mantissa: str = ">BI",
        short_strings: bool = False,
        octets: bool = True,
        checks: bool = False,
        lenient: Grammar | None = None,
    ) -> None:
        self.name = name
        packers = {tag: struct.Struct(f">{code}") for tag, code in {**_COMMON_NUMBERS, **numbers}.items()}
        readers: dict[int, _Reader] = {
            ord(tag): (packer.unpack_from, packer.size) for tag, packer in packers.items()
        }
        if lenient is not None:
            readers.update({tag: _finite(readers[tag]) for tag in b"fd"})
        #: tag -> (unpack_from, bytes) of every tag that is one number
        self.numbers: Mapping[int, _Reader] = readers
        self.flag_words: bool = lenient is None
        self.mantissa: struct.Struct = struct.Struct(mantissa)
        self.short_strings = short_strings
        self.octets = octets
        self.checks = checks
        #: the same tags without the checks, and with x: for bytes that were checked before or written here
        self.unchecked: Grammar = lenient or self
        if checks:
            self.unchecked = Grammar(
                f"{name}.unchecked", numbers=numbers, mantissa=mantissa, short_strings=short_strings
            )

    def __reduce__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name

    def decode(self, buffer: bytes, offset: int, end: int) -> tuple[dict[str, FieldValue], int]:
        """Read the table whose length is at `offset`; it must end before or at `end`.

        Returns the fields and the offset behind the table. Raises FrameError when lengths do not fit,
        FieldError for an unknown tag or an illegal value, FieldNameError for a name that the published syntax
        forbids.
        """
        start = offset + 4
        if start > end:
            raise FrameError("a field table is cut short inside its length")
        stop = start + _read_uint32(buffer, offset)[0]
        if stop > end:
            raise FrameError(f"a field table announces {stop - start} bytes, {end - start} are left")
        fields: dict[str, FieldValue] = {}
        if start != stop:
            unchecked: list[tuple[int, int, bool]] = []
            try:
                _read_values(buffer, start, stop, self, 1, unchecked, fields, None)
                while unchecked:
                    first, last, named = unchecked.pop()
                    _read_values(buffer, first, last, self, 1, unchecked, {}, None if named else [])
            except RecursionError:
                raise FieldError("a field table nests deeper than the caller's stack allows") from None
        return fields, stop

    def decode_exactly(self, buffer: bytes, offset: int, end: int) -> tuple[ExactTable, int]:
        """`decode`, with the exact fields."""
        fields, stop = self.decode(buffer, offset, end)
        table = ExactTable(fields)
        table.exact = exact_fields(buffer[offset:stop], self) if fields else ()
        return table, stop


class ExactTable(dict[str, FieldValue]):
    """A decoded table that keeps what its fields were: `exact` has them all, in order, also duplicates.

    Each is a name, a value, and the bytes of the value with its tag, in which int64 has the tag `l`.
    """

    __slots__ = ("exact",)

    exact: tuple[tuple[str, FieldValue, bytes], ...]


#: The tags as RabbitMQ reads them and clients send them (source: RabbitMQ, documented behaviour).
RABBITMQ: Final = Grammar("RABBITMQ", numbers={"s": "h", "l": "q"})
#: The same for bytes from a client: floats must be finite, and the spare bits of property flags mean nothing
#: (RabbitMQ: measured).
RABBITMQ_INPUT: Final = Grammar("RABBITMQ_INPUT", numbers={"s": "h", "l": "q"}, lenient=RABBITMQ)
#: The tags and checks of the published 0-9-1 grammar.
PUBLISHED: Final = Grammar(
    "PUBLISHED", numbers={"U": "h", "l": "Q"}, mantissa=">Bi", short_strings=True, octets=False, checks=True
)
#: The checks of the 0-9 text, and the tags in use (0-9/types/table-types, 0-9/types/value-decimal).
PUBLISHED_0_9: Final = Grammar("PUBLISHED_0_9", numbers={"s": "h", "l": "q"}, mantissa=">Bi", checks=True)


def _read_values(
    buffer: bytes,
    offset: int,
    end: int,
    grammar: Grammar,
    depth: int,
    unchecked: list[tuple[int, int, bool]],
    fields: dict[str, FieldValue],
    items: list[FieldValue] | None,
) -> None:
    """Read the values between `offset` and `end` into `items`, or, if that is None, by name into `fields`.

    Tables and arrays that are too deep are not read: `unchecked` gets the start and the end of each, and
    whether it is a table.

    One flat function for tables and arrays, common tags first: a table of five strings and numbers takes an
    eighth less time than with one function per tag. Single reads are not checked against `end`; the check
    after the loop finds any overrun.
    """
    name = ""
    numbers = grammar.numbers
    checks_names = grammar.checks
    value: FieldValue
    try:
        while offset < end:
            if items is None:
                start = offset + 1
                offset = start + buffer[offset]
                name = buffer[start:offset].decode("utf-8", "surrogateescape")
                if checks_names and offset < end:
                    _check_name(name)
            tag = buffer[offset]
            offset += 1
            if tag == 0x53:  # S
                start = offset + 4
                offset = start + _read_uint32(buffer, offset)[0]
                value = buffer[start:offset].decode("utf-8", "surrogateescape")
            elif tag == 0x49:  # I
                value = _read_int32(buffer, offset)[0]
                offset += 4
            elif tag == 0x74:  # t
                value = buffer[offset] != 0
                offset += 1
            elif tag in numbers:
                read, size = numbers[tag]
                value = read(buffer, offset)[0]
                offset += size
            elif tag == 0x46 or tag == 0x41:  # F, A
                start = offset + 4
                offset = start + _read_uint32(buffer, offset)[0]
                if offset > end:
                    break
                inner: dict[str, FieldValue] = {}
                if depth == MAX_DEPTH:
                    value = (DeepTable if tag == 0x46 else DeepArray)(buffer[start:offset])
                    unchecked.append((start, offset, tag == 0x46))
                elif tag == 0x46:
                    value = inner
                    _read_values(buffer, start, offset, grammar, depth + 1, unchecked, inner, None)
                else:
                    value = []
                    _read_values(buffer, start, offset, grammar, depth + 1, unchecked, inner, value)
            elif tag == 0x54:  # T
                value = Timestamp(_read_uint64(buffer, offset)[0])
                offset += 8
            elif tag == 0x56:  # V
                value = None
            elif tag == 0x44:  # D
                scale, mantissa = grammar.mantissa.unpack_from(buffer, offset)
                value = Decimal(f"{mantissa}E-{scale}")  # exact whatever the decimal context says
                offset += 5
            elif tag == 0x78 and grammar.octets:  # x
                start = offset + 4
                offset = start + _read_uint32(buffer, offset)[0]
                value = buffer[start:offset]
            elif tag == 0x73 and grammar.short_strings:  # s
                start = offset + 1
                offset = start + buffer[offset]
                value = buffer[start:offset].decode("utf-8", "surrogateescape")
                if checks_names and "\0" in value and offset <= end:
                    raise FieldError(f"field {name!r} holds a short string with a zero byte")
            elif offset > end:
                break
            else:
                raise FieldError(f"field {name!r} has the unknown tag {_show_tag(tag)}")
            if items is not None:
                items.append(value)
            elif name not in fields:
                fields[name] = value
    except (IndexError, struct.error):
        raise FrameError(_overrun(name, items)) from None
    if offset != end:
        raise FrameError(_overrun(name, items))


def _overrun(name: str, items: object) -> str:
    where = f"the value of field {name!r}" if name else "an item" if items is not None else "a field"
    return f"a field {'table' if items is None else 'array'} ends inside {where}"


def _show_tag(tag: int) -> str:
    return f"{chr(tag)!r}" if 0x20 < tag < 0x7F else f"0x{tag:02x}"


# The documents' list lacks the hyphen, which is in the one field name they define themselves: x-match
# (0-9-1/exchange-type.headers/*).
_is_legal_name = re.compile(r"[A-Za-z$#][A-Za-z0-9_$#-]*").fullmatch


def _check_name(name: str) -> None:
    """Source: 0-9-1/types/table-name-syntax."""
    if not _is_legal_name(name):
        raise FieldNameError(
            f"field name {name!r} is illegal: it must start with a letter, '$' or '#' "
            "and go on with those, digits, underscores or hyphens"
        )
    if len(name) > 128:
        raise FieldNameError(f"field name {name[:20]!r}... has {len(name)} characters; the limit is 128")


# OCTET[n] is the one-octet string n. For a method with two short strings this is a tenth faster than
# Struct("B").pack. Only for numbers that cannot be negative.
OCTET = tuple(bytes((number,)) for number in range(256))


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


# What precedes a table; and fields: a tag, and a number or the length of what follows.
pack_uint32: Callable[[int], bytes] = struct.Struct(">I").pack
pack_int32_field: Callable[[bytes, int], bytes] = struct.Struct(">ci").pack
pack_int64_field: Callable[[bytes, int], bytes] = struct.Struct(">cq").pack
pack_double_field: Callable[[bytes, float], bytes] = struct.Struct(">cd").pack
pack_timestamp_field: Callable[[bytes, int], bytes] = struct.Struct(">cQ").pack
_pack_decimal_field = struct.Struct(">cBI").pack
pack_length_field: Callable[[bytes, int], bytes] = struct.Struct(">cI").pack


def encode_table(fields: Mapping[str, FieldInput]) -> bytes:
    """`fields` as a table, length first, in the order of the mapping.

    bool becomes t, int I or l (the smallest that holds it), float d (a number whose class has the attribute
    `field_tag` gets that tag), Decimal D, str S, bytes x, Timestamp and datetime T (a naive datetime is
    taken as UTC; fractions of a second are cut off), mapping F, list and tuple A, None V. A mapping with the
    attribute `encoded_fields` is encoded as these bytes. A negative Decimal is written signed, which
    RabbitMQ's grammar does not read back.

    Raises FieldError for a value of another type or out of range, an overlong name, or nesting deeper than
    `MAX_DEPTH`.
    """
    out = bytearray()
    try:
        _write_fields(out, fields, 1)
    except RecursionError:
        raise FieldError("the values nest deeper than the caller's stack allows") from None
    return pack_uint32(len(out)) + out


def _packed(tag: str, layout: str) -> Callable[[Any], bytes]:
    pack = struct.Struct(f">c{layout}").pack
    return lambda value: pack(tag.encode(), value)


_PACK_TAGGED = {
    tag: _packed(tag, layout)
    for tag, layout in (("b", "b"), ("B", "B"), ("s", "h"), ("u", "H"), ("i", "I"), ("f", "f"))
}
"""Tag -> how a number is written whose class has the attribute `field_tag` with this tag."""


def _write_fields(out: bytearray, fields: Mapping[str, FieldInput], depth: int) -> None:
    if depth > MAX_DEPTH:
        raise FieldError(f"the values nest deeper than {MAX_DEPTH} levels")
    for name, value in fields.items():
        try:
            out += encode_short_string(name)
        except FieldError as problem:
            raise FieldError(f"field name {name!r:.40}: {problem}") from None
        try:
            _write_value(out, value, depth)
        except (struct.error, OverflowError):
            raise FieldError(f"field {name!r}: {value!r:.40} is out of range") from None
        except UnicodeEncodeError as problem:
            raise FieldError(
                f"field {name!r}: the text is not encodable as UTF-8: {problem.reason}"
            ) from None
        except FieldError as problem:
            if depth > 8:  # so much of the path to the value is enough
                raise
            raise FieldError(f"field {name!r}: {problem}") from None


def _write_value(out: bytearray, value: object, depth: int) -> None:
    if isinstance(value, str):
        octets = value.encode("utf-8", "surrogateescape")
        out += pack_length_field(b"S", len(octets))
        out += octets
    elif isinstance(value, bool):
        out += b"t\x01" if value else b"t\x00"
    elif isinstance(value, int):
        if isinstance(value, Timestamp):
            out += pack_timestamp_field(b"T", value)
        elif (pack := _PACK_TAGGED.get(getattr(value, "field_tag", ""))) is not None:
            out += pack(value)
        elif -0x80000000 <= value <= 0x7FFFFFFF and getattr(value, "field_tag", "I") == "I":
            out += pack_int32_field(b"I", value)
        else:
            out += pack_int64_field(b"l", value)
    elif value is None:
        out += b"V"
    elif isinstance(value, (list, tuple)):
        if depth >= MAX_DEPTH:
            raise FieldError(f"the values nest deeper than {MAX_DEPTH} levels")
        inner = bytearray()
        for item in value:
            _write_value(inner, item, depth + 1)
        out += pack_length_field(b"A", len(inner))
        out += inner
    elif isinstance(value, float):
        pack = _PACK_TAGGED.get(getattr(value, "field_tag", ""))
        out += pack_double_field(b"d", value) if pack is None else pack(value)
    elif isinstance(value, (bytes, bytearray)):
        out += pack_length_field(getattr(value, "field_tag", "x").encode(), len(value))
        out += value
    elif isinstance(value, Mapping):
        inner = bytearray(getattr(value, "encoded_fields", b""))
        if not inner:
            _write_fields(inner, value, depth + 1)
        out += pack_length_field(b"F", len(inner))
        out += inner
    elif isinstance(value, Decimal):
        out += decimal_field(value)
    else:
        out += pack_timestamp_field(b"T", _seconds(value))


def decimal_field(value: Decimal) -> bytes:
    """`value` as a field. Raises FieldError when it does not fit."""
    sign, digits, places = value.as_tuple()
    if not isinstance(places, int):
        raise FieldError(f"{value} has no decimal representation on the wire")
    exponent: int = places
    mantissa = int("".join(map(str, digits[:11])))  # eleven digits are too many already
    if not mantissa:
        exponent = min(exponent, 0)
    elif 0 < exponent <= 10:
        mantissa, exponent = mantissa * 10**exponent, 0
    if sign:
        mantissa = -mantissa
    if not (-255 <= exponent <= 0 and -0x80000000 <= mantissa <= 0xFFFFFFFF):
        raise FieldError(f"{value} does not fit a 32-bit mantissa with 0 to 255 decimal places")
    return _pack_decimal_field(b"D", -exponent, mantissa & 0xFFFFFFFF)


def _seconds(value: object) -> int:
    """Seconds since the epoch of a datetime."""
    import calendar
    from datetime import datetime

    if not isinstance(value, datetime):
        raise FieldError(f"a field table cannot hold a {type(value).__name__}: {value!r:.40}")
    return calendar.timegm(value.utctimetuple())


_NUMBER_SIZES = {0x74: 1, 0x54: 8, 0x56: 0, 0x44: 5}


def _field_spans(table: bytes, grammar: Grammar) -> Iterator[tuple[str, int, int]]:
    """Name, start and end of every field of a table (with its length) that `grammar` can read."""
    offset = 4
    end = len(table)
    while offset < end:
        start = offset
        offset += 1 + table[offset]
        name = table[start + 1 : offset].decode("utf-8", "surrogateescape")
        offset = _behind(table, offset, grammar)
        yield name, start, offset


def _behind(octets: bytes | bytearray, offset: int, grammar: Grammar) -> int:
    """The offset behind the value whose tag is at `offset`."""
    tag = octets[offset]
    offset += 1
    if tag in grammar.numbers:
        return offset + grammar.numbers[tag][1]
    if tag in _NUMBER_SIZES:
        return offset + _NUMBER_SIZES[tag]
    if tag == 0x73:
        return offset + 1 + octets[offset]
    return offset + 4 + int(_read_uint32(octets, offset)[0])


def field_tag(table: bytes, grammar: Grammar, name: str) -> str | None:
    """The tag of the first field of this name, as a letter; None where there is none.

    `table` (with its length) is one that `grammar` can read.
    """
    for field, start, _ in _field_spans(table, grammar):
        if field == name:
            return chr(table[start + 1 + table[start]])
    return None


def edit_table(
    table: bytes, changes: Mapping[str, FieldInput | Removed], grammar: Grammar = RABBITMQ
) -> bytes:
    """`table` (with its length) after `changes`; every other field keeps its exact bytes and tag.

    A changed field keeps its place, and its duplicates are removed. A new field comes last. `REMOVED` removes
    all fields of that name. Raises FrameError, FieldError or FieldNameError when `table` is not one whole
    table of `grammar`, FieldError when a new value cannot be written.
    """
    _, end = grammar.decode(table, 0, len(table))
    if end != len(table):
        raise FrameError(f"{len(table) - end} bytes are left over after the field table")
    return splice_table(table, changes, grammar)


def splice_table(table: bytes, changes: Mapping[str, FieldInput | Removed], grammar: Grammar) -> bytes:
    """`edit_table` for a table that is known to be complete and valid."""
    written = {
        name: encode_table({name: value})[4:] for name, value in changes.items() if value is not REMOVED
    }
    parts = []
    for name, start, stop in _field_spans(table, grammar):
        if name not in changes:
            parts.append(table[start:stop])
        elif name in written:
            parts.append(written.pop(name))
    parts.extend(written.values())
    octets = b"".join(parts)
    return pack_uint32(len(octets)) + octets


def take_field(table: bytes, name: str, grammar: Grammar) -> tuple[bytes, bytes]:
    """The value of the first field of this name, tag first and empty if there is none, and the table without
    it.

    Only lengths are read, and only up to the field. Raises FrameError when one of them does not fit.
    """
    begin = encode_short_string(name)
    start, end = 4, len(table)
    try:
        while start < end:
            value = start + 1 + table[start]
            stop = _behind(table, value, grammar)
            if stop > end:
                raise IndexError
            if table.startswith(begin, start):
                rest = table[4:start] + table[stop:]
                return table[value:stop], pack_uint32(len(rest)) + rest
            start = stop
    except (IndexError, struct.error):
        raise FrameError("a field table is cut short") from None
    return b"", table


def exact_fields(table: bytes, grammar: Grammar) -> tuple[tuple[str, FieldValue, bytes], ...]:
    """The fields of a valid table (with its length); see `ExactTable`."""
    fields = []
    for name, start, stop in _field_spans(table, grammar):
        octets = bytearray(table[start:stop])
        if b"L" in octets:
            _retag(octets, 0, len(octets), named=True)
        value = grammar.decode(pack_uint32(len(octets)) + octets, 0, 4 + len(octets))[0][name]
        fields.append((name, value, bytes(octets[1 + octets[0] :])))
    return tuple(fields)


def rewritten_table(table: bytes, grammar: Grammar, *, duplicates: bool = False) -> bytes:
    """A valid table as RabbitMQ writes it again: sorted by the bytes of the names, and int64 always with the
    tag `l`.

    Of several fields with one name the first is kept, unless the table has `duplicates`. Nested tables and
    arrays keep their order and their duplicates.
    """
    table = _sorted_table(table, grammar, duplicates)
    if b"L" not in table:
        return table
    octets = bytearray(table)
    _retag(octets, 4, len(octets), named=True)
    return bytes(octets)


def _retag(octets: bytearray, offset: int, end: int, *, named: bool) -> None:
    """Change the tag of every int64 between `offset` and `end`, fields or items, to `l`."""
    outer: list[tuple[int, bool]] = []  # ends of tables and arrays that are left, and whether they have names
    while offset < end or outer:
        if offset == end:
            end, named = outer.pop()
            continue
        if named:
            offset += 1 + octets[offset]
        tag = octets[offset]
        if tag == 0x4C:  # L
            octets[offset] = 0x6C
        behind = _behind(octets, offset, RABBITMQ)
        if tag in (0x46, 0x41):  # F, A
            outer.append((end, named))
            end, offset, named = behind, offset + 5, tag == 0x46
        else:
            offset = behind


def hide_fields(table: bytes, names: Collection[str] | None, grammar: Grammar) -> bytes:
    """A valid table (with its length) with some values replaced, those of nested tables included.

    Texts and bytes become asterisks, numbers zeros; sizes, tags and names stay. `names` are in lower case
    and stand for any case; None stands for all fields.
    """
    octets = bytearray(table)
    for name, start, stop in _field_spans(table, grammar):
        if names is None or name.casefold() in names:
            _hide(octets, start, stop, grammar)
    return bytes(octets)


def _hide(octets: bytearray, offset: int, end: int, grammar: Grammar) -> None:
    """Hide all fields between `offset` and `end`, and what is in them."""
    outer: list[tuple[int, bool]] = []
    named = True
    while offset < end or outer:
        if offset == end:
            end, named = outer.pop()
            continue
        if named:
            offset += 1 + octets[offset]
        tag = octets[offset]
        behind = _behind(octets, offset, grammar)
        if tag in (0x46, 0x41):  # F, A
            outer.append((end, named))
            end, offset, named = behind, offset + 5, tag == 0x46
            continue
        offset += 1
        if tag in grammar.numbers or tag in _NUMBER_SIZES:
            octets[offset:behind] = bytes(behind - offset)
        else:
            offset += 1 if tag == 0x73 else 4
            octets[offset:behind] = b"*" * (behind - offset)
        offset = behind


def _sorted_table(table: bytes, grammar: Grammar, duplicates: bool) -> bytes:
    fields: dict[bytes, bytes] = {}
    for _, start, stop in _field_spans(table, grammar):
        name = table[start + 1 : start + 1 + table[start]]
        if name not in fields:
            fields[name] = table[start:stop]
        elif duplicates:
            fields[name] += table[start:stop]
    octets = b"".join(fields[name] for name in sorted(fields))
    return pack_uint32(len(octets)) + octets
