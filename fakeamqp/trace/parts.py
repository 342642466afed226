"""The beginnings of what is too long to keep."""

from __future__ import annotations

from typing_extensions import Self

__all__ = ["Cut", "MessagePart", "full_size"]


class Cut(bytes):
    """The first bytes of a payload; `size` is how many there were."""

    size: int

    def __new__(cls, payload: bytes, kept: int) -> Self:
        """Keep the first `kept` bytes of `payload`."""
        return cls.of(payload[:kept], len(payload))

    @classmethod
    def of(cls, beginning: bytes, size: int) -> Self:
        """The first bytes of a payload that had `size` of them."""
        cut = super().__new__(cls, beginning)
        cut.size = size
        return cut


class MessagePart:
    """Stands in for a message with a long body: what a trace shows of it, and the beginning of its body."""

    __slots__ = ("body", "exchange", "number", "properties", "publisher", "routing_key")

    def __init__(self, message: object, kept: int) -> None:
        self.body = Cut(getattr(message, "body", b""), kept)
        self.exchange: object = getattr(message, "exchange", None)
        self.routing_key: object = getattr(message, "routing_key", None)
        self.properties: object = getattr(message, "properties", None)
        self.publisher: object = getattr(message, "publisher", None)
        self.number: object = getattr(message, "number", 0)


def full_size(octets: bytes) -> int:
    """How many bytes there were before any were cut off."""
    return octets.size if isinstance(octets, Cut) else len(octets)
