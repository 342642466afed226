"""The request/response layer of one channel: request frames carry methods, response frames their answers.

A request carries any method that a method frame could (request/no-method-semantics-change), and its handler
answers it as it would there: with `Amqp09Channel.send`, which hands over here what answers the request under
way. Requests are carried out one after the other, as they come. Most are answered at once; a handler that
cannot `defer`s the answer. The broker has requests of its own, for messages above all: the response to one
is the acknowledgement (message.transfer/ack-by-response).
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
from fakeamqp.protocols.amqp_0_9.requests.memory import Memory
from fakeamqp.protocols.framed.codec.frames import frame
from fakeamqp.protocols.framed.states import ChannelState

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9.requests.incoming import Incoming
    from fakeamqp.protocols.amqp_0_9.requests.outgoing import Requester
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
    from fakeamqp.protocols.framed.codec.method import Method

__all__ = ["Requests", "UnderWay"]

_RESERVED = 20
"""Bytes of a request before its method, where it has the reserved ones."""
_BARE = 16
_BATCHED = (m.MessageOk, m.MessageEmpty, m.MessageReject, m.ChannelOk)


class UnderWay(NamedTuple):
    """A request of the client that is being carried out: its number, and the bytes of its method."""

    number: int
    method: bytes
    replies: tuple[str, ...]


class Requests:
    """Requests and responses of one channel, in both directions. See `Amqp09Channel.class_state`."""

    def __init__(self, channel: Amqp09Channel) -> None:
        self._channel = channel
        self.memory = Memory()
        self.under_way: UnderWay | None = None
        self._awaiting: int | None = None
        """A request that is answered when its content has come."""
        self._missing: list[int] = []
        """The numbers of requests that the client may never have got, since the channel was interrupted."""

    # --- the client's requests ------------------------------------------------------------------------

    def receive_request(self, payload: bytes) -> None:
        """A request frame.

        Raises:
            FrameError: it is too short.
            ProtocolError: its number or its mark makes no sense; or what its method raises.
        """
        channel = self._channel
        request = decode_request(payload)
        channel.connection.note_method(int.from_bytes(request.method[:4], "big"))
        if channel.state is not ChannelState.OPEN:
            channel.receive_method(request.method)
            return
        self._answer_awaiting()
        incoming = self.memory.incoming
        self.memory.reserved = request.reserved
        if not incoming.receive(request.request_id, request.response_mark):
            self.flush()
            remembered = incoming.repeat(request.request_id)
            if remembered is not None:
                self._respond([remembered])
            return
        self._carry_out(incoming, request)

    def opened_by(self, request: Request) -> None:
        """The channel is being opened by a request, which is the first (see `receiving`).

        Raises:
            ProtocolError: its number is not that of the first.
        """
        self.memory.reserved = request.reserved
        self.memory.incoming.receive(request.request_id, request.response_mark)
        self.under_way = UnderWay(request.request_id, request.method, m.ChannelOpen.RESPONSES)

    def _carry_out(self, incoming: Incoming, request: Request) -> None:
        channel = self._channel
        method_class = channel.connection.vocabulary.METHODS.get(int.from_bytes(request.method[:4], "big"))
        replies = () if method_class is None else method_class.RESPONSES
        self.under_way = UnderWay(request.request_id, request.method, replies)
        try:
            channel.receive_method(request.method)
            unanswered = self.under_way is not None
        finally:
            self.under_way = None
        if not unanswered:
            return
        if not channel.choices.answers_every_request:
            incoming.leave_unanswered(request.request_id)
        elif channel.awaits_content:
            self._awaiting = request.request_id
        else:
            self._answer_generically(request.request_id)

    def _answer_generically(self, number: int) -> None:
        """The method has no answer of its own (request/every-request-answered, response/generic-ok)."""
        self.answer(number, m.MessageOk())

    # --- the broker's responses -----------------------------------------------------------------------

    def answers(self, method: Method) -> bool:
        """Whether this answers the request under way; then it goes, or will go, as a response.

        Otherwise it may go as it is: what was to go before it has gone.
        """
        under_way = self.under_way
        if under_way is None or method.NAME not in under_way.replies:
            self.flush()
            return False
        self.under_way = None
        self.answer(under_way.number, method)
        return True

    def content_frame(self, method: Method) -> bytes | None:
        """The response frame with this method, whose content comes behind; None if it answers no request."""
        self.flush()
        under_way = self.under_way
        if under_way is None or method.NAME not in under_way.replies:
            return None
        self.under_way = None
        response = self.memory.incoming.answer_once(under_way.number, method.encode())
        return frame(FRAME_RESPONSE, self._channel.number, encode_response(response))

    def defer(self) -> int:
        """The request under way will be answered later: its number is what `answer` takes."""
        assert self.under_way is not None
        number = self.under_way.number
        self.under_way = None
        return number

    def answer(self, number: int, method: Method) -> None:
        """Answer a request of the client.

        Only what says no more than ok, or no, waits for its like: other replies have something behind them.
        """
        batches = self._channel.choices.batches_responses and isinstance(method, _BATCHED)
        self._respond(self.memory.incoming.answer(number, method.encode(), batches=batches))

    def flush(self) -> None:
        """Send the response that waits for more of its kind: something else follows, or the turn is over."""
        self._respond(self.memory.incoming.flush())

    def _answer_awaiting(self) -> None:
        """Answer what was to be answered when its content has come, if it has."""
        if self._awaiting is not None and not self._channel.awaits_content:
            number, self._awaiting = self._awaiting, None
            self._answer_generically(number)

    def end_turn(self) -> None:
        """All that has come is dealt with."""
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
        """Bytes of a request frame's payload that are not its method."""
        return _RESERVED if self.memory.reserved else _BARE

    def request(self, method: type[Method], octets: bytes, requester: Requester | None = None) -> int:
        """Send a request.

        Args:
            method: what its method is.
            octets: the payload of that method.
            requester: who is told of the response, if anybody cares.

        Returns:
            Its number.
        """
        self.flush()
        self._send_missing()
        number = self.memory.outgoing.send(method.RESPONSES, requester)
        self._send(number, octets)
        return number

    def _send_missing(self) -> None:
        missing, self._missing = self._missing, []
        for number in missing:
            self._send(number, m.ChannelPong().encode())

    def _send(self, number: int, octets: bytes) -> None:
        memory = self.memory
        payload = encode_request(Request(number, memory.outgoing.mark, octets, memory.reserved))
        self._channel.connection.outbox.write(frame(FRAME_REQUEST, self._channel.number, payload))

    def receive_response(self, payload: bytes) -> None:
        """A response frame.

        Raises:
            FrameError: it is too short.
            ProtocolError: see `Outgoing.receive`; or there is no such method.
            WireError: its arguments cannot be read.
        """
        channel = self._channel
        response = decode_response(payload)
        if channel.state is not ChannelState.OPEN:
            return
        reply = channel.connection.decode(response.method)
        for answered in self.memory.outgoing.receive(response, reply.NAME):
            answered.requester.answered(answered.requests, reply)

    # --- the end, and what comes after it -------------------------------------------------------------

    def interrupted(self) -> Memory | None:
        """What a channel that resumes this one goes on with. See `resume.Resumable`, here and below."""
        self.memory.incoming.interrupt()
        self.memory.outgoing.void()
        return self.memory if self.memory.used else None

    def resumed(self, kept: Memory) -> None:
        """Go on where a channel was interrupted.

        The messages that the client had not acknowledged are back in their queues. So whatever the broker had
        asked and was not answered is nobody's business any more; but the client may never have got it, and is
        to find no number missing. A ping's pong does no harm, so that is what these requests are now: they go
        before whatever else the channel sends by request.
        """
        self.memory = kept
        self._missing = kept.outgoing.void()

    def released(self) -> None:
        """The channel is over."""
        self._awaiting = None
