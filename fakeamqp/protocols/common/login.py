"""Who a client is: the mechanism it chose of those it was offered, step by step up to a user.

The steps are the same in every protocol; how responses and challenges are carried, and what is said of a
failure, is the protocol's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fakeamqp.model.access import User
from fakeamqp.model.errors import AuthenticationFailed
from fakeamqp.protocols.common.sasl import offered_mechanisms

if TYPE_CHECKING:
    from fakeamqp.connection import PeerAddress
    from fakeamqp.model.state import BrokerState
    from fakeamqp.protocols.common.sasl import Mechanism

__all__ = ["Login", "NotOffered"]

_LOOPBACK = ("127.", "::1", "::ffff:127.", "socketpair")


class NotOffered(AuthenticationFailed):
    """The client chose a mechanism that is not among those it was offered."""


class Login:
    """One attempt to log in.

    Args:
        state: the broker.
        peer: where the client comes from.
        mechanisms: the names that clients of this protocol may choose from, the best first.
        classes: the mechanisms that the protocol implements, by name.
    """

    __slots__ = ("_attempt", "_classes", "_mechanisms", "_peer", "_state", "mechanism")

    def __init__(
        self,
        state: BrokerState,
        peer: PeerAddress,
        mechanisms: tuple[str, ...],
        classes: Mapping[str, type[Mechanism]],
    ) -> None:
        self._classes = classes
        self._state = state
        self._peer = peer
        self._mechanisms = mechanisms
        self._attempt: Mechanism | None = None
        self.mechanism = ""
        """The name of the mechanism chosen; "" before that."""

    @property
    def offered(self) -> tuple[str, ...]:
        """The names of the mechanisms that this client may choose from, the best first."""
        return offered_mechanisms(self._mechanisms, self._peer)

    def choose(self, mechanism: str) -> None:
        """The client has chosen.

        Raises:
            NotOffered: what it was not offered.
        """
        if mechanism not in self.offered:
            raise NotOffered(f"the client chose mechanism {mechanism!r}, which was not offered")
        self.mechanism = mechanism
        self._attempt = self._classes[mechanism](self._state, self._peer)

    def step(self, response: bytes) -> User | bytes:
        """Take a response of the mechanism chosen; answer with the user, or with the next challenge.

        Raises:
            sasl.MalformedResponse: it is not what the mechanism demands.
            AuthenticationFailed: it does not prove an identity, or one that may not come from there.
        """
        assert self._attempt is not None, "no mechanism was chosen"
        answer = self._attempt.step(response)
        if isinstance(answer, User):
            self._check_loopback(answer)
        return answer

    def _check_loopback(self, user: User) -> None:
        """Everybody knows guest's password, so guest may come from this machine only.

        Source: RabbitMQ (documented).
        """
        host = self._peer.host
        if user.name == "guest" and host and not host.startswith(_LOOPBACK):
            raise AuthenticationFailed("guest may log in from loopback addresses only")
