"""The dialects of 0-9, with the methods and confirms that RabbitMQ adds, and of 0-8.

A method may be inside a request or a response, a message inside a method. The content of out-of-band frames
and trace frames is not decoded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from fakeamqp.protocols.amqp_0_9.codec import version_0_8
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9.codec.constants import (
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    FRAME_NAMES,
    FRAME_REQUEST,
    FRAME_RESPONSE,
    FRAME_TRACE,
    FRAME_TYPES,
    FRAME_TYPES_0_8,
    OUT_OF_BAND,
    PROTOCOL_HEADER,
    REPLY_NAMES,
)
from fakeamqp.protocols.amqp_0_9.codec.contents import PROPERTIES
from fakeamqp.protocols.amqp_0_9.codec.methods import (
    RABBITMQ_METHODS,
    BasicRecover,
    ChannelPing,
    ChannelPong,
    MessageReject,
    MessageTransfer,
)
from fakeamqp.protocols.amqp_0_9.codec.requests import (
    Request,
    Response,
    decode_numbers,
    decode_request,
    decode_response,
    encode_numbers,
)
from fakeamqp.protocols.amqp_0_9.dialect.dialogue import Dialogue09
from fakeamqp.protocols.amqp_0_9.dialect.groups import IN_PROPERTIES, TRANSFER, MethodGroup09
from fakeamqp.protocols.amqp_0_9_1.codec.frames import CONTENT_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.tables import RABBITMQ
from fakeamqp.protocols.amqp_0_9_1.dialect import PARTS, Dialect091, method_info
from fakeamqp.protocols.amqp_0_9_1.dialect.groups import CONFIRMS, PUBLISH
from fakeamqp.trace.json_form import bytes_or_text
from fakeamqp.trace.truncation import Truncated, full_size, short

if TYPE_CHECKING:
    from fakeamqp.dialects import Part
    from fakeamqp.faults.port import FaultPort
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
    from fakeamqp.protocols.amqp_0_9_1.codec.properties import Properties
    from fakeamqp.protocols.amqp_0_9_1.codec.record import Record
    from fakeamqp.protocols.amqp_0_9_1.codec.tables import Grammar
    from fakeamqp.protocols.amqp_0_9_1.dialect.groups import MethodGroup091

__all__ = ["DIALECT", "DIALECT_0_8", "Dialect09"]

_MESSAGE = 120
_FIRST_RESPONSE = 500
"""Methods of class message with this id and above are responses."""
_NUMBERS = 16
"""The bytes of a request before its reserved bytes or its method."""


class Dialect09(Dialect091):
    """0-9 or 0-8. Requests and responses hold methods and count as methods."""

    contents: ClassVar[Mapping[int, type[Properties]]] = PROPERTIES
    grammars: ClassVar[tuple[Grammar, ...]] = (RABBITMQ,)
    secret_fields: ClassVar[frozenset[str]] = frozenset(("response", "challenge", "security_token"))
    fields_with_urls: ClassVar[frozenset[str]] = frozenset(("client_properties", "out_of_band"))
    reply_names: Mapping[int, str] = REPLY_NAMES
    publishes: frozenset[str] = frozenset((PUBLISH, TRANSFER))
    wrapper_prefix: bytes | None = bytes(4)
    group_class: ClassVar[type[MethodGroup091]] = MethodGroup09

    def __init__(
        self,
        name: str,
        protocol_header: bytes,
        methods: Mapping[int, type[Method]],
        frame_types: frozenset[int],
        confirms: frozenset[str] = frozenset(),
    ) -> None:
        self._requests = frame_types & {FRAME_REQUEST, FRAME_RESPONSE}
        parts: dict[int, Part] = {kind: PARTS.get(kind, "") for kind in sorted(frame_types)}
        parts.update(dict.fromkeys(self._requests, "method"))
        super().__init__(name, protocol_header, methods, parts, confirms)
        if TRANSFER in self.kinds:
            self.kinds[TRANSFER] = method_info(MessageTransfer, hidden=IN_PROPERTIES, has_content=True)
        if confirms:
            # 0-9 and 0-9-1 call different methods basic.recover: 60.100 without and 60.110 with an answer.
            both = self.kinds[BasicRecover.NAME].prefixes | method_info(BasicRecover).prefixes
            self.kinds[BasicRecover.NAME] = method_info(BasicRecover)._replace(prefixes=both)

    def envelope(self, kind: int, payload: bytes) -> Request | Response | None:
        """The content of a request or a response; None if it is too short, and for all other frames."""
        envelope = decode_numbers(kind, payload) if kind in self._requests else None
        if envelope is None or not isinstance(payload, Truncated):
            return envelope
        method = envelope.method
        size = full_size(payload) - (len(payload) - len(method))
        return envelope._replace(method=Truncated.of(method, size))

    def _opened(self, kind: int, payload: bytes) -> tuple[int, bytes]:
        """A frame, or the method frame for what is in a request or a response."""
        envelope = self.envelope(kind, payload)
        return (kind, payload) if envelope is None else (FRAME_METHOD, envelope.method)

    # --- faults -----------------------------------------------------------------------------------------

    def encode(
        self, what: Any, port: FaultPort, channel: int, body: bytes | None, properties: Mapping[str, Any]
    ) -> bytes:
        """Requests of class message are sent inside a request frame."""
        asks = what.CLASS_ID == _MESSAGE and what.METHOD_ID < _FIRST_RESPONSE
        if not asks and not isinstance(what, (ChannelPing, ChannelPong)):
            return super().encode(what, port, channel, body, properties)
        request = encode_numbers(port.spare_number(channel), what.encode())
        group = self.group(port, "sent", channel, [request])
        return group.replace(properties=dict(properties), body=body).data

    def has_watched_method(self, octets: bytes, prefixes: frozenset[bytes]) -> bool:
        """Methods may be inside requests and responses."""
        for kind, _, payload, _ in self.cut(octets):
            if kind == FRAME_METHOD:
                ids = payload[:4]
            elif kind == FRAME_REQUEST:
                start = _NUMBERS + 4 * (payload[_NUMBERS : _NUMBERS + 2] == b"\0\0")
                ids = payload[start : start + 4]
            elif kind == FRAME_RESPONSE:
                ids = payload[_NUMBERS + 4 : _NUMBERS + 8]
            elif kind == FRAME_HEARTBEAT:
                return True
            else:
                continue
            if ids in prefixes:
                return True
        return False

    # --- text -------------------------------------------------------------------------------------------

    def frame_name(self, kind: int, payload: bytes) -> str:
        """A request and a response have the name of the method in them."""
        if kind in self._requests:
            envelope = self.envelope(kind, payload)
            if envelope is None:
                return f"malformed {FRAME_NAMES[kind]}"
            return self.method_name(envelope.method)
        if kind == FRAME_TRACE or kind in OUT_OF_BAND:
            return FRAME_NAMES[kind].replace("oob-", "out-of-band ")
        return super().frame_name(kind, payload)

    def describe(self, kind: int, payload: bytes) -> str:
        envelope = self.envelope(kind, payload)
        if envelope is None:
            return super().describe(kind, payload)
        name = self.method_name(envelope.method)
        text = super().describe(FRAME_METHOD, envelope.method).removeprefix(name)
        return f"{name} ({_numbers(envelope)}){text}"

    def words(self, kind: int, payload: bytes) -> list[str] | None:
        if kind == FRAME_TRACE:
            return [short(payload)]
        if kind in OUT_OF_BAND:
            return [short(payload)] if payload else []
        return super().words(kind, payload)

    def check(self, kind: int, payload: bytes) -> None:
        if kind == FRAME_REQUEST in self._requests:
            decode_request(payload)
        elif kind == FRAME_RESPONSE in self._requests:
            decode_response(payload)
        super().check(kind, payload)

    def worth_showing(self, record: Record, name: str, value: Any) -> bool:
        """A transfer always has all of its fields; empty ones are left out."""
        if isinstance(record, MessageTransfer) and name != "destination":
            return bool(value.octets if isinstance(value, Body) else value)
        return super().worth_showing(record, name, value)

    def field_words(self, name: str, value: Any) -> str:
        if isinstance(value, Body):
            return f"{'reference' if value.by_reference else name}={short(value.octets)}"
        return super().field_words(name, value)

    # --- reading ----------------------------------------------------------------------------------------

    def method(self, kind: int, payload: bytes) -> Any:
        """A `Method`, also one in a request or a response."""
        return super().method(*self._opened(kind, payload))

    def begins_content(self, kind: int, payload: bytes) -> bool:
        """True for a few methods, also as the response to a request."""
        return super().begins_content(*self._opened(kind, payload))

    def contents_within(self, kind: int, payload: bytes) -> int:
        """The weight of the header."""
        if kind != FRAME_HEADER or len(payload) < CONTENT_HEADER.size:
            return 0
        weight: int = CONTENT_HEADER.unpack_from(payload)[1]
        return weight

    def body_within(self, method: Any) -> bytes | None:
        """A transfer may have its body in itself."""
        body = getattr(method, "body", None)
        return body.octets if isinstance(body, Body) and not body.by_reference else None

    def values(self, record: Any) -> Iterator[tuple[str, Any]]:
        """A body that is a reference is called one."""
        for name, value in super().values(record):
            if isinstance(value, Body):
                yield ("reference" if value.by_reference else name), value.octets
            else:
                yield name, value

    def columns(self, method: Any, direction: str) -> dict[str, Any]:
        """The destination of a received transfer is an exchange, any other destination is a consumer."""
        found = super().columns(method, direction)
        destination = getattr(method, "destination", None)
        if isinstance(method, MessageTransfer):
            found["message_id"] = method.message_id or None
            if not method.body.by_reference:
                found["body_size"] = len(method.body.octets)
            if direction == "received":
                return {**found, "exchange": destination}
        elif isinstance(method, MessageReject):
            found["reply_code"] = method.code
        return found if destination is None else {**found, "consumer_tag": destination}

    def to_json(self, kind: int, payload: bytes) -> dict[str, Any]:
        """With the numbers of a request or a response, or the weight of a header."""
        envelope = self.envelope(kind, payload)
        if envelope is not None:
            return {**self.method_to_json(self.method(kind, payload)), **_numbers_to_json(envelope)}
        if kind == FRAME_TRACE:
            return {"readable": not isinstance(payload, Truncated), "octets": bytes_or_text(payload)}
        if kind == FRAME_HEADER:
            return {**super().to_json(kind, payload), "weight": self.contents_within(kind, payload)}
        if self.part(kind, payload) == "method" and kind != FRAME_METHOD:
            return self.method_to_json(None)
        return super().to_json(kind, payload)

    def redacted(self, kind: int, payload: bytes, channel: int) -> bytes:
        """A request or a response holds a method."""
        envelope = self.envelope(kind, payload)
        if envelope is None:
            return super().redacted(kind, payload, channel)
        hidden = super().redacted(FRAME_METHOD, envelope.method, channel)
        if hidden is envelope.method:
            return payload
        whole = payload[: len(payload) - len(hidden)] + hidden
        return Truncated.of(whole, payload.size) if isinstance(payload, Truncated) else whole

    def is_dissected(self, kind: int) -> bool:
        """True for the frames of 0-9-1.

        Wireshark 4.0 calls others unknown, such as requests and responses.
        """
        return kind in PARTS

    def filled(self, kind: int, payload: Truncated) -> tuple[bytes, str]:
        envelope = self.envelope(kind, payload)
        if envelope is None or not isinstance(envelope.method, Truncated):
            return super().filled(kind, payload)
        method, comment = super().filled(FRAME_METHOD, envelope.method)
        return encode_numbers(envelope, method)[1], comment

    def dialogue(self) -> Dialogue09:
        return Dialogue09(self)


def _numbers(numbers: Request | Response) -> str:
    if isinstance(numbers, Request):
        return f"request {numbers.request_id}, mark {numbers.response_mark}"
    last = numbers.request_id + numbers.batch_offset
    which = f"{numbers.request_id}-{last}" if numbers.batch_offset else f"{last}"
    return f"response {numbers.response_id} to {which}"


def _numbers_to_json(numbers: Request | Response) -> dict[str, Any]:
    if isinstance(numbers, Request):
        return {"request": {"id": numbers.request_id, "response_mark": numbers.response_mark}}
    answered = {"request_id": numbers.request_id, "batch_offset": numbers.batch_offset}
    return {"response": {"id": numbers.response_id, **answered}}


DIALECT = Dialect09("0-9", PROTOCOL_HEADER, RABBITMQ_METHODS, FRAME_TYPES, CONFIRMS)
DIALECT_0_8 = Dialect09("0-8", version_0_8.PROTOCOL_HEADERS[0], version_0_8.METHODS, FRAME_TYPES_0_8)
