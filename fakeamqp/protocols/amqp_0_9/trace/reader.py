"""Reads frames of 0-9; see `fakeamqp.trace.reading.Reader`, which says what each of its methods is for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9.codec.constants import FRAME_HEADER, FRAME_METHOD, FRAME_TRACE
from fakeamqp.protocols.amqp_0_9.codec.methods import MessageReject, MessageTransfer
from fakeamqp.protocols.amqp_0_9.codec.requests import Request, encode_request, encode_response
from fakeamqp.protocols.framed.codec.frames import CONTENT_HEADER
from fakeamqp.protocols.framed.codec.framing import PARTS
from fakeamqp.protocols.framed.trace.reader import FamilyReader
from fakeamqp.trace.parts import Cut
from fakeamqp.trace.plain import bytes_or_text

if TYPE_CHECKING:
    from fakeamqp.adapters import Framing
    from fakeamqp.protocols.amqp_0_9.trace.frames import Held, Words09

__all__ = ["Reader09"]


class Reader09(FamilyReader):
    """The reader of 0-9, and of 0-8."""

    words: Words09

    def __init__(self, words: Words09, framing: Framing) -> None:
        super().__init__(words, framing)

    def method(self, kind: int, payload: bytes) -> Any:
        """A `Method`, also the one in a request or a response."""
        held = self.words.held(kind, payload)
        return super().method(kind, payload) if held is None else self.words.decode_method(held.method)

    def begins_content(self, kind: int, payload: bytes) -> bool:
        """A few methods bring one, also as the response to a request."""
        held = self.words.held(kind, payload)
        if held is None:
            return super().begins_content(kind, payload)
        return super().begins_content(FRAME_METHOD, held.method)

    def contents_within(self, kind: int, payload: bytes) -> int:
        """A header has a weight."""
        if kind != FRAME_HEADER or len(payload) < CONTENT_HEADER.size:
            return 0
        weight: int = CONTENT_HEADER.unpack_from(payload)[1]
        return weight

    def body_within(self, method: Any) -> bytes | None:
        """A transfer may have one."""
        body = getattr(method, "body", None)
        return body.octets if isinstance(body, Body) and not body.by_reference else None

    def values(self, record: Any) -> Iterator[tuple[str, Any]]:
        """See the base class. A body that is a reference is called one."""
        for name, value in super().values(record):
            if isinstance(value, Body):
                yield ("reference" if value.by_reference else name), value.octets
            else:
                yield name, value

    def columns(self, method: Any, direction: str) -> dict[str, Any]:
        """A destination is an exchange of what is published, and a consumer of all else."""
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

    def plain(self, kind: int, payload: bytes) -> dict[str, Any]:
        """See the base class; with the numbers of a request or a response, or the weight of a header."""
        held = self.words.held(kind, payload)
        if held is not None:
            return {**self.plain_method(self.method(kind, payload)), **_plain_numbers(held)}
        if kind == FRAME_TRACE:
            return {"readable": not isinstance(payload, Cut), "octets": bytes_or_text(payload)}
        if kind == FRAME_HEADER:
            return {**super().plain(kind, payload), "weight": self.contents_within(kind, payload)}
        if self.part(kind, payload) == "method" and kind != FRAME_METHOD:
            return self.plain_method(None)
        return super().plain(kind, payload)

    def redacted(self, kind: int, payload: bytes, channel: int) -> bytes:
        """See the base class; what a request or a response holds is a method."""
        held = self.words.held(kind, payload)
        if held is None:
            return super().redacted(kind, payload, channel)
        hidden = super().redacted(FRAME_METHOD, held.method, channel)
        if hidden is held.method:
            return payload
        whole = payload[: len(payload) - len(hidden)] + hidden
        return Cut.of(whole, payload.size) if isinstance(payload, Cut) else whole

    def is_dissected(self, kind: int) -> bool:
        """What 0-9-1 has not, requests and responses above all, it calls unknown (4.0)."""
        return kind in PARTS

    def filled(self, kind: int, payload: Cut) -> tuple[bytes, str]:
        """See the base class."""
        held = self.words.held(kind, payload)
        if held is None or not isinstance(held.method, Cut):
            return super().filled(kind, payload)
        method, remark = super().filled(FRAME_METHOD, held.method)
        numbers = held.numbers
        if isinstance(numbers, Request):
            return encode_request(numbers._replace(method=method)), remark
        return encode_response(numbers._replace(method=method)), remark


def _plain_numbers(held: Held) -> dict[str, Any]:
    numbers = held.numbers
    if isinstance(numbers, Request):
        return {"request": {"id": numbers.request_id, "response_mark": numbers.response_mark}}
    answered = {"request_id": numbers.request_id, "batch_offset": numbers.batch_offset}
    return {"response": {"id": numbers.response_id, **answered}}
