"""The reader of 0-9 frames; see `fakeamqp.trace.frame_readers.FrameReader` for its methods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9.codec.constants import FRAME_HEADER, FRAME_METHOD, FRAME_TRACE
from fakeamqp.protocols.amqp_0_9.codec.methods import MessageReject, MessageTransfer
from fakeamqp.protocols.amqp_0_9.codec.requests import Request, encode_request, encode_response
from fakeamqp.protocols.amqp_0_9.trace.dialogue import Dialogue09
from fakeamqp.protocols.amqp_0_9_1.codec.frames import CONTENT_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.framing import PARTS
from fakeamqp.protocols.amqp_0_9_1.trace.reader import Reader091
from fakeamqp.trace.json_form import bytes_or_text
from fakeamqp.trace.truncation import Truncated

if TYPE_CHECKING:
    from fakeamqp.adapters import Framing
    from fakeamqp.protocols.amqp_0_9.trace.frames import Envelope, FrameText09

__all__ = ["Reader09"]


class Reader09(Reader091):
    """The reader of 0-9, and of 0-8."""

    words: FrameText09

    def __init__(self, words: FrameText09, framing: Framing) -> None:
        super().__init__(words, framing)

    def dialogue(self) -> Dialogue09:
        return Dialogue09(self.answers, self.words)

    def method(self, kind: int, payload: bytes) -> Any:
        """A `Method`, also one in a request or a response."""
        envelope = self.words.envelope(kind, payload)
        if envelope is None:
            return super().method(kind, payload)
        return self.words.decode_method(envelope.method)

    def begins_content(self, kind: int, payload: bytes) -> bool:
        """True for a few methods, also as the response to a request."""
        envelope = self.words.envelope(kind, payload)
        if envelope is None:
            return super().begins_content(kind, payload)
        return super().begins_content(FRAME_METHOD, envelope.method)

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
        envelope = self.words.envelope(kind, payload)
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
        envelope = self.words.envelope(kind, payload)
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
        envelope = self.words.envelope(kind, payload)
        if envelope is None or not isinstance(envelope.method, Truncated):
            return super().filled(kind, payload)
        method, comment = super().filled(FRAME_METHOD, envelope.method)
        numbers = envelope.numbers
        if isinstance(numbers, Request):
            return encode_request(numbers._replace(method=method)), comment
        return encode_response(numbers._replace(method=method)), comment


def _numbers_to_json(envelope: Envelope) -> dict[str, Any]:
    numbers = envelope.numbers
    if isinstance(numbers, Request):
        return {"request": {"id": numbers.request_id, "response_mark": numbers.response_mark}}
    answered = {"request_id": numbers.request_id, "batch_offset": numbers.batch_offset}
    return {"response": {"id": numbers.response_id, **answered}}
