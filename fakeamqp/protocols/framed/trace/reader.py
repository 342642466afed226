"""Reads frames of the family; see `fakeamqp.trace.reading.Reader`, which says what each method is for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fakeamqp.adapters import Part
from fakeamqp.protocols.framed.codec.frames import (
    CONTENT_HEADER,
    FRAME_BODY,
    FRAME_CONTENT_HEADER,
    FRAME_METHOD,
)
from fakeamqp.protocols.framed.trace.secrets import Secrets
from fakeamqp.trace.parts import Cut
from fakeamqp.trace.plain import bytes_or_text, plain_value
from fakeamqp.trace.reading import Hidden

if TYPE_CHECKING:
    from fakeamqp.adapters import Framing
    from fakeamqp.protocols.framed.trace.frames import Words

__all__ = ["FamilyReader"]

_COLUMNS = (
    "exchange",
    "routing_key",
    "queue",
    "consumer_tag",
    "delivery_tag",
    "redelivered",
    "reply_code",
)
_NO_PROPERTIES = bytes(2)


class FamilyReader:
    """The reader of one protocol of the family.

    Args:
        words: what puts its frames into words.
        framing: how it puts frames into bytes.
    """

    def __init__(self, words: Words, framing: Framing) -> None:
        self.words = words
        self._framing = framing
        self._vocabulary = words.vocabulary
        self.secrets = Secrets(words.vocabulary)

    def part(self, kind: int, payload: bytes) -> Part:
        """See `Reader`, here and below."""
        return self._framing.part(kind, payload)

    def name(self, kind: int, payload: bytes) -> str:
        """A method's name, or "content header", "content body", "heartbeat"."""
        return self.words.frame_name(kind, payload)

    def describe(self, kind: int, payload: bytes) -> str:
        """In one line."""
        return self.words.describe(kind, payload)

    def method(self, kind: int, payload: bytes) -> Any:
        """A `Method`."""
        return self.words.decode_method(payload) if kind == FRAME_METHOD else None

    def properties(self, kind: int, payload: bytes) -> Any:
        """`Properties` of the content's class."""
        header = self.words.decode_header(payload) if kind == FRAME_CONTENT_HEADER else None
        return None if header is None else header[1]

    def body_size(self, kind: int, payload: bytes) -> int | None:
        """The size is in front of what may be broken."""
        if kind != FRAME_CONTENT_HEADER or len(payload) < CONTENT_HEADER.size:
            return None
        size: int = CONTENT_HEADER.unpack_from(payload)[2]
        return size

    def begins_content(self, kind: int, payload: bytes) -> bool:
        """A few methods bring one."""
        if kind != FRAME_METHOD:
            return False
        method = self._vocabulary.methods.get(int.from_bytes(payload[:4], "big"))
        return method is not None and method.HAS_CONTENT

    def ends_content(self, kind: int) -> bool | None:
        """Frames do not say it."""
        return None

    def contents_within(self, kind: int, payload: bytes) -> int:
        """0-9-1 has no such thing."""
        return 0

    def body_within(self, method: Any) -> bytes | None:
        """0-9-1 has no such thing."""
        return None

    def values(self, record: Any) -> Iterator[tuple[str, Any]]:
        """All but the reserved ones."""
        secret = self._vocabulary.secret_fields
        for name, _ in record.LAYOUT:
            if name.startswith("reserved_"):
                continue
            value = getattr(record, name)
            yield name.rstrip("_"), Hidden(len(value)) if name in secret else value

    def columns(self, method: Any, direction: str) -> dict[str, Any]:
        """Fields are named like that."""
        return {name: getattr(method, name) for name in _COLUMNS if hasattr(method, name)}

    def columns_of_content(self, kind: int, payload: bytes, direction: str) -> dict[str, Any]:
        """The size of the body comes first."""
        message_id = getattr(self.properties(kind, payload), "message_id", None)
        return {"message_id": message_id, "body_size": self.body_size(kind, payload)}

    def plain(self, kind: int, payload: bytes) -> dict[str, Any]:
        """By its type."""
        if kind == FRAME_METHOD:
            return self.plain_method(self.method(kind, payload))
        if kind == FRAME_CONTENT_HEADER:
            properties = self.properties(kind, payload)
            return {
                "readable": properties is not None,
                "class_id": int.from_bytes(payload[:2], "big"),
                "body_size": self.body_size(kind, payload),
                "properties": None if properties is None else _present(self._plain_fields(properties)),
            }
        if kind == FRAME_BODY:
            return {"readable": not isinstance(payload, Cut), "body": bytes_or_text(payload)}
        return {"readable": not payload}

    def plain_method(self, method: Any) -> dict[str, Any]:
        """A method, or None where there was none to be read."""
        return {"readable": method is not None, "fields": method and self._plain_fields(method)}

    def _plain_fields(self, record: Any) -> dict[str, Any]:
        return {
            name: bytes_or_text(value) if isinstance(value, bytes) else plain_value(value)
            for name, value in self.values(record)
        }

    def redacted(self, kind: int, payload: bytes, channel: int) -> bytes:
        """See `secrets`."""
        return self.secrets.redacted(kind, payload, channel)

    def is_dissected(self, kind: int) -> bool:
        """All that 0-9-1 has."""
        return True

    def filled(self, kind: int, payload: Cut) -> tuple[bytes, str]:
        """A body with zeros; of other frames nothing but the kind or the body's size is left."""
        if kind == FRAME_METHOD:
            method = self._vocabulary.methods.get(int.from_bytes(payload[:4], "big"))
            if method is not None:
                return method().encode(), "its fields are not shown"
        if kind == FRAME_CONTENT_HEADER and len(payload) >= CONTENT_HEADER.size:
            return payload[: CONTENT_HEADER.size] + _NO_PROPERTIES, "its properties are not shown"
        return payload + bytes(payload.size - len(payload)), "the others are shown as zeros"


def _present(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
