"""Truncation: of payloads and messages that are too long to keep, and of values that are to fit one line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from fakeamqp.dialects import default_protocol, protocol_named
from fakeamqp.errors import printable

if TYPE_CHECKING:
    from typing_extensions import Self

_MOST_ITEMS = 8
_LONGEST = 60
_DEEPEST = 4


LONG_BODY = 4096
"""Bytes of a body that a trace keeps."""


class Truncated(bytes):
    """The first bytes of a payload. `size` is the number of bytes of the whole payload."""

    size: int

    def __new__(cls, payload: bytes, kept: int) -> Self:
        """Keep the first `kept` bytes of `payload`."""
        return cls.of(payload[:kept], len(payload))

    @classmethod
    def of(cls, beginning: bytes, size: int) -> Self:
        """The first bytes of a payload of `size` bytes."""
        truncated = super().__new__(cls, beginning)
        truncated.size = size
        return truncated


class TruncatedMessage:
    """Replaces a message with a long body. It has the attributes that a trace shows."""

    __slots__ = ("body", "exchange", "number", "properties", "publisher", "routing_key")

    def __init__(self, message: object, kept: int) -> None:
        self.body: Truncated = Truncated(getattr(message, "body", b""), kept)
        self.exchange: object = getattr(message, "exchange", None)
        self.routing_key: object = getattr(message, "routing_key", None)
        self.properties: object = getattr(message, "properties", None)
        self.publisher: object = getattr(message, "publisher", None)
        self.number: object = getattr(message, "number", 0)


def full_size(octets: bytes) -> int:
    """The number of bytes before truncation."""
    return octets.size if isinstance(octets, Truncated) else len(octets)


def frames_in(octets: bytes, protocol: str | None = None) -> Iterator[tuple[int, int, bytes]]:
    """Type, channel and payload of each frame. A frame that is not complete has a `Truncated` payload."""
    row = default_protocol() if protocol is None else protocol_named(protocol)
    for kind, channel, payload, size in row.dialect.cut(octets):
        yield kind, channel, payload if len(payload) == size else Truncated.of(payload, size)


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
