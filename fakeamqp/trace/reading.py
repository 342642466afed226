"""How frames of each protocol are read. Events, and the views on them, ask a `Reader` and know no protocol."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from fakeamqp.adapters import protocol_named

if TYPE_CHECKING:
    from fakeamqp.adapters import Part
    from fakeamqp.trace.parts import Cut

__all__ = ["Hidden", "Reader", "reader_of"]


class Hidden(NamedTuple):
    """Stands for so many bytes that nobody is to read."""

    size: int


class Reader(Protocol):
    """Frames of one protocol. A frame is a kind and a payload, see `fakeamqp.adapters`.

    Whatever the bytes are, nothing is raised.
    """

    def part(self, kind: int, payload: bytes) -> Part:
        """What the frame holds; "method" stands for commands and controls as well."""

    def name(self, kind: int, payload: bytes) -> str:
        """What it is called: its method's name, or what kind of frame it is."""

    def describe(self, kind: int, payload: bytes) -> str:
        """The frame in one line that begins with its name."""

    def method(self, kind: int, payload: bytes) -> Any:
        """The method in it, or None where there is none to be read."""

    def properties(self, kind: int, payload: bytes) -> Any:
        """The properties in it, or None where there are none to be read."""

    def body_size(self, kind: int, payload: bytes) -> int | None:
        """How long a body its header announces; None where it does not say."""

    def begins_content(self, kind: int, payload: bytes) -> bool:
        """Whether frames with properties and a body belong behind it."""

    def ends_content(self, kind: int) -> bool | None:
        """Whether nothing of the content follows this frame; None where the size of the body tells."""

    def contents_within(self, kind: int, payload: bytes) -> int:
        """How many contents come, by a header, before the body that it announces."""

    def body_within(self, method: Any) -> bytes | None:
        """The body that a method has in itself, without further frames; None where it has none."""

    def values(self, record: Any) -> Iterator[tuple[str, Any]]:
        """The fields of a method or of properties, those that say nothing left out; secrets are `Hidden`."""

    def columns(self, method: Any, direction: str) -> dict[str, Any]:
        """What a method says of exchange, routing_key, queue, consumer_tag, delivery_tag, redelivered and
        reply_code, as far as it does; of one that has its body in itself, also the message_id and body_size.
        """

    def columns_of_content(self, kind: int, payload: bytes, direction: str) -> dict[str, Any]:
        """What a header says of the message_id, of the body_size (None: only its frames tell), and of what
        the method may have left open.
        """

    def plain(self, kind: int, payload: bytes) -> dict[str, Any]:
        """The frame as `fakeamqp.trace.plain` says it."""

    def redacted(self, kind: int, payload: bytes, channel: int) -> bytes:
        """The same payload with as many asterisks in the place of what is secret."""

    def is_dissected(self, kind: int) -> bool:
        """Whether Wireshark shows what is in such frames."""

    def filled(self, kind: int, payload: Cut) -> tuple[bytes, str]:
        """A payload that can stand for one of which the end is missing, and what is wrong with it."""


def reader_of(protocol: str) -> Reader:
    """The reader of a protocol's frames, loaded on first use.

    Raises:
        UnknownProtocol: there is no protocol of this name.
    """
    reader: Reader = protocol_named(protocol).trace
    return reader
