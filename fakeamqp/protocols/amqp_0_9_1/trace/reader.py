"""The reader of 0-9-x frames; see `fakeamqp.trace.frame_readers.FrameReader` for its methods."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fakeamqp.adapters import Part
from fakeamqp.protocols.amqp_0_9_1.codec.frames import (
    CONTENT_HEADER,
    FRAME_BODY,
    FRAME_CONTENT_HEADER,
    FRAME_METHOD,
)
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.trace.dialogue import Dialogue091, answers_of
from fakeamqp.protocols.amqp_0_9_1.trace.secrets import Secrets
from fakeamqp.trace.frame_readers import RedactedValue
from fakeamqp.trace.json_form import bytes_or_text, value_to_json
from fakeamqp.trace.truncation import Truncated

if TYPE_CHECKING:
    from fakeamqp.adapters import Framing
    from fakeamqp.protocols.amqp_0_9_1.trace.frames import FrameText091

__all__ = ["Reader091"]

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


class Reader091:
    """The reader of one protocol of the family.

    Args:
        words: makes the text of its frames.
        framing: its frame format.
    """

    def __init__(self, words: FrameText091, framing: Framing) -> None:
        self.words = words
        self._framing = framing
        self._vocabulary = words.vocabulary
        self.secrets: Secrets = Secrets(words.vocabulary)

    @cached_property
    def answers(self) -> frozenset[str]:
        """The names of the methods that answer others."""
        return answers_of(self._vocabulary.methods)

    def dialogue(self) -> Dialogue091:
        return Dialogue091(self.answers)

    def part(self, kind: int, payload: bytes) -> Part:
        return self._framing.part(kind, payload)

    def name(self, kind: int, payload: bytes) -> str:
        """A method's name, or "content header", "content body", "heartbeat"."""
        return self.words.frame_name(kind, payload)

    def describe(self, kind: int, payload: bytes) -> str:
        """One line."""
        return self.words.describe(kind, payload)

    def method(self, kind: int, payload: bytes) -> Any:
        """A `Method`."""
        return self.words.decode_method(payload) if kind == FRAME_METHOD else None

    def properties(self, kind: int, payload: bytes) -> Any:
        """`Properties` of the content's class."""
        header = self.words.decode_header(payload) if kind == FRAME_CONTENT_HEADER else None
        return None if header is None else header[1]

    def body_size(self, kind: int, payload: bytes) -> int | None:
        """The size stands before the properties, which may be malformed."""
        if kind != FRAME_CONTENT_HEADER or len(payload) < CONTENT_HEADER.size:
            return None
        size: int = CONTENT_HEADER.unpack_from(payload)[2]
        return size

    def begins_content(self, kind: int, payload: bytes) -> bool:
        """True for a few methods."""
        if kind != FRAME_METHOD:
            return False
        method = self._vocabulary.methods.get(int.from_bytes(payload[:4], "big"))
        return method is not None and method.HAS_CONTENT

    def ends_content(self, kind: int) -> bool | None:
        """The size of the body determines the end."""
        return None

    def contents_within(self, kind: int, payload: bytes) -> int:
        """0-9-1 has none."""
        return 0

    def body_within(self, method: Any) -> bytes | None:
        """0-9-1 has none."""
        return None

    def values(self, record: Any) -> Iterator[tuple[str, Any]]:
        """All fields except reserved ones."""
        secret = self._vocabulary.secret_fields
        for name, _ in record.LAYOUT:
            if name.startswith("reserved_"):
                continue
            value = getattr(record, name)
            yield name.rstrip("_"), RedactedValue(len(value)) if name in secret else value

    def columns(self, method: Any, direction: str) -> dict[str, Any]:
        """The columns have the names of the fields."""
        return {name: getattr(method, name) for name in _COLUMNS if hasattr(method, name)}

    def columns_of_content(self, kind: int, payload: bytes, direction: str) -> dict[str, Any]:
        """From the properties, and from the size before them."""
        message_id = getattr(self.properties(kind, payload), "message_id", None)
        return {"message_id": message_id, "body_size": self.body_size(kind, payload)}

    def make_properties(self, **values: Any) -> BasicProperties:
        return BasicProperties(**values)

    def to_json(self, kind: int, payload: bytes) -> dict[str, Any]:
        """The keys depend on the type of the frame."""
        if kind == FRAME_METHOD:
            return self.method_to_json(self.method(kind, payload))
        if kind == FRAME_CONTENT_HEADER:
            properties = self.properties(kind, payload)
            return {
                "readable": properties is not None,
                "class_id": int.from_bytes(payload[:2], "big"),
                "body_size": self.body_size(kind, payload),
                "properties": None if properties is None else _present(self._fields_to_json(properties)),
            }
        if kind == FRAME_BODY:
            return {"readable": not isinstance(payload, Truncated), "body": bytes_or_text(payload)}
        return {"readable": not payload}

    def method_to_json(self, method: Any) -> dict[str, Any]:
        """The same for a decoded method; None stands for one that cannot be decoded."""
        return {"readable": method is not None, "fields": method and self._fields_to_json(method)}

    def _fields_to_json(self, record: Any) -> dict[str, Any]:
        return {
            name: bytes_or_text(value) if isinstance(value, bytes) else value_to_json(value)
            for name, value in self.values(record)
        }

    def redacted(self, kind: int, payload: bytes, channel: int) -> bytes:
        return self.secrets.redacted(kind, payload, channel)

    def is_dissected(self, kind: int) -> bool:
        """True for all frames."""
        return True

    def filled(self, kind: int, payload: Truncated) -> tuple[bytes, str]:
        """A body is filled with zeros. A method keeps its id only, a header the size of the body."""
        if kind == FRAME_METHOD:
            method = self._vocabulary.methods.get(int.from_bytes(payload[:4], "big"))
            if method is not None:
                return method().encode(), "its fields are not shown"
        if kind == FRAME_CONTENT_HEADER and len(payload) >= CONTENT_HEADER.size:
            return payload[: CONTENT_HEADER.size] + _NO_PROPERTIES, "its properties are not shown"
        return payload + bytes(payload.size - len(payload)), "the others are shown as zeros"


def _present(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
