"""Short text for values. It fits one line, and no byte from a peer can break that line."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from fakeamqp.errors import printable
from fakeamqp.trace.truncation import full_size

_MOST_ITEMS = 8
_LONGEST = 60
_DEEPEST = 4


def short(value: object, depth: int = 0) -> str:
    """`value` as source code, shortened if it is long. It never raises and has no line breaks."""
    if isinstance(value, bytes):
        shown = repr(bytes(value[:_LONGEST]))
        size = full_size(value)
        return shown if size <= _LONGEST else f"{shown}... ({size} bytes)"
    if isinstance(value, str):
        return repr(value[:_LONGEST]) + ("..." if len(value) > _LONGEST else "")
    if isinstance(value, (Mapping, list, tuple)) and depth == _DEEPEST:
        return "..."
    if isinstance(value, Mapping):
        items = [
            f"{short(key)}: {short(item, depth + 1)}" for key, item in islice(value.items(), _MOST_ITEMS)
        ]
        return "{" + _listed(items, len(value)) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + _listed([short(item, depth + 1) for item in value[:_MOST_ITEMS]], len(value)) + "]"
    try:
        return one_line(repr(value), 2 * _LONGEST)
    except Exception as error:
        return f"<{type(value).__name__}, whose repr raised {type(error).__name__}>"


def one_line(text: str, longest: int = 0) -> str:
    """The text with unprintable characters escaped, cut to `longest` characters; 0 means any length."""
    if longest and len(text) > longest:
        text = text[: longest - 3] + "..."
    return printable(text)


def _listed(shown: list[str], count: int) -> str:
    if count > len(shown):
        shown.append(f"... {count - len(shown)} more")
    return ", ".join(shown)
