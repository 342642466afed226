"""Header tables of messages as text: the values of a map, or JSON.

Strings are text as they are; in JSON, bytes are text if they are UTF-8 and base64 otherwise, times are ISO
8601, and numbers have all their digits. NaN and infinity are the strings that Spark reads as DOUBLE, because
JSON has no such numbers. The nesting has no limit, so nothing here is recursive.

Each function takes a list for notes of what cannot be read: it never raises because of a table.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from json.encoder import encode_basestring as quoted
from math import isfinite
from struct import Struct, error as StructError
from typing import Any, TypeAlias

from fakeamqp.protocols.amqp_0_9_1.codec.tables import RABBITMQ
from fakeamqp.protocols.base.codec import FieldError, FrameError, WireError

#: The last second of the year 9999, the last one of Python's and of Spark's text.
LAST_SECOND = 253_402_300_799

_STRING, _BYTES, _TABLE, _ARRAY, _TRUTH, _TIME, _DECIMAL, _VOID = b"SxFAtTDV"
_NESTED = (_TABLE, _ARRAY)
_SIZED = (_STRING, _BYTES, *_NESTED)
_Writer: TypeAlias = Callable[[bytes, int], str]

_read_size = Struct(">I").unpack_from
_read_time = Struct(">Q").unpack_from


def fields(octets: bytes, at: int, stop: int, named: bool = True) -> Iterator[tuple[bytes, int, int, int]]:
    """The name, tag, start and end of each value of a table, or of an array, which has no names.

    Raises:
        WireError: a value cannot be read, and so nothing after it.
    """
    name = b""
    try:
        while at < stop:
            if named:
                start = at + 1
                at = start + octets[at]
                name = octets[start : min(at, stop)]
                if at >= stop:
                    raise IndexError
            tag = octets[at]
            at += 1
            if tag in _SIZED:
                end = at + 4 + _read_size(octets, at)[0]
                at += 4
            else:
                end = at + _SIZES[tag]
            if end > stop:
                raise IndexError
            yield name, tag, at, end
            at = end
    except (IndexError, StructError):
        raise FrameError(f"header {_shown(name)} is cut short") from None
    except KeyError:
        raise FieldError(f"header {_shown(name)} has the unknown tag 0x{tag:02x}") from None


def as_map(table: bytes, notes: list[str]) -> tuple[list[str], list[str | None]]:
    """The names of a table with its size, sorted, and their values. The first of several fields counts."""
    values: dict[str, str | None] = {}
    try:
        for name, tag, at, end in fields(table, 4, len(table)):
            if tag == _STRING:
                value: str | None = _text(table[at:end], name, notes)
            elif tag == _VOID:
                value = None
            else:
                value = _json(table, name, tag, at, end, notes)
            values.setdefault(_text(name, name, notes), value)
    except WireError as error:
        notes.append(str(error))
    names = sorted(values)
    return names, [values[name] for name in names]


def as_json(table: bytes, notes: list[str]) -> str:
    """A table with its size as a JSON object."""
    return _json(table, b"", _TABLE, 4, len(table), notes)


class _Level:
    """A table or an array of which some values are JSON already."""

    def __init__(self, octets: bytes, name: bytes, tag: int, at: int, end: int) -> None:
        self.name = name
        self.named = tag == _TABLE
        self.fields = fields(octets, at, end, self.named)
        self.values: list[tuple[bytes, str]] = []

    def text(self, notes: list[str]) -> str:
        if not self.named:
            return "[" + ", ".join([value for _, value in self.values]) + "]"
        values: dict[str, str] = {}
        for name, value in self.values:
            values.setdefault(_text(name, name, notes), value)
        return "{" + ", ".join([f"{quoted(name)}: {values[name]}" for name in sorted(values)]) + "}"


def _json(octets: bytes, name: bytes, tag: int, at: int, end: int, notes: list[str]) -> str:
    if tag not in _NESTED:
        return _scalar(octets, name, tag, at, end, notes)
    levels = [_Level(octets, name, tag, at, end)]
    while True:
        level = levels[-1]
        try:
            for name, tag, at, end in level.fields:
                if tag in _NESTED:
                    levels.append(_Level(octets, name, tag, at, end))
                    break
                level.values.append((name, _scalar(octets, name, tag, at, end, notes)))
        except WireError as error:  # The rest of this table; those around it know where they go on.
            notes.append(str(error))
        if levels[-1] is level:
            text = level.text(notes)
            levels.pop()
            if not levels:
                return text
            levels[-1].values.append((level.name, text))


def _scalar(octets: bytes, name: bytes, tag: int, at: int, end: int, notes: list[str]) -> str:
    """A value that contains no others, as JSON."""
    if tag == _STRING:
        return quoted(_text(octets[at:end], name, notes))
    if tag == _BYTES:
        value = octets[at:end]
        try:
            return quoted(value.decode())
        except UnicodeDecodeError:
            return quoted(base64.b64encode(value).decode())
    if tag == _TIME:
        return _time(_read_time(octets, at)[0], name, notes)
    return _WRITERS[tag](octets, at)


def _text(octets: bytes, name: bytes, notes: list[str]) -> str:
    try:
        return octets.decode()
    except UnicodeDecodeError:
        notes.append(f"header {_shown(name)} is not UTF-8")
        return octets.decode("utf-8", "replace")


def _time(seconds: int, name: bytes, notes: list[str]) -> str:
    if seconds > LAST_SECOND:
        notes.append(f"header {_shown(name)} is a time after the year 9999: {seconds} s since 1970")
        return str(seconds)
    return quoted(datetime.fromtimestamp(seconds, timezone.utc).isoformat())


def _float(number: float) -> str:
    if isfinite(number):
        return repr(number)
    return '"NaN"' if number != number else '"Infinity"' if number > 0 else '"-Infinity"'


def _decimal(octets: bytes, at: int) -> str:
    places, mantissa = RABBITMQ.mantissa.unpack_from(octets, at)
    digits = str(mantissa).zfill(places + 1)
    return f"{digits[:-places]}.{digits[-places:]}" if places else digits


def _number(read: Callable[[bytes, int], tuple[Any, ...]], write: Callable[[Any], str]) -> _Writer:
    return lambda octets, at: write(read(octets, at)[0])


def _shown(name: bytes) -> str:
    return repr(name.decode("utf-8", "replace"))


_SIZES = {tag: size for tag, (_, size) in RABBITMQ.numbers.items()} | {
    _TRUTH: 1,
    _TIME: 8,
    _VOID: 0,
    _DECIMAL: 5,
}
_WRITERS: dict[int, _Writer] = {
    tag: _number(read, _float if tag in b"df" else str) for tag, (read, _) in RABBITMQ.numbers.items()
} | {
    _TRUTH: lambda octets, at: "true" if octets[at] else "false",
    _VOID: lambda _octets, _at: "null",
    _DECIMAL: _decimal,
}
