"""What is known of the requests of a channel in both directions: it can outlive the channel.

Where a connection is lost, its client does not know which of its requests were carried out. On a new
connection it resumes the channel and issues again what it has no response to (request/failover-reissue).
"""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9.requests.incoming import Incoming
from fakeamqp.protocols.amqp_0_9.requests.outgoing import Outgoing

__all__ = ["Memory"]


class Memory:
    """The numbers of both sides, and what the broker has answered.

    `reserved` says in which of the two forms the client writes its requests: see `protocols.amqp_0_9.codec.requests`.
    """

    __slots__ = ("incoming", "outgoing", "reserved")

    def __init__(self) -> None:
        self.incoming = Incoming()
        self.outgoing = Outgoing()
        self.reserved = True

    @property
    def used(self) -> bool:
        """Whether there were any requests."""
        return bool(self.incoming.last or self.outgoing.last)
