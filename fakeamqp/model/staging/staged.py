"""A content on its way by staging, as far as it has come."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fakeamqp.model.interrupted import Interrupted
from fakeamqp.model.message import FileMessage

if TYPE_CHECKING:
    from fakeamqp.model.message import Child, Properties

__all__ = ["Description", "Staged"]


class Description(NamedTuple):
    """What is said of a content: its properties, in what encoding they came, and what else it holds."""

    properties: Properties
    encoding: str
    octets: bytes
    children: tuple[Child, ...] = ()


class Staged(Interrupted):
    """A content: `octets` are those of its first `size` that have come, `description` says what it is."""

    __slots__ = ("description", "identifier", "size")

    def __init__(self, identifier: str, size: int) -> None:
        super().__init__(None, bytearray())
        self.identifier = identifier
        self.size = size
        self.description: Description | None = None

    @property
    def complete(self) -> bool:
        """Whether all of it is there, the description included."""
        return self.description is not None and len(self.octets) == self.size

    def message(self, exchange: str, routing_key: str, publisher: object) -> FileMessage:
        """The message that it is when it is published; it must be complete."""
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
