"""Conversion of Arrow arrays, with 32 or 64 bit offsets, to the values that AMQP needs."""

from __future__ import annotations

import pyarrow as pa


def is_text(kind: pa.DataType) -> bool:
    """True for a type of text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def octets(array: pa.Array) -> list[bytes | None]:
    """The values of an array of text or bytes; text is encoded as UTF-8."""
    if pa.types.is_string(array.type):
        array = array.cast(pa.binary())
    elif pa.types.is_large_string(array.type):
        array = array.cast(pa.large_binary())
    values: list[bytes | None] = array.to_pylist()
    return values


def microseconds(array: pa.Array) -> pa.Array:
    """An array of times as microseconds since 1970."""
    return array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64())
