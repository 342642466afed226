"""The broker's requests on one channel, and who waits for the client's responses.

The client may answer in any order, several requests by one response, and some not at all: of a message that
goes by reference qpid-python answers only the transfer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from fakeamqp.protocols.framed.replies import ProtocolError

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9.codec.requests import Response
    from fakeamqp.protocols.framed.codec.method import Method

__all__ = ["Answered", "Outgoing", "Requester"]


class Requester(Protocol):
    """Whoever has sent requests."""

    def answered(self, requests: Sequence[int], reply: Method) -> None:
        """These have been answered by this, all at once."""


class _Open(NamedTuple):
    """A request that is not answered: by what it may be, and who wants to know (None: nobody)."""

    replies: tuple[str, ...]
    requester: Requester | None


class Answered(NamedTuple):
    """Requests of one requester that were answered together."""

    requester: Requester
    requests: list[int]


class Outgoing:
    """Requests of the broker. `last` is the number of the last that was sent."""

    __slots__ = ("_open", "last", "mark")

    def __init__(self) -> None:
        self.last = 0
        self.mark = 0
        """The number of the last response that came: all have been dealt with."""
        self._open: dict[int, _Open] = {}

    def send(self, replies: tuple[str, ...], requester: Requester | None) -> int:
        """A request is sent, which one of these methods answers.

        Returns:
            Its number.
        """
        self.last += 1
        self._open[self.last] = _Open(replies, requester)
        return self.last

    def receive(self, response: Response, reply: str) -> list[Answered]:
        """A response has come, with this method.

        Returns:
            Who is to be told. Nobody, if the response has come before.

        Raises:
            ProtocolError: its number is not the next (response/response-id-increments), it answers a request
                that was never sent, or none that is open, or one that such a method does not answer.
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
                text = f"{reply} is no response to request {each}, but {' or '.join(replies)} is"
                raise ProtocolError("command-invalid", text)
        self.mark = number
        told: list[Answered] = []
        for each in requests:
            requester = self._open.pop(each).requester
            if requester is None:
                continue
            if told and told[-1].requester is requester:
                told[-1].requests.append(each)
            else:
                told.append(Answered(requester, [each]))
        return told

    def void(self) -> list[int]:
        """Nobody waits for a response any more, and any will do.

        Returns:
            The numbers of the requests that are open, which the client may never have got.
        """
        for each in self._open:
            self._open[each] = _Open((), None)
        return list(self._open)
