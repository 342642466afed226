"""The dialect of 0-10."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from fakeamqp.dialects import MethodInfo, RedactedValue
from fakeamqp.protocols.amqp_0_10.codec import commands, controls, structs
from fakeamqp.protocols.amqp_0_10.codec.constants import ErrorCode
from fakeamqp.protocols.amqp_0_10.codec.frames import (
    LARGEST_FRAME,
    LAST_FRAME,
    LAST_SEGMENT,
    control_frame,
    encode_frames,
)
from fakeamqp.protocols.amqp_0_10.codec.packed import Command, Control, Packed
from fakeamqp.protocols.amqp_0_10.codec.serial import ByteRanges, SequenceSet
from fakeamqp.protocols.amqp_0_10.dialect.dialogue import Dialogue010
from fakeamqp.protocols.amqp_0_10.dialect.framing import (
    BODY,
    COMMAND,
    CONTROL,
    HEADER,
    TYPE_MASK,
    Framing010,
    starts,
)
from fakeamqp.protocols.amqp_0_10.dialect.groups import COMMON, TRANSFER, CommandGroup, structs_with
from fakeamqp.protocols.amqp_0_10.dialect.malformations import MALFORMATIONS
from fakeamqp.protocols.amqp_0_10.dialect.secrets import redacted
from fakeamqp.protocols.amqp_0_10.dialect.text import (
    SECRET_FIELDS,
    decode,
    describe,
    frame_name,
    kind_of,
    ranges,
    read_structs,
)
from fakeamqp.protocols.amqp_0_10.properties import TransferProperties
from fakeamqp.protocols.base.codec import WireError
from fakeamqp.trace.json_form import PROPERTIES, bytes_or_text, value_to_json
from fakeamqp.trace.truncation import Truncated

if TYPE_CHECKING:
    from fakeamqp.dialects import Direction, Malformation
    from fakeamqp.faults.port import FaultPort

__all__ = ["DIALECT", "Dialect010"]

_HEARTBEAT = controls.ConnectionHeartbeat
_OF_CONNECTION = bytes((controls.ConnectionStart.CLASS,))
_END = LAST_SEGMENT | LAST_FRAME
_SIDES = {
    "received": frozenset(("server", "sender", "receiver")),
    "sent": frozenset(("client", "sender", "receiver")),
}
"""Both peers of a session send and receive commands."""

_DESTINATION = {"received": "exchange", "sent": "consumer_tag"}
"""The column for the destination of a transfer, by its direction."""


class _Properties:
    """Properties of a header, to be encoded."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._structs = structs_with((), dict(values))

    def encode(self) -> bytes:
        """The header segment."""
        return structs.encode_header(self._structs)


class Dialect010(Framing010):
    """0-10: commands with their header and body, and controls."""

    name = "0-10"
    reply_names: Mapping[int, str] = {int(code): code.name.lower().replace("_", "-") for code in ErrorCode}
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
            kind.NAME: _method_info(kind) for kind in known if kind is not _HEARTBEAT
        }

    def make_properties(self, **values: Any) -> _Properties:
        """They become delivery-properties and message-properties."""
        return _Properties(values)

    def has(self, what: Any) -> bool:
        """True for a `Control` or a `Command`."""
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
        """The name of a control or a command, or "header", "body"."""
        return frame_name(kind, payload)

    def describe(self, kind: int, payload: bytes) -> str:
        """One line."""
        return describe(kind, payload)

    def method(self, kind: int, payload: bytes) -> Any:
        """A `Control` or a `Command`."""
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
        """The flags tell it."""
        return kind >> 8 & _END == _END

    def values(self, record: Any) -> Iterator[tuple[str, Any]]:
        """Fields of controls and commands; of properties, the structs with the fields that are present."""
        if isinstance(record, Packed):
            for name, _ in record.FIELDS:
                value = getattr(record, name)
                if name in SECRET_FIELDS and value is not None:
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
        return ranges(value)
    if isinstance(value, Packed):
        return {value.NAME: _present(value)}
    if isinstance(value, (list, tuple)):
        return [_value(each) for each in value]
    return str(value) if isinstance(value, UUID) else value


def _plain(value: Any) -> Any:
    return bytes_or_text(value) if isinstance(value, bytes) else value_to_json(value)


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
