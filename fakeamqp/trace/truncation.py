"""Truncation of what is too long to keep: payloads of frames, and messages with long bodies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.dialects import default_protocol, protocol_named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Self


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
