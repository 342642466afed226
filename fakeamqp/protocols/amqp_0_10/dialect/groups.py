"""Frame groups of 0-10: controls, and commands with their header and body."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

from fakeamqp.faults.frame_group import ABSENT, HEARTBEAT, UNREAD, FrameGroup
from fakeamqp.protocols.amqp_0_10.codec import commands, controls, structs
from fakeamqp.protocols.amqp_0_10.codec.frames import (
    LARGEST_FRAME,
    LAST_FRAME,
    LAST_SEGMENT,
    encode_frames,
)
from fakeamqp.protocols.amqp_0_10.codec.structs import DeliveryProperties
from fakeamqp.protocols.amqp_0_10.dialect.framing import (
    BODY,
    COMMAND,
    CONTROL,
    HEADER,
    TYPE_MASK,
    is_heartbeat,
    starts,
)
from fakeamqp.protocols.base.codec.errors import WireError

if TYPE_CHECKING:
    from fakeamqp.faults.connection_state import ConnectionFaultState
    from fakeamqp.protocols.amqp_0_10.codec.packed import Packed, Struct

__all__ = ["COMMON", "TRANSFER", "CommandGroup", "structs_with"]

TRANSFER = "message.transfer"
COMMON = (
    "content_type",
    "content_encoding",
    "delivery_mode",
    "priority",
    "correlation_id",
    "reply_to",
    "expiration",
    "message_id",
    "timestamp",
    "type",
    "user_id",
    "app_id",
)
"""Properties that messages of all protocols have. They are compared as in 0-9-1."""
_END = LAST_SEGMENT | LAST_FRAME


class CommandGroup(FrameGroup):
    """See `FrameGroup`."""

    __slots__ = ("has_content", "sync")

    # --- what it is -----------------------------------------------------------------------------------

    def _read_name(self) -> str:
        self.sync: bool = False
        """True if the sender asks to be told of the completion soon."""
        kind, payload = self.frames[0]
        self.has_content: bool = not kind >> 8 & LAST_SEGMENT  # Another segment follows.
        if is_heartbeat(kind, payload):
            return HEARTBEAT
        if not starts(kind):
            return ""  # The rest of an assembly that began on another transport.
        found = _TABLES.get(kind & TYPE_MASK, {}).get(int.from_bytes(payload[:2], "big"))
        return "" if found is None else found.NAME

    @property
    def index(self) -> int:
        """Class and code."""
        return int.from_bytes(self.frames[0][1][:2], "big") if self.name != HEARTBEAT else 0

    @property
    def is_command(self) -> bool:
        """True for a command: it has an id. False for a control."""
        return self.frames[0][0] & TYPE_MASK == COMMAND

    def segment(self, which: int) -> bytes | None:
        """The bytes of a segment as far as they have arrived; None without a segment of that type."""
        pieces = [payload for kind, payload in self.frames if kind & TYPE_MASK == which]
        return b"".join(pieces) if pieces else None

    @property
    def method(self) -> Any:
        """A `Command` or a `Control`."""
        if self._method is UNREAD and self.method_complete:
            self._method = None
            octets = self.segment(self.frames[0][0] & TYPE_MASK) or b""
            try:
                if self.is_command:
                    self._method, self.sync = commands.decode(octets)
                else:
                    self._method = controls.decode(octets)
            except WireError:
                pass
        return None if self._method is UNREAD else self._method

    @property
    def method_complete(self) -> bool:
        """True once the first segment is complete."""
        first = self.frames[0][0] & TYPE_MASK
        return any(kind >> 8 & LAST_FRAME for kind, _ in self.frames if kind & TYPE_MASK == first)

    @property
    def complete(self) -> bool:
        """A flag marks the last frame."""
        return self.frames[-1][0] >> 8 & _END == _END

    def continues_with(self, kind: int) -> bool:
        """Any frame that does not begin another assembly."""
        return not starts(kind) and kind & TYPE_MASK != CONTROL

    @property
    def header_complete(self) -> bool:
        """True if the last frame ends the header segment."""
        kind = self.frames[-1][0]
        return kind & TYPE_MASK == HEADER and bool(kind >> 8 & LAST_FRAME)

    @property
    def properties(self) -> Any:
        """`TransferProperties`."""
        if self._content is UNREAD:
            from fakeamqp.protocols.amqp_0_10.properties import TransferProperties

            octets = self.segment(HEADER)
            if octets is None:
                return None
            try:
                self._content = TransferProperties.decode(octets)
            except WireError:
                self._content = None
        return self._content

    @property
    def structs(self) -> tuple[Any, ...]:
        """The structs of the header segment; empty if it cannot be decoded."""
        try:
            return structs.decode_header(self.segment(HEADER) or b"")
        except WireError:
            return ()

    @property
    def on_connection(self) -> bool:
        """Controls of class connection, whatever channel they come on."""
        return self.name == HEARTBEAT or self.name.startswith("connection.")

    @property
    def allowed_after_close(self) -> bool:
        """Controls, and the exception that has ended a session."""
        return not self.is_command or self.name == "execution.exception"

    def frames_through(self, part: str) -> int:
        """Up to the end of the first segment, or of the header."""
        wanted = (CONTROL, COMMAND) if part == "method" else (CONTROL, COMMAND, HEADER)
        return sum(kind & TYPE_MASK in wanted for kind, _ in self.frames)

    # --- what rules ask -------------------------------------------------------------------------------

    def values_of(self, name: str) -> tuple[Any, ...]:
        return _values_of(self, name)

    def known_early(self, name: str) -> bool:
        """The routing key of a transfer is in its header, like some fields of other protocols."""
        return name in ("exchange", "channel") or name in self.protocol.kinds[self.name].fields

    def note_destinations(self) -> None:
        """The queues that a transfer is routed to."""
        self.queues: tuple[str, ...] = self.port.destinations(self.channel, self.method, self.properties)

    # --- other shapes ---------------------------------------------------------------------------------

    def replace(
        self,
        *,
        fields: dict[str, Any] | None = None,
        properties: dict[str, Any] | None = None,
        body: bytes | None = None,
        channel: int | None = None,
    ) -> Self:
        """Segments without a change keep their bytes."""
        first_type = self.frames[0][0] & TYPE_MASK
        segments = {
            first_type: self.segment(first_type),
            HEADER: self.segment(HEADER),
            BODY: self.segment(BODY),
        }
        altered = False
        method = self.method
        if fields and method is not None:
            made, altered = _with(method, fields)
            if altered:
                segments[first_type] = made.encode(self.sync) if self.is_command else made.encode()
        if properties and self.has_content:
            segments[HEADER] = structs.encode_header(structs_with(self.structs, properties))
            altered = True
        if body is not None and (self.has_content or body):
            segments[BODY] = body
            altered = True
        frames = list(self.frames)
        if altered:
            limit = self.port.largest_frame or LARGEST_FRAME
            present = [(kind, octets) for kind, octets in segments.items() if octets is not None]
            cut = self.protocol.cut(encode_frames(0, present, limit))
            frames = [(kind, payload) for kind, _, payload, _ in cut]
        return self._with_frames(frames, channel)

    def duplicate(self) -> Self:
        """The duplicate of a sent command has its own id; the duplicate of a received one has none."""
        group = self.replace()
        group.is_duplicate = True
        if self.direction == "sent" and self.is_command:
            group.number = self.port.spare_number(self.channel)
        return group

    # --- what becomes of it ---------------------------------------------------------------------------

    def intercepted(self) -> None:
        """The client does not count a command that does not reach it."""
        if self.direction == "sent" and self.is_command and self.number is None:
            self.number = self.port.withhold_command(self.channel)

    def encode(self) -> bytes:
        """A command is announced by a command point unless the client expects its id."""
        if not self.is_command:
            return self.data
        if self.number is None:
            self.number = self.port.spare_number(self.channel)
        return self.port.with_command_point(self.channel, self.number, self.data)

    def pass_on(self, *, secured: bool) -> None:
        """A duplicate of a command has no id of its own."""
        if not secured and self.name == TRANSFER:
            self.port.receive_unsecured(self.channel, self.data)
        elif self.is_duplicate and self.is_command:
            self.port.receive_duplicate(self.channel, self.data)
        else:
            self.port.receive(self.data)

    def drop(self, state: ConnectionFaultState) -> None:
        """A dropped command is counted, and never completed."""
        if self.direction == "received":
            if self.name == HEARTBEAT:
                self.port.drop_heartbeat()
            elif self.is_command and not self.is_duplicate:
                self.port.drop(self.channel, self.data)

    def exception(self, code: int, text: str, field_index: int | None) -> None:
        """Send execution.exception and end the session."""
        if self.is_command and not self.is_duplicate:
            self.port.exception(self.channel, self.data, code, text, field_index)

    def nack(self, state: ConnectionFaultState) -> Self | None:
        """Reject a transfer."""
        if not self.is_duplicate:
            self.port.nack(self.channel, self.data)
        return None


_TABLES: dict[int, dict[int, type[Any]]] = {CONTROL: controls.CONTROLS, COMMAND: commands.COMMANDS}


def _with(record: Packed, changes: dict[str, Any]) -> tuple[Any, bool]:
    """A copy with other values, and whether it has any of these fields."""
    names = {name.rstrip("_"): name for name, _ in record.FIELDS}
    values = {name: getattr(record, name) for name, _ in record.FIELDS}
    altered = False
    for name, value in changes.items():
        if name in names:
            altered = True
            field = names[name]
            values[field] = value(values[field]) if callable(value) else value
    return type(record)(**values), altered


def structs_with(found: tuple[Any, ...], changes: dict[str, Any]) -> list[Any]:
    """The structs of a header with other values; a missing struct is added if a value needs it.

    `headers` stands for `application_headers`. Text becomes bytes where the field holds bytes.
    """
    made = list(found)
    for owner in (structs.DeliveryProperties, structs.MessageProperties):
        fields = dict(owner.FIELDS)
        wanted = {}
        for name, value in changes.items():
            field = "application_headers" if name == "headers" else name
            if field in fields:
                wanted[field] = value
        if not wanted:
            continue
        place = next((place for place, each in enumerate(made) if isinstance(each, owner)), None)
        if place is None:
            place = len(made)
            made.append(owner())
        known: Struct = made[place]
        values = {name: getattr(known, name) for name in fields}
        for name, value in wanted.items():
            value = value(values[name]) if callable(value) else value
            if fields[name] == "vbin16" and isinstance(value, str):
                value = value.encode("utf-8", "surrogateescape")
            values[name] = value
        made[place] = owner(**values)
    return made


def _values_of(group: CommandGroup, name: str) -> tuple[Any, ...]:
    """All values of a field: one that every method has, a field of the method, or a property."""
    read = _READERS.get(name)
    if read is not None:
        return read(group)
    method = group.method
    value = getattr(method, name, getattr(method, f"{name}_", ABSENT))
    if value is not ABSENT:
        return (value,)
    return _property(group, name)


def _brings_message(group: CommandGroup) -> bool:
    return group.name == "message.transfer"


def _held_messages(group: CommandGroup) -> tuple[Any, ...]:
    """Queue name and message of each transfer that a settlement concerns."""
    if group.direction == "received" and getattr(group.method, "transfers", None) is not None:
        return group.port.held_messages(group.channel, group.method)
    return ()


def _delivery(group: CommandGroup) -> DeliveryProperties | None:
    return next((each for each in group.structs if isinstance(each, DeliveryProperties)), None)


def _exchange(group: CommandGroup) -> tuple[Any, ...]:
    """Of a received transfer its destination; of a sent one the exchange of its publish."""
    method = group.method
    if _brings_message(group):
        if group.direction == "received":
            return (method.destination or "",)
        delivery = _delivery(group)
        return (None if delivery is None else delivery.exchange or "",)
    if hasattr(method, "exchange"):
        return (method.exchange or "",)
    if group.name == "exchange.query":
        return (method.name or "",)
    return tuple(message.exchange for _, message in _held_messages(group))


def _routing_key(group: CommandGroup) -> tuple[Any, ...]:
    method = group.method
    if _brings_message(group):
        delivery = _delivery(group)
        return ("" if delivery is None else delivery.routing_key or "",)
    for name in ("routing_key", "binding_key"):
        if hasattr(method, name):
            return (getattr(method, name) or "",)
    return tuple(message.routing_key for _, message in _held_messages(group))


def _queue(group: CommandGroup) -> tuple[Any, ...]:
    """The queues of a transfer, a subscription or settled messages, or the queue that a command names."""
    if group.queues is not None:
        return group.queues
    method = group.method
    if _brings_message(group) and group.direction == "received":
        found: tuple[Any, ...] = group.port.destinations(group.channel, method, group.properties)
        return found
    if hasattr(method, "queue"):
        return (method.queue or "",)
    if hasattr(method, "destination"):
        queue = group.port.consumed_queue(group.channel, method.destination or "")
        return () if queue is None else (queue,)
    return tuple(name for name, _ in _held_messages(group))


def _exchange_type(group: CommandGroup) -> tuple[Any, ...]:
    if group.name == "exchange.declare":
        return (group.method.type,)
    return tuple(kind for name in _exchange(group) if (kind := group.port.exchange_type(name)) is not None)


def _body(group: CommandGroup) -> tuple[Any, ...]:
    if _brings_message(group) or group.has_content:
        return (group.body,)
    return tuple(message.body for _, message in _held_messages(group))


def _session(group: CommandGroup) -> tuple[Any, ...]:
    """The session's name as text: in session controls their own, otherwise that of the channel."""
    if group.name.startswith("session.") and hasattr(group.method, "name"):
        return ((group.method.name or b"").decode("utf-8", "surrogateescape"),)
    name = group.port.session_name(group.channel)
    return () if name is None else (name,)


def _property(group: CommandGroup, name: str) -> tuple[Any, ...]:
    """A property that messages of all protocols have, otherwise a field of a struct in the header."""
    if _brings_message(group) or group.has_content:
        if name in COMMON or name == "headers":
            return (getattr(group.properties, name, ABSENT),)
        return tuple(getattr(each, name) for each in group.structs if hasattr(each, name)) or (ABSENT,)
    return tuple(getattr(message.properties, name, ABSENT) for _, message in _held_messages(group))


_READERS: dict[str, Callable[[CommandGroup], tuple[Any, ...]]] = {
    "exchange": _exchange,
    "routing_key": _routing_key,
    "queue": _queue,
    "exchange_type": _exchange_type,
    "body": _body,
    "headers": lambda group: _property(group, "headers"),
    "channel": lambda group: (group.channel,),
    "session": _session,
}
"""The fields that every command and control has for conditions, besides its own."""
