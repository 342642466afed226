"""How 0-9-x frames are decoded, and their text. Any bytes have a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from fakeamqp.dialects import Dialect
from fakeamqp.protocols.amqp_0_9_1.codec.frames import (
    CONTENT_HEADER,
    FRAME_BODY,
    FRAME_CONTENT_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
)
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.codec.tables import PUBLISHED, RABBITMQ
from fakeamqp.protocols.base.codec.errors import WireError
from fakeamqp.trace.rendering import one_line, short
from fakeamqp.trace.truncation import Truncated

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method, Record
    from fakeamqp.protocols.amqp_0_9_1.codec.properties import Properties
    from fakeamqp.protocols.amqp_0_9_1.codec.tables import Grammar

__all__ = ["FrameText091"]

_WHO = ("connection_name", "product", "version", "platform")
_OTHERS = {FRAME_CONTENT_HEADER: "content header", FRAME_BODY: "content body", FRAME_HEARTBEAT: "heartbeat"}


class FrameText091(Dialect):
    """Decodes frames and makes their text."""

    methods: Mapping[int, type[Method]]
    """By class and method id in one number: the method classes."""
    contents: ClassVar[Mapping[int, type[Properties]]] = {BasicProperties.CLASS_ID: BasicProperties}
    """By class id: the properties of a content. The first entry is also used for other class ids."""
    grammars: ClassVar[tuple[Grammar, ...]] = (RABBITMQ, PUBLISHED)
    """The grammars that field tables may follow, the most likely one first."""
    secret_fields: ClassVar[frozenset[str]] = frozenset(("response", "challenge", "new_secret"))
    """Fields of methods that are never shown."""
    fields_with_urls: ClassVar[frozenset[str]] = frozenset(("client_properties",))
    """Fields of methods that may have URLs with passwords."""
    secretive: frozenset[int]
    """The methods with such fields."""

    def frame_name(self, frame_type: int, payload: bytes) -> str:
        """The name of the method, or "content header", "content body", "heartbeat"."""
        if frame_type == FRAME_METHOD:
            return self.method_name(payload)
        return _OTHERS.get(frame_type) or f"unknown frame type {frame_type}"

    def method_name(self, payload: bytes) -> str:
        """The name of an encoded method."""
        if len(payload) < 4:
            return "malformed method"
        index = int.from_bytes(payload[:4], "big")
        return self._name_of(index) or f"unknown method {index >> 16}.{index & 0xFFFF}"

    def _name_of(self, index: int) -> str | None:
        kind = self.methods.get(index)
        return None if kind is None else kind.NAME

    def decode_method(self, payload: bytes) -> Method | None:
        """The method in a method frame, or None if it cannot be decoded."""
        kind = self.methods.get(int.from_bytes(payload[:4], "big"))
        return None if kind is None else self._read(lambda grammar: kind.decode(payload, grammar))

    def decode_header(self, payload: bytes) -> tuple[int, Any] | None:
        """Body size and properties in a content header frame, or None if they cannot be decoded."""
        if len(payload) < CONTENT_HEADER.size + 2:
            return None
        class_id, _, size = CONTENT_HEADER.unpack_from(payload)
        kind: Any = self.properties_class(class_id)
        properties = self._read(lambda grammar: kind.decode(payload, CONTENT_HEADER.size, grammar))
        return None if properties is None else (size, properties)

    def properties_class(self, class_id: int) -> Any:
        """The properties of a content of that class."""
        return self.contents.get(class_id) or next(iter(self.contents.values()))

    def describe(self, frame_type: int, payload: bytes) -> str:
        """The frame in one line."""
        name = self.frame_name(frame_type, payload)
        words = self.words(frame_type, payload)
        if words is None:
            return f"{name}: {self._why_not(frame_type, payload)}"
        return " ".join((name, *words))

    def words(self, frame_type: int, payload: bytes) -> list[str] | None:
        """The fields of a frame as words of the line; None if it cannot be decoded."""
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
        """The fields of a content header before its properties."""
        class_id, weight, size = CONTENT_HEADER.unpack_from(payload)
        if class_id != next(iter(self.contents)):
            yield f"class_id={class_id}"
        if weight:
            yield f"weight={weight}"
        yield f"body_size={size}"

    def _read(self, decode: Any) -> Any:
        """The result of `decode` with the first grammar that it succeeds with."""
        for grammar in self.grammars:
            try:
                return decode(grammar)
            except WireError:
                continue
        return None

    def _why_not(self, frame_type: int, payload: bytes) -> str:
        """Why a frame cannot be decoded, and its first bytes."""
        if isinstance(payload, Truncated):
            return f"too long to be kept whole ({payload.size} bytes)"
        index = int.from_bytes(payload[:4], "big")
        if index in self.secretive:
            # The reason would depend on hidden bytes.
            return f"malformed ({len(payload)} bytes)"
        reason = "cannot be read"
        try:
            self.check(frame_type, payload)
        except WireError as problem:
            reason = f"malformed: {one_line(str(problem), 160)}"
        return f"{reason} ({len(payload)} bytes: {payload[:24].hex()}{'...' if len(payload) > 24 else ''})"

    def check(self, frame_type: int, payload: bytes) -> None:
        """Raise a WireError that describes the problem, if the frame can be decoded far enough."""
        grammar = self.grammars[0]
        kind: Any
        if frame_type == FRAME_METHOD and len(payload) >= 4:
            kind = self.methods.get(int.from_bytes(payload[:4], "big"))
            if kind is not None:
                kind.decode(payload, grammar)
        elif frame_type == FRAME_CONTENT_HEADER and len(payload) >= CONTENT_HEADER.size:
            kind = self.properties_class(CONTENT_HEADER.unpack_from(payload)[0])
            kind.decode(payload, CONTENT_HEADER.size, grammar)

    def _fields(self, record: Record | Properties) -> Iterator[str]:
        """The fields to show: without reserved ones, flags that are off, and absent values."""
        values = {name: getattr(record, name) for name, _ in record.LAYOUT}
        if "reply_code" in values and "class_id" in values:
            index = values.pop("class_id") << 16 | values.pop("method_id")
            if index:
                values["method"] = self._name_of(index) or f"{index >> 16}.{index & 0xFFFF}"
        for name, value in values.items():
            if self.worth_showing(record, name, value):
                yield self.field_words(name.rstrip("_"), value)

    def worth_showing(self, record: Record, name: str, value: Any) -> bool:
        """True if the field is shown."""
        return not name.startswith("reserved_") and value is not None and value is not False and value != {}

    def field_words(self, name: str, value: Any) -> str:
        """One field and its value."""
        if value is True:
            return name
        if name in self.secret_fields:
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
