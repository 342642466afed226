"""SASL mechanisms: a client proves its identity. One object per attempt; `step` takes each response.

Sources: PLAIN RFC 4616, EXTERNAL RFC 4422 appendix A, ANONYMOUS RFC 4505, CRAM-MD5 RFC 2195.
"""

from __future__ import annotations

import hmac
from typing import Protocol

from fakeamqp.connection import PeerAddress
from fakeamqp.model.access import User
from fakeamqp.model.errors import AuthenticationFailed
from fakeamqp.model.state import BrokerState

__all__ = ["MECHANISMS", "MalformedResponse", "Mechanism", "offered_mechanisms"]


class MalformedResponse(AuthenticationFailed):
    """The response is not what the mechanism demands, so whose it is cannot even be told."""


class Mechanism(Protocol):
    """One exchange of responses and challenges."""

    def __init__(self, state: BrokerState, peer: PeerAddress) -> None: ...

    def step(self, response: bytes) -> User | bytes:
        """Take a response; answer with the user, or with the next challenge.

        Raises:
            AuthenticationFailed: the response does not prove an identity.
        """


class Plain:
    """User name and password, each after a zero byte. Nobody may act for another, so no authorisation id."""

    def __init__(self, state: BrokerState, peer: PeerAddress) -> None:
        self._state = state

    def step(self, response: bytes) -> User | bytes:
        """See `Mechanism`."""
        parts = response.split(b"\0")
        if len(parts) != 3 or parts[0]:
            raise MalformedResponse("response is not: NUL, user, NUL, password")
        return self._state.access.authenticate(_text(parts[1]), _text(parts[2]))


class External:
    """The identity proved by the client's certificate: its common name."""

    def __init__(self, state: BrokerState, peer: PeerAddress) -> None:
        self._state = state
        self._subject = peer.certificate_subject

    def step(self, response: bytes) -> User | bytes:
        """See `Mechanism`."""
        if self._subject is None:
            raise AuthenticationFailed("EXTERNAL needs a verified client certificate")
        return self._state.access.known(self._subject)


class Anonymous:
    """Nobody in particular: the user the broker lets strangers be."""

    def __init__(self, state: BrokerState, peer: PeerAddress) -> None:
        self._state = state

    def step(self, response: bytes) -> User | bytes:
        """See `Mechanism`."""
        return self._state.access.known("guest")


class CramMd5:
    """A challenge, answered with the user name and its keyed digest. Offered where the broker is told to."""

    def __init__(self, state: BrokerState, peer: PeerAddress) -> None:
        self._state = state
        self._challenge: bytes | None = None

    def step(self, response: bytes) -> User | bytes:
        """See `Mechanism`."""
        if self._challenge is None:
            self._challenge = f"<{self._state.names.token()}@fakeamqp>".encode()
            return self._challenge
        name, _, digest = response.rpartition(b" ")
        user = self._state.access.known(_text(name))
        secret = (user.password or "").encode("utf-8", "surrogateescape")
        expected = hmac.new(secret, self._challenge, "md5").hexdigest().encode()
        if user.password is None or not hmac.compare_digest(expected, digest):
            raise AuthenticationFailed(user.name)
        return user


MECHANISMS: dict[str, type[Mechanism]] = {
    "PLAIN": Plain,
    "EXTERNAL": External,
    "ANONYMOUS": Anonymous,
    "CRAM-MD5": CramMd5,
}


def offered_mechanisms(mechanisms: tuple[str, ...], peer: PeerAddress) -> tuple[str, ...]:
    """What a client may choose from: a protocol's mechanisms, and EXTERNAL where its certificate was verified.

    Clients such as py-amqp prefer EXTERNAL whenever they see it, so offering it to all would lock them out.
    """
    if peer.certificate_subject is not None and "EXTERNAL" not in mechanisms:
        return (*mechanisms, "EXTERNAL")
    return mechanisms


def _text(octets: bytes) -> str:
    return octets.decode("utf-8", "surrogateescape")
