"""Reads frames of 0-9-1; see `fakeamqp.trace.reading.Reader`, which says what each of its methods is for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fakeamqp.trace.amqp_0_9_1.frames import decode_header, decode_method, describe, frame_name
from fakeamqp.trace.amqp_0_9_1.secrets import SECRET_FIELDS, redacted
from fakeamqp.trace.parts import Cut
from fakeamqp.trace.plain import octets_or_text, plain_value
from fakeamqp.trace.reading import Hidden
from fakeamqp.wire.amqp_0_9_1.methods import METHODS
from fakeamqp.wire.amqp_0_9_x.frames import CONTENT_HEADER, FRAME_BODY, FRAME_CONTENT_HEADER, FRAME_METHOD
from fakeamqp.wire.amqp_0_9_x.framing import FRAMING
from fakeamqp.wire.framing import Part

__all__ = ["READER"]

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


class _Reader:
    """The reader of 0-9-1."""

    def part(self, kind: int, payload: bytes) -> Part:
        """See `Reader`, here and below."""
        return FRAMING.part(kind, payload)

    def name(self, kind: int, payload: bytes) -> str:
        """A method's name, or "content header", "content body", "heartbeat"."""
        return frame_name(kind, payload)

    def describe(self, kind: int, payload: bytes) -> str:
        """In one line."""
        return describe(kind, payload)

    def method(self, kind: int, payload: bytes) -> Any:
        """A `Method`."""
        return decode_method(payload) if kind == FRAME_METHOD else None

    def properties(self, kind: int, payload: bytes) -> Any:
        """`BasicProperties`."""
        header = decode_header(payload) if kind == FRAME_CONTENT_HEADER else None
        return None if header is None else header[1]

    def body_size(self, kind: int, payload: bytes) -> int | None:
        """The size is in front of what may be broken."""
        if kind != FRAME_CONTENT_HEADER or len(payload) < CONTENT_HEADER.size:
            return None
        size: int = CONTENT_HEADER.unpack_from(payload)[2]
        return size

    def begins_content(self, kind: int, payload: bytes) -> bool:
        """A few methods bring one."""
        method = METHODS.get(int.from_bytes(payload[:4], "big")) if kind == FRAME_METHOD else None
        return method is not None and method.HAS_CONTENT

    def ends_content(self, kind: int) -> bool | None:
        """Frames do not say it."""
        return None

    def values(self, record: Any) -> Iterator[tuple[str, Any]]:
        """All but the reserved ones."""
        for name, _ in record.LAYOUT:
            if name.startswith("reserved_"):
                continue
            value = getattr(record, name)
            yield name.rstrip("_"), Hidden(len(value)) if name in SECRET_FIELDS else value

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
            method = decode_method(payload)
            return {
                "readable": method is not None,
                "fields": None if method is None else self._fields(method),
            }
        if kind == FRAME_CONTENT_HEADER:
            properties = self.properties(kind, payload)
            return {
                "readable": properties is not None,
                "class_id": int.from_bytes(payload[:2], "big"),
                "body_size": self.body_size(kind, payload),
                "properties": None if properties is None else _present(self._fields(properties)),
            }
        if kind == FRAME_BODY:
            return {"readable": not isinstance(payload, Cut), "body": octets_or_text(payload)}
        return {"readable": not payload}

    def _fields(self, record: Any) -> dict[str, Any]:
        return {
            name: octets_or_text(value) if isinstance(value, bytes) else plain_value(value)
            for name, value in self.values(record)
        }

    def redacted(self, kind: int, payload: bytes, channel: int) -> bytes:
        """See `secrets`."""
        return redacted(kind, payload, channel)

    def filled(self, kind: int, payload: Cut) -> tuple[bytes, str]:
        """A body with zeros; of other frames nothing but the kind or the body's size is left."""
        if kind == FRAME_METHOD and int.from_bytes(payload[:4], "big") in METHODS:
            return METHODS[int.from_bytes(payload[:4], "big")]().encode(), "its fields are not shown"
        if kind == FRAME_CONTENT_HEADER and len(payload) >= CONTENT_HEADER.size:
            return payload[: CONTENT_HEADER.size] + _NO_PROPERTIES, "its properties are not shown"
        return payload + bytes(payload.size - len(payload)), "the others are shown as zeros"


def _present(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


READER = _Reader()
