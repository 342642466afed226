"""Frame groups of 0-10: controls, and commands with their header and body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import Self

from fakeamqp.faults.frame_group import ABSENT, HEARTBEAT, UNREAD, FrameGroup, changed_record
from fakeamqp.protocols.amqp_0_10.codec import commands, controls, structs
from fakeamqp.protocols.amqp_0_10.codec.frames import (
    BODY,
    COMMAND,
    CONTROL,
    END,
    HEADER,
    LARGEST_FRAME,
    LAST_FRAME,
    LAST_SEGMENT,
    encode_frames,
)
from fakeamqp.protocols.amqp_0_10.dialect.frames import TYPE_MASK, is_heartbeat, kind_of, starts
from fakeamqp.protocols.amqp_0_10.properties import COMMON, TransferProperties
from fakeamqp.protocols.base.codec import WireError

if TYPE_CHECKING:
    from fakeamqp.faults.connection_state import ConnectionFaultState
    from fakeamqp.protocols.amqp_0_10.codec.structs import Struct

TRANSFER = "message.transfer"
_BLANK = ("exchange", "routing_key", "queue")
"""Fields that are blank where a command leaves them out."""


class CommandGroup(FrameGroup):
    """See `FrameGroup`."""

    __slots__ = ("has_content", "sync")

    _settling_field: ClassVar[str] = "transfers"

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
        found = kind_of(kind, payload)
        return "" if found is None else found.NAME

    @property
    def index(self) -> int:
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
        first = self.frames[0][0] & TYPE_MASK
        return any(kind >> 8 & LAST_FRAME for kind, _ in self.frames if kind & TYPE_MASK == first)

    @property
    def complete(self) -> bool:
        return self.frames[-1][0] >> 8 & END == END

    def continues_with(self, kind: int, payload: bytes) -> bool:
        return not starts(kind) and kind & TYPE_MASK != CONTROL

    @property
    def header_complete(self) -> bool:
        kind = self.frames[-1][0]
        return kind & TYPE_MASK == HEADER and bool(kind >> 8 & LAST_FRAME)

    @property
    def properties(self) -> Any:
        if self._content is UNREAD:
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
        wanted = (CONTROL, COMMAND) if part == "method" else (CONTROL, COMMAND, HEADER)
        return sum(kind & TYPE_MASK in wanted for kind, _ in self.frames)

    # --- what rules ask -------------------------------------------------------------------------------

    def _field(self, name: str) -> Any:
        """The exchange that a client sends a transfer to is its destination; the rest is in the header."""
        if self.name == TRANSFER and (name == "exchange" or name == "routing_key"):
            if name == "exchange" and self.direction == "received":
                return self.method.destination or ""
            headers = (each for each in self.structs if isinstance(each, structs.DeliveryProperties))
            header = next(headers, None)
            if header is None:
                return None if name == "exchange" else ""
            return getattr(header, name) or ""
        said = name
        if name == "routing_key" and hasattr(self.method, "binding_key"):
            said = "binding_key"
        elif name == "exchange" and self.name == "exchange.query":
            said = "name"
        value = super()._field(said)
        return "" if value is None and name in _BLANK else value

    def known_early(self, name: str) -> bool:
        """The routing key of a transfer is in its header, like some fields of other protocols."""
        return name in ("exchange", "channel") or name in self.protocol.kinds[self.name].fields

    @property
    def _brings_message(self) -> bool:
        return self.name == TRANSFER or self.has_content

    @property
    def _published_to(self) -> str | None:
        is_publish = self.name == TRANSFER and self.direction == "received"
        return self.method.destination or "" if is_publish else None

    @property
    def _consumer(self) -> str | None:
        """A subscription is called by its destination."""
        return self.method.destination or "" if hasattr(self.method, "destination") else None

    def _own_property(self, name: str) -> tuple[Any, ...]:
        """A property that messages of all protocols have, otherwise a field of a struct in the header."""
        if name in COMMON or name == "headers":
            return super()._own_property(name)
        return tuple(getattr(each, name) for each in self.structs if hasattr(each, name)) or (ABSENT,)

    def _session(self) -> tuple[Any, ...]:
        """The session's name as text: in session controls their own, otherwise that of the channel."""
        if self.name.startswith("session.") and hasattr(self.method, "name"):
            return ((self.method.name or b"").decode("utf-8", "surrogateescape"),)
        return super()._session()

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
            made = changed_record(method, method.FIELDS, fields)
            altered = made is not None
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
        if self.is_command and not self.is_duplicate:
            self.port.exception(self.channel, self.data, code, text, field_index)

    def nack(self, state: ConnectionFaultState) -> Self | None:
        if not self.is_duplicate:
            self.port.nack(self.channel, self.data)
        return None


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
