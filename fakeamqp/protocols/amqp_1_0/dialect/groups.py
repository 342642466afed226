"""Frame groups of 1.0: each frame is one. A message in several transfers is as many groups."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import Self

from fakeamqp.faults.frame_group import ABSENT, HEARTBEAT, UNREAD, FrameGroup, changed_record
from fakeamqp.protocols.amqp_1_0.addresses import BadAddress, VersionOne, destination_of
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import UInt
from fakeamqp.protocols.amqp_1_0.dialect.frames import decode, is_protocol_header, name_of
from fakeamqp.protocols.amqp_1_0.messages import SectionProperties, encoded_sections, read_message
from fakeamqp.protocols.base.codec import WireError

if TYPE_CHECKING:
    from fakeamqp.faults.connection_state import ConnectionFaultState

TRANSFER = "transfer"
_OF_CONNECTION = frozenset(
    ("open", "close", "sasl-mechanisms", "sasl-init", "sasl-challenge", "sasl-response", "sasl-outcome")
)


class FrameOf10(FrameGroup):
    """See `FrameGroup`."""

    __slots__ = ("_payload", "has_content")

    _settling_field: ClassVar[str] = "first"

    # --- what it is -----------------------------------------------------------------------------------

    def _read_name(self) -> str:
        kind, payload = self.frames[0]
        self._payload: bytes = b""
        name = name_of(kind, payload)
        self.has_content: bool = False  # The message is inside of the transfer.
        if not name and not payload and not is_protocol_header(kind):
            return HEARTBEAT
        return name

    @property
    def index(self) -> int:
        kind = next((each for each in c.COMPOSITES.values() if self.name == each.NAME), None)
        return 0 if kind is None else kind.CODE

    @property
    def method(self) -> Any:
        if self._method is UNREAD:
            read = decode(*self.frames[0])
            self._method, self._payload = (None, b"") if read is None else read
        return self._method

    @property
    def inline(self) -> bool:
        return self.name == TRANSFER

    @property
    def _brings_message(self) -> bool:
        return self.name == TRANSFER

    @property
    def complete(self) -> bool:
        return True

    def continues_with(self, kind: int) -> bool:
        return False

    @property
    def header_complete(self) -> bool:
        return False

    @property
    def _message(self) -> tuple[SectionProperties, bytes] | None:
        """The message, if it is whole in this transfer and can be read."""
        if self._content is UNREAD:
            self._content = None
            if self.method is not None and self.inline:
                with suppress(WireError):
                    self._content = read_message(self._payload)
        content: tuple[SectionProperties, bytes] | None = self._content
        return content

    @property
    def properties(self) -> Any:
        message = self._message
        return None if message is None else message[0]

    @property
    def body(self) -> bytes:
        message = self._message
        return (self._payload if self.inline else b"") if message is None else message[1]

    @property
    def on_connection(self) -> bool:
        return self.name == HEARTBEAT or self.name in _OF_CONNECTION

    @property
    def allowed_after_close(self) -> bool:
        return self.name == "end"

    def frames_through(self, part: str) -> int:
        return 1

    # --- what rules ask -------------------------------------------------------------------------------

    def _field(self, name: str) -> Any:
        """Links name exchanges and queues by addresses; frames name links by handles."""
        method = self.method
        if name in ("exchange", "routing_key") and self.name == TRANSFER:
            place = self._place()
            return ABSENT if place is None else place[name == "routing_key"]
        if name == "queue" and self.name == "attach":
            return self._attached()[1]
        if name in ("exchange", "routing_key") and self.name == "attach":
            return self._attached()[0] if name == "exchange" else self._attached()[1]
        return getattr(method, name, ABSENT)

    def _place(self) -> tuple[str, str] | None:
        if self.direction == "received":
            place = self.port.link_target(self.channel, self.method.handle)
            if place is None and self.properties is not None:
                to = self.properties.fields.to
                place = _destination(to) if isinstance(to, str) else None
            return place
        annotations = {} if self.properties is None else self.properties.annotations
        if "x-exchange" not in annotations:
            return None
        return str(annotations["x-exchange"]), str(annotations.get("x-routing-key", ""))

    def _attached(self) -> tuple[str, str]:
        """Exchange and key that the address of an attach names; for a queue "" and its name."""
        method = self.method
        sends = method.role is False if self.direction == "received" else method.role is True
        terminus = c.composite_or_value(method.target if sends else method.source)
        address = getattr(terminus, "address", None)
        found = _destination(address) if isinstance(address, str) else None
        return ("", "") if found is None else found

    def known_early(self, name: str) -> bool:
        return True

    @property
    def _published_to(self) -> str | None:
        if self.name != TRANSFER or self.direction != "received" or self.method is None:
            return None
        place = self._place()
        return None if place is None else place[0]

    @property
    def _consumer(self) -> str | None:
        handle = getattr(self.method, "handle", None)
        return None if handle is None else str(int(handle))

    # --- other shapes ---------------------------------------------------------------------------------

    def replace(
        self,
        *,
        fields: dict[str, Any] | None = None,
        properties: dict[str, Any] | None = None,
        body: bytes | None = None,
        channel: int | None = None,
    ) -> Self:
        """What does not change keeps its bytes."""
        method = self.method
        payload = self._payload
        kind = self.frames[0][0]
        changed = False
        if fields and method is not None:
            names = [(each.attribute, each) for each in method.FIELDS]
            made = changed_record(method, names, fields)
            if made is not None:
                method, changed = made, True
        message = self._message
        if message is not None and (properties or body is not None):
            said, octets = message
            if properties:
                values = {
                    name: value(getattr(said, name, None)) if callable(value) else value
                    for name, value in properties.items()
                }
                said = said.replace(**values)
            if body is not None:
                octets = body
                said = said.with_data()
            payload, changed = encoded_sections(said, octets), True
        frames = [(kind & 0x1FF, method.encode() + payload)] if changed else list(self.frames)
        return self._with_frames(frames, channel)

    def duplicate(self) -> Self:
        """The duplicate of a transfer to the client has a delivery id of its own."""
        group = self.replace()
        if self.direction == "sent" and self.name == TRANSFER:
            number = self.port.spare_number(self.channel)
            group = self.replace(fields={"delivery_id": UInt(number)})
        group.is_duplicate = True
        return group

    # --- what becomes of it ---------------------------------------------------------------------------

    def intercepted(self) -> None:
        """The client does not count a delivery that does not reach it."""
        if self.direction == "sent" and self.name == TRANSFER and self.number is None:
            self.number = self.port.withhold_delivery(self.channel, self.method.delivery_id)

    def encode(self) -> bytes:
        """A transfer that was withheld has the next delivery id now."""
        if self.number is None or self.name != TRANSFER:
            return self.data
        number = self.port.resume_delivery(self.channel, self.number)
        self.number = None
        return self.replace(fields={"delivery_id": UInt(number)}).data

    def pass_on(self, *, secured: bool) -> None:
        if self.is_duplicate:
            self.port.receive_duplicate(self.channel, self.data)
        elif not secured and self.name == TRANSFER:
            self.port.receive_unsecured(self.channel, self.data)
        else:
            self.port.receive(self.data)

    def drop(self, state: ConnectionFaultState) -> None:
        """A transfer that is dropped counts for window and credit, and never gets an outcome."""
        if self.direction == "received":
            if self.name == HEARTBEAT:
                self.port.drop_heartbeat()
            elif self.name == TRANSFER and not self.is_duplicate:
                self.port.drop(self.channel, self.data)

    def exception(self, code: int, text: str, field_index: int | None) -> None:
        """There are none in 1.0."""

    def nack(self, state: ConnectionFaultState) -> Self | None:
        if not self.is_duplicate and self.name == TRANSFER:
            self.port.nack(self.channel, self.data)
        return None

    def return_message(self, state: ConnectionFaultState, code: int, text: str) -> None:
        """The outcome of a message that is returned is released."""
        if not self.is_duplicate and self.name == TRANSFER:
            self.port.returned(self.channel, self.data)


def _destination(address: str) -> tuple[str, str] | None:
    try:
        return tuple(destination_of(address))  # type: ignore[return-value]
    except (BadAddress, VersionOne):
        return None
