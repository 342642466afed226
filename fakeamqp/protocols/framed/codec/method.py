"""What every generated method class has in common.

A generated `decode` reads straight through and does not look at lengths on the way: a read behind the end
raises IndexError or struct.error, a slice that comes up short shows in the final comparison. Only then does
`unreadable` walk the layout again, slowly, to say which field is to blame. `encode` works the same way with
`unwritable`.
"""

from __future__ import annotations

import struct
from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from fakeamqp.protocols.codec.errors import FieldError, FrameError, WireError
from fakeamqp.protocols.framed.codec.strings import encode_short_string
from fakeamqp.protocols.framed.codec.tables import encode_table

if TYPE_CHECKING:
    from typing_extensions import Self

    from fakeamqp.protocols.framed.codec.tables import Grammar

    Layout: TypeAlias = tuple[tuple[str, str], ...]

__all__ = ["UNREADABLE", "UNWRITABLE", "Method", "Record", "forbid_nul", "unreadable", "unwritable"]

#: What reading malformed bytes may raise before `unreadable` explains it.
UNREADABLE = (IndexError, struct.error, WireError)
#: What writing unfit values may raise before `unwritable` explains it.
UNWRITABLE = (AttributeError, IndexError, TypeError, UnicodeError, struct.error, WireError)

_INTEGERS = {"octet": "B", "short": "H", "long": "I", "longlong": "Q", "timestamp": "Q"}


class Record:
    """Named values with a wire layout: a method or the properties of a content. Compares by value.

    The generated classes are dataclasses that bring their own `__init__` and take the rest from here, because
    that cuts the time to import them to a third.
    """

    __slots__ = ()

    NAME: ClassVar[str]
    #: (field, wire type) in wire order
    LAYOUT: ClassVar[Layout]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name, _ in self.LAYOUT)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name, _ in self.LAYOUT)
        return f"{type(self).__name__}({values})"


class Method(Record):
    """A method of the protocol: `encode` gives its payload, `decode` reads it back."""

    __slots__ = ()

    CLASS_ID: ClassVar[int]
    METHOD_ID: ClassVar[int]
    #: class id << 16 | method id: the first four bytes of the payload as one number
    INDEX: ClassVar[int]
    #: part of a request and reply pair
    SYNCHRONOUS: ClassVar[bool]
    #: a content (header and body frames) follows
    HAS_CONTENT: ClassVar[bool]
    #: the peers that may receive it: "client", "server"
    RECEIVED_BY: ClassVar[tuple[str, ...]]
    #: names of the methods that answer it
    RESPONSES: ClassVar[tuple[str, ...]]

    @abstractmethod
    def encode(self) -> bytes:
        """The payload of this method's frame, class and method id first.

        Raises FieldError for a value that its field cannot hold.
        """

    @classmethod
    @abstractmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole method payload; its first four bytes are taken to be this method's ids.

        Raises FrameError when it is too short or too long, FieldError or FieldNameError for illegal values.
        """


def forbid_nul(record: Record) -> None:
    """Raise FieldError when a short string holds a zero byte. Source: 0-9-1/types/shortstr-no-nul."""
    for name, kind in record.LAYOUT:
        if kind == "shortstr" and "\0" in (getattr(record, name) or ""):
            raise FieldError(f"{record.NAME}, field {name}: a short string must not hold a zero byte")


def unreadable(
    record: type[Record], layout: Layout, octets: bytes, offset: int, grammar: Grammar
) -> WireError:
    """Say why `octets` from `offset` on are not one value for each field of `layout`."""
    bits = 0
    end = len(octets)
    for name, kind in layout:
        if kind == "bit":
            bits += 1
            if bits % 8 != 1:
                continue
            size = 1
        else:
            bits = 0
            size = struct.calcsize(_INTEGERS.get(kind, "B" if kind == "shortstr" else "I"))
        where = f"{record.NAME}, field {name}"
        if kind == "table":
            try:
                _, offset = grammar.decode(octets, offset, end)
            except WireError as problem:
                return type(problem)(f"{where}: {problem}")
            continue
        if kind == "content":
            try:
                offset = _skip_body(octets, offset)
            except FieldError as problem:
                return FieldError(f"{where}: {problem}")
            except IndexError:
                return FrameError(
                    f"{where}: the body at offset {offset} is cut short, the payload ends at {end}"
                )
            continue
        if offset + size <= end and kind in ("shortstr", "longstr"):
            size += int.from_bytes(octets[offset : offset + size], "big")
        if offset + size > end:
            return FrameError(f"{where}: {size} bytes are due at offset {offset}, the payload ends at {end}")
        offset += size
    return FrameError(f"{record.NAME}: {end - offset} bytes are left over after the last field")


def unwritable(record: Record) -> FieldError:
    """Say which value of `record` its field cannot hold."""
    for name, kind in record.LAYOUT:
        value = getattr(record, name)
        try:
            if kind == "bit" or (value is None and not isinstance(record, Method)):
                continue
            if kind == "shortstr":
                encode_short_string(value)
            elif kind == "table":
                encode_table(value)
            elif kind == "longstr":
                _check_bytes(value)
            elif kind == "content":
                _check_bytes(value.octets)
            else:
                _check_integer(value, struct.calcsize(_INTEGERS[kind]))
        except (AttributeError, TypeError):
            return FieldError(f"{record.NAME}, field {name}: {value!r:.80} is no {kind}")
        except WireError as problem:
            return FieldError(f"{record.NAME}, field {name}: {problem}")
    return FieldError(f"{record.NAME}: {record!r:.200} cannot be written")


def _skip_body(octets: bytes, offset: int) -> int:
    """The end of the body of a message.transfer: only 0-9 has such a field."""
    from fakeamqp.protocols.amqp_0_9.codec.bodies import decode_body

    return decode_body(octets, offset)[1]


def _check_bytes(value: object) -> None:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise FieldError(f"a long string must be bytes, not {type(value).__name__}")


def _check_integer(value: object, size: int) -> None:
    if not hasattr(value, "__index__"):
        raise FieldError(f"it must be an int, not {type(value).__name__}")
    limit = (1 << 8 * size) - 1
    if not 0 <= value.__index__() <= limit:
        raise FieldError(f"{value!r} is not between 0 and {limit}")
