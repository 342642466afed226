"""The client's requests on one channel, and what the broker has answered.

Each request has a number, from 1 on; so has each response, apart from those. One response may answer several
requests in a row. What was answered is remembered, so that a request which comes again is answered again and
not carried out again (request/duplicate-detection), until the client says that it has the response
(request/response-mark).
"""

from __future__ import annotations

from collections import deque

from fakeamqp.protocols.amqp_0_9.codec.requests import Response
from fakeamqp.protocols.framed.replies import ProtocolError

__all__ = ["Incoming"]

_MAX_RESPONSES = 1000
"""So many responses are remembered of those the client has not said it has: the latest, none of them long."""


class Incoming:
    """Requests of the client, and responses to them. `last` is the number of the last that has come."""

    __slots__ = ("_batch", "_open", "_remembered", "_responses", "_to_reissue", "_unanswered", "last")

    def __init__(self) -> None:
        self.last = 0
        self._responses = 0
        """How many responses there were: the number of the last."""
        self._remembered: deque[Response] = deque(maxlen=_MAX_RESPONSES)
        self._open: set[int] = set()
        """Requests that have come and are not answered."""
        self._to_reissue: set[int] = set()
        """Requests that were not answered when the channel was interrupted, and have to come again."""
        self._unanswered: deque[int] = deque(maxlen=_MAX_RESPONSES)
        """The latest of those that never will be."""
        self._batch: Response | None = None
        """The response that waits for whether it answers further requests as well; it has no number yet."""

    def receive(self, request_id: int, response_mark: int) -> bool:
        """A request has come.

        Returns:
            Whether it is to be carried out. If not, `repeat` has what it was answered.

        Raises:
            ProtocolError: its number is not the next (request/request-id-increments), or the mark is the
                number of no response.
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
        """A request is answered by this method.

        Returns:
            The responses to send now. The last may still wait, for `flush`, if they go in batches.
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
        """The response that waits, if one does: it goes as it is."""
        batch, self._batch = self._batch, None
        if batch is None:
            return []
        self._responses += 1
        response = batch._replace(response_id=self._responses)
        self._remembered.append(response)
        return [response]

    def answer_once(self, request_id: int, method: bytes) -> Response:
        """A request is answered by a method that cannot be repeated. Nothing may wait any more."""
        self._open.discard(request_id)
        self._responses += 1
        return Response(self._responses, request_id, 0, method)

    def leave_unanswered(self, request_id: int) -> None:
        """A request was carried out, and there is no answer to what it asked."""
        self._open.discard(request_id)
        self._unanswered.append(request_id)

    def interrupt(self) -> None:
        """The channel is interrupted: what is half done is forgotten, and carried out if it comes again.

        A response that waits will not be sent unless its request comes again.
        """
        self.flush()
        self._to_reissue |= self._open
        self._open.clear()

    def repeat(self, request_id: int) -> Response | None:
        """What a request was answered that has come again; None if it is not answered, or never will be.

        The response has the number that it had. Nothing may wait any more.

        Raises:
            ProtocolError: it is forgotten.
        """
        if request_id in self._open or request_id in self._unanswered:
            return None
        for response in self._remembered:
            if response.request_id <= request_id <= response.request_id + response.batch_offset:
                return response
        raise ProtocolError(
            "command-invalid", f"request {request_id} has come again, and the response to it is forgotten"
        )
