"""The dialect of 0-10."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any
from uuid import UUID

from fakeamqp.dialects import Dialect, MethodInfo, RedactedValue
from fakeamqp.protocols.amqp_0_10.codec import commands, constants, controls, structs
from fakeamqp.protocols.amqp_0_10.codec.frames import (
    BODY,
    COMMAND,
    CONTROL,
    END,
    FIRST_FRAME,
    FRAME_HEADER,
    HEADER,
    HEADER_SIZE,
    LARGEST_FRAME,
    LAST_SEGMENT,
    control_frame,
    encode_frames,
)
from fakeamqp.protocols.amqp_0_10.codec.serial import ByteRanges, SequenceSet
from fakeamqp.protocols.amqp_0_10.codec.structs import Command, Control, Packed
from fakeamqp.protocols.amqp_0_10.dialect.dialogue import Dialogue010
from fakeamqp.protocols.amqp_0_10.dialect.frames import (
    HEARTBEAT_CODE,
    OFF_TRACK,
    TABLES,
    TYPE_MASK,
    decode,
    decode_strictly,
    is_heartbeat,
    is_whole,
    kind_of,
    read_structs,
    redacted,
    starts,
)
from fakeamqp.protocols.amqp_0_10.dialect.groups import TRANSFER, CommandGroup, structs_with
from fakeamqp.protocols.amqp_0_10.dialect.malformations import MALFORMATIONS
from fakeamqp.protocols.amqp_0_10.properties import COMMON, TransferProperties
from fakeamqp.protocols.base.codec import FieldError, WireError
from fakeamqp.trace.json_form import PROPERTIES, bytes_or_text, value_to_json
from fakeamqp.trace.truncation import Truncated, one_line, short

if TYPE_CHECKING:
    from fakeamqp.dialects import Direction, Malformation, Part
    from fakeamqp.faults.port import FaultPort

__all__ = ["DIALECT", "Dialect010"]

_OF_CONNECTION = bytes((controls.ConnectionStart.CLASS,))
_SIDES = {
    "received": frozenset(("server", "sender", "receiver")),
    "sent": frozenset(("client", "sender", "receiver")),
}
"""Both peers of a session send and receive commands."""

_DESTINATION = {"received": "exchange", "sent": "consumer_tag"}
"""The column for the destination of a transfer, by its direction."""
_PARTS: dict[int, Part] = {CONTROL: "method", COMMAND: "method", HEADER: "header", BODY: "body"}
_SECRET_FIELDS = frozenset(("response", "challenge"))
"""Fields of controls that are never shown."""
_WHO = ("product", "version", "platform", "qpid.client_process")
_WORDS = {CONTROL: "control", COMMAND: "command", HEADER: "header", BODY: "body"}
_VALUES: dict[str, type[IntEnum]] = {
    "accept_mode": constants.AcceptMode,
    "acquire_mode": constants.AcquireMode,
    "delivery_mode": constants.DeliveryMode,
    "error_code": constants.ErrorCode,
    "flow_mode": constants.FlowMode,
    "status": constants.XaStatus,
    "unit": constants.CreditUnit,
    "session.detached.code": constants.DetachCode,
    "message.reject.code": constants.RejectCode,
    "connection.close.reply_code": constants.CloseCode,
}
"""Fields whose numbers have names, by the name of the field, or of the method and the field."""


class _Properties:
    """Properties of a header, to be encoded."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._structs = structs_with((), dict(values))

    def encode(self) -> bytes:
        """The header segment."""
        return structs.encode_header(self._structs)


class Dialect010(Dialect):
    """0-10: commands with their header and body, and controls.

    A frame is a header of 12 bytes, which has the size of the whole frame, and the payload. The track is 0
    for controls and 1 for everything else, unless the kind has `OFF_TRACK`.
    """

    name = "0-10"
    protocol_header = b"AMQP\1\1\0\x0a"
    answer = protocol_header
    heartbeat: bytes = b"\x0f\0\0\x10\0\0\0\0\0\0\0\0" + HEARTBEAT_CODE + b"\0\0"
    heartbeat_prefix: bytes = HEARTBEAT_CODE
    overhead: int = HEADER_SIZE
    header_size: int = HEADER_SIZE
    reply_names: Mapping[int, str] = {
        int(code): code.name.lower().replace("_", "-") for code in constants.ErrorCode
    }
    malformations: Mapping[str, Malformation] = MALFORMATIONS
    property_names: tuple[str, ...] = tuple(
        dict.fromkeys(
            (
                *COMMON,
                *(field for field, _ in structs.DeliveryProperties.FIELDS),
                *(field for field, _ in structs.MessageProperties.FIELDS),
            )
        )
    )
    prefix_size = 2
    publishes: frozenset[str] = frozenset((TRANSFER,))
    channel_closers: frozenset[str] = frozenset(("session.detach", "session.detached"))
    allowed_while_closing: frozenset[str] = frozenset(
        ("execution.exception", "session.command-point", "session.detach", "session.detached")
    )
    channel_opener = "session.attach"

    def __init__(self) -> None:
        known: tuple[Any, ...] = (*controls.CONTROLS.values(), *commands.COMMANDS.values())
        self.kinds: dict[Any, MethodInfo] = {
            kind.NAME: _method_info(kind) for kind in known if kind is not controls.ConnectionHeartbeat
        }

    # --- frames -----------------------------------------------------------------------------------------

    def length(self, header: bytes) -> int:
        return max(HEADER_SIZE, int.from_bytes(header[2:4], "big"))

    def may_begin(self, octet: int) -> bool:
        """The first byte has the version, 0, and the flags."""
        return octet <= 0x0F

    def cut(self, octets: bytes) -> list[tuple[int, int, bytes, int]]:
        """An incomplete header counts as one on channel 0."""
        found = []
        position, end = 0, len(octets)
        while end - position >= HEADER_SIZE:
            flags, segment_type, size, _, track, channel, _ = FRAME_HEADER.unpack_from(octets, position)
            size = max(HEADER_SIZE, size)
            payload = octets[position + HEADER_SIZE : position + size]
            kind = flags << 8 | segment_type
            if track != (segment_type != CONTROL):
                kind |= OFF_TRACK
            found.append((kind, channel, payload, size - HEADER_SIZE))
            position += size
        if position < end:
            kind = int.from_bytes(octets[position : position + 2].ljust(2, b"\0"), "big")
            found.append((kind, 0, octets[position + 2 :], HEADER_SIZE))
        return found

    def frame(self, kind: int, channel: int, payload: bytes) -> bytes:
        segment_type = kind & TYPE_MASK
        track = (segment_type != CONTROL) ^ bool(kind & OFF_TRACK)
        size = HEADER_SIZE + len(payload)
        try:
            header = FRAME_HEADER.pack(kind >> 8 & 0xFF, segment_type, size, 0, track, channel, 0)
        except struct.error:
            raise FieldError(
                f"no frame of kind {kind!r} and {size} bytes on channel {channel!r}: number out of range"
            ) from None
        return header + payload

    def part(self, kind: int, payload: bytes) -> Part:
        """What the segment's type says; heartbeats are controls of their own kind."""
        part = _PARTS.get(kind & TYPE_MASK, "")
        return "heartbeat" if part == "method" and is_heartbeat(kind, payload) else part

    def starts(self, kind: int) -> bool:
        return starts(kind)

    def stands_alone(self, kind: int) -> bool:
        """Controls: they have a track of their own."""
        return kind & TYPE_MASK == CONTROL

    # --- methods, properties and groups -----------------------------------------------------------------

    def make_properties(self, **values: Any) -> _Properties:
        """They become delivery-properties and message-properties."""
        return _Properties(values)

    def has(self, what: Any) -> bool:
        return isinstance(what, (Control, Command))

    def encode(
        self, what: Any, port: FaultPort, channel: int, body: bytes | None, properties: Mapping[str, Any]
    ) -> bytes:
        """A command gets the next id."""
        limit = port.largest_frame or LARGEST_FRAME
        if isinstance(what, Control):
            return control_frame(channel, what.encode(), limit)
        segments = [(COMMAND, what.encode())]
        if properties:
            segments.append((HEADER, _Properties(properties).encode()))
        if body is not None:
            segments.append((BODY, bytes(body)))
        octets = encode_frames(channel, segments, limit)
        frames = [(kind, payload) for kind, _, payload, _ in self.cut(octets)]
        return self.group(port, "sent", channel, frames).encode()

    def group(
        self, port: FaultPort, direction: Direction, channel: int, frames: list[tuple[int, bytes]]
    ) -> CommandGroup:
        return CommandGroup(self, port, direction, channel, frames)

    def ordering_key(self, kind: int, channel: int, payload: bytes) -> int:
        """Controls of the connection are apart; controls of a session keep their order on its channel."""
        return -1 if kind & TYPE_MASK == CONTROL and payload[:1] == _OF_CONNECTION else channel

    def has_watched_method(self, octets: bytes, prefixes: frozenset[bytes]) -> bool:
        return any(starts(kind) and payload[:2] in prefixes for kind, _, payload, _ in self.cut(octets))

    # --- reading ----------------------------------------------------------------------------------------

    def frame_name(self, kind: int, payload: bytes) -> str:
        """The name of the control or command, or "header", "body"."""
        segment_type = kind & TYPE_MASK
        word = _WORDS.get(segment_type)
        if word is None:
            return f"unknown segment type {segment_type}"
        if segment_type not in TABLES:
            return word
        if not kind >> 8 & FIRST_FRAME:
            return f"{word}, continued"
        if len(payload) < 2:
            return f"malformed {word}"
        found = kind_of(kind, payload)
        return f"unknown {word} {payload[0]}.{payload[1]}" if found is None else str(found.NAME)

    def describe(self, kind: int, payload: bytes) -> str:
        """The frame in one line."""
        name = self.frame_name(kind, payload)
        segment_type = kind & TYPE_MASK
        words: list[str] | None = None
        if segment_type in TABLES:
            read = decode(kind, payload)
            if read is not None:
                words = [*_fields(read[0]), *(["sync"] if read[1] else [])]
        elif segment_type == HEADER:
            found = read_structs(kind, payload)
            if found is not None:
                words = [f"{_struct_name(each)}({', '.join(_fields(each))})" for each in found]
        elif segment_type == BODY:
            words = [short(payload)]
        if words is None:
            return f"{name}: {_why_not(kind, payload)}"
        if kind & OFF_TRACK:
            words.append("(on the wrong track)")
        return " ".join((name, *words))

    def method(self, kind: int, payload: bytes) -> Any:
        read = decode(kind, payload)
        return None if read is None else read[0]

    def properties(self, kind: int, payload: bytes) -> Any:
        """`TransferProperties`, which have the names that properties have in 0-9-1, and the structs."""
        if read_structs(kind, payload) is None:
            return None
        try:
            return TransferProperties.decode(payload)
        except WireError:
            return None

    def body_size(self, kind: int, payload: bytes) -> int | None:
        """message-properties may have it as content-length."""
        for each in read_structs(kind, payload) or ():
            if isinstance(each, structs.MessageProperties):
                return each.content_length
        return None

    def begins_content(self, kind: int, payload: bytes) -> bool:
        """True for a command that another segment follows."""
        return kind_of(kind, payload) is not None and not kind >> 8 & LAST_SEGMENT

    def ends_content(self, kind: int) -> bool | None:
        return kind >> 8 & END == END

    def values(self, record: Any) -> Iterator[tuple[str, Any]]:
        """Fields of controls and commands; of properties, the structs with the fields that are present."""
        if isinstance(record, Packed):
            for name, _ in record.FIELDS:
                value = getattr(record, name)
                if name in _SECRET_FIELDS and value is not None:
                    yield name, RedactedValue(len(value))
                else:
                    yield name.rstrip("_"), _value(value)
            return
        for each in (record.delivery, record.message, record.fragment, *getattr(record, "others", ())):
            if isinstance(each, Packed):
                yield each.NAME.rpartition(".")[2], _present(each)

    def columns(self, method: Any, direction: str) -> dict[str, Any]:
        """The destination of a received transfer is an exchange, any other destination is a subscription."""
        found = {name: getattr(method, name) for name in ("exchange", "queue") if hasattr(method, name)}
        destination = getattr(method, "destination", None)
        if destination is not None:
            transfer = method.NAME == "message.transfer"
            found[_DESTINATION[direction] if transfer else "consumer_tag"] = destination
        for name in ("routing_key", "binding_key"):
            if hasattr(method, name):
                found["routing_key"] = getattr(method, name)
        for name in ("reply_code", "error_code"):
            if hasattr(method, name):
                found["reply_code"] = getattr(method, name)
        return found

    def columns_of_content(self, kind: int, payload: bytes, direction: str) -> dict[str, Any]:
        """delivery-properties have the routing key, and in sent transfers the exchange."""
        properties = self.properties(kind, payload)
        found = {"message_id": getattr(properties, "message_id", None), "body_size": None}
        delivery = getattr(properties, "delivery", None)
        if delivery is not None:
            found["routing_key"] = delivery.routing_key
            if direction == "sent":
                found["exchange"] = delivery.exchange
        return found

    def to_json(self, kind: int, payload: bytes) -> dict[str, Any]:
        """The keys depend on the type of the segment."""
        part = self.part(kind, payload)
        if part in ("method", "heartbeat"):
            read = decode(kind, payload)
            fields = None if read is None else {name: _plain(value) for name, value in self.values(read[0])}
            said: dict[str, Any] = {"readable": read is not None, "fields": fields}
            if read is not None and part == "method" and read[1]:
                said["sync"] = True
            return said
        if kind & TYPE_MASK == HEADER:
            return self._header_to_json(kind, payload)
        if kind & TYPE_MASK == BODY:
            return {"readable": not isinstance(payload, Truncated), "body": bytes_or_text(payload)}
        return {"readable": False}

    def _header_to_json(self, kind: int, payload: bytes) -> dict[str, Any]:
        properties = self.properties(kind, payload)
        found = read_structs(kind, payload)
        said: dict[str, Any] = {
            "readable": properties is not None,
            "body_size": self.body_size(kind, payload),
            "properties": None,
            "structs": None,
        }
        if properties is not None:
            common = ((name, getattr(properties, name, None)) for name in PROPERTIES)
            said["properties"] = {name: value_to_json(value) for name, value in common if value is not None}
            said["structs"] = {
                each.NAME: {name: _plain(value) for name, value in _present(each).items()}
                for each in found or ()
                if isinstance(each, Packed)
            }
        return said

    def redacted(self, kind: int, payload: bytes, channel: int) -> bytes:
        return redacted(kind, payload)

    def dialogue(self) -> Dialogue010:
        return Dialogue010()

    def filled(self, kind: int, payload: Truncated) -> tuple[bytes, str]:
        """Only bodies are truncated."""
        return payload + bytes(payload.size - len(payload)), "the others are shown as zeros"


def _present(record: Packed) -> dict[str, Any]:
    """The fields of a struct that are present. A nested struct is a table."""
    values = ((name.rstrip("_"), getattr(record, name)) for name, _ in record.FIELDS)
    return {name: _value(value) for name, value in values if value is not None and value is not False}


def _value(value: Any) -> Any:
    """Sets of ids and structs as values that JSON can have."""
    if isinstance(value, (SequenceSet, ByteRanges)):
        return _ranges(value)
    if isinstance(value, Packed):
        return {value.NAME: _present(value)}
    if isinstance(value, (list, tuple)):
        return [_value(each) for each in value]
    return str(value) if isinstance(value, UUID) else value


def _plain(value: Any) -> Any:
    return bytes_or_text(value) if isinstance(value, bytes) else value_to_json(value)


# --- text --------------------------------------------------------------------------------------------------


def _why_not(kind: int, payload: bytes) -> str:
    """Why a frame cannot be decoded, and its first bytes."""
    size = f"{len(payload)} bytes"
    if isinstance(payload, Truncated):
        return f"too long to be kept whole ({payload.size} bytes)"
    if kind & TYPE_MASK in _WORDS and not is_whole(kind):
        return f"a part of its segment ({size})"
    found = kind_of(kind, payload)
    if found is not None and _SECRET_FIELDS & {name for name, _ in found.FIELDS}:
        # The reason would depend on hidden bytes.
        return f"malformed ({size})"
    reason = "cannot be read"
    try:
        if found is not None or kind & TYPE_MASK == HEADER:
            decode_strictly(kind, payload)
    except WireError as problem:
        reason = f"malformed: {one_line(str(problem), 160)}"
    return f"{reason} ({size}: {payload[:24].hex()}{'...' if len(payload) > 24 else ''})"


def _struct_name(struct: Any) -> str:
    """Without its class and the suffix "-properties"."""
    name = getattr(struct, "NAME", "")
    return name.rpartition(".")[2].removesuffix("-properties") or "unknown struct"


def _fields(record: Any) -> list[str]:
    """The fields that are present, without flags that are off."""
    if not isinstance(record, Packed):
        return [short(record)]
    words = []
    for field, _ in record.FIELDS:
        value = getattr(record, field)
        name = field.rstrip("_")
        if value is None or value is False:
            continue
        if value is True:
            words.append(name)
        elif name in _SECRET_FIELDS:
            words.append(f"{name}=({len(value)} bytes)")
        elif name in ("client_properties", "server_properties"):
            words.append(f"{name}={short({key: value[key] for key in _WHO if key in value})}")
        else:
            words.append(f"{name}={_word(record.NAME, name, value)}")
    return words


def _word(owner: str, name: str, value: Any) -> str:
    """A value in short: a number by its name, a set of ids by its ranges."""
    named = _VALUES.get(name) or _VALUES.get(f"{owner}.{name}")
    if named is not None and value in tuple(named):
        known = named(value).name.lower().replace("_", "-")
        return f"{value} {known}" if value >= 100 else known
    if isinstance(value, (SequenceSet, ByteRanges)):
        return one_line(_ranges(value), 120) or "none"
    if isinstance(value, Packed):
        return f"{_struct_name(value)}({', '.join(_fields(value))})"
    if isinstance(value, bytes):
        try:
            return short(value.decode())
        except UnicodeDecodeError:
            return short(value)
    return short(value)


def _ranges(which: SequenceSet | ByteRanges) -> str:
    """Such as "0-4,7"."""
    return ",".join(str(lower) if lower == upper else f"{lower}-{upper}" for lower, upper in which.ranges)


def _method_info(kind: type[Command] | type[Control]) -> MethodInfo:
    sides = frozenset(kind.RECEIVED_BY)
    names = {name.rstrip("_"): name for name, _ in kind.FIELDS}
    return MethodInfo(
        directions=frozenset(name for name, here in _SIDES.items() if sides & here),
        fields=tuple(names),
        has_content=issubclass(kind, Command) and kind.HEADER is not None,
        prefixes=frozenset((bytes((kind.CLASS, kind.CODE)),)),
        make=lambda **values: kind(**{names[name]: value for name, value in values.items()}),
    )


DIALECT = Dialect010()
