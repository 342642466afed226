"""Units of 0-9: methods, also those in requests and responses, with contents that may have others in them.

The message of a message.transfer is in the method. To rules it has a body and properties like any other,
those of class basic; what else the method says are its fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from typing_extensions import Self

from fakeamqp.faults.units import ABSENT
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9.codec.constants import (
    FRAME_BODY,
    FRAME_HEADER,
    FRAME_METHOD,
    FRAME_REQUEST,
    FRAME_RESPONSE,
)
from fakeamqp.protocols.amqp_0_9.codec.contents import PROPERTIES, ContentAssembler
from fakeamqp.protocols.amqp_0_9.codec.methods import METHODS, BasicReturn, MessageOk, MessageReject
from fakeamqp.protocols.amqp_0_9.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_9.codec.requests import (
    Request,
    Response,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from fakeamqp.protocols.codec.errors import WireError
from fakeamqp.protocols.framed.codec.tables import RABBITMQ
from fakeamqp.protocols.framed.faults.units import FamilyUnit, changed_method

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakeamqp.faults.flight import Flight
    from fakeamqp.faults.line import Direction
    from fakeamqp.faults.wires import Wire
    from fakeamqp.protocols.framed.codec.method import Method
    from fakeamqp.protocols.framed.codec.properties import Properties

__all__ = ["IN_PROPERTIES", "TRANSFER", "MethodUnit09"]

TRANSFER = "message.transfer"
IN_PROPERTIES = frozenset(name for name, _ in BasicProperties.LAYOUT) | {"application_headers", "body"}
"""Fields of a transfer that rules find in its properties, where they are as in the other protocols."""
_GENERIC = 0
_REFUSED = "refused by a fault"
_OF_FILES = frozenset(("file.ack", "file.reject"))
_PUBLISHES = frozenset(("basic.publish", "file.publish", "stream.publish"))


class _Address(NamedTuple):
    """Where a message is published to."""

    exchange: str
    routing_key: str


class MethodUnit09(FamilyUnit):
    """See `Unit`, which says what each of these is."""

    __slots__ = ("_assembler", "_body_at", "_broken", "_held", "_seen", "_whole")

    line: Any

    METHODS = METHODS
    PROPERTIES: ClassVar[Mapping[int, type[Properties]]] = PROPERTIES
    GRAMMARS = (RABBITMQ,)

    def __init__(
        self, line: Any, direction: Direction, channel: int, frames: list[tuple[int, bytes]]
    ) -> None:
        self._held = _numbers(*frames[0])
        self._assembler = ContentAssembler()
        self._seen = 1
        self._body_at: int | None = None
        self._whole = False
        self._broken = False
        super().__init__(line, direction, channel, frames)

    # --- what it is -----------------------------------------------------------------------------------

    @property
    def held(self) -> Request | Response | None:
        """The numbers of the request or response that the method is in; None where it is in neither."""
        return self._held

    @property
    def payload(self) -> bytes:
        """The method, encoded."""
        return self.frames[0][1] if self._held is None else self._held.method

    @property
    def brings_method(self) -> bool:
        """Requests and responses do as well, where they are long enough."""
        return self._held is not None or self.frames[0][0] == FRAME_METHOD

    @property
    def is_transfer(self) -> bool:
        """Whether its message is in the method."""
        return self.name == TRANSFER and self.method is not None

    @property
    def inline(self) -> bool:
        """See `Unit`."""
        return self.is_transfer

    @property
    def brings_message(self) -> bool:
        """A transfer does."""
        return self.has_content or self.is_transfer

    def _gather(self) -> None:
        """Look at the frames that have come since."""
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
        """Headers say how many contents there are, and how long the bodies."""
        self._gather()
        return not self.has_content or self._whole or self._broken

    def takes(self, kind: int) -> bool:
        """A header where a content begins, else body frames."""
        self._gather()
        return kind == (FRAME_HEADER if self._assembler.wants_header else FRAME_BODY)

    @property
    def headed(self) -> bool:
        """The header of the content itself, and none of one in it."""
        return len(self.frames) == 2 and self.frames[-1][0] == FRAME_HEADER

    @property
    def body(self) -> bytes:
        """The body of the content itself, and none of one in it; of a transfer that has it by name, none."""
        if self.is_transfer:
            body = self.method.body
            return b"" if body.by_reference else bytes(body.octets)
        self._gather()
        start = len(self.frames) if self._body_at is None else self._body_at
        return b"".join(payload for _, payload in self.frames[start:])

    @property
    def properties(self) -> Any:
        """Those of its class; of a transfer those of class basic."""
        if not self.is_transfer:
            return super().properties
        if self._content == "unread":
            # Loaded late, because it knows 0-10 as well.
            from fakeamqp.protocols.amqp_0_9.codec.crossing import from_transfer

            self._content = from_transfer(self.method, self.payload, RABBITMQ)
        return self._content

    # --- what rules ask -------------------------------------------------------------------------------

    def field(self, name: str) -> Any:
        """A transfer from a client names the exchange as its destination."""
        if self.is_transfer:
            if name in IN_PROPERTIES:
                return ABSENT
            if name == "exchange" and self.direction == "received":
                name = "destination"
        return super().field(name)

    @property
    def published_to(self) -> str | None:
        """A transfer from a client is a publish."""
        if self.direction != "received" or self.method is None:
            return None
        if self.name == TRANSFER:
            return str(self.method.destination)
        return str(self.method.exchange) if self.name in _PUBLISHES else None

    @property
    def consumer(self) -> str | None:
        """Class message calls it a destination."""
        destination = getattr(self.method, "destination", None)
        return super().consumer if destination is None else destination

    def held_messages(self) -> tuple[tuple[str, Any], ...]:
        """A response settles what the broker has sent by requests."""
        if self.direction == "received" and isinstance(self._held, Response):
            held = self._held
            found: tuple[tuple[str, Any], ...] = self.line.requested_messages(
                self.channel, held.request_id, held.batch_offset
            )
            return found
        if self.direction == "received" and self.name in _OF_FILES and self.method is not None:
            method = self.method
            files: tuple[tuple[str, Any], ...] = self.line.held_files(
                self.channel, method.delivery_tag, getattr(method, "multiple", False)
            )
            return files
        return super().held_messages()

    def destinations(self) -> tuple[str, ...]:
        """See the base class."""
        address = _Address(self.published_to or "", self.method.routing_key)
        found: tuple[str, ...] = self.line.destinations(
            self.channel, address, self.properties or BasicProperties()
        )
        return found

    # --- other shapes ---------------------------------------------------------------------------------

    def changed(
        self,
        *,
        fields: dict[str, Any] | None = None,
        properties: dict[str, Any] | None = None,
        body: bytes | None = None,
        channel: int | None = None,
    ) -> Self:
        """See the base class."""
        if not self.is_transfer:
            return super().changed(fields=fields, properties=properties, body=body, channel=channel)
        payload = self._changed_transfer(
            {name: value for name, value in (fields or {}).items() if name not in IN_PROPERTIES},
            properties or {},
            body,
        )
        number = self.channel if channel is None else channel
        frames = [self.frames[0] if payload == self.payload else self.first_frame(payload)]
        return self._marked(type(self)(self.line, self.direction, number, frames))

    def _changed_transfer(
        self, fields: Mapping[str, Any], changes: Mapping[str, Any], body: bytes | None
    ) -> bytes:
        """The method with other values. Its headers keep their bytes where they are not changed."""
        from fakeamqp.protocols.amqp_0_9.codec.crossing import FIELDS, encode_transfer, to_transfer

        known = self.properties
        names = {name for name, _ in known.LAYOUT}
        values = {
            name: value(getattr(known, name)) if callable(value) else value
            for name, value in changes.items()
            if name in names
        }
        method = changed_method(self.method, fields) or self.method
        if not values and method is self.method and body is None:
            return self.payload
        crossed, table = to_transfer(known.replace(**values) if values else known)
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
        """See the base class."""
        held = self._held
        if isinstance(held, Request):
            return FRAME_REQUEST, encode_request(held._replace(method=payload))
        if isinstance(held, Response):
            return FRAME_RESPONSE, encode_response(held._replace(method=payload))
        return super().first_frame(payload)

    def _inner_frames(self) -> list[tuple[int, bytes]]:
        self._gather()
        return self.frames[2 : self._body_at]

    def again(self) -> Self:
        """What the broker asks once more has a number of its own. A client's has not: it is recognised."""
        if self.direction == "sent" and isinstance(self._held, Request):
            numbers = self.line.next_request(self.channel)
            frames = [
                (FRAME_REQUEST, encode_request(numbers._replace(method=self.payload))),
                *self.frames[1:],
            ]
            unit = self._marked(type(self)(self.line, self.direction, self.channel, frames))
        else:
            unit = super().again()
        unit.copy = True
        return unit

    # --- what becomes of it ---------------------------------------------------------------------------

    def lose(self, wire: Wire) -> None:
        """A request and a response keep their place in the count."""
        if self.direction == "received" and not self.copy:
            if isinstance(self._held, Request):
                self.line.skip_request(self.channel, self._held, None)
            elif isinstance(self._held, Response):
                self.line.skip_response(self.channel, self._held)
        super().lose(wire)

    def nack(self, flight: Flight) -> Self | None:
        """A transfer is answered with message.reject; of class basic there is no word for that."""
        if self.is_transfer and isinstance(self._held, Request):
            if not self.copy:
                self.line.skip_request(self.channel, self._held, MessageReject(_GENERIC, _REFUSED))
            return None
        answer = super().nack(flight)
        self.lose(flight.wire)
        return answer

    def give_back(self, flight: Flight, code: int, text: str) -> None:
        """basic.return with the content; and the answer to a request."""
        super().give_back(flight, code, text)
        if isinstance(self._held, Request) and not self.copy:
            self.line.skip_request(self.channel, self._held, MessageOk())

    def _returned(self, code: int, text: str) -> Method:
        return BasicReturn(code, text, self.method.exchange, self.method.routing_key)


def _numbers(kind: int, payload: bytes) -> Request | Response | None:
    """What is in a request or a response; None where it is too short, and for all other frames."""
    try:
        if kind == FRAME_REQUEST:
            return decode_request(payload)
        if kind == FRAME_RESPONSE:
            return decode_response(payload)
    except WireError:
        pass
    return None
