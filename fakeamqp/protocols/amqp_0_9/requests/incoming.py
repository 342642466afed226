"""The client's requests on one channel, and the broker's responses.

Requests are numbered from 1, and so are responses, independently. One response can answer several consecutive
requests. Responses are kept until the client confirms them (request/response-mark). A repeated request gets
the kept response, and is not processed again (request/duplicate-detection).
"""

from __future__ import annotations

from collections import deque

from fakeamqp.protocols.amqp_0_9.codec.requests import Response
from fakeamqp.protocols.amqp_0_9_1.replies import ProtocolError

__all__ = ["IncomingRequests"]

_MAX_RESPONSES = 1000
"""The number of unconfirmed responses to keep, the latest ones; kept responses are short."""


class IncomingRequests:
    """Requests of the client, and responses to them. `last` is the number of the last received request."""

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
        """Register a received request.

        Returns:
            True if the request must be processed; False if it is a repetition, for `repeat`.

        Raises:
            ProtocolError: the number of the request is not the next (request/request-id-increments), or the
                mark is above the number of the last response.
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
        """Answer a request.

        Returns:
            The responses to send now. With `batches` the answer itself can wait for `flush`.
        """
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

        The response keeps its number. No response may be waiting.

        Raises:
            ProtocolError: the response is not kept any more.
        """
        if request_id in self._open or request_id in self._unanswered:
            return None
        for response in self._remembered:
            if response.request_id <= request_id <= response.request_id + response.batch_offset:
                return response
        raise ProtocolError(
            "command-invalid", f"request {request_id} is a repetition, and its response is not kept any more"
        )
