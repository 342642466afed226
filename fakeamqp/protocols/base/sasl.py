"""SASL mechanisms. One object serves one login attempt; `step` processes each response of the client.

Sources: PLAIN RFC 4616, EXTERNAL RFC 4422 appendix A, ANONYMOUS RFC 4505, CRAM-MD5 RFC 2195.
"""

from __future__ import annotations

from typing import Protocol

from fakeamqp.connection import PeerAddress
from fakeamqp.model.access.users import User
from fakeamqp.model.errors import AuthenticationFailed
from fakeamqp.model.state import BrokerState

__all__ = ["MECHANISMS", "MalformedResponse", "Mechanism", "offered_mechanisms"]


class MalformedResponse(AuthenticationFailed):
    """The response does not have the mechanism's format, so it names no user."""


class Mechanism(Protocol):
    """One login attempt: an exchange of responses and challenges."""

    def __init__(self, state: BrokerState, peer: PeerAddress) -> None: ...

    def step(self, response: bytes) -> User | bytes:
        """Process a response; return the user, or the next challenge.

        Raises:
            AuthenticationFailed: the response does not prove an identity.
        """


class Plain:
    """User name and password, each after a zero byte. The authorisation id before them must be empty."""

    def __init__(self, state: BrokerState, peer: PeerAddress) -> None:
        self._state = state

    def step(self, response: bytes) -> User | bytes:
        parts = response.split(b"\0")
        if len(parts) != 3 or parts[0]:
            raise MalformedResponse("response is not: NUL, user, NUL, password")
        return self._state.access.authenticate(_text(parts[1]), _text(parts[2]))


class External:
    """The user named by the common name of the client's verified certificate."""

    def __init__(self, state: BrokerState, peer: PeerAddress) -> None:
        self._state = state
        self._subject = peer.certificate_subject

    def step(self, response: bytes) -> User | bytes:
        if self._subject is None:
            raise AuthenticationFailed("EXTERNAL needs a verified client certificate")
        return self._state.access.known(self._subject)


class Anonymous:
    """Anonymous login, as the user guest, as long as its password is guest (RabbitMQ 4.0, 4.3: measured)."""

    def __init__(self, state: BrokerState, peer: PeerAddress) -> None:
        self._state = state

    def step(self, response: bytes) -> User | bytes:
        return self._state.access.authenticate("guest", "guest")


class CramMd5:
    """A challenge, answered with the user name and a keyed digest. Offered only if configured."""

    def __init__(self, state: BrokerState, peer: PeerAddress) -> None:
        self._state = state
        self._challenge: bytes | None = None

    def step(self, response: bytes) -> User | bytes:
        import hmac

        if self._challenge is None:
            self._challenge = f"<{self._state.names.token()}@fakeamqp>".encode()
            return self._challenge
        name, _, digest = response.rpartition(b" ")
        user = self._state.access.known(_text(name))
        secret = (user.password or "").encode("utf-8", "surrogateescape")
        expected = hmac.new(secret, self._challenge, "md5").hexdigest().encode()
        if not user.password or not hmac.compare_digest(expected, digest):
            raise AuthenticationFailed(user.name, f"the password of user {user.name!r} is wrong")
        return user


MECHANISMS: dict[str, type[Mechanism]] = {
    "PLAIN": Plain,
    "EXTERNAL": External,
    "ANONYMOUS": Anonymous,
    "CRAM-MD5": CramMd5,
}


def offered_mechanisms(mechanisms: tuple[str, ...], peer: PeerAddress) -> tuple[str, ...]:
    """Return the protocol's mechanisms, and EXTERNAL before them for a client with a verified certificate.

    Clients such as py-amqp choose EXTERNAL whenever it is offered. Without a certificate they could not log
    in, so the broker does not offer it to them; RabbitMQ does, in no fixed place (measured on 4.3.6).
    """
    if peer.certificate_subject is not None and "EXTERNAL" not in mechanisms:
        return ("EXTERNAL", *mechanisms)
    return mechanisms


def _text(octets: bytes) -> str:
    return octets.decode("utf-8", "surrogateescape")
