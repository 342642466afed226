"""Header tables of messages as text: the values of a map, or JSON.

Strings are text as they are; in JSON, bytes are text if they are UTF-8 and base64 otherwise, times are ISO
8601, and numbers have all their digits. NaN and infinity are the strings that Spark reads as DOUBLE, because
JSON has no such numbers. Names are sorted.

What cannot be read is noted in a list: no table raises an error.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from decimal import Decimal
from json.encoder import encode_basestring as quoted
from math import isfinite
from typing import TypeAlias, TypeVar

from fakeamqp.protocols.amqp_0_9_1.codec.tables import (
    MAX_DEPTH,
    RABBITMQ,
    DeepArray,
    DeepTable,
    FieldValue,
    Timestamp,
)
from fakeamqp.protocols.base.codec import WireError

#: The last second of the year 9999, the last one of Python's and of Spark's text.
LAST_SECOND = 253_402_300_799

_Made = TypeVar("_Made")
_Fields: TypeAlias = dict[str, FieldValue]

_CONSTANTS = {None: "null", True: "true", False: "false"}
_NOT_FINITE = {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}


def as_text(table: bytes, notes: list[str], *, as_json: bool) -> str | list[tuple[str, str | None]] | None:
    """An encoded table as one JSON object, or as the items of a map; None if it is malformed."""
    try:
        fields, _ = RABBITMQ.decode(table, 0, len(table))
        return _json(fields, "", notes) if as_json else _members(fields, _plain, notes)
    except WireError as error:
        notes.append(f"headers: {error}")
    except RecursionError:
        notes.append("headers: the values nest deeper than the caller's stack allows")
    return None


def replaced(text: str) -> str:
    """A text of the codec with U+FFFD for what is not UTF-8, which is lone surrogates there."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _members(
    fields: _Fields, write: Callable[[FieldValue, str, list[str]], _Made], notes: list[str]
) -> list[tuple[str, _Made]]:
    """Sorted names with their written values. Of several names that are equal as text the first counts."""
    members: dict[str, _Made] = {}
    for name, value in fields.items():
        members.setdefault(_text(name, name, notes), write(value, name, notes))
    return sorted(members.items())


def _plain(value: FieldValue, name: str, notes: list[str]) -> str | None:
    """A value in a map: null and text are themselves, others are JSON."""
    if isinstance(value, str):
        return _text(value, name, notes)
    return None if value is None else _json(value, name, notes)


def _json(value: FieldValue, name: str, notes: list[str]) -> str:
    """The JSON of the value of a header, or of an item in it."""
    if isinstance(value, str):
        return quoted(_text(value, name, notes))
    if value is None or isinstance(value, bool):
        return _CONSTANTS[value]
    if isinstance(value, Timestamp):
        if value <= LAST_SECOND:
            return quoted(value.datetime.isoformat())
        notes.append(f"header {replaced(name)!r} is a time after the year 9999: {value:d} s since 1970")
        return f"{value:d}"
    if isinstance(value, int):
        return repr(value)
    if isinstance(value, float):
        return repr(value) if isfinite(value) else _NOT_FINITE[repr(value)]
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, dict):
        members = _members(value, _json, notes)
        return "{" + ", ".join([f"{quoted(name)}: {member}" for name, member in members]) + "}"
    if isinstance(value, list):
        return "[" + ", ".join([_json(item, name, notes) for item in value]) + "]"
    if isinstance(value, (DeepTable, DeepArray)):
        notes.append(f"header {replaced(name)!r} nests deeper than {MAX_DEPTH} levels")
        return "null"
    try:
        return quoted(value.decode())
    except UnicodeDecodeError:
        return quoted(base64.b64encode(value).decode())


def _text(text: str, name: str, notes: list[str]) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        notes.append(f"header {replaced(name)!r} is not UTF-8")
        return replaced(text)
    return text
