"""Conversion from Arrow to header tables: whole columns at a time, at any depth.

The tags are those that RabbitMQ and its clients use: `S` for text, `x` for bytes, `t` for booleans, `I` or
`l` for integers, depending on their size, `d` for floating point, `D` for decimals, `T` for times in whole
seconds, `A` for lists, `F` for maps and structs, and `V` for null.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from math import isfinite
from typing import Any, TypeVar

import pyarrow as pa

from fakeamqp.protocols.amqp_0_9_1.codec.tables import (
    OCTET,
    decimal_field,
    encode_short_string,
    encode_table,
    pack_double_field,
    pack_int32_field,
    pack_int64_field,
    pack_length_field,
    pack_timestamp_field,
    pack_uint32,
)
from fakeamqp.protocols.base.codec import FieldError
from fakeamqp.spark.sink.arrays import is_text, microseconds, octets

T = TypeVar("T")

_VOID = b"V"
_INT = range(-(1 << 31), 1 << 31)


def header_tables(array: pa.Array) -> list[bytes | None]:
    """The header table of each row, prefixed with its size; None where the row is null.

    Raises:
        ValueError, FieldError: a value does not fit; the text contains it.
    """
    if is_text(array.type):
        return [None if text is None else _table_of_json(text) for text in array.to_pylist()]
    tables = _structs(array, nulls=False) if pa.types.is_struct(array.type) else _maps(array)
    return _or_null(array, [pack_uint32(len(table)) + table for table in tables], None)


def _or_null(array: pa.Array, encoded: list[bytes], null: T) -> list[bytes | T]:
    """The encoded values of an array, with `null` where it is null."""
    if not array.null_count:
        return [*encoded]
    valid = array.is_valid().to_pylist()
    return [value if there else null for value, there in zip(encoded, valid, strict=True)]


def _table_of_json(text: str) -> bytes:
    try:
        table = json.loads(text, parse_constant=_finite, parse_float=_finite)
    except ValueError as error:
        raise ValueError(f"the text is not JSON: {error}") from None
    except RecursionError:
        raise ValueError("the values nest too deep") from None
    if not isinstance(table, dict):
        raise ValueError(f"the JSON is a {type(table).__name__}, not an object")
    return encode_table(table)


def _fields(array: pa.Array) -> list[bytes]:
    """The values of an array as field values, each prefixed with its tag."""
    kind = array.type
    if pa.types.is_null(kind):
        return [_VOID] * len(array)
    for is_kind, tag, encode in _NESTED:
        if is_kind(kind):
            return _or_null(array, [_sized(tag, each) for each in encode(array)], _VOID)
    values, encode_one = next(row[1:] for row in _SCALARS if row[0](kind))
    return [_VOID if value is None else encode_one(value) for value in values(array)]


def _structs(array: pa.Array, nulls: bool = True) -> list[bytes]:
    """The fields of each struct of an array.

    Args:
        array: the structs.
        nulls: whether fields that are null are sent as void; otherwise they are left out.
    """
    left_out = None if nulls else _VOID
    columns = []
    for field, values in zip(array.type, array.flatten(), strict=True):
        name = encode_short_string(field.name)
        columns.append([b"" if value is left_out else name + value for value in _fields(values)])
    return [b"".join(row) for row in zip(*columns, strict=True)] or [b""] * len(array)


def _maps(array: pa.Array) -> list[bytes]:
    """The fields of each map of an array."""
    keys, values, offsets = _flat(array, array.keys, array.items)
    keys = octets(keys)
    # Text of Spark may have bytes that are not UTF-8.
    names = {key: encode_short_string((key or b"").decode(errors="surrogateescape")) for key in set(keys)}
    entries = [names[key] + value for key, value in zip(keys, _fields(values), strict=True)]
    return [b"".join(entries[start:end]) for start, end in pairwise(offsets)]


def _lists(array: pa.Array) -> list[bytes]:
    """The items of each list of an array."""
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


def _sized(tag: bytes, value: bytes) -> bytes:
    return pack_length_field(tag, len(value)) + value


def _whole(number: int) -> bytes:
    return pack_int32_field(b"I", number) if number in _INT else pack_int64_field(b"l", number)


def _time(microseconds: int) -> bytes:
    if microseconds < 0:
        raise ValueError("a time is before 1970")
    return pack_timestamp_field(b"T", microseconds // 1_000_000)


def _decimal(number: Decimal) -> bytes:
    try:
        if not number.is_signed():
            return decimal_field(number)
    except FieldError:
        pass
    raise ValueError(
        f"the decimal {number} does not fit: its digits must be an unsigned number of 32 bits. "
        "Cast it to STRING"
    )


def _finite(number: float | str) -> float:
    """The number. RabbitMQ closes the connection for NaN and infinity, and says only INTERNAL_ERROR."""
    value = float(number)
    if not isfinite(value):
        raise ValueError(f"{number} is a number that headers cannot have: cast it to STRING")
    return value


_IsKind = Callable[[pa.DataType], bool]

_NESTED: tuple[tuple[_IsKind, bytes, Callable[[pa.Array], list[bytes]]], ...] = (
    (pa.types.is_struct, b"F", _structs),
    (pa.types.is_map, b"F", _maps),
    (lambda kind: pa.types.is_list(kind) or pa.types.is_large_list(kind), b"A", _lists),
)
# The values of an array, and the encoding of one that is not null.
_SCALARS: tuple[tuple[_IsKind, Callable[[pa.Array], list[Any]], Callable[[Any], bytes]], ...] = (
    (is_text, octets, lambda text: pack_length_field(b"S", len(text)) + text),
    (pa.types.is_binary, octets, lambda value: _sized(b"x", value)),
    (pa.types.is_large_binary, octets, lambda value: _sized(b"x", value)),
    (pa.types.is_integer, pa.Array.to_pylist, _whole),
    (pa.types.is_boolean, pa.Array.to_pylist, lambda truth: b"t" + OCTET[truth]),
    (pa.types.is_floating, pa.Array.to_pylist, lambda number: pack_double_field(b"d", _finite(number))),
    (pa.types.is_timestamp, lambda array: microseconds(array).to_pylist(), _time),
    (pa.types.is_decimal, pa.Array.to_pylist, _decimal),
)
