"""Frame groups of 1.0: a performative, or all transfers of one message.

A message to the client that its window cuts in two is no group of its own: no rule concerns it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import Self

from fakeamqp.faults.frame_group import ABSENT, HEARTBEAT, UNREAD, FrameGroup, changed_record
from fakeamqp.protocols.amqp_1_0 import addresses
from fakeamqp.protocols.amqp_1_0.addresses import BadAddress, Destination, VersionOne
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.frames import HEADER_SIZE
from fakeamqp.protocols.amqp_1_0.codec.types import UInt
from fakeamqp.protocols.amqp_1_0.dialect.frames import KIND_MASK, decode, is_protocol_header, name_of
from fakeamqp.protocols.amqp_1_0.messages import SectionProperties, encoded_sections, read_message
from fakeamqp.protocols.base.codec import WireError

if TYPE_CHECKING:
    from fakeamqp.faults.connection_state import ConnectionFaultState

TRANSFER = "transfer"
_LARGEST = 16_777_216
"""Bytes of a message that are gathered. Whoever sends more gets the error of the connection."""
_LARGEST_FRAME = 131_072
"""Bytes of a frame that brokers take."""
_OF_CONNECTION = frozenset(("open", "close", *(each.NAME for each in c.SASL_FRAMES)))


class FrameOf10(FrameGroup):
    """See `FrameGroup`."""

    __slots__ = ("_size", "has_content")

    _settling_field: ClassVar[str] = "first"

    # --- what it is -----------------------------------------------------------------------------------

    def _read_name(self) -> str:
        kind, payload = self.frames[0]
        name = name_of(kind, payload)
        self._size: int = len(payload)
        self.has_content: bool = False
        """True if further transfers have the rest of the message."""
        if not name and not payload and not is_protocol_header(kind):
            return HEARTBEAT
        if name == TRANSFER and self.method is not None:
            self.has_content = bool(self.method.more)
            handle = int(self.method.handle) if self.direction == "received" else None
            if self.port.message_begun(self.channel, handle):
                return ""  # The rest of a message that has passed on in part.
        return name

    @property
    def index(self) -> int:
        return next((each.CODE for each in c.COMPOSITES.values() if self.name == each.NAME), 0)

    @property
    def method(self) -> Any:
        if self._method is UNREAD:
            self._method, _ = decode(*self.frames[0]) or (None, b"")
        return self._method

    @property
    def _payload(self) -> bytes:
        """What follows the performatives: the message, as far as it has come."""
        if not self.inline:
            return b""
        return b"".join(read[1] for read in (decode(*each) for each in self.frames) if read is not None)

    @property
    def inline(self) -> bool:
        return self.name == TRANSFER

    @property
    def _brings_message(self) -> bool:
        return self.inline

    @property
    def complete(self) -> bool:
        if not self.has_content:
            return True
        body, _ = decode(*self.frames[-1]) or (None, b"")
        return not getattr(body, "more", False)

    def continues_with(self, kind: int, payload: bytes) -> bool:
        """The next transfer on the link; one without more, or with too much, ends the group."""
        if not self.has_content or self.complete or self._size > _LARGEST:
            return False
        body, _ = decode(kind, payload) or (None, b"")
        continues = isinstance(body, c.Transfer) and body.handle == self.method.handle
        self._size += len(payload) * continues
        return continues

    @property
    def header_complete(self) -> bool:
        return False

    @property
    def _message(self) -> tuple[SectionProperties, bytes] | None:
        """The message, if it is whole in this transfer and can be read."""
        if self._content is UNREAD:
            if not self.complete:
                return None
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
        """Links name exchanges and queues by addresses; frames name links by handles. A state is its name."""
        method = self.method
        if name in ("exchange", "routing_key") and self.name == TRANSFER:
            place = self._place()
            return ABSENT if place is None else place[name == "routing_key"]
        if name in ("exchange", "routing_key", "queue") and self.name == "attach":
            return self._attached()[name != "exchange"]
        value = c.composite_or_value(getattr(method, name, ABSENT))
        return value.NAME if name == "state" and isinstance(value, c.Composite) else value

    def _place(self) -> tuple[str, str] | None:
        if self.direction == "received":
            place = self.port.link_target(self.channel, self.method.handle)
            if place is None and self.properties is not None:
                place = _pair(destination(self.properties.fields.to))
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
        found = _pair(destination(address, of_target=sends))
        return ("", "") if found is None else found

    def known_early(self, name: str) -> bool:
        """The link tells where a message goes, or on the anonymous terminus the whole of it."""
        if self.complete or name not in ("exchange", "routing_key"):
            return True
        return self.port.link_target(self.channel, self.method.handle) is not None

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
        frames = list(self.frames)
        if fields and method is not None:
            frames = [self._with_fields(*each, fields) for each in frames]
            method, _ = decode(*frames[0]) or (method, b"")
        message = self._message
        if message is not None and (properties or body is not None):
            said, octets = message
            if properties:
                changes = properties.items()
                values = {name: v(getattr(said, name, None)) if callable(v) else v for name, v in changes}
                said = said.replace(**values)
            if body is not None:
                said, octets = said.with_data(), body
            frames = self._split(method, encoded_sections(said, octets))
        group = self._with_frames(frames, channel)
        group.name = self.name
        return group

    @staticmethod
    def _with_fields(kind: int, payload: bytes, fields: dict[str, Any]) -> tuple[int, bytes]:
        read = decode(kind, payload)
        if read is not None:
            body, rest = read
            made = changed_record(body, [(each.attribute, each) for each in body.FIELDS], fields)
            if made is not None:
                return kind & KIND_MASK, made.encode() + rest
        return kind, payload

    def _split(self, method: Any, payload: bytes) -> list[tuple[int, bytes]]:
        """The transfers for a message, as large as the broker makes its frames."""
        kind = self.frames[0][0] & KIND_MASK
        values = vars(method)
        more = type(method)(**{**values, "more": True}).encode()
        last = type(method)(**{**values, "more": values["more"] and False}).encode()
        room = min(self.port.largest_frame or _LARGEST_FRAME, _LARGEST_FRAME) - HEADER_SIZE - len(more)
        frames = [
            (kind, more + payload[at : at + room]) for at in range(0, max(0, len(payload) - room), room)
        ]
        return [*frames, (kind, last + payload[len(frames) * room :])]

    def duplicate(self) -> Self:
        group = self.replace()
        group.is_duplicate = True
        group.number = None
        return group

    # --- what becomes of it ---------------------------------------------------------------------------

    def gathered(self) -> bool:
        return self.port.count_gathered(self.channel, len(self.frames))

    def intercepted(self) -> None:
        """The client does not count a delivery that does not reach it."""
        of_delivery = self.direction == "sent" and self.name == TRANSFER and self.method is not None
        if of_delivery and self.number is None and self.method.delivery_id is not None:
            number = int(self.method.delivery_id)
            self.number = self.port.withhold_delivery(self.channel, number, len(self.frames))

    def encode(self) -> bytes:
        """A transfer that was withheld has the next delivery id now; its duplicate, one of its own."""
        if self.name != TRANSFER or self.method is None:
            return self.data
        if self.is_duplicate:
            number = self.port.spare_delivery(self.channel, len(self.frames))
        elif self.number is not None:
            number = self.port.resume_delivery(self.channel, self.number, len(self.frames))
        else:
            return self.data
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


def destination(address: Any, *, of_target: bool | None = None) -> Destination | None:
    """Where an address leads; that of an attach, which may be of version 1, if `of_target` is given."""
    if not isinstance(address, str):
        return None
    try:
        return addresses.destination_of(address)
    except BadAddress:
        return None
    except VersionOne:
        if of_target is None:
            return None
    try:
        return addresses.version_one_endpoint(address, of_target=of_target).destination
    except addresses.BadVersionOne:
        return None


def _pair(place: Destination | None) -> tuple[str, str] | None:
    return None if place is None else (place.exchange, place.key_for(None))
