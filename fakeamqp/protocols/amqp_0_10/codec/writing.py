"""Values written with a type code: the one they were read with, or else the one that suits them.

A `Map`, `List` or `Array` that was read is written from the bytes that it keeps, as far as its values have
not changed. Every other value gets the code that suits it:

| Value | Type |
|---|---|
| bool, None | boolean, void |
| int | int64, from 2**63 on uint64 |
| float | double |
| Decimal | dec32, or dec64 where it does not fit |
| str | str16 |
| bytes | vbin32 |
| Timestamp, datetime | datetime |
| UUID | uuid |
| a struct | struct32 |
| mapping; list or tuple; Array | map; list; array |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from struct import Struct, error
from typing import Any

from fakeamqp.protocols.amqp_0_10.codec.errors import SegmentError
from fakeamqp.protocols.amqp_0_10.codec.scalars import SCALARS, dec32, dec64
from fakeamqp.protocols.amqp_0_10.codec.types import (
    ARRAY,
    LIST,
    MAP,
    STRUCT32,
    Array,
    List,
    Map,
    check_depth,
    entries,
    read_array,
    read_list,
)
from fakeamqp.timestamps import Timestamp

__all__ = ["code_of", "encode_array", "encode_entries", "encode_list", "encode_map", "encode_struct32"]
__all__ += ["encode_value", "map_entries", "same", "splice_map"]

_STR8, _STR16, _UUID, _DATETIME, _VOID = 0x85, 0x95, 0x48, 0x38, 0xF0
_pack_two = Struct(">II").pack
_pack_array = Struct(">IBI").pack
#: bytes that a size has -> how it is written
_LENGTHS = {1: Struct(">B").pack, 2: Struct(">H").pack, 4: Struct(">I").pack}
#: What Python raises for a value that does not fit its type
_UNFIT = (AttributeError, TypeError, ValueError, OverflowError, ArithmeticError, error)


def code_of(value: object) -> int:
    """The code that suits a value. Raises SegmentError for a value that no type suits."""
    for kind, code in _NATURAL:
        if isinstance(value, kind):
            return code(value) if callable(code) else code
    # By name, to spare most processes the import:
    if type(value).__name__ == "UUID":
        return _UUID
    if hasattr(value, "utctimetuple"):
        return _DATETIME
    if hasattr(value, "encode"):
        return STRUCT32
    raise SegmentError(f"a map cannot hold a {type(value).__name__}: {value!r:.40}")


def _code_of_decimal(value: Decimal) -> int:
    try:
        dec32.write(value)
    except _UNFIT:
        return dec64.code
    except SegmentError:
        return dec64.code
    return dec32.code


_NATURAL: tuple[tuple[type[Any], int | Callable[[Any], int]], ...] = (
    (str, _STR16),
    (bool, 0x08),
    (Timestamp, _DATETIME),
    (int, lambda value: 0x31 if value < 1 << 63 else 0x32),
    (type(None), _VOID),
    (float, 0x33),
    (bytes, 0xA0),
    (bytearray, 0xA0),
    (Mapping, MAP),
    (Array, ARRAY),
    (list, LIST),
    (tuple, LIST),
    (Decimal, _code_of_decimal),
)


def encode_value(value: Any, code: int, depth: int = 0) -> bytes:
    """A value without its code, as the type of that code. Raises SegmentError where it is no such value."""
    scalar = SCALARS.get(code)
    if scalar is None:
        writer = _WRITERS.get(code)
        if writer is None:
            raise SegmentError(f"there is no type with the code 0x{code:02x}")
        return writer(value, depth + 1)
    try:
        octets = scalar.write(value)
        return _LENGTHS[scalar.prefix](len(octets)) + octets if scalar.prefix else octets
    except _UNFIT:
        raise SegmentError(f"{value!r:.80} is no {scalar.name}") from None


def _entry(value: Any, depth: int) -> bytes:
    """Code and value."""
    code = code_of(value)
    return bytes((code,)) + encode_value(value, code, depth)


def encode_map(value: Mapping[str, Any], depth: int = 0) -> bytes:
    """A map with its size. Raises SegmentError for what it cannot hold."""
    check_depth(depth)
    kept: dict[str, tuple[Any, bytes]] = {}
    octets = value.octets if isinstance(value, Map) else None
    if octets is not None:
        kept = map_entries(octets)
        if list(kept) == list(value) and all(same(kept[key][0], value[key]) for key in kept):
            return octets
    found = []
    for key, item in value.items():
        known = kept.get(key)
        if known is not None and same(known[0], item):
            found.append(known[1])
            continue
        try:
            found.append(encode_value(key, _STR8) + _entry(item, depth))
        except RecursionError:
            raise SegmentError("values nest deeper than the caller's stack allows") from None
        except SegmentError as problem:
            raise type(problem)(f"{key!r:.40}: {problem}") if depth < 8 else problem from None
    return _map_of(found)


def encode_entries(listed: Iterable[tuple[str, Any, int]]) -> bytes:
    """A map of (key, value, code), with its size. Raises SegmentError."""
    return _map_of(
        [encode_value(key, _STR8) + bytes((code,)) + encode_value(value, code) for key, value, code in listed]
    )


def _map_of(octets: list[bytes]) -> bytes:
    body = b"".join(octets)
    return _pack_two(len(body) + 4, len(octets)) + body


def encode_list(value: Iterable[Any], depth: int = 0) -> bytes:
    """A list with its size; see `encode_map`."""
    check_depth(depth)
    items = list(value)
    octets = value.octets if isinstance(value, List) else None
    if octets is not None and same(read_list(octets, 0)[0], value):
        return octets
    parts = [_entry(item, depth) for item in items]
    body = b"".join(parts)
    return _pack_two(len(body) + 4, len(items)) + body


def encode_array(value: Iterable[Any], depth: int = 0) -> bytes:
    """An array with its size; see `encode_map`."""
    check_depth(depth)
    items = list(value)
    code = None
    if isinstance(value, Array):
        code = value.code
        if value.octets is not None and same(read_array(value.octets, 0)[0], value):
            return value.octets
    if code is None:
        codes = {code_of(item) for item in items} or {_STR16}
        if len(codes) > 1:
            names = ", ".join(f"0x{each:02x}" for each in sorted(codes))
            raise SegmentError(f"the elements of an array are of one type, not of {names}")
        code = codes.pop()
    body = b"".join([encode_value(item, code, depth) for item in items])
    return _pack_array(len(body) + 5, code, len(items)) + body


def encode_struct32(value: Any, depth: int = 0) -> bytes:
    """A coded struct with its size. Raises SegmentError for anything else."""
    if not hasattr(value, "NAME") or not getattr(value, "INDEX", True):
        raise SegmentError(f"{value!r:.80} is no struct with a code")
    octets: bytes = value.encode()
    return octets


_WRITERS: dict[int, Callable[[Any, int], bytes]] = {
    MAP: encode_map,
    LIST: encode_list,
    ARRAY: encode_array,
    STRUCT32: encode_struct32,
}


# --- keeping the bytes of what was read --------------------------------------------------------------------


def map_entries(octets: bytes) -> dict[str, tuple[Any, bytes]]:
    """Key -> value and bytes (key, code and value) of each entry of a valid map."""
    return {
        key: (value, octets[start:stop]) for key, value, start, stop in entries(octets, 8, len(octets), 0)
    }


def splice_map(
    octets: bytes, changes: Mapping[str, Any], remove: Iterable[str] = (), *, ordered: bool = False
) -> bytes:
    """The bytes of a valid map after some changes; every other entry keeps its bytes.

    A changed entry keeps its place, a new one comes last; `ordered` sorts all by the bytes of their keys.
    Raises SegmentError for a value that a map cannot hold.
    """
    found = {key: entry for key, (_, entry) in map_entries(octets).items()}
    for key in remove:
        found.pop(key, None)
    for key, value in changes.items():
        found[key] = encode_value(key, _STR8) + _entry(value, 0)
    if ordered:
        found = dict(sorted(found.items(), key=lambda entry: entry[0].encode("utf-8", "surrogateescape")))
    return _map_of(list(found.values()))


def same(one: object, other: object) -> bool:
    """True for equal values of equal types, nested ones too: True is not 1 here, and nan is nan."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        if isinstance(one, Array) and isinstance(other, Array) and one.code != other.code:
            return False
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, Decimal) and isinstance(other, Decimal):
        return one.as_tuple() == other.as_tuple()
    return one == other or (one != one and other != other)
