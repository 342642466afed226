"""Values of headers, properties, arguments and bodies in the form that pages show.

Fields are (depth, name, value, type). Types are "s" text, "n" number, "b" bit, "x" bytes in hex, "t" a table
or array whose fields follow one level deeper, "z" void, "h" hidden, "o" anything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import islice
from typing import Any, TypeAlias

from fakeamqp.dialects import RedactedValue
from fakeamqp.timestamps import Timestamp
from fakeamqp.trace.truncation import full_size

__all__ = ["Field", "body_form", "bounded", "fields_of", "flat", "plain"]

#: depth, name, value, type
Field: TypeAlias = tuple[int, str, str, str]

_MOST_TEXT = 4096
_MOST_FIELDS = 500


def fields_of(values: Iterable[tuple[str, Any]], absent: bool = True) -> Iterator[Field]:
    """All fields, or with `absent=False` those that have a value. Secrets are hidden."""
    for name, value in values:
        if value is None and not absent:
            continue
        if isinstance(value, RedactedValue):
            yield 0, name, f"{value.size} bytes, not shown", "h"
        else:
            yield from flat(0, name, value)


def bounded(fields: Iterator[Field]) -> tuple[Field, ...]:
    """At most 500 fields, with a note if there are more."""
    shown = tuple(islice(fields, _MOST_FIELDS))
    if next(fields, None) is not None:
        shown += ((0, "...", f"only the first {_MOST_FIELDS} are shown", "h"),)
    return shown


def flat(depth: int, name: str, value: object) -> Iterator[Field]:
    """A value, followed by the values inside it."""
    if isinstance(value, Mapping):
        yield depth, name, f"table of {len(value)}", "t"
        for key, item in value.items():
            yield from flat(depth + 1, key if isinstance(key, str) else repr(key), item)
    elif isinstance(value, (list, tuple)):
        yield depth, name, f"array of {len(value)}", "t"
        for index, item in enumerate(value):
            yield from flat(depth + 1, f"[{index}]", item)
    else:
        yield depth, name, *plain(value)


def plain(value: object) -> tuple[str, str]:
    """One value as text, and its type."""
    if value is None:
        return "void", "z"
    if isinstance(value, bool):
        return ("true" if value else "false"), "b"
    if isinstance(value, Timestamp):
        try:
            return f"{int(value)} ({value.datetime:%Y-%m-%d %H:%M:%S} UTC)", "n"
        except (OverflowError, ValueError, OSError):
            return str(int(value)), "n"
    if isinstance(value, (int, float, Decimal)):
        return str(value), "n"
    if isinstance(value, str):
        return _cut(value), "s"
    if isinstance(value, (bytes, bytearray)):
        size = full_size(bytes(value)) if type(value) is bytearray else full_size(value)  # type: ignore[arg-type]
        try:
            text = bytes(value).decode()
        except UnicodeDecodeError:
            text = ""
        if text.isprintable() and (text or not value):
            return _cut(text), "s"
        shown = value[: _MOST_TEXT // 2].hex()
        return (shown if size <= _MOST_TEXT // 2 else f"{shown}... ({size} bytes)"), "x"
    try:
        return _cut(str(value)), "o"
    except Exception as error:
        return f"{type(value).__name__}, whose str raised {type(error).__name__}", "o"


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}... ({len(text)} characters)"


def body_form(kept: bytes, size: int) -> tuple[str, str]:
    """A body as text, or in base64 if it is not text."""
    from base64 import b64encode

    # Truncation may have split the last character.
    for end in (0, 1, 2, 3) if len(kept) < size else (0,):
        try:
            text = kept[: len(kept) - end].decode()
        except UnicodeDecodeError:
            continue
        if all(character >= " " or character in "\t\r\n" for character in text):
            return "text", text
        break
    return "base64", b64encode(kept).decode()
