"""Frame groups of 0-9: methods, also inside requests and responses, with contents that may be nested.

The message of a message.transfer is inside the method. Rules see its body and its properties like those of
class basic; the method's other arguments are its fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from typing_extensions import Self

from fakeamqp.faults.frame_group import ABSENT, UNREAD, changed_record
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9.codec.constants import (
    FRAME_BODY,
    FRAME_HEADER,
    FRAME_METHOD,
)
from fakeamqp.protocols.amqp_0_9.codec.contents import ContentAssembler
from fakeamqp.protocols.amqp_0_9.codec.requests import (
    Request,
    Response,
    decode_numbers,
    encode_numbers,
)
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.codec.tables import RABBITMQ
from fakeamqp.protocols.amqp_0_9_1.dialect.groups import CONFIRMS, PUBLISH, MethodGroup091
from fakeamqp.protocols.base.codec import WireError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakeamqp.dialects import Dialect, Direction
    from fakeamqp.faults.connection_state import ConnectionFaultState
    from fakeamqp.faults.port import FaultPort

TRANSFER = "message.transfer"
IN_PROPERTIES = frozenset(name for name, _ in BasicProperties.LAYOUT) | {"application_headers", "body"}
"""Fields of a transfer that rules see as properties, as in the other protocols."""
_CONFIRMED = CONFIRMS | {PUBLISH}
_PUBLISHES = frozenset(("basic.publish", "file.publish", "stream.publish"))


class _Address(NamedTuple):
    """The address of a publish."""

    exchange: str
    routing_key: str


class MethodGroup09(MethodGroup091):
    """A response answers a publish in a request; any other is confirmed as in 0-9-1."""

    __slots__ = ("_assembler", "_body_at", "_broken", "_held", "_seen", "_whole")

    def __init__(
        self,
        protocol: Dialect,
        port: FaultPort,
        direction: Direction,
        channel: int,
        frames: list[tuple[int, bytes]],
    ) -> None:
        self._held = decode_numbers(*frames[0])
        self._assembler = ContentAssembler()
        self._seen = 1
        self._body_at: int | None = None
        self._whole = False
        self._broken = False
        super().__init__(protocol, port, direction, channel, frames)

    # --- what it is -----------------------------------------------------------------------------------

    @property
    def held(self) -> Request | Response | None:
        """The numbers of the request or response around the method; None without one."""
        return self._held

    @property
    def payload(self) -> bytes:
        """The encoded method."""
        return self.frames[0][1] if self._held is None else self._held.method

    @property
    def brings_method(self) -> bool:
        """True also for requests and responses that are long enough."""
        return self._held is not None or self.frames[0][0] == FRAME_METHOD

    @property
    def is_transfer(self) -> bool:
        """True for a message.transfer that can be decoded."""
        return self.name == TRANSFER and self.method is not None

    @property
    def inline(self) -> bool:
        return self.is_transfer

    @property
    def _brings_message(self) -> bool:
        """True also for a transfer."""
        return self.has_content or self.is_transfer

    def _gather(self) -> None:
        """Process the frames that were added since the last call."""
        while self._seen < len(self.frames) and not (self._whole or self._broken):
            kind, payload = self.frames[self._seen]
            self._seen += 1
            assembler = self._assembler
            add = assembler.add_header if kind == FRAME_HEADER else assembler.add_body
            try:
                self._whole = add(payload) is not None
            except WireError:
                self._broken = True
                return
            if self._body_at is None and (self._whole or assembler.at_the_body):
                self._body_at = self._seen

    @property
    def complete(self) -> bool:
        """Headers announce the number of contents and the sizes of bodies."""
        self._gather()
        return not self.has_content or self._whole or self._broken

    def continues_with(self, kind: int, payload: bytes) -> bool:
        """A header where a content begins, otherwise body frames."""
        self._gather()
        return kind == (FRAME_HEADER if self._assembler.wants_header else FRAME_BODY)

    @property
    def header_complete(self) -> bool:
        """Only the outer header counts."""
        return len(self.frames) == 2 and self.frames[-1][0] == FRAME_HEADER

    @property
    def body(self) -> bytes:
        """The outer body; empty for a transfer by reference."""
        if self.is_transfer:
            body = self.method.body
            return b"" if body.by_reference else bytes(body.octets)
        self._gather()
        start = len(self.frames) if self._body_at is None else self._body_at
        return b"".join(payload for _, payload in self.frames[start:])

    @property
    def properties(self) -> Any:
        """Properties of its class; for a transfer, of class basic."""
        if not self.is_transfer:
            return super().properties
        if self._content is UNREAD:
            # Imported late, because it imports 0-10 as well.
            from fakeamqp.protocols.amqp_0_9.property_mapping import from_transfer

            self._content = from_transfer(self.method, self.payload, RABBITMQ)
        return self._content

    # --- what rules ask -------------------------------------------------------------------------------

    def _field(self, name: str) -> Any:
        """The `destination` of a transfer from a client is its exchange."""
        if self.is_transfer:
            if name in IN_PROPERTIES:
                return ABSENT
            if name == "exchange" and self.direction == "received":
                name = "destination"
        return super()._field(name)

    @property
    def _published_to(self) -> str | None:
        """The exchange; transfers from a client are publishes."""
        if self.direction != "received" or self.method is None:
            return None
        if self.name == TRANSFER:
            return str(self.method.destination)
        return str(self.method.exchange) if self.name in _PUBLISHES else None

    @property
    def _consumer(self) -> str | None:
        """In class message the consumer tag is called `destination`."""
        destination = getattr(self.method, "destination", None)
        return super()._consumer if destination is None else destination

    def _held_messages(self) -> tuple[tuple[str, Any], ...]:
        """A response settles transfers that the broker has sent as requests."""
        if self.direction == "received" and isinstance(self._held, Response):
            return self.port.held_messages(self.channel, self._held)
        return super()._held_messages()

    def _destinations(self) -> tuple[str, ...]:
        address = _Address(self._published_to or "", self.method.routing_key)
        return self.port.destinations(self.channel, address, self.properties or BasicProperties())

    # --- other shapes ---------------------------------------------------------------------------------

    def replace(
        self,
        *,
        fields: dict[str, Any] | None = None,
        properties: dict[str, Any] | None = None,
        body: bytes | None = None,
        channel: int | None = None,
    ) -> Self:
        if not self.is_transfer:
            return super().replace(fields=fields, properties=properties, body=body, channel=channel)
        payload = self._changed_transfer(
            {name: value for name, value in (fields or {}).items() if name not in IN_PROPERTIES},
            properties or {},
            body,
        )
        frames = [self.frames[0] if payload == self.payload else self.first_frame(payload)]
        return self._with_frames(frames, channel)

    def _changed_transfer(
        self, fields: Mapping[str, Any], changes: Mapping[str, Any], body: bytes | None
    ) -> bytes:
        """The encoded method with other values. Headers without a change keep their bytes."""
        from fakeamqp.protocols.amqp_0_9.property_mapping import FIELDS, encode_transfer, to_transfer

        known = self.properties
        made = self.changed_properties(changes)
        method = changed_record(self.method, self.method.LAYOUT, fields) or self.method
        if made is known and method is self.method and body is None:
            return self.payload
        crossed, table = to_transfer(made)
        crossing = {place.field for place in FIELDS if place.field and place.field not in fields}
        wanted: dict[str, Any] = {
            name: getattr(method, name)
            for name, _ in method.LAYOUT
            if name not in crossing and name not in ("application_headers", "body")
        }
        wanted.update((name, value) for name, value in crossed.items() if name in crossing)
        content = method.body if body is None else Body(body)
        return encode_transfer(type(method)(**wanted), table, content)

    def first_frame(self, payload: bytes) -> tuple[int, bytes]:
        return super().first_frame(payload) if self._held is None else encode_numbers(self._held, payload)

    def _inner_frames(self) -> list[tuple[int, bytes]]:
        self._gather()
        return self.frames[2 : self._body_at]

    def duplicate(self) -> Self:
        """The duplicate of a sent request has its own number; the duplicate of a received one does not."""
        if self.direction == "sent" and isinstance(self._held, Request):
            first = encode_numbers(self.port.spare_number(self.channel), self.payload)
            group = self._with_frames([first, *self.frames[1:]])
        else:
            group = super().duplicate()
        group.is_duplicate = True
        return group

    # --- what becomes of it ---------------------------------------------------------------------------

    def drop(self, state: ConnectionFaultState) -> None:
        """Requests and responses keep their numbers."""
        if self.direction == "received" and self._held is not None and not self.is_duplicate:
            self.port.drop(self.channel, self._held)
        super().drop(state)

    @property
    def tag(self) -> int | None:
        """The tag of the next publish on its channel; None without confirms, and for a request."""
        return None if self._held is not None else super().tag

    def nack(self, state: ConnectionFaultState) -> Self | None:
        """Answer a transfer with message.reject; a basic.publish in a request is dropped."""
        if self.is_transfer and isinstance(self._held, Request):
            if not self.is_duplicate:
                self.port.nack(self.channel, self._held)
            return None
        answer = super().nack(state)
        if self._held is not None or self.name not in _CONFIRMED:
            self.drop(state)
        return answer

    def return_message(self, state: ConnectionFaultState, code: int, text: str) -> None:
        """Send basic.return with the content, and answer a request."""
        super().return_message(state, code, text)
        if isinstance(self._held, Request) and not self.is_duplicate:
            self.port.returned(self.channel, self._held)
