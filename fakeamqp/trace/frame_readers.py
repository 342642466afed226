"""Readers of frames, one per protocol.

Events, and the views of them, use a `FrameReader` and know no protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from fakeamqp.adapters import protocol_named

if TYPE_CHECKING:
    from fakeamqp.adapters import Part
    from fakeamqp.trace.dialogue import Dialogue
    from fakeamqp.trace.truncation import Truncated

__all__ = ["FrameReader", "RedactedValue", "frame_reader"]


class RedactedValue(NamedTuple):
    """Replaces a secret value of `size` bytes."""

    size: int


class FrameReader(Protocol):
    """Reads the frames of one protocol. A frame is a kind and a payload; see `fakeamqp.adapters.Framing`.

    No bytes make a method raise.
    """

    def dialogue(self) -> Dialogue:
        """Reads the frames of one connection for the checks of a trace."""

    def part(self, kind: int, payload: bytes) -> Part:
        """The part of a command that the frame holds; "method" includes the commands and controls of 0-10."""

    def name(self, kind: int, payload: bytes) -> str:
        """The name of the method, or of the kind of frame."""

    def describe(self, kind: int, payload: bytes) -> str:
        """The frame in one line that begins with its name."""

    def method(self, kind: int, payload: bytes) -> Any:
        """The decoded method, or None if the frame has none or it cannot be decoded."""

    def properties(self, kind: int, payload: bytes) -> Any:
        """The decoded properties, or None if the frame has none or they cannot be decoded."""

    def body_size(self, kind: int, payload: bytes) -> int | None:
        """The size of the body that a header announces; None if it announces none."""

    def begins_content(self, kind: int, payload: bytes) -> bool:
        """True if frames with properties and a body follow."""

    def ends_content(self, kind: int) -> bool | None:
        """True if this frame ends the content; None if the size of the body determines the end."""

    def contents_within(self, kind: int, payload: bytes) -> int:
        """The number of nested contents that follow a header before its own body (the weight of 0-9)."""

    def body_within(self, method: Any) -> bytes | None:
        """The body in the method itself, without further frames; None if there is none."""

    def values(self, record: Any) -> Iterator[tuple[str, Any]]:
        """The fields of a method or of properties, without reserved ones. A secret is a `RedactedValue`."""

    def columns(self, method: Any, direction: str) -> dict[str, Any]:
        """The values of a method for the columns exchange, routing_key, queue, consumer_tag, delivery_tag,
        redelivered and reply_code, as far as it has them. A method with its body in itself also has
        message_id and body_size.
        """

    def columns_of_content(self, kind: int, payload: bytes, direction: str) -> dict[str, Any]:
        """The values of a header for the columns message_id and body_size (None if only the body frames tell
        it), and for columns that its method does not fill.
        """

    def make_properties(self, **values: Any) -> Any:
        """Properties of class basic with these values, such as a recording holds."""

    def to_json(self, kind: int, payload: bytes) -> dict[str, Any]:
        """The part of the JSON form that depends on the protocol; see `fakeamqp.trace.json_form`."""

    def redacted(self, kind: int, payload: bytes, channel: int) -> bytes:
        """The payload with each secret replaced by asterisks of the same length."""

    def is_dissected(self, kind: int) -> bool:
        """True if Wireshark dissects frames of this kind."""

    def filled(self, kind: int, payload: Truncated) -> tuple[bytes, str]:
        """A complete payload in place of a truncated one, and a comment on what differs."""


def frame_reader(protocol: str) -> FrameReader:
    """The reader of a protocol's frames, loaded on first use.

    Raises:
        UnknownProtocol: there is no protocol of this name.
    """
    reader: FrameReader = protocol_named(protocol).trace
    return reader
