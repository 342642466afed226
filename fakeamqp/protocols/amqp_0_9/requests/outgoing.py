"""The broker's requests on one channel, and the client's responses.

The client may answer in any order, several requests with one response, and some requests never: of a message
sent by reference qpid-python answers only the transfer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from fakeamqp.protocols.amqp_0_9_1.replies import ProtocolError

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9.codec.requests import Response
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

__all__ = ["AnsweredRequests", "OutgoingRequests", "Requester"]


class Requester(Protocol):
    """A sender of requests."""

    def answered(self, requests: Sequence[int], reply: Method) -> None:
        """Process one reply to several requests."""


class _Open(NamedTuple):
    """A request without an answer yet: the names of its possible replies, and its requester, if any."""

    replies: tuple[str, ...]
    requester: Requester | None


class AnsweredRequests(NamedTuple):
    """Requests of one requester that were answered together."""

    requester: Requester
    requests: list[int]


class OutgoingRequests:
    """Requests of the broker. `last` is the number of the last that was sent."""

    __slots__ = ("_open", "last", "mark")

    def __init__(self) -> None:
        self.last: int = 0
        self.mark: int = 0
        """The number of the last response, which is processed like all before it."""
        self._open: dict[int, _Open] = {}

    def send(self, replies: tuple[str, ...], requester: Requester | None) -> int:
        """Register a sent request, with the names of its possible replies.

        Returns:
            The number of the request.
        """
        self.last += 1
        self._open[self.last] = _Open(replies, requester)
        return self.last

    def receive(self, response: Response, reply: str) -> list[AnsweredRequests]:
        """Register a received response; `reply` is the name of its method.

        Returns:
            The answered requests, by requester; empty for a repeated response.

        Raises:
            ProtocolError: the number of the response is not the next (response/response-id-increments), it
                answers a request that was never sent, or no open request, or its method is no possible reply.
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
            replies = self._open[each].replies
            if replies and reply not in replies:
                text = f"{reply} cannot answer request {each}; expected {' or '.join(replies)}"
                raise ProtocolError("command-invalid", text)
        self.mark = number
        answered: list[AnsweredRequests] = []
        for each in requests:
            requester = self._open.pop(each).requester
            if requester is None:
                continue
            if answered and answered[-1].requester is requester:
                answered[-1].requests.append(each)
            else:
                answered.append(AnsweredRequests(requester, [each]))
        return answered

    def void(self) -> list[int]:
        """Remove the requesters of all open requests, and accept any reply to them.

        Returns:
            The numbers of the open requests, which the client may not have received.
        """
        for each in self._open:
            self._open[each] = _Open((), None)
        return list(self._open)
