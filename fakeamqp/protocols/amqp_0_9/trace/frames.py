"""The text of the frames that only 0-9 has: requests, responses, trace and out-of-band frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9.codec.constants import (
    FRAME_METHOD,
    FRAME_REQUEST,
    FRAME_RESPONSE,
    FRAME_TRACE,
)
from fakeamqp.protocols.amqp_0_9.codec.contents import PROPERTIES
from fakeamqp.protocols.amqp_0_9.codec.frames import FRAME_NAMES, OUT_OF_BAND
from fakeamqp.protocols.amqp_0_9.codec.methods import MessageTransfer
from fakeamqp.protocols.amqp_0_9.codec.requests import Request, Response, decode_request, decode_response
from fakeamqp.protocols.amqp_0_9_1.codec.tables import RABBITMQ
from fakeamqp.protocols.amqp_0_9_1.trace.frames import FrameText091
from fakeamqp.protocols.amqp_0_9_1.trace.vocabulary import TraceVocabulary
from fakeamqp.protocols.base.codec.errors import WireError
from fakeamqp.trace.rendering import short
from fakeamqp.trace.truncation import Truncated, full_size

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method, Record

__all__ = ["Envelope", "FrameText09", "vocabulary"]


def vocabulary(methods: Mapping[int, type[Method]]) -> TraceVocabulary:
    """The vocabulary of 0-9, or of 0-8 with its methods."""
    return TraceVocabulary(
        methods=methods,
        properties=PROPERTIES,
        grammars=(RABBITMQ,),
        secret_fields=frozenset(("response", "challenge", "security_token")),
        fields_with_urls=frozenset(("client_properties", "out_of_band")),
    )


class Envelope(NamedTuple):
    """The numbers of a request or a response, and the method in it."""

    numbers: Request | Response
    method: bytes

    def __str__(self) -> str:
        numbers = self.numbers
        if isinstance(numbers, Request):
            return f"(request {numbers.request_id}, mark {numbers.response_mark})"
        last = numbers.request_id + numbers.batch_offset
        which = f"{numbers.request_id}-{last}" if numbers.batch_offset else f"{last}"
        return f"(response {numbers.response_id} to {which})"


class FrameText09(FrameText091):
    """See the base class.

    Args:
        vocabulary: of 0-9 or 0-8.
        requests: True if the protocol has requests and responses.
    """

    def __init__(self, vocabulary: TraceVocabulary, *, requests: bool = True) -> None:
        super().__init__(vocabulary)
        self._requests = (FRAME_REQUEST, FRAME_RESPONSE) if requests else ()

    def envelope(self, frame_type: int, payload: bytes) -> Envelope | None:
        """The content of a request or a response; None if it is too short, and for all other frames."""
        if frame_type not in self._requests:
            return None
        try:
            numbers = decode_request(payload) if frame_type == FRAME_REQUEST else decode_response(payload)
        except WireError:
            return None
        method = numbers.method
        if isinstance(payload, Truncated):
            method = Truncated.of(method, full_size(payload) - (len(payload) - len(method)))
        return Envelope(numbers, method)

    def frame_name(self, frame_type: int, payload: bytes) -> str:
        """A request and a response have the name of the method in them."""
        if frame_type in self._requests:
            envelope = self.envelope(frame_type, payload)
            if envelope is None:
                return f"malformed {FRAME_NAMES[frame_type]}"
            return self.method_name(envelope.method)
        if frame_type == FRAME_TRACE or frame_type in OUT_OF_BAND:
            return FRAME_NAMES[frame_type].replace("oob-", "out-of-band ")
        return super().frame_name(frame_type, payload)

    def describe(self, frame_type: int, payload: bytes) -> str:
        envelope = self.envelope(frame_type, payload)
        if envelope is None:
            return super().describe(frame_type, payload)
        name = self.method_name(envelope.method)
        return f"{name} {envelope}{super().describe(FRAME_METHOD, envelope.method).removeprefix(name)}"

    def words(self, frame_type: int, payload: bytes) -> list[str] | None:
        if frame_type == FRAME_TRACE:
            return [short(payload)]
        if frame_type in OUT_OF_BAND:
            return [short(payload)] if payload else []
        return super().words(frame_type, payload)

    def check(self, frame_type: int, payload: bytes) -> None:
        if frame_type == FRAME_REQUEST in self._requests:
            decode_request(payload)
        elif frame_type == FRAME_RESPONSE in self._requests:
            decode_response(payload)
        super().check(frame_type, payload)

    def worth_showing(self, record: Record, name: str, value: Any) -> bool:
        """A transfer always has all of its fields; empty ones are left out."""
        if isinstance(record, MessageTransfer) and name != "destination":
            return bool(value.octets if isinstance(value, Body) else value)
        return super().worth_showing(record, name, value)

    def field_words(self, name: str, value: Any) -> str:
        if isinstance(value, Body):
            return f"{'reference' if value.by_reference else name}={short(value.octets)}"
        return super().field_words(name, value)
