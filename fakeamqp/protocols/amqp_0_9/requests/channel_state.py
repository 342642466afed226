"""The request/response layer of one channel: request frames carry methods, response frames their answers.

A request carries any method that a method frame can carry (request/no-method-semantics-change). Its handler
answers in the same way, with `Amqp09Channel.send`, which passes the answer to the current request to this
layer. Requests are processed one at a time, in order. Most are answered at once; a handler that cannot do
that calls `defer`. The broker also sends requests, mainly for messages: the response to such a request is the
acknowledgement (message.transfer/ack-by-response).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.codec.constants import FRAME_REQUEST, FRAME_RESPONSE
from fakeamqp.protocols.amqp_0_9.codec.requests import (
    Request,
    Response,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from fakeamqp.protocols.amqp_0_9.requests.request_state import RequestState
from fakeamqp.protocols.amqp_0_9_1.codec.frames import frame
from fakeamqp.protocols.amqp_0_9_1.states import ChannelState

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9.requests.incoming import IncomingRequests
    from fakeamqp.protocols.amqp_0_9.requests.outgoing import Requester
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

__all__ = ["CurrentRequest", "Requests"]

_RESERVED = 20
"""Bytes of a request before its method, with the reserved field; `_BARE` is without it."""
_BARE = 16
_BATCHED = (m.MessageOk, m.MessageEmpty, m.MessageReject, m.ChannelOk)


class CurrentRequest(NamedTuple):
    """The client's request that is being processed: number, bytes of its method, possible replies."""

    number: int
    method: bytes
    replies: tuple[str, ...]


class Requests:
    """Requests and responses of one channel, in both directions. See `Amqp09Channel.class_state`."""

    def __init__(self, channel: Amqp09Channel) -> None:
        self._channel = channel
        self.state: RequestState = RequestState()
        self.current: CurrentRequest | None = None
        self._awaiting: int | None = None
        """The number of a request that is answered when its content is complete."""
        self._missing: list[int] = []
        """The numbers of requests that the client may not have received before the interruption."""

    # --- the client's requests ------------------------------------------------------------------------

    def receive_request(self, payload: bytes) -> None:
        """Process a request frame.

        Raises:
            FrameError: the frame is too short.
            ProtocolError: its number or its response mark is illegal.
            Exception: the errors of its method.
        """
        channel = self._channel
        request = decode_request(payload)
        channel.connection.method_index = int.from_bytes(request.method[:4], "big")
        if channel.state is not ChannelState.OPEN:
            channel.receive_method(request.method)
            return
        self._answer_awaiting()
        incoming = self.state.incoming
        self.state.reserved = request.reserved
        if not incoming.receive(request.request_id, request.response_mark):
            self.flush()
            remembered = incoming.repeat(request.request_id)
            if remembered is not None:
                self._respond([remembered])
            return
        self._carry_out(incoming, request)

    def opened_by(self, request: Request) -> None:
        """Process the first request of a channel, which opens it (see `receiving`).

        Raises:
            ProtocolError: the number of the request is not 1.
        """
        self.state.reserved = request.reserved
        self.state.incoming.receive(request.request_id, request.response_mark)
        self.current = CurrentRequest(request.request_id, request.method, m.ChannelOpen.RESPONSES)

    def _carry_out(self, incoming: IncomingRequests, request: Request) -> None:
        channel = self._channel
        method_class = channel.connection.vocabulary.METHODS.get(int.from_bytes(request.method[:4], "big"))
        replies = () if method_class is None else method_class.RESPONSES
        self.current = CurrentRequest(request.request_id, request.method, replies)
        try:
            channel.receive_method(request.method)
            unanswered = self.current is not None
        finally:
            self.current = None
        if not unanswered:
            return
        if not channel.choices.answers_every_request:
            incoming.leave_unanswered(request.request_id)
        elif channel.awaits_content:
            self._awaiting = request.request_id
        else:
            self._answer_generically(request.request_id)

    def _answer_generically(self, number: int) -> None:
        """Answer a method that defines no answer (request/every-request-answered, response/generic-ok)."""
        self.answer(number, m.MessageOk())

    # --- the broker's responses -----------------------------------------------------------------------

    def answers(self, method: Method) -> bool:
        """If a method answers the current request, answer with it and return True.

        Otherwise send the waiting response, if there is one, and return False. The caller sends the method.
        """
        current = self.current
        if current is None or method.NAME not in current.replies:
            self.flush()
            return False
        self.current = None
        self.answer(current.number, method)
        return True

    def content_frame(self, method: Method) -> bytes | None:
        """Return the response frame with a method whose content follows; None if it answers no request."""
        self.flush()
        current = self.current
        if current is None or method.NAME not in current.replies:
            return None
        self.current = None
        response = self.state.incoming.answer_once(current.number, method.encode())
        return frame(FRAME_RESPONSE, self._channel.number, encode_response(response))

    def defer(self) -> int:
        """Defer the answer to the current request; return its number, for `answer`."""
        assert self.current is not None
        number = self.current.number
        self.current = None
        return number

    def answer(self, number: int, method: Method) -> None:
        """Answer a request of the client.

        Only the simple answers in `_BATCHED` can wait to be combined with equal ones; the others are sent at
        once, because frames can follow them.
        """
        batches = self._channel.choices.batches_responses and isinstance(method, _BATCHED)
        self._respond(self.state.incoming.answer(number, method.encode(), batches=batches))

    def flush(self) -> None:
        """Send the response that waits to be combined with equal ones."""
        self._respond(self.state.incoming.flush())

    def _answer_awaiting(self) -> None:
        """Answer the request that waits for its content, if the content is complete."""
        if self._awaiting is not None and not self._channel.awaits_content:
            number, self._awaiting = self._awaiting, None
            self._answer_generically(number)

    def end_turn(self) -> None:
        """Called when all received input is processed."""
        self._answer_awaiting()
        self.flush()
        self._send_missing()

    def _respond(self, responses: list[Response]) -> None:
        for response in responses:
            self._channel.connection.outbox.write(
                frame(FRAME_RESPONSE, self._channel.number, encode_response(response))
            )

    # --- the broker's requests ------------------------------------------------------------------------

    @property
    def overhead(self) -> int:
        """The bytes of a request frame's payload without its method."""
        return _RESERVED if self.state.reserved else _BARE

    def request(self, method: type[Method], octets: bytes, requester: Requester | None = None) -> int:
        """Send a request.

        Args:
            method: the class of its method.
            octets: the encoded method.
            requester: called with the response, if given.

        Returns:
            The number of the request.
        """
        self.flush()
        self._send_missing()
        number = self.state.outgoing.send(method.RESPONSES, requester)
        self._send(number, octets)
        return number

    def _send_missing(self) -> None:
        missing, self._missing = self._missing, []
        for number in missing:
            self._send(number, m.ChannelPong().encode())

    def _send(self, number: int, octets: bytes) -> None:
        state = self.state
        payload = encode_request(Request(number, state.outgoing.mark, octets, state.reserved))
        self._channel.connection.outbox.write(frame(FRAME_REQUEST, self._channel.number, payload))

    def receive_response(self, payload: bytes) -> None:
        """Process a response frame.

        Raises:
            FrameError: the frame is too short.
            ProtocolError: see `Outgoing.receive`; or its method is unknown.
            WireError: the arguments of its method are malformed.
        """
        channel = self._channel
        response = decode_response(payload)
        if channel.state is not ChannelState.OPEN:
            return
        reply = channel.connection.decode(response.method)
        for answered in self.state.outgoing.receive(response, reply.NAME):
            answered.requester.answered(answered.requests, reply)

    # --- interruption and closing ---------------------------------------------------------------------

    def interrupted(self) -> RequestState | None:
        """Return the state for the resuming channel. See `resume.Resumable`, also for `resumed`."""
        self.state.incoming.interrupt()
        self.state.outgoing.void()
        return self.state if self.state.used else None

    def resumed(self, kept: RequestState) -> None:
        """Continue with the state of an interrupted channel.

        The unacknowledged messages were requeued, so responses to the broker's open requests have no effect.
        But the client may not have received these requests, and must not miss a number. So the broker sends a
        request with channel.pong, which is harmless, for each of these numbers before any new request.
        """
        self.state = kept
        self._missing = kept.outgoing.void()

    def released(self) -> None:
        """Release the state, because the channel is closing."""
        self._awaiting = None
