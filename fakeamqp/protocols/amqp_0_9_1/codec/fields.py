"""The wire types, and the names by which declarations refer to them.

A declaration annotates a field with an alias of this module: `queue: ShortStr = ""`. The alias is the Python
type of the values for type checkers, and carries the `WireType` for the codec. A wire type gives the compiler
the code that reads and writes its values, and raises the errors for bytes and values that do not fit.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, TypeAlias

from fakeamqp.protocols.amqp_0_9_1.codec.tables import FieldValue, encode_short_string, encode_table
from fakeamqp.protocols.base.codec import FieldError, FrameError

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9_1.codec.record import Reader, Writer
    from fakeamqp.protocols.amqp_0_9_1.codec.tables import Grammar


class WireType:
    """How values of one type are put into bytes. Immutable."""

    __slots__ = ()

    #: the name in the specification
    name: str
    #: bytes that precede the value: its length, unless the size is fixed
    prefix: int = 0

    def read(self, reader: Reader, target: str) -> None:
        """Add the statements that read a value into `target`."""
        raise NotImplementedError

    def write(self, writer: Writer, value: str) -> None:
        """Add the code that writes the value of the expression `value`."""
        raise NotImplementedError

    def skip(self, octets: bytes, offset: int, grammar: Grammar) -> int:
        """The offset behind the value at `offset`. Raises WireError when no whole legal value is there."""
        return self.measure(octets, offset)

    def measure(self, octets: bytes, offset: int) -> int:
        """The same by lengths alone: the contents of a table do not matter. Raises FrameError."""
        return skipped_string(octets, offset, self.prefix)

    def check(self, value: Any) -> None:
        """Raise FieldError, TypeError or AttributeError for a value that cannot be written."""
        raise NotImplementedError


class BitType(WireType):
    """A bit. Adjacent bits share bytes, see `Reader.bit`."""

    __slots__ = ()

    name = "bit"

    def read(self, reader: Reader, target: str) -> None:
        reader.bit(target)

    def write(self, writer: Writer, value: str) -> None:
        writer.bit(value)

    def measure(self, octets: bytes, offset: int) -> int:
        return skipped(octets, offset, 1)

    def check(self, value: Any) -> None:
        """Any value has a truth value."""


class NumberType(WireType):
    """An unsigned integer, with the specification's name and the format character of `struct`."""

    __slots__ = ("code", "name", "size")

    def __init__(self, name: str, code: str) -> None:
        self.name: str = name
        self.code: str = code
        self.size: int = struct.calcsize(">" + code)

    def read(self, reader: Reader, target: str) -> None:
        reader.number(self.code, target)

    def write(self, writer: Writer, value: str) -> None:
        writer.number(self.code, value)

    def measure(self, octets: bytes, offset: int) -> int:
        return skipped(octets, offset, self.size)

    def check(self, value: Any) -> None:
        if not hasattr(value, "__index__"):
            raise FieldError(f"it must be an int, not {type(value).__name__}")
        limit = (1 << 8 * self.size) - 1
        if not 0 <= value.__index__() <= limit:
            raise FieldError(f"{value!r} is not between 0 and {limit}")


class ShortStringType(WireType):
    """Up to 255 bytes of text behind a length of one byte; see `strings`."""

    __slots__ = ()

    name = "shortstr"
    prefix = 1

    def read(self, reader: Reader, target: str) -> None:
        """Bytes that are not UTF-8 become lone surrogates."""
        reader.string("B", target, '.decode("utf-8", "surrogateescape")')

    def write(self, writer: Writer, value: str) -> None:
        writer.string("B", writer.local(f'{value}.encode("utf-8", "surrogateescape")'))

    def check(self, value: Any) -> None:
        encode_short_string(value)


class LongStringType(WireType):
    """Bytes behind a length of four bytes."""

    __slots__ = ()

    name = "longstr"
    prefix = 4

    def read(self, reader: Reader, target: str) -> None:
        reader.string("I", target)

    def write(self, writer: Writer, value: str) -> None:
        writer.string("I", value)

    def check(self, value: Any) -> None:
        check_bytes(value)


class TableType(WireType):
    """A field table; the grammar of the connection reads it."""

    __slots__ = ()

    name = "table"
    prefix = 4
    expression: ClassVar[str] = "grammar.decode(payload, {position}, len(payload))"

    def read(self, reader: Reader, target: str) -> None:
        reader.value(self.expression, target)

    def read_encoded(self, reader: Reader, target: str) -> None:
        """Add the statements that read the bytes of the table, with its length, into `target`."""
        reader.string("I", target, kept=4)

    def write(self, writer: Writer, value: str) -> None:
        writer.value(f"encode_table({value})", encode_table=encode_table)

    def skip(self, octets: bytes, offset: int, grammar: Grammar) -> int:
        """Read the table for its errors."""
        return grammar.decode(octets, offset, len(octets))[1]

    def check(self, value: Any) -> None:
        """Write the table for its errors."""
        encode_table(value)


class ExactTableType(TableType):
    """A table that keeps what its fields were; see `ExactTable`."""

    __slots__ = ()

    expression: ClassVar[str] = "grammar.decode_exactly(payload, {position}, len(payload))"


class HeadersType(TableType):
    """The table of headers in properties, which keeps the bytes that it was read from."""

    __slots__ = ()

    def read(self, reader: Reader, target: str) -> None:
        """Remember bytes and grammar beside the table."""
        reader.lines.append("start = end")
        super().read(reader, target)
        owner = target.partition(".")[0]
        reader.lines.append(f"{owner}._raw_headers = (payload[start:end], grammar.unchecked)")

    def write(self, writer: Writer, value: str) -> None:
        """Write the remembered bytes, unless the table has been changed since."""
        writer.value("self._headers_bytes()")


def check_bytes(value: object) -> None:
    """Raise FieldError for a value that is not bytes-like."""
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise FieldError(f"a long string must be bytes, not {type(value).__name__}")


def skipped(octets: bytes, offset: int, size: int) -> int:
    """Return the offset behind `size` bytes. Raises FrameError if the payload ends before."""
    if offset + size > len(octets):
        raise FrameError(f"{size} bytes are due at offset {offset}, the payload ends at {len(octets)}")
    return offset + size


def skipped_string(octets: bytes, offset: int, length_size: int) -> int:
    """Return the offset behind a string with a length of `length_size` bytes. Raises FrameError."""
    size = length_size
    if offset + size <= len(octets):
        size += int.from_bytes(octets[offset : offset + size], "big")
    return skipped(octets, offset, size)


Bit: TypeAlias = Annotated[bool, BitType()]
Octet: TypeAlias = Annotated[int, NumberType("octet", "B")]
Short: TypeAlias = Annotated[int, NumberType("short", "H")]
Long: TypeAlias = Annotated[int, NumberType("long", "I")]
LongLong: TypeAlias = Annotated[int, NumberType("longlong", "Q")]
Timestamp: TypeAlias = Annotated[int, NumberType("timestamp", "Q")]
ShortStr: TypeAlias = Annotated[str, ShortStringType()]
LongStr: TypeAlias = Annotated[bytes, LongStringType()]
Table: TypeAlias = Annotated[dict[str, FieldValue], TableType()]
Exact: TypeAlias = Annotated[dict[str, FieldValue], ExactTableType()]
Headers: TypeAlias = Annotated[dict[str, FieldValue], HeadersType()]

#: The default of a table in a declaration: each instance gets an empty dict of its own.
EMPTY_TABLE: Final[dict[str, FieldValue]] = {}


def wire_type(annotation: str, namespace: dict[str, Any]) -> WireType:
    """The wire type that an annotation names, in a module with this namespace.

    Raises TypeError when it is not the name of a wire type's alias, with or without ` | None`.
    """
    alias = namespace.get(annotation.removesuffix(" | None"))
    for kind in getattr(alias, "__metadata__", ()):
        if isinstance(kind, WireType):
            return kind
    raise TypeError(f"{annotation} is no wire type")
