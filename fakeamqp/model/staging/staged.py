"""A content that is being staged."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fakeamqp.model.interrupted import Interrupted
from fakeamqp.model.message import FileMessage

if TYPE_CHECKING:
    from fakeamqp.model.message import Child, ReadableProperties

__all__ = ["Description", "Staged"]


class Description(NamedTuple):
    """A content's properties (decoded, and as received with their encoding) and its child contents."""

    properties: ReadableProperties
    encoding: str
    octets: bytes
    children: tuple[Child, ...] = ()


class Staged(Interrupted):
    """A content of `size` octets: `octets` are those received so far, `description` its properties."""

    __slots__ = ("description", "identifier", "size")

    def __init__(self, identifier: str, size: int) -> None:
        super().__init__(None, bytearray())
        self.identifier: str = identifier
        self.size: int = size
        self.description: Description | None = None

    @property
    def complete(self) -> bool:
        """True once all bytes and the description were received."""
        return self.description is not None and len(self.octets) == self.size

    def message(self, exchange: str, routing_key: str, publisher: object) -> FileMessage:
        """The message to publish. The content must be complete."""
        assert self.description is not None
        properties, encoding, octets, children = self.description
        message = FileMessage(
            exchange, routing_key, properties, bytes(self.octets), encoding, octets, publisher
        )
        if children:
            message.children = children
        return message

    def __repr__(self) -> str:
        return f"<Staged {self.identifier!r} {len(self.octets)} of {self.size} bytes>"
