"""Login: runs the SASL mechanism that the client chose, step by step, until the user is known.

The steps are the same in every protocol. Each protocol has its own methods for responses and challenges, and
its own answer to a failure. Sources of the mechanisms: PLAIN RFC 4616, EXTERNAL RFC 4422 appendix A,
ANONYMOUS RFC 4505, CRAM-MD5 RFC 2195.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING

from fakeamqp.errors import near_match
from fakeamqp.model.access import User, check_address
from fakeamqp.model.errors import AuthenticationFailed

if TYPE_CHECKING:
    from fakeamqp.connection import PeerAddress
    from fakeamqp.model.state import BrokerState

LOCALES = ("en_US",)
"""The languages of texts that every broker offers (connection.start/locales-required-support)."""


class NotOffered(AuthenticationFailed):
    """The client chose a mechanism or a locale that the broker did not offer."""


class MalformedResponse(AuthenticationFailed):
    """The response does not have the mechanism's format, so it names no user."""


class Mechanism:
    """A SASL mechanism in one login attempt: an exchange of responses and challenges."""

    def __init__(self, state: BrokerState, peer: PeerAddress) -> None:
        self._state = state
        self._peer = peer

    def step(self, response: bytes) -> User | bytes:
        """Process a response; return the user, or the next challenge. See `Login.step` for its errors."""
        raise NotImplementedError


class _Plain(Mechanism):
    """User name and password, each after a zero byte. The authorisation id before them must be empty."""

    def step(self, response: bytes) -> User | bytes:
        parts = response.split(b"\0")
        if len(parts) != 3 or parts[0]:
            raise MalformedResponse("response is not: NUL, user, NUL, password")
        return self._state.access.authenticate(_text(parts[1]), _text(parts[2]))


class _External(Mechanism):
    """The user named by the common name of the client's verified certificate."""

    def step(self, response: bytes) -> User | bytes:
        if self._peer.certificate_subject is None:
            raise AuthenticationFailed("EXTERNAL needs a verified client certificate")
        return self._state.access.known(self._peer.certificate_subject)


class _Anonymous(Mechanism):
    """Anonymous login, as the user guest, as long as its password is guest (RabbitMQ 4.0, 4.3: measured)."""

    def step(self, response: bytes) -> User | bytes:
        return self._state.access.authenticate("guest", "guest")


class _CramMd5(Mechanism):
    """A challenge, answered with the user name and a keyed digest. Offered only if configured."""

    _challenge: bytes | None = None

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


def _text(octets: bytes) -> str:
    return octets.decode("utf-8", "surrogateescape")


MECHANISMS: dict[str, type[Mechanism]] = {
    "PLAIN": _Plain,
    "EXTERNAL": _External,
    "ANONYMOUS": _Anonymous,
    "CRAM-MD5": _CramMd5,
}
"""Those that every protocol implements, by name."""


class Login:
    """One attempt to log in.

    Clients of this protocol may choose from the names in `mechanisms`, the preferred first; `classes` has the
    classes of those that the protocol implements.
    """

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
        self.mechanism: str = ""
        """The name of the chosen mechanism; "" before `choose`."""

    @property
    def offered(self) -> tuple[str, ...]:
        """The names of the mechanisms that this client may choose from, the preferred first.

        For a client with a verified certificate, EXTERNAL is the first. Clients such as py-amqp choose it
        whenever it is offered. Without a certificate they could not log in, so the broker does not offer it
        to them; RabbitMQ does, in no fixed place (measured on 4.3.6).
        """
        if self._peer.certificate_subject is not None and "EXTERNAL" not in self._mechanisms:
            return ("EXTERNAL", *self._mechanisms)
        return self._mechanisms

    def choose(self, mechanism: str, locale: str | None) -> None:
        """Start the mechanism that the client chose, with the language of texts; None if it chose none.

        Raises:
            NotOffered: the broker did not offer the mechanism, or the locale where that matters.
        """
        locales = LOCALES if self._state.personality.refuses_unknown_locales else (locale,)
        self._check("mechanism", mechanism, self.offered)
        self._check("locale", locale, (*locales, None))
        self.mechanism = mechanism
        self._attempt = self._classes[mechanism](self._state, self._peer)

    def _check(self, what: str, chosen: str | None, offered: Container[str | None]) -> None:
        if chosen not in offered:
            self._state.failed_logins.failed(self._peer.host)
            raise NotOffered(f"the client chose {what} {chosen!r}, which was not offered")

    def step(self, response: bytes) -> User | bytes:
        """Process a response; return the user, or the next challenge.

        Raises:
            MalformedResponse: the response does not have the mechanism's format.
            AuthenticationFailed: it proves no identity, or one that may not log in from this address; or the
                address is blocked (security/log-and-block).
        """
        assert self._attempt is not None, "no mechanism was chosen"
        failures, host = self._state.failed_logins, self._peer.host
        failures.check(host)
        try:
            answer = self._attempt.step(response)
            if isinstance(answer, User):
                check_address(answer, host, self._state.personality.loopback_users)
        except AuthenticationFailed:
            failures.failed(host)
            raise
        if isinstance(answer, User):
            failures.succeeded(host)
        return answer


def why_not_opened(state: BrokerState, user: User, name: str, problem: Exception) -> str:
    """Why a user cannot open a virtual host, for the log and the trace."""
    if name not in state.virtual_hosts:
        url = " (the URL of virtual host '/' ends in /%2F)" if not name else ""
        return f"there is no virtual host {name!r}{url or near_match(name, state.virtual_hosts)}"
    if name not in user.permissions:
        others = ", ".join(map(repr, user.permissions)) or "none"
        return f"user {user.name!r} has no permissions on virtual host {name!r}, only on: {others}"
    return str(problem)
