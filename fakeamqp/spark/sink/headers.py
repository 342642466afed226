"""Conversion from Arrow to header tables: whole columns at a time, at any depth.

The types are those of RabbitMQ and its clients: `S` for text, `x` for bytes, `t` for booleans, `I` or `l` for
integers, depending on their size, `d` for floating point, `D` for decimals, `T` for times in whole seconds,
`A` for lists, `F` for maps and structs, and `V` for null.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from math import isfinite
from struct import Struct
from typing import Any

import pyarrow as pa

from fakeamqp.protocols.amqp_0_9_1.codec.tables import encode_table
from fakeamqp.protocols.base.codec import WireError
from fakeamqp.spark.sink.arrays import is_text, microseconds, octets

_pack_size = Struct(">I").pack
_pack_string = Struct(">cI").pack
_pack_long = Struct(">cq").pack
_pack_int = Struct(">ci").pack
_pack_double = Struct(">cd").pack
_pack_time = Struct(">cQ").pack
_pack_decimal = Struct(">cBI").pack

_VOID = b"V"
_TRUE, _FALSE = b"t\x01", b"t\x00"
_INT = range(-(1 << 31), 1 << 31)


def header_tables(array: pa.Array) -> list[bytes | None]:
    """The header table of each row, prefixed with its size; None where the row is null.

    Raises:
        ValueError: a value does not fit; the text contains it.
    """
    if is_text(array.type):
        return [None if text is None else _table_of_json(text) for text in array.to_pylist()]
    tables = _structs(array, nulls=False) if pa.types.is_struct(array.type) else _maps(array)
    if not array.null_count:
        return list(tables)
    return [
        table if valid else None for table, valid in zip(tables, array.is_valid().to_pylist(), strict=True)
    ]


def _table_of_json(text: str) -> bytes:
    try:
        table = json.loads(text, parse_constant=_finite, parse_float=_finite)
    except ValueError as error:
        raise ValueError(f"the text is not JSON: {error}") from None
    except RecursionError:
        raise ValueError("the values nest too deep") from None
    if not isinstance(table, dict):
        raise ValueError(f"the JSON is a {type(table).__name__}, not an object")
    try:
        return encode_table(table)
    except WireError as error:
        raise ValueError(str(error)) from None


def _fields(array: pa.Array) -> list[bytes]:
    """The values of an array as field values, each prefixed with its type."""
    kind = array.type
    if pa.types.is_null(kind):
        return [_VOID] * len(array)
    if pa.types.is_struct(kind):
        encoded = [b"F" + table for table in _structs(array, nulls=True)]
    elif pa.types.is_map(kind):
        encoded = [b"F" + table for table in _maps(array)]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        encoded = [_pack_string(b"A", len(items)) + items for items in _lists(array)]
    else:
        return _scalars(array)
    if not array.null_count:
        return encoded
    return [
        value if valid else _VOID for value, valid in zip(encoded, array.is_valid().to_pylist(), strict=True)
    ]


def _scalars(array: pa.Array) -> list[bytes]:
    make = next(make for test, make in _MAKERS if test(array.type))
    if make in (_text, _octets):
        values = octets(array)
    else:
        values = (microseconds(array) if make is _time else array).to_pylist()
    return [_VOID if value is None else make(value) for value in values]


def _structs(array: pa.Array, nulls: bool) -> list[bytes]:
    """The tables of an array of structs.

    Args:
        array: the structs.
        nulls: whether fields that are null are sent as void; otherwise they are left out.
    """
    entries = []
    for field, values in zip(array.type, array.flatten(), strict=True):
        name = _name(field.name.encode())
        encoded = [name + value for value in _fields(values)]
        if not nulls and values.null_count:
            encoded = [
                entry if valid else b""
                for entry, valid in zip(encoded, values.is_valid().to_pylist(), strict=True)
            ]
        entries.append(encoded)
    return [_sized(b"".join(row)) for row in zip(*entries, strict=True)] or [_sized(b"")] * len(array)


def _maps(array: pa.Array) -> list[bytes]:
    """The tables of an array of maps."""
    keys, values, offsets = _flat(array, array.keys, array.items)
    names = octets(keys)
    prefixes = {name: _name(name or b"") for name in set(names)}
    entries = [prefixes[name] + value for name, value in zip(names, _fields(values), strict=True)]
    return [_sized(b"".join(entries[start:end])) for start, end in pairwise(offsets)]


def _lists(array: pa.Array) -> list[bytes]:
    """The encoded items of each list of an array."""
    values, offsets = _flat(array, array.values)
    items = _fields(values)
    return [b"".join(items[start:end]) for start, end in pairwise(offsets)]


def _flat(array: pa.Array, *children: pa.Array) -> list[Any]:
    """The children of a list or map array, and the offset of each row in them.

    A sliced array still has all children of the original array.
    """
    offsets = array.offsets.to_pylist()
    first = offsets[0]
    return [
        *(child.slice(first, offsets[-1] - first) for child in children),
        [offset - first for offset in offsets],
    ]


def _name(value: bytes) -> bytes:
    if len(value) > 255:
        raise ValueError(f"a name has {len(value)} bytes, and the limit is 255")
    return bytes([len(value)]) + value


def _sized(table: bytes) -> bytes:
    return _pack_size(len(table)) + table


def _text(value: bytes) -> bytes:
    return _pack_string(b"S", len(value)) + value


def _whole(number: int) -> bytes:
    return _pack_int(b"I", number) if number in _INT else _pack_long(b"l", number)


def _time(microseconds: int) -> bytes:
    if microseconds < 0:
        raise ValueError("a time is before 1970")
    return _pack_time(b"T", microseconds // 1_000_000)


def _decimal(number: Decimal) -> bytes:
    sign, digits, exponent = number.as_tuple()
    mantissa = int("".join(map(str, digits)))
    if sign or mantissa >= 1 << 32 or not isinstance(exponent, int):
        raise ValueError(
            f"the decimal {number} does not fit: its digits must be an unsigned number of 32 bits. "
            "Cast it to STRING"
        )
    return _pack_decimal(b"D", -exponent, mantissa)


def _double(number: float) -> bytes:
    return _pack_double(b"d", _finite(number))


def _finite(number: float | str) -> float:
    """The number. RabbitMQ closes the connection for NaN and infinity, and says only INTERNAL_ERROR."""
    value = float(number)
    if not isfinite(value):
        raise ValueError(f"{number} is a number that headers cannot have: cast it to STRING")
    return value


def _octets(value: bytes) -> bytes:
    return _pack_string(b"x", len(value)) + value


_MAKERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any], bytes]], ...] = (
    (is_text, _text),
    (pa.types.is_integer, _whole),
    (pa.types.is_boolean, lambda truth: _TRUE if truth else _FALSE),
    (pa.types.is_floating, _double),
    (pa.types.is_timestamp, _time),
    (pa.types.is_binary, _octets),
    (pa.types.is_large_binary, _octets),
    (pa.types.is_decimal, _decimal),
)
