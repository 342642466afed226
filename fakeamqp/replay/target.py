"""What a replay needs before it starts: the broker to replay on, and what the recording says of logins."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote, urlsplit

from fakeamqp.broker import Broker, BrokerError
from fakeamqp.errors import FakeAMQPError, without_login
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.tables import RABBITMQ, encode_table
from fakeamqp.trace import ConnectionEvent, Event, FrameEvent, Trace

if TYPE_CHECKING:
    from fakeamqp.model.versions import PersonalityName


class ReplayError(FakeAMQPError):
    """The recording cannot be replayed on this broker."""

    __module__ = "fakeamqp.replay"


class NoBroker(ReplayError):
    """There is no broker at the URL."""

    __module__ = "fakeamqp.replay"


_IDLE_TIMEOUT = 0.05
"""The time to wait for the broker in this process to become idle, in seconds."""


@dataclass(frozen=True)
class ReplayLogin:
    """Replaces recorded logins by PLAIN with this user; None leaves them as recorded.

    Recorded logins with a mechanism in `keeps` are never replaced.
    """

    user: str | None = None
    password: str = ""
    virtual_host: str | None = None
    keeps: tuple[str, ...] = ()


@dataclass
class ReplayTarget:
    """The broker under test; `login` replaces recorded logins."""

    connect: Callable[[], socket.socket]
    login: ReplayLogin
    advance: Callable[[float], None] = lambda seconds: None
    idle: Callable[[], bool] | None = None
    """Returns True once the broker sends nothing more; None if that cannot be known."""


@contextmanager
def fresh_broker(
    trace: Trace, logins: Logins, personality: str, definitions: Any, timeout: float
) -> Iterator[ReplayTarget]:
    """Run a broker with virtual time that has the users and virtual hosts of the recording."""
    users = logins.users or {"guest": "guest"}
    more = {} if definitions is None else {"definitions": definitions}
    broker = Broker(
        personality=cast("PersonalityName", personality),
        clock="virtual",
        now=trace.wall_time,
        users=users,
        virtual_hosts=[name for name in logins.virtual_hosts if name != "/"],
        history=0,
        trace=0,
        **more,
    )
    user, password = next(iter(users.items()))
    login = ReplayLogin(user, password, keeps=_READABLE) if logins.unreadable else ReplayLogin()

    def connect() -> socket.socket:
        connection = broker.connect()
        connection.settimeout(timeout)
        return connection

    def idle() -> bool:
        try:
            broker.wait_until_idle(_IDLE_TIMEOUT)
        except BrokerError:  # For example, the broker has more to send than the socket takes.
            return False
        return True

    with broker:
        yield ReplayTarget(connect, login, broker.clock.advance, idle)


def remote_broker(url: str, timeout: float) -> ReplayTarget:
    """The broker at a URL. Raises ReplayError if it is not a URL of AMQP."""
    try:
        parts = urlsplit(url)
        tls = parts.scheme == "amqps"
        host, port = parts.hostname, parts.port or (5671 if tls else 5672)
    except ValueError:
        host = None
    if not host or parts.scheme not in ("amqp", "amqps"):
        raise ReplayError(
            f"{without_login(url)!r} is not a URL of a broker; an example is amqp://guest:guest@localhost:5672/"
        )

    def connect() -> socket.socket:
        try:
            connection = socket.create_connection((host, port), timeout)
            if tls:
                import ssl

                connection = ssl.create_default_context().wrap_socket(connection, server_hostname=host)
        except OSError as problem:
            raise NoBroker(f"no broker at {host}:{port}: {problem}") from problem
        return connection

    user, password = unquote(parts.username or "guest"), unquote(parts.password or "guest")
    return ReplayTarget(connect, ReplayLogin(user, password, unquote(parts.path[1:]) or None))


# --- logins -----------------------------------------------------------------------------------------------

PROTOCOL = "0-9-1"
PROTOCOL_1_0 = "1-0"
PROTOCOLS = (PROTOCOL, PROTOCOL_1_0)
"""The protocols that can be replayed."""
_VIRTUAL_HOST = "vhost:"
_REFUSED = "Login was refused"
"""The detail of the event "closed" after a refused login, for clients that get no connection.close."""
_TABLE_SIZE = 4
"""The bytes of the size before a table. An AMQPLAIN response has no size."""
_READABLE = ("PLAIN", "AMQPLAIN")
"""The mechanisms whose responses can be decoded."""


def wrong_login(mechanism: str, response: bytes) -> bytes:
    """The response with a random password; unchanged, if it cannot be decoded.

    Passwords in a recording are asterisks, so a wrong password can look like the right one.
    """
    login = _login(mechanism, response)
    if login is None:
        return response
    user, password = login[0], secrets.token_hex()
    if mechanism == "PLAIN":
        return f"\0{user}\0{password}".encode("utf-8", "surrogateescape")
    return encode_table({"LOGIN": user, "PASSWORD": password})[_TABLE_SIZE:]


def _login(mechanism: str, response: bytes) -> tuple[str, str] | None:
    """User and password; None if the response does not tell them."""
    if mechanism == "PLAIN":
        parts = response.decode("utf-8", "surrogateescape").split("\0")
        return (parts[1], parts[2]) if len(parts) == 3 else None
    if mechanism not in _READABLE:
        return None
    octets = len(response).to_bytes(_TABLE_SIZE, "big") + response
    try:
        table, _ = RABBITMQ.decode(octets, 0, len(octets))
    except FakeAMQPError:
        return None
    return str(table.get("LOGIN")), str(table.get("PASSWORD"))


class Logins:
    """What a recording tells of logins: the passwords of users, and the virtual hosts that were opened."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.users: dict[str, str] = {}
        self.virtual_hosts: dict[str, None] = {}
        self.refused: set[str] = set()
        """The short names of the connections whose login was refused."""
        self.unreadable: bool = False
        """Whether a login cannot be repeated: its user is not in the recording, as with EXTERNAL."""
        self._pending: dict[str, Any] = {}
        for event in events:
            if isinstance(event, ConnectionEvent):
                if event.event == "closed" and event.detail.startswith(_REFUSED):
                    self._refuse(event)
            elif isinstance(event, FrameEvent) and not event.channel and event.protocol == PROTOCOL:
                self._see(event, event.method)
            elif isinstance(event, FrameEvent) and event.protocol == PROTOCOL_1_0:
                self._see_1_0(event, event.method)

    def _see(self, event: Event, method: Any) -> None:
        asked = self._pending.get(event.alias)
        if isinstance(method, (m.ConnectionStartOk, m.ConnectionOpen)):
            self._pending[event.alias] = method
        elif isinstance(method, m.ConnectionTune) and isinstance(asked, m.ConnectionStartOk):
            del self._pending[event.alias]
            login = _login(asked.mechanism, asked.response)
            if login is None:
                self.unreadable = True
            else:
                self.users.setdefault(*login)
        elif isinstance(method, m.ConnectionOpenOk) and isinstance(asked, m.ConnectionOpen):
            del self._pending[event.alias]
            self.virtual_hosts[asked.virtual_host] = None
        elif isinstance(method, m.ConnectionClose) and method.reply_code == 403:
            self._refuse(event)

    def _see_1_0(self, event: FrameEvent, body: Any) -> None:
        name = getattr(body, "NAME", "")
        asked = self._pending.get(event.alias)
        if event.direction == "received" and name in ("sasl-init", "open"):
            self._pending[event.alias] = body
        elif name == "sasl-outcome" and asked is not None:
            login = _login(str(asked.mechanism), asked.initial_response or b"")
            if body.code:
                self.refused.add(event.alias)
            elif login is None:
                self.unreadable = True
            else:
                self.users.setdefault(*login)
        elif name == "open" and asked is not None:
            hostname = asked.hostname or ""
            if hostname.startswith(_VIRTUAL_HOST):
                self.virtual_hosts[hostname[len(_VIRTUAL_HOST) :]] = None

    def _refuse(self, event: Event) -> None:
        if isinstance(self._pending.get(event.alias), m.ConnectionStartOk):
            self.refused.add(event.alias)
