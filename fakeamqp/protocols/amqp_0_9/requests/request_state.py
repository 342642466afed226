"""The request state of a channel in both directions, which can outlive the channel.

If a connection is lost, its client does not know which of its requests were processed. On a new connection it
resumes the channel, and repeats the requests without a response (request/failover-reissue).
"""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9.requests.incoming import IncomingRequests
from fakeamqp.protocols.amqp_0_9.requests.outgoing import OutgoingRequests

__all__ = ["RequestState"]


class RequestState:
    """The request numbers of both peers, and the broker's responses.

    `reserved` is True if the client's requests have the reserved field: see
    `protocols.amqp_0_9.codec.requests`.
    """

    __slots__ = ("incoming", "outgoing", "reserved")

    def __init__(self) -> None:
        self.incoming: IncomingRequests = IncomingRequests()
        self.outgoing: OutgoingRequests = OutgoingRequests()
        self.reserved: bool = True

    @property
    def used(self) -> bool:
        """True if there were requests in either direction."""
        return bool(self.incoming.last or self.outgoing.last)
