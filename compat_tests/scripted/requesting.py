"""A client's side of the requests and responses of one channel."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from typing_extensions import Self

from compat_tests.scripted.amqp_0_9 import Client
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9.codec.constants import FRAME_REQUEST, FRAME_RESPONSE
from fakeamqp.protocols.amqp_0_9.codec.requests import (
    Request,
    Response,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from fakeamqp.protocols.amqp_0_9_1.codec.frames import frame
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

__all__ = ["Asked", "Requester", "Told"]

M = TypeVar("M", bound=Method)


class Told(NamedTuple):
    """A response that has come."""

    number: int
    first: int
    offset: int
    method: Any


class Asked(NamedTuple):
    """A request that has come."""

    number: int
    mark: int
    method: Any


class Requester:
    """Sends requests and responses on a channel, and reads those of the broker.

    `mark` is what requests say of the responses that were processed.
    """

    def __init__(self, client: Client, channel: int = 1, *, reserved: bool = True) -> None:
        self.client = client
        self.channel = channel
        self.reserved = reserved
        self.asked = 0
        self.answered = 0
        self.mark = 0

    @property
    def server(self) -> Any:
        return self.client.server

    # --- out ---------------------------------------------------------------------------------------

    def request_bytes(self, method: Method, number: int | None = None) -> bytes:
        """The frame of the next request, or of one with another number."""
        if number is None:
            self.asked += 1
            number = self.asked
        octets = self.client.with_ticket(method.encode(), self.channel)
        request = Request(number, self.mark, octets, self.reserved)
        return frame(FRAME_REQUEST, self.channel, encode_request(request))

    def ask(self, *methods: Method) -> int:
        """Send requests all at once; the number of the last."""
        self.client.send_bytes(b"".join(map(self.request_bytes, methods)))
        return self.asked

    def repeat(self, method: Method, number: int) -> None:
        """Send a request with a number of one's own choice."""
        self.client.send_bytes(self.request_bytes(method, number))

    def call(self, method: Method, reply: type[M]) -> M:
        """Send a request and take the response to it, which must be this."""
        number = self.ask(method)
        told = self.response(reply)
        assert (told.first, told.offset) == (number, 0), f"expected a response to {number}, got {told}"
        method = told.method
        assert isinstance(method, reply)
        return method

    def answer(
        self, first: int, method: Method | None = None, *, offset: int = 0, number: int | None = None
    ) -> Self:
        """Send a response: ok, unless another one is given."""
        if number is None:
            self.answered += 1
            number = self.answered
        response = Response(number, first, offset, (method or m.MessageOk()).encode())
        self.client.send_bytes(frame(FRAME_RESPONSE, self.channel, encode_response(response)))
        return self

    def after(self, seconds: float) -> Self:
        """Move the broker's time."""
        self.client.after(seconds)
        return self

    # --- in ----------------------------------------------------------------------------------------

    def response(self, reply: type[Method] | None = None) -> Told:
        """The next frame, which must be a response, and with this method."""
        got = self.client.take_frame()
        assert (got.type, got.channel) == (FRAME_RESPONSE, self.channel), f"expected a response, got {got}"
        response = decode_response(got.payload)
        told = Told(*response[:3], self._decode(response.method))
        assert reply is None or isinstance(told.method, reply), f"expected {reply}, got {told}"
        return told

    def request(self, method: type[Method] | None = None) -> Asked:
        """The next frame, which must be a request, and with this method."""
        got = self.client.take_frame()
        assert (got.type, got.channel) == (FRAME_REQUEST, self.channel), f"expected a request, got {got}"
        request = decode_request(got.payload)
        assert request.reserved is self.reserved, "the broker writes the form that its peer writes"
        asked = Asked(request.request_id, request.response_mark, self._decode(request.method))
        assert method is None or isinstance(asked.method, method), f"expected {method}, got {asked}"
        return asked

    def transfer(self) -> Asked:
        """The next frame, which must be a request with an inline transfer."""
        asked = self.request(m.MessageTransfer)
        assert not asked.method.body.by_reference
        return asked

    def bodies(self) -> list[bytes]:
        """The bodies of all transfers that have come; nothing else may have."""
        found = []
        while self.client.inbox:
            found.append(self.transfer().method.body.octets)
        return found

    def _decode(self, octets: bytes) -> Method:
        index = int.from_bytes(octets[:4], "big")
        method = (m.METHODS.get(index) or self.client.methods[index]).decode(octets, self.client.grammar)
        assert isinstance(method, Method)
        return method

    # --- shortcuts ---------------------------------------------------------------------------------

    def consume(self, queue: str, destination: str = "d", **arguments: Any) -> Self:
        """Have the messages of a queue sent to a destination."""
        self.call(m.MessageConsume(queue=queue, destination=destination, **arguments), m.MessageOk)
        return self

    def publish(self, routing_key: str, *bodies: bytes, destination: str = "", **fields: Any) -> Self:
        """Transfer each body, and see that the broker has it."""
        for body in bodies:
            transfer = m.MessageTransfer(
                destination=destination, routing_key=routing_key, body=Body(body), **fields
            )
            self.call(transfer, m.MessageOk)
        return self

    def get(self, queue: str, **arguments: Any) -> Asked | None:
        """One message of a queue, or None."""
        self.ask(m.MessageGet(queue=queue, destination="g", **arguments))
        told = self.response()
        if isinstance(told.method, m.MessageEmpty):
            return None
        assert isinstance(told.method, m.MessageOk)
        return self.transfer()
