"""The dialect of 1.0."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from fakeamqp.dialects import Dialect, MethodInfo, RedactedValue
from fakeamqp.protocols.amqp_1_0.codec import composites as c, frames as f
from fakeamqp.protocols.amqp_1_0.codec.types import Described
from fakeamqp.protocols.amqp_1_0.dialect import frames as reading
from fakeamqp.protocols.amqp_1_0.dialect.conditions import CONDITION_OF_CODE, CONDITIONS
from fakeamqp.protocols.amqp_1_0.dialect.dialogue import Dialogue10
from fakeamqp.protocols.amqp_1_0.dialect.groups import TRANSFER, FrameOf10
from fakeamqp.protocols.amqp_1_0.dialect.malformations import MALFORMATIONS
from fakeamqp.protocols.amqp_1_0.messages import SectionProperties, encoded_sections, read_message
from fakeamqp.protocols.base.codec import FieldError, WireError
from fakeamqp.trace.json_form import PROPERTIES, bytes_or_text, value_to_json
from fakeamqp.trace.truncation import Truncated, one_line, short

if TYPE_CHECKING:
    from fakeamqp.dialects import Direction, Malformation, Part
    from fakeamqp.faults.port import FaultPort

__all__ = ["DIALECT", "Dialect10"]

_BOTH = frozenset(("received", "sent"))
_DIRECTIONS = {
    **dict.fromkeys(("sasl-mechanisms", "sasl-challenge", "sasl-outcome"), frozenset(("sent",))),
    **dict.fromkeys(("sasl-init", "sasl-response"), frozenset(("received",))),
}
_SECRET_FIELDS = frozenset(("initial_response", "challenge", "response"))
_OF_LINK_IN_PARTS = frozenset(b"\0\x53" + bytes((kind.CODE,)) for kind in (c.Transfer, c.Detach))
_WHO = ("product", "version", "platform", "connection_name")
_PROTOCOLS = {0: "AMQP", 3: "SASL"}


class Dialect10(Dialect):
    """1.0: performatives, SASL frames and protocol headers.

    A frame is a header of 8 bytes, which has the size of the whole frame, and the payload: a performative,
    for a transfer with sections of the message behind it. The kind of a frame is its type; with an extended
    header it has the data offset as well, and the payload begins with that header. A protocol header within
    the stream counts as a frame of the kind `HEADER_KIND`.
    """

    name = "1-0"
    protocol_header: bytes = f.SASL_HEADER
    answer: bytes = f.SASL_HEADER
    heartbeat: bytes = f.EMPTY_FRAME
    overhead: int = f.HEADER_SIZE
    header_size: int = f.HEADER_SIZE
    reply_names: Mapping[int, str] = CONDITION_OF_CODE
    conditions: frozenset[str] = CONDITIONS
    malformations: Mapping[str, Malformation] = MALFORMATIONS
    property_names: tuple[str, ...] = PROPERTIES
    prefix_size = 3
    publishes: frozenset[str] = frozenset((TRANSFER,))
    channel_opener = "begin"
    channel_closers: frozenset[str] = frozenset(("end",))
    connection_closers: frozenset[str] = frozenset(("close", "sasl-outcome"))
    allowed_while_closing: frozenset[str] = frozenset(("end",))

    def __init__(self) -> None:
        self.kinds: dict[Any, MethodInfo] = {
            kind.NAME: MethodInfo(
                directions=_DIRECTIONS.get(kind.NAME, _BOTH),
                fields=tuple(each.attribute for each in kind.FIELDS),
                has_content=kind is c.Transfer,
                prefixes=frozenset((b"\0\x53" + bytes((kind.CODE,)),)),
                make=kind,
            )
            for kind in (*c.PERFORMATIVES, *c.SASL_FRAMES)
        }

    # --- frames -----------------------------------------------------------------------------------------

    def length(self, header: bytes) -> int:
        if header[:4] == b"AMQP":
            return f.HEADER_SIZE
        return max(f.HEADER_SIZE, int.from_bytes(header[:4], "big"))

    def may_begin(self, octet: int) -> bool:
        """The first byte of a size below 16 MiB, or of a protocol header."""
        return octet == 0 or octet == b"A"[0]

    def cut(self, octets: bytes) -> list[tuple[int, int, bytes, int]]:
        """An incomplete header counts as one on channel 0."""
        found = []
        position, end = 0, len(octets)
        while end - position >= f.HEADER_SIZE:
            if octets[position : position + 4] == b"AMQP":
                payload = octets[position + 4 : position + f.HEADER_SIZE]
                found.append((f.HEADER_KIND, 0, payload, len(payload)))
                position += f.HEADER_SIZE
                continue
            size, offset, kind, channel = f.FRAME_HEADER.unpack_from(octets, position)
            size = max(f.HEADER_SIZE, size)
            payload = octets[position + f.HEADER_SIZE : position + size]
            if offset != f.DATA_OFFSET:
                kind |= offset << f.DATA_OFFSET_SHIFT
            found.append((kind, channel, payload, size - f.HEADER_SIZE))
            position += size
        if position < end:
            found.append((f.AMQP, 0, octets[position:], f.HEADER_SIZE))
        return found

    def frame(self, kind: int, channel: int, payload: bytes) -> bytes:
        if reading.is_protocol_header(kind):
            return b"AMQP" + payload
        offset = kind >> f.DATA_OFFSET_SHIFT or f.DATA_OFFSET
        numbers = (f.HEADER_SIZE + len(payload), offset, reading.frame_type(kind), channel)
        try:
            return f.FRAME_HEADER.pack(*numbers) + payload
        except struct.error:
            text = f"no frame of kind {kind!r} on channel {channel!r}: number out of range"
            raise FieldError(text) from None

    def part(self, kind: int, payload: bytes) -> Part:
        if not reading.holds_performative(kind):
            return ""
        return "method" if payload else "heartbeat"

    def starts(self, kind: int) -> bool:
        return not reading.is_protocol_header(kind)

    def stands_alone(self, kind: int) -> bool:
        return False

    def gathering_key(self, kind: int, channel: int, payload: bytes) -> int:
        """Messages on several links of a session can come at once. A detach breaks off that of its link."""
        if payload[:3] in _OF_LINK_IN_PARTS:
            handle = getattr(self.method(kind, payload), "handle", None)
            if handle is not None:
                return (channel + 1) << 32 | int(handle)
        return channel

    # --- methods, properties and groups -----------------------------------------------------------------

    def make_properties(self, **values: Any) -> Any:
        """The sections of a message with one empty section of data."""
        return SectionProperties().with_data().replace(**values)

    def has(self, what: Any) -> bool:
        return isinstance(what, c.Composite) and what.NAME in self.kinds

    def encode(
        self, what: Any, port: FaultPort, channel: int, body: bytes | None, properties: Mapping[str, Any]
    ) -> bytes:
        octets: bytes = what.encode()
        if body is not None or properties:
            octets += encoded_sections(self.make_properties(**properties), body or b"")
        return f.frame(f.SASL if what.NAME.startswith("sasl-") else f.AMQP, channel, octets)

    def group(
        self, port: FaultPort, direction: Direction, channel: int, frames: list[tuple[int, bytes]]
    ) -> FrameOf10:
        return FrameOf10(self, port, direction, channel, frames)

    def ordering_key(self, kind: int, channel: int, payload: bytes) -> int:
        of_session = reading.frame_type(kind) == f.AMQP
        return channel if of_session and reading.name_of(kind, payload) not in ("open", "close") else -1

    def has_watched_method(self, octets: bytes, prefixes: frozenset[bytes]) -> bool:
        return any(
            not payload or payload[:3] in prefixes
            for kind, _, payload, _ in self.cut(octets)
            if not reading.is_protocol_header(kind)
        )

    # --- reading ----------------------------------------------------------------------------------------

    def frame_name(self, kind: int, payload: bytes) -> str:
        if reading.is_protocol_header(kind):
            return "protocol-header"
        if not reading.holds_performative(kind):
            return f"unknown frame type {kind & reading.KIND_MASK}"
        if not payload:
            return "heartbeat"
        return reading.name_of(kind, payload) or "unknown performative"

    def describe(self, kind: int, payload: bytes) -> str:
        name = self.frame_name(kind, payload)
        if reading.is_protocol_header(kind):
            what = _PROTOCOLS.get(payload[0] if payload else -1, "unknown")
            return f"{name} {what} {'-'.join(map(str, payload[1:]))}"
        if not payload:
            return name
        read = reading.decode(kind, payload)
        if read is None:
            if isinstance(payload, Truncated):
                return f"{name}: too long to be kept whole ({payload.size} bytes)"
            if name.startswith("sasl-"):
                return f"{name}: malformed ({len(payload)} bytes)"
            return f"{name}: cannot be read ({len(payload)} bytes: {payload[:24].hex()})"
        words = [name, *_fields(read[0])]
        if name == TRANSFER:
            words.append(_shown_message(read[1]))
        return " ".join(words)

    def method(self, kind: int, payload: bytes) -> Any:
        return (reading.decode(kind, payload) or (None, b""))[0]

    def properties(self, kind: int, payload: bytes) -> Any:
        """The properties of the message in a transfer."""
        read = reading.decode(kind, payload)
        if read is None or not isinstance(read[0], c.Transfer):
            return None
        try:
            return read_message(read[1])[0]
        except WireError:
            return None

    def body_size(self, kind: int, payload: bytes) -> int | None:
        return None

    def begins_content(self, kind: int, payload: bytes) -> bool:
        return False

    def values(self, record: Any) -> Iterator[tuple[str, Any]]:
        """The fields of a performative that are present; of properties, the model's names."""
        if isinstance(record, c.Composite):
            for name, value in vars(record).items():
                secret = name in _SECRET_FIELDS and value is not None
                yield name, RedactedValue(len(value)) if secret else _value(value)
            return
        for name in PROPERTIES:
            yield name, getattr(record, name, None)

    def columns(self, method: Any, direction: str) -> dict[str, Any]:
        """The addresses of links are the queues; what a transfer says of its message is in its sections."""
        found: dict[str, Any] = {}
        if isinstance(method, c.Transfer) and method.delivery_id is not None:
            found["delivery_tag"] = int(method.delivery_id)
        handle = getattr(method, "handle", None)
        if handle is not None:
            found["consumer_tag"] = str(int(handle))
        return found

    def columns_of_content(self, kind: int, payload: bytes, direction: str) -> dict[str, Any]:
        return {"message_id": None, "body_size": None}

    def to_json(self, kind: int, payload: bytes) -> dict[str, Any]:
        read = reading.decode(kind, payload)
        fields = None
        if read is not None:
            fields = {name: _plain(value) for name, value in self.values(read[0]) if value is not None}
        said: dict[str, Any] = {"readable": read is not None or not payload, "fields": fields}
        if reading.is_protocol_header(kind):
            return {"readable": True, "fields": {"version": list(payload)}}
        if read is not None and isinstance(read[0], c.Transfer):
            said["payload"] = bytes_or_text(read[1])
        return said

    def redacted(self, kind: int, payload: bytes, channel: int) -> bytes:
        return reading.redacted(kind, payload)

    def dialogue(self) -> Dialogue10:
        return Dialogue10()

    def filled(self, kind: int, payload: Truncated) -> tuple[bytes, str]:
        return payload + bytes(payload.size - len(payload)), "the others are shown as zeros"


def _value(value: Any) -> Any:
    """Composites and uuids as values that JSON can have."""
    value = c.composite_or_value(value)
    if isinstance(value, c.Composite):
        return {value.NAME: {name: _value(each) for name, each in vars(value).items() if each is not None}}
    if isinstance(value, Described):
        return {str(value.descriptor): _value(value.value)}
    if isinstance(value, dict):
        return {str(name): _value(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_value(each) for each in value]
    return str(value) if isinstance(value, UUID) else value


def _plain(value: Any) -> Any:
    return bytes_or_text(value) if isinstance(value, bytes) else value_to_json(value)


def _fields(record: c.Composite) -> list[str]:
    """The fields that are present, without flags that are off."""
    words = []
    for name, value in vars(record).items():
        if value is None or value is False:
            continue
        if value is True:
            words.append(name)
        elif name in _SECRET_FIELDS:
            words.append(f"{name}=({len(value)} bytes)")
        elif name == "properties":
            words.append(f"properties={short({key: value[key] for key in _WHO if key in value})}")
        else:
            words.append(f"{name}={_word(value)}")
    return words


def _word(value: Any) -> str:
    value = c.composite_or_value(value)
    if isinstance(value, c.Composite):
        inner = ", ".join(_fields(value))
        return f"{value.NAME}({inner})" if inner else value.NAME
    if isinstance(value, bytes):
        return value.hex() or "''"
    if isinstance(value, (dict, list, tuple)):
        return one_line(str(_value(value)), 120)
    return short(str(value) if isinstance(value, UUID) else value)


def _shown_message(payload: bytes) -> str:
    try:
        _, body = read_message(payload)
    except WireError:
        return f"({len(payload)} bytes)"
    return short(body)


DIALECT = Dialect10()
