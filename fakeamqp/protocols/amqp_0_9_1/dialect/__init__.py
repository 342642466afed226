"""The dialect of 0-9-1, on which that of 0-9 builds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from fakeamqp.dialects import Dialect, MethodInfo, RedactedValue
from fakeamqp.protocols.amqp_0_9_1.codec.constants import PROTOCOL_HEADER, REPLY_NAMES
from fakeamqp.protocols.amqp_0_9_1.codec.frames import (
    CONTENT_HEADER,
    FRAME_BODY,
    FRAME_CONTENT_HEADER,
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    FRAME_OVERHEAD,
    HEARTBEAT_FRAME,
    content_frames,
    frame,
)
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
from fakeamqp.protocols.amqp_0_9_1.codec.methods import METHODS
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.codec.record import Record
from fakeamqp.protocols.amqp_0_9_1.codec.tables import PUBLISHED, RABBITMQ
from fakeamqp.protocols.amqp_0_9_1.dialect.dialogue import Dialogue091
from fakeamqp.protocols.amqp_0_9_1.dialect.groups import (
    CONFIRMS,
    LARGEST_PAYLOAD,
    PUBLISH,
    MethodGroup091,
    first_decoded,
)
from fakeamqp.protocols.amqp_0_9_1.dialect.malformations import MALFORMATIONS
from fakeamqp.protocols.amqp_0_9_1.dialect.redaction import FILLER, IDS, hidden_header, redacted_method
from fakeamqp.protocols.base.codec import WireError
from fakeamqp.trace.json_form import bytes_or_text, value_to_json
from fakeamqp.trace.truncation import Truncated, one_line, short

if TYPE_CHECKING:
    from fakeamqp.dialects import Direction, Malformation, Part
    from fakeamqp.faults.port import FaultPort
    from fakeamqp.protocols.amqp_0_9_1.codec.properties import Properties
    from fakeamqp.protocols.amqp_0_9_1.codec.tables import Grammar

PARTS: dict[int, Part] = {
    FRAME_METHOD: "method",
    FRAME_CONTENT_HEADER: "header",
    FRAME_BODY: "body",
    FRAME_HEARTBEAT: "heartbeat",
}
"""By frame type of 0-9-1: what the frame holds."""
_WHO = ("connection_name", "product", "version", "platform")
_OTHERS = {FRAME_CONTENT_HEADER: "content header", FRAME_BODY: "content body", FRAME_HEARTBEAT: "heartbeat"}
_SIDES = {"received": "server", "sent": "client"}
_NO_PROPERTY_NAMES = ("headers", "cluster_id")
_NO_PROPERTIES = bytes(2)
_COLUMNS = (
    "exchange",
    "routing_key",
    "queue",
    "consumer_tag",
    "delivery_tag",
    "redelivered",
    "reply_code",
)


class Dialect091(Dialect):
    """A protocol of 0-9-x. A frame is type, channel, size, payload and the frame-end byte.

    `methods` has the method classes by class and method id in one number, `parts` what a frame holds by its
    type, and `confirms` the methods that confirm publishes.
    """

    heartbeat = HEARTBEAT_FRAME
    overhead = FRAME_OVERHEAD
    header_size: int = FRAME_HEADER.size
    reply_names: Mapping[int, str] = REPLY_NAMES
    publishes: frozenset[str] = frozenset((PUBLISH,))
    channel_opener = "channel.open"
    channel_closers: frozenset[str] = frozenset(("channel.close", "channel.close-ok"))
    allowed_while_closing: frozenset[str] = frozenset(("channel.close",))
    malformations: Mapping[str, Malformation] = MALFORMATIONS
    prefix_size = 4
    group_class: ClassVar[type[MethodGroup091]] = MethodGroup091
    contents: ClassVar[Mapping[int, type[Properties]]] = {BasicProperties.CLASS_ID: BasicProperties}
    """By class id: the properties of a content. The first entry is also used for other class ids."""
    grammars: ClassVar[tuple[Grammar, ...]] = (RABBITMQ, PUBLISHED)
    """The grammars that field tables may follow, the most likely one first."""
    secret_fields: ClassVar[frozenset[str]] = frozenset(("response", "challenge", "new_secret"))
    """Fields of methods that are never shown."""
    fields_with_urls: ClassVar[frozenset[str]] = frozenset(("client_properties",))
    """Fields of methods that may have URLs with passwords."""

    def __init__(
        self,
        name: str,
        protocol_header: bytes,
        methods: Mapping[int, type[Method]],
        parts: Mapping[int, Part] = PARTS,
        confirms: frozenset[str] = frozenset(),
    ) -> None:
        self.name = name
        self.protocol_header = protocol_header
        self.methods = methods
        self.confirms = confirms
        self._parts = parts
        hidden = self.secret_fields | self.fields_with_urls
        self.secretive: frozenset[int] = frozenset(
            index for index, kind in methods.items() if not hidden.isdisjoint(name for name, _ in kind.LAYOUT)
        )
        """The methods with such fields."""
        self.kinds: dict[str, MethodInfo] = {kind.NAME: method_info(kind) for kind in methods.values()}
        named = (each for kind in self.contents.values() for each, _ in kind.LAYOUT)
        self.property_names: tuple[str, ...] = tuple(
            dict.fromkeys(each for each in named if each not in _NO_PROPERTY_NAMES)
        )

    # --- frames -----------------------------------------------------------------------------------------

    def length(self, header: bytes) -> int:
        size: int = FRAME_HEADER.unpack(header)[2]
        return FRAME_OVERHEAD + size

    def may_begin(self, octet: int) -> bool:
        return octet in self._parts

    def cut(self, octets: bytes) -> list[tuple[int, int, bytes, int]]:
        """Fewer bytes than a frame header count as the beginning of a frame on channel 0."""
        found = []
        position, end = 0, len(octets)
        while end - position >= FRAME_HEADER.size:
            kind, channel, size = FRAME_HEADER.unpack_from(octets, position)
            start = position + FRAME_HEADER.size
            found.append((kind, channel, octets[start : start + size], size))
            position += size + FRAME_OVERHEAD
        if position < end:
            found.append((octets[position], 0, octets[position + 1 :], FRAME_HEADER.size))
        return found

    def frame(self, kind: int, channel: int, payload: bytes) -> bytes:
        return frame(kind, channel, payload)

    def part(self, kind: int, payload: bytes) -> Part:
        return self._parts.get(kind, "")

    # --- decoding and text ------------------------------------------------------------------------------

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
        if kind is None:
            return None
        method: Method | None = first_decoded(self.grammars, lambda grammar: kind.decode(payload, grammar))
        return method

    def decode_header(self, payload: bytes) -> tuple[int, Any] | None:
        """Body size and properties in a content header frame, or None if they cannot be decoded."""
        if len(payload) < CONTENT_HEADER.size + 2:
            return None
        class_id, _, size = CONTENT_HEADER.unpack_from(payload)
        kind: Any = self.properties_class(class_id)
        properties = first_decoded(
            self.grammars, lambda grammar: kind.decode(payload, CONTENT_HEADER.size, grammar)
        )
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

    # --- methods and properties -------------------------------------------------------------------------

    def make_properties(self, **values: Any) -> Any:
        """Properties of the first content class that has all of these."""
        known: list[Any] = list(self.contents.values())
        fitting = (each for each in known if values.keys() <= {name for name, _ in each.LAYOUT})
        kind = next(fitting, known[0])
        return kind(**values)

    def has(self, what: Any) -> bool:
        return isinstance(what, Method) and self.methods.get(what.INDEX) is type(what)

    def encode(
        self, what: Any, port: FaultPort, channel: int, body: bytes | None, properties: Mapping[str, Any]
    ) -> bytes:
        """The content has properties of the method's class, or of class basic if that class has none."""
        octets = frame(FRAME_METHOD, channel, what.encode())
        if body is not None or properties:
            limit = port.largest_frame - FRAME_OVERHEAD if port.largest_frame else LARGEST_PAYLOAD
            kind = self.properties_class(what.CLASS_ID)
            encoded = kind(**properties).encode()
            octets += b"".join(content_frames(channel, kind.CLASS_ID, encoded, body or b"", limit))
        return octets

    # --- frame groups -----------------------------------------------------------------------------------

    def group(
        self, port: Any, direction: Direction, channel: int, frames: list[tuple[int, bytes]]
    ) -> MethodGroup091:
        return self.group_class(self, port, direction, channel, frames)

    def starts(self, kind: int) -> bool:
        """Headers and bodies belong to the method before them."""
        return kind not in (FRAME_CONTENT_HEADER, FRAME_BODY)

    def stands_alone(self, kind: int) -> bool:
        """Only heartbeats: a method on the channel ends an incomplete content."""
        return kind == FRAME_HEARTBEAT

    def ordering_key(self, kind: int, channel: int, payload: bytes) -> int:
        """Heartbeats belong to the connection."""
        return -1 if kind == FRAME_HEARTBEAT else channel

    def has_watched_method(self, octets: bytes, prefixes: frozenset[bytes]) -> bool:
        position, end = 0, len(octets)
        while position < end:
            frame_type, _, size = FRAME_HEADER.unpack_from(octets, position)
            start = position + FRAME_HEADER.size
            if frame_type == FRAME_METHOD:
                if octets[start : start + 4] in prefixes:
                    return True
            elif frame_type == FRAME_HEARTBEAT:
                return True
            position += size + FRAME_OVERHEAD
        return False

    # --- reading ----------------------------------------------------------------------------------------

    def method(self, kind: int, payload: bytes) -> Any:
        return self.decode_method(payload) if kind == FRAME_METHOD else None

    def properties(self, kind: int, payload: bytes) -> Any:
        header = self.decode_header(payload) if kind == FRAME_CONTENT_HEADER else None
        return None if header is None else header[1]

    def body_size(self, kind: int, payload: bytes) -> int | None:
        """The size stands before the properties, which may be malformed."""
        if kind != FRAME_CONTENT_HEADER or len(payload) < CONTENT_HEADER.size:
            return None
        size: int = CONTENT_HEADER.unpack_from(payload)[2]
        return size

    def begins_content(self, kind: int, payload: bytes) -> bool:
        if kind != FRAME_METHOD:
            return False
        method = self.methods.get(int.from_bytes(payload[:4], "big"))
        return method is not None and method.HAS_CONTENT

    def values(self, record: Any) -> Iterator[tuple[str, Any]]:
        for name, _ in record.LAYOUT:
            if name.startswith("reserved_"):
                continue
            value = getattr(record, name)
            secret = name in self.secret_fields
            yield name.rstrip("_"), RedactedValue(len(value)) if secret else value

    def columns(self, method: Any, direction: str) -> dict[str, Any]:
        return {name: getattr(method, name) for name in _COLUMNS if hasattr(method, name)}

    def columns_of_content(self, kind: int, payload: bytes, direction: str) -> dict[str, Any]:
        message_id = getattr(self.properties(kind, payload), "message_id", None)
        return {"message_id": message_id, "body_size": self.body_size(kind, payload)}

    def to_json(self, kind: int, payload: bytes) -> dict[str, Any]:
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
        """The payload with each secret replaced by asterisks of the same length.

        The secret of a PLAIN or AMQPLAIN response is the password, that of any other response is all of it.
        In client properties the secrets are passwords in URLs. A method with secrets that cannot be decoded
        keeps only its ids; so does one that came in a frame of another type.
        """
        index = int.from_bytes(payload[:IDS], "big")
        # A frame of another type is checked on channel 0 only: on other channels it belongs to a message.
        if index not in self.secretive or (kind != FRAME_METHOD and channel):
            return payload
        if kind != FRAME_METHOD:
            hidden = payload[:IDS] + FILLER * (len(payload) - IDS)
        else:
            hidden = redacted_method(self, payload)
        return Truncated.of(hidden, payload.size) if isinstance(payload, Truncated) else hidden

    def hidden(self, kind: int, payload: bytes, fields: Collection[str]) -> bytes:
        """A header keeps its size and every other field, unless it cannot be decoded."""
        if kind == FRAME_CONTENT_HEADER and len(payload) > CONTENT_HEADER.size:
            return hidden_header(self, payload, fields)
        return super().hidden(kind, payload, fields)

    def filled(self, kind: int, payload: Truncated) -> tuple[bytes, str]:
        """A body is filled with zeros. A method keeps its id only, a header the size of the body."""
        if kind == FRAME_METHOD:
            method = self.methods.get(int.from_bytes(payload[:4], "big"))
            if method is not None:
                return method().encode(), "its fields are not shown"
        if kind == FRAME_CONTENT_HEADER and len(payload) >= CONTENT_HEADER.size:
            return payload[: CONTENT_HEADER.size] + _NO_PROPERTIES, "its properties are not shown"
        return payload + bytes(payload.size - len(payload)), "the others are shown as zeros"

    @cached_property
    def answers(self) -> frozenset[str]:
        """The names of the methods that answer others."""
        return frozenset(name for method in self.methods.values() for name in method.RESPONSES)

    def dialogue(self) -> Dialogue091:
        return Dialogue091(self.answers)


def _present(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def method_info(
    kind: type[Method], *, hidden: frozenset[str] = frozenset(), has_content: bool | None = None
) -> MethodInfo:
    """The `MethodInfo` of a method class; `hidden` are fields that count as properties."""
    names = {name.rstrip("_"): name for name, _ in kind.LAYOUT}
    return MethodInfo(
        directions=frozenset(name for name, side in _SIDES.items() if side in kind.RECEIVED_BY),
        fields=tuple(
            name.rstrip("_")
            for name, _ in kind.LAYOUT
            if not name.startswith("reserved_") and name not in hidden
        ),
        has_content=kind.HAS_CONTENT if has_content is None else has_content,
        prefixes=frozenset((kind.INDEX.to_bytes(4, "big"),)),
        make=lambda **values: kind(**{names[name]: value for name, value in values.items()}),
    )


DIALECT = Dialect091("0-9-1", PROTOCOL_HEADER, METHODS, confirms=CONFIRMS)
METHOD_NAMES = tuple(DIALECT.kinds)
