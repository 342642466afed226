"""Frames of the family in words. Whatever the bytes are, there is a line for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.codec.errors import WireError
from fakeamqp.protocols.framed.codec.frames import (
    CONTENT_HEADER,
    FRAME_BODY,
    FRAME_CONTENT_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
)
from fakeamqp.trace.parts import Cut
from fakeamqp.trace.words import one_line, short

if TYPE_CHECKING:
    from fakeamqp.protocols.framed.codec.method import Method, Record
    from fakeamqp.protocols.framed.codec.properties import Properties
    from fakeamqp.protocols.framed.trace.vocabulary import Vocabulary

__all__ = ["Words"]

_WHO = ("connection_name", "product", "version", "platform")
_OTHERS = {FRAME_CONTENT_HEADER: "content header", FRAME_BODY: "content body", FRAME_HEARTBEAT: "heartbeat"}


class Words:
    """Puts frames into words, and decodes them for that.

    Args:
        vocabulary: of the protocol.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    def frame_name(self, frame_type: int, payload: bytes) -> str:
        """What kind of frame it is: the method's name, or "content header", "content body", "heartbeat"."""
        if frame_type == FRAME_METHOD:
            return self.method_name(payload)
        return _OTHERS.get(frame_type) or f"unknown frame type {frame_type}"

    def method_name(self, payload: bytes) -> str:
        """The name of an encoded method."""
        if len(payload) < 4:
            return "malformed method"
        index = int.from_bytes(payload[:4], "big")
        return self.vocabulary.name(index) or f"unknown method {index >> 16}.{index & 0xFFFF}"

    def decode_method(self, payload: bytes) -> Method | None:
        """The method in a method frame, or None where there is none to be read."""
        kind = self.vocabulary.methods.get(int.from_bytes(payload[:4], "big"))
        return None if kind is None else self._read(lambda grammar: kind.decode(payload, grammar))

    def decode_header(self, payload: bytes) -> tuple[int, Any] | None:
        """Body size and properties in a content header frame, or None where they cannot be read."""
        if len(payload) < CONTENT_HEADER.size + 2:
            return None
        class_id, _, size = CONTENT_HEADER.unpack_from(payload)
        kind: Any = self.vocabulary.describing(class_id)
        properties = self._read(lambda grammar: kind.decode(payload, CONTENT_HEADER.size, grammar))
        return None if properties is None else (size, properties)

    def describe(self, frame_type: int, payload: bytes) -> str:
        """The frame in one line."""
        name = self.frame_name(frame_type, payload)
        words = self.words(frame_type, payload)
        if words is None:
            return f"{name}: {self._why_not(frame_type, payload)}"
        return " ".join((name, *words))

    def words(self, frame_type: int, payload: bytes) -> list[str] | None:
        """What is in a frame; None where it cannot be read."""
        if frame_type == FRAME_METHOD and len(payload) >= 4:
            method = self.decode_method(payload)
            return None if method is None else list(self._fields(method))
        if frame_type == FRAME_CONTENT_HEADER:
            header = self.decode_header(payload)
            return None if header is None else [*self.header_words(payload), *self._fields(header[1])]
        if frame_type == FRAME_BODY:
            return [short(payload)]
        return [] if not payload and frame_type == FRAME_HEARTBEAT else None

    def header_words(self, payload: bytes) -> Iterator[str]:
        """What a content header says before its properties."""
        class_id, weight, size = CONTENT_HEADER.unpack_from(payload)
        if class_id != next(iter(self.vocabulary.properties)):
            yield f"class_id={class_id}"
        if weight:
            yield f"weight={weight}"
        yield f"body_size={size}"

    def _read(self, decode: Any) -> Any:
        """What `decode` makes of the first grammar that it can be read with."""
        for grammar in self.vocabulary.grammars:
            try:
                return decode(grammar)
            except WireError:
                continue
        return None

    def _why_not(self, frame_type: int, payload: bytes) -> str:
        """Why a frame cannot be read, and what it holds."""
        if isinstance(payload, Cut):
            return f"too long to be kept whole ({payload.size} bytes)"
        index = int.from_bytes(payload[:4], "big")
        if index in self.vocabulary.secretive:
            # Why would depend on what is hidden.
            return f"malformed ({len(payload)} bytes)"
        reason = "cannot be read"
        try:
            self.check(frame_type, payload)
        except WireError as problem:
            reason = f"malformed: {one_line(str(problem), 160)}"
        return f"{reason} ({len(payload)} bytes: {payload[:24].hex()}{'...' if len(payload) > 24 else ''})"

    def check(self, frame_type: int, payload: bytes) -> None:
        """Raise WireError where that tells what is wrong with a frame."""
        grammar = self.vocabulary.grammars[0]
        kind: Any
        if frame_type == FRAME_METHOD and len(payload) >= 4:
            kind = self.vocabulary.methods.get(int.from_bytes(payload[:4], "big"))
            if kind is not None:
                kind.decode(payload, grammar)
        elif frame_type == FRAME_CONTENT_HEADER and len(payload) >= CONTENT_HEADER.size:
            kind = self.vocabulary.describing(CONTENT_HEADER.unpack_from(payload)[0])
            kind.decode(payload, CONTENT_HEADER.size, grammar)

    def _fields(self, record: Record | Properties) -> Iterator[str]:
        """The fields worth showing: not the reserved ones, not the flags that are off, not what is absent."""
        values = {name: getattr(record, name) for name, _ in record.LAYOUT}
        if "reply_code" in values and "class_id" in values:
            index = values.pop("class_id") << 16 | values.pop("method_id")
            if index:
                values["method"] = self.vocabulary.name(index) or f"{index >> 16}.{index & 0xFFFF}"
        for name, value in values.items():
            if self.worth_showing(record, name, value):
                yield self.field_words(name.rstrip("_"), value)

    def worth_showing(self, record: Record, name: str, value: Any) -> bool:
        """Whether a field says anything."""
        return not name.startswith("reserved_") and value is not None and value is not False and value != {}

    def field_words(self, name: str, value: Any) -> str:
        """One field and what it says."""
        if value is True:
            return name
        if name in self.vocabulary.secret_fields:
            return f"{name}=({len(value)} bytes)"
        if name == "method":
            return f"method={value}"
        if name == "reply_text":
            return f"reply_text={value!r}"
        if name in ("client_properties", "server_properties"):
            return f"{name}={short({key: value[key] for key in _WHO if key in value})}"
        if isinstance(value, bytes):
            return f"{name}={short(value.decode('utf-8', 'surrogateescape'))}"
        return f"{name}={short(value)}"
