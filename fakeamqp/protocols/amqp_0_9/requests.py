"""The request/response layer of one channel: request frames carry methods, response frames their answers.

A request carries any method that a method frame can carry (request/no-method-semantics-change). Its handler
answers in the same way, with `Amqp09Channel.send`, which passes the answer to the current request to this
layer. Requests are processed one at a time, in order. Most are answered at once; a handler that cannot do
that calls `defer`. The broker also sends requests, mainly for messages: the response to such a request is the
acknowledgement (message.transfer/ack-by-response).
"""

from __future__ import annotations

from collections import deque
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
from fakeamqp.protocols.amqp_0_9_1.codec.frames import frame
from fakeamqp.protocols.amqp_0_9_1.replies import ProtocolError
from fakeamqp.protocols.amqp_0_9_1.states import ChannelState
from fakeamqp.protocols.base.connection_states import ConnectionState

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9.message_state import Messages
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
    from fakeamqp.protocols.amqp_0_9.server_connection import Amqp09Connection
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

_MAX_RESPONSES = 1000
"""The number of unconfirmed responses to keep, the latest ones; kept responses are short."""
_RESERVED = 20
"""Bytes of a request before its method, with the reserved field; `_BARE` is without it."""
_BARE = 16
_BATCHED = (m.MessageOk, m.MessageEmpty, m.MessageReject, m.ChannelOk)


class IncomingRequests:
    """The client's requests, and the broker's responses. `last` is the number of the last received request.

    Requests are numbered from 1, and so are responses, independently. One response can answer several
    consecutive requests. Responses are kept until the client confirms them (request/response-mark). A
    repeated request gets the kept response, and is not processed again (request/duplicate-detection).
    """

    __slots__ = ("_batch", "_open", "_remembered", "_responses", "_to_reissue", "_unanswered", "last")

    def __init__(self) -> None:
        self.last: int = 0
        self._responses = 0
        """The number of the last response."""
        self._remembered: deque[Response] = deque(maxlen=_MAX_RESPONSES)
        self._open: set[int] = set()
        """The numbers of received requests without an answer yet."""
        self._to_reissue: set[int] = set()
        """The numbers of requests that were open at the interruption; the client must repeat them."""
        self._unanswered: deque[int] = deque(maxlen=_MAX_RESPONSES)
        """The latest requests that never get an answer."""
        self._batch: Response | None = None
        """The response that waits to be combined with equal ones; it has no number yet."""

    def receive(self, request_id: int, response_mark: int) -> bool:
        """Register a received request; True if it must be processed, False for a repetition, for `repeat`.

        ProtocolError: the number of the request is not the next (request/request-id-increments), or the mark
        is above the number of the last response.
        """
        if not 0 < request_id <= self.last + 1:
            raise ProtocolError("command-invalid", f"request {request_id} after request {self.last}")
        if response_mark > self._responses:
            text = f"response-mark {response_mark}, and the last response was {self._responses}"
            raise ProtocolError("command-invalid", text)
        while self._remembered and self._remembered[0].response_id <= response_mark:
            self._remembered.popleft()
        if request_id > self.last:
            self.last = request_id
        elif request_id in self._to_reissue:
            self._to_reissue.remove(request_id)
        else:
            return False
        self._open.add(request_id)
        return True

    def answer(self, request_id: int, method: bytes, *, batches: bool) -> list[Response]:
        """Answer a request; return the responses to send now. With `batches` it can wait for `flush`."""
        self._open.discard(request_id)
        due: list[Response] = []
        batch = self._batch
        if batch is not None:
            # response/identical-only
            if method == batch.method and request_id == batch.request_id + batch.batch_offset + 1:
                self._batch = batch._replace(batch_offset=batch.batch_offset + 1)
                return due
            due += self.flush()
        self._batch = Response(0, request_id, 0, method)
        return due if batches else due + self.flush()

    def flush(self) -> list[Response]:
        """Return the waiting response, if there is one, to send it now."""
        batch, self._batch = self._batch, None
        if batch is None:
            return []
        self._responses += 1
        response = batch._replace(response_id=self._responses)
        self._remembered.append(response)
        return [response]

    def answer_once(self, request_id: int, method: bytes) -> Response:
        """Answer a request without keeping the response. No response may be waiting."""
        self._open.discard(request_id)
        self._responses += 1
        return Response(self._responses, request_id, 0, method)

    def leave_unanswered(self, request_id: int) -> None:
        """Register that a processed request never gets an answer."""
        self._open.discard(request_id)
        self._unanswered.append(request_id)

    def interrupt(self) -> None:
        """Register an interruption: open requests will be processed anew if the client repeats them.

        A waiting response is kept, and only sent if the client repeats its request.
        """
        self.flush()
        self._to_reissue |= self._open
        self._open.clear()

    def repeat(self, request_id: int) -> Response | None:
        """Return the kept response to a repeated request; None if it has no answer.

        The response keeps its number. No response may be waiting. ProtocolError: it is not kept any more.
        """
        if request_id in self._open or request_id in self._unanswered:
            return None
        for response in self._remembered:
            if response.request_id <= request_id <= response.request_id + response.batch_offset:
                return response
        raise ProtocolError(
            "command-invalid", f"request {request_id} is a repetition, and its response is not kept any more"
        )


class OutgoingRequests:
    """Requests of the broker. `last` is the number of the last that was sent.

    The client may answer in any order, several requests with one response, and some requests never: of a
    message sent by reference qpid-python answers only the transfer.
    """

    __slots__ = ("_open", "last", "mark")

    def __init__(self) -> None:
        self.last: int = 0
        self.mark: int = 0
        """The number of the last response, which is processed like all before it."""
        self._open: dict[int, tuple[tuple[str, ...], bool]] = {}
        """Request without an answer -> the names of possible replies, and if a reply settles a delivery."""

    def send(self, replies: tuple[str, ...], *, settles: bool = False) -> int:
        """Register a sent request, with the names of its possible replies, and return its number."""
        self.last += 1
        self._open[self.last] = replies, settles
        return self.last

    def receive(self, response: Response, reply: str) -> list[int]:
        """Register a response with a method of this name; return the requests whose deliveries it settles.

        The list is empty for a repeated response. ProtocolError: the number of the response is not the next
        (response/response-id-increments), it answers no open request, or its method is no possible reply.
        """
        number, first, offset, _ = response
        if not 0 < number <= self.mark + 1:
            raise ProtocolError("command-invalid", f"response {number} after response {self.mark}")
        if number <= self.mark:
            return []
        if not 0 < first <= first + offset <= self.last:
            text = f"a response to requests {first} to {first + offset}, and the last was {self.last}"
            raise ProtocolError("command-invalid", text)
        candidates = range(first, first + offset + 1)
        if len(candidates) < len(self._open):
            requests = [each for each in candidates if each in self._open]
        else:
            requests = [each for each in self._open if each in candidates]
        if not requests:
            raise ProtocolError("command-invalid", f"a response to request {first}, which is not open")
        for each in requests:
            replies, _settles = self._open[each]
            if replies and reply not in replies:
                text = f"{reply} cannot answer request {each}; expected {' or '.join(replies)}"
                raise ProtocolError("command-invalid", text)
        self.mark = number
        return [each for each in requests if self._open.pop(each)[1]]

    def void(self) -> list[int]:
        """Accept any reply to all open requests, without an effect; return their numbers."""
        self._open = dict.fromkeys(self._open, ((), False))
        return list(self._open)


class RequestState:
    """The request state of a channel in both directions, which can outlive the channel.

    If a connection is lost, its client does not know which of its requests were processed. On a new
    connection it resumes the channel, and repeats the requests without a response (request/failover-reissue).
    `reserved` is True if the client's requests have the reserved field: see `codec.requests`.
    """

    __slots__ = ("incoming", "outgoing", "reserved")

    def __init__(self) -> None:
        self.incoming: IncomingRequests = IncomingRequests()
        self.outgoing: OutgoingRequests = OutgoingRequests()
        self.reserved: bool = True


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
        self._messages: Messages | None = None
        """Settles the transfers that the client answers."""
        self.unanswered_pongs = 0
        """The number of pongs in method frames without an answer."""

    # --- the client's requests ------------------------------------------------------------------------

    def receive_request(self, payload: bytes) -> None:
        """Process a request frame; raises the errors of its method as well."""
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
        """Process the first request of a channel, which opens it; its number must be 1."""
        self.state.reserved = request.reserved
        self.state.incoming.receive(request.request_id, request.response_mark)
        self.current = CurrentRequest(request.request_id, request.method, m.ChannelOpen.RESPONSES)

    def _carry_out(self, incoming: IncomingRequests, request: Request) -> None:
        channel = self._channel
        method_class = channel.connection.METHODS.get(int.from_bytes(request.method[:4], "big"))
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

    def request(self, method: Method) -> None:
        """Send a request whose answer has no effect."""
        self.flush()
        self._send_missing()
        self._send(self.state.outgoing.send(method.RESPONSES), method.encode())

    def transfer(self, octets: bytes, messages: Messages) -> None:
        """Send a request with an encoded message.transfer, whose answer `messages` processes."""
        self._messages = messages
        self.flush()
        self._send_missing()
        self._send(self.state.outgoing.send(m.MessageTransfer.RESPONSES, settles=True), octets)

    def _send_missing(self) -> None:
        missing, self._missing = self._missing, []
        for number in missing:
            self._send(number, m.ChannelPong().encode())

    def _send(self, number: int, octets: bytes) -> None:
        state = self.state
        payload = encode_request(Request(number, state.outgoing.mark, octets, state.reserved))
        self._channel.connection.outbox.write(frame(FRAME_REQUEST, self._channel.number, payload))

    def receive_response(self, payload: bytes) -> None:
        """Process a response frame; see `OutgoingRequests.receive` for its errors."""
        channel = self._channel
        response = decode_response(payload)
        if channel.state is not ChannelState.OPEN:
            return
        reply = channel.connection.decode(response.method)
        answered = self.state.outgoing.receive(response, reply.NAME)
        if answered and self._messages is not None:
            self._messages.answered(answered, reply)

    # --- interruption and closing ---------------------------------------------------------------------

    def interrupted(self) -> RequestState | None:
        """Return the state for the resuming channel."""
        self.state.incoming.interrupt()
        self.state.outgoing.void()
        used = self.state.incoming.last or self.state.outgoing.last
        return self.state if used else None

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


def receive(connection: Amqp09Connection, frame_type: int, number: int, payload: bytes) -> None:
    """Pass a request or a response to its channel."""
    if connection.state is ConnectionState.CLOSING:
        return
    channel = connection.channels.get(number)
    if channel is None:
        _receive_without_channel(connection, frame_type, number, payload)
    elif frame_type == FRAME_REQUEST:
        channel.class_state(Requests).receive_request(payload)
    else:
        channel.class_state(Requests).receive_response(payload)


def _receive_without_channel(
    connection: Amqp09Connection, frame_type: int, number: int, payload: bytes
) -> None:
    """Process a frame for channel 0, or for a channel that is not open: a request can open it."""
    connection.method_index = 0
    if number == 0:
        raise ProtocolError(
            "channel-error",
            f"expected a method frame on channel 0, got a frame of type {frame_type}",
        )
    if connection.state is not ConnectionState.OPEN:
        raise ProtocolError(
            "unexpected-frame", f"a frame of type {frame_type} on channel {number} before connection.open"
        )
    if frame_type != FRAME_REQUEST:
        raise ProtocolError("channel-error", f"a response on channel {number}, which is not open")
    request = decode_request(payload)
    method = connection.decode(request.method)
    if isinstance(method, m.ChannelResume):
        # The request numbers of the resumed channel continue, so this request has no legal number.
        raise ProtocolError("command-invalid", "channel.resume must not be sent in a request")
    connection.opening_request = request
    try:
        connection.open_channel(number, method)
    finally:
        connection.opening_request = None
