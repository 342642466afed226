"""Property lists of contents, cut into their values without decoding more than numbers."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct, error as StructError
from typing import Any

from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.base.codec import WireError
from fakeamqp.spark.header_tables import fields

#: The names of the properties, in the order of their values.
NAMES = tuple(name for name, _ in BasicProperties.LAYOUT)

_HEADERS = NAMES.index("headers")
_pack_flags, _read_flags = Struct(">H").pack, Struct(">H").unpack_from
_pack_size, _read_size = Struct(">I").pack, Struct(">I").unpack_from
_read_time = Struct(">Q").unpack_from


@lru_cache(maxsize=1024)
def _flagged(flags: int) -> tuple[tuple[int, str], ...]:
    """The places and wire types of the values that follow these flags."""
    return tuple(
        (index, kind) for index, (_, kind) in enumerate(BasicProperties.LAYOUT) if flags & 0x8000 >> index
    )


def cut(octets: bytes) -> tuple[list[Any], str | None]:
    """The values of a property list in the order of `NAMES`, None for absent ones, and what cannot be read.

    Short strings are without their length, the header table is with its size; both are as they came. If the
    list is malformed, the values before the first one that cannot be read are returned with the reason.
    """
    row: list[Any] = [None] * len(NAMES)
    index = -1
    value: Any
    try:
        (flags,) = _read_flags(octets)
        at = 2
        more = flags
        while more & 1:
            (more,) = _read_flags(octets, at)
            at += 2
        for index, kind in _flagged(flags & ~1):
            if kind == "shortstr":
                at += 1
                end = at + octets[at - 1]
                value = octets[at:end]
            elif kind == "octet":
                end = at + 1
                value = octets[at]
            elif kind == "table":
                end = at + 4 + _read_size(octets, at)[0]
                value = octets[at:end]
            else:
                end = at + 8
                (value,) = _read_time(octets, at)
            if end > len(octets):
                raise IndexError
            row[index] = value
            at = end
    except (IndexError, StructError):
        return row, f"the property list ends inside {'its flags' if index < 0 else NAMES[index]}"
    if at != len(octets):
        return row, f"the property list has {len(octets) - at} octets too many"
    return row, None


def value_of(octets: bytes, name: str) -> Any:
    """One value of a property list, as `cut` has it."""
    return cut(octets)[0][NAMES.index(name)]


def without_header(octets: bytes, header: bytes) -> tuple[bytes | None, bytes]:
    """The value of a header, encoded, and the property list without it; None if there is none."""
    row, _ = cut(octets)
    table: bytes | None = row[_HEADERS]
    if table is None:
        return None, octets
    start = 4
    try:
        for name, _, at, end in fields(table, start, len(table)):
            if name == header:
                rest = table[4:start] + table[end:]
                return table[at:end], _with_table(octets, row, table, rest)
            start = end
    except WireError:
        pass
    return None, octets


def _with_table(octets: bytes, row: list[Any], table: bytes, rest: bytes) -> bytes:
    """A property list with other header fields, and without headers if there are none."""
    before = 2 + sum(1 + len(text) for text in row[:_HEADERS] if text is not None)
    flags = octets[:2]
    if rest:
        rest = _pack_size(len(rest)) + rest
    else:
        flags = _pack_flags(_read_flags(octets)[0] & ~(0x8000 >> _HEADERS))
    return b"".join((flags, octets[2:before], rest, octets[before + len(table) :]))
