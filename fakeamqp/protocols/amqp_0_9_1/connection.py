"""Class connection: the handshake, the close, and RabbitMQ's update-secret.

The client's methods have the same bytes in 0-9, so these functions accept its methods as well.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from fakeamqp.model.access import User
from fakeamqp.model.errors import AuthenticationFailed, InvalidPath, NotAllowed
from fakeamqp.model.limits import check_connection_limits
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.tables import RABBITMQ
from fakeamqp.protocols.amqp_0_9_1.replies import ProtocolError
from fakeamqp.protocols.base.absent import is_absent
from fakeamqp.protocols.base.codec import WireError
from fakeamqp.protocols.base.connection_states import ConnectionState
from fakeamqp.protocols.base.login import LOCALES, MalformedResponse, Mechanism, NotOffered, why_not_opened

if TYPE_CHECKING:
    from fakeamqp.model.virtual_host import VirtualHost
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
    from fakeamqp.protocols.amqp_0_9_1.server_connection import Amqp091Connection

Handlers: TypeAlias = Mapping[str, Callable[[Any, Any], None]]
"""Method name -> handler."""

_METHODS_OF_CAPABILITIES = {
    "publisher_confirms": "confirm.select",
    "exchange_exchange_bindings": "exchange.bind",
    "basic.nack": "basic.nack",
}
"""Capability -> the method without which a broker does not announce it."""
_CLOSING_STATES = frozenset((ConnectionState.CLOSING, ConnectionState.CLOSED))


def server_properties(connection: Amqp091Connection[Any]) -> dict[str, Any]:
    """Return the server properties, as strings: some 0-9 clients read only those.

    Source: connection.start/server-properties.
    """
    personality = connection.personality
    properties = {
        "cluster_name": connection.broker.cluster_name,
        "copyright": "Copyright (c) the fakeamqp developers",
        "information": "fakeamqp, a broker for tests: licensed under Apache-2.0",
        "platform": f"Python {sys.version.split()[0]}",
        "product": personality.product,
        "version": personality.version,
    }
    if personality.announces_host:
        properties["host"] = connection.peer.server_host
    return properties


def send_start(connection: Amqp091Connection[Any], properties: Mapping[str, Any]) -> None:
    """Send connection.start, with server properties and mechanisms (connection.start/first-frame)."""
    major, minor = connection.VERSION
    connection.send(
        0,
        connection.START(
            version_major=major,
            version_minor=minor,
            server_properties=dict(properties),
            mechanisms=" ".join(connection.login.offered).encode(),
            locales=" ".join(LOCALES).encode(),
        ),
    )


def start(connection: Amqp091Connection[Any]) -> None:
    """Send connection.start with the capabilities of the personality (RabbitMQ: documented)."""
    personality = connection.personality
    absent = personality.not_implemented
    capabilities = {
        name: True
        for name in personality.capabilities
        if not (absent and is_absent(_METHODS_OF_CAPABILITIES.get(name, ""), absent))
    }
    properties = {"capabilities": capabilities, **server_properties(connection)}
    send_start(connection, properties)


def receive(connection: Amqp091Connection[Any], method: Method) -> None:
    """Dispatch a method on channel 0. A closing connection ignores all but close and close-ok."""
    name = method.NAME
    if connection.state in _CLOSING_STATES and name not in ("connection.close", "connection.close-ok"):
        return
    handler = connection.HANDLERS.get(name)
    if handler is not None:
        connection.enter(name)
        handler(connection, method)
    elif name.startswith("connection."):
        raise connection.out_of_order(connection.personality.connection_method_out_of_order)
    else:
        raise connection.out_of_order("channel-error")  # frame/channel-nonzero-others


class AmqPlain(Mechanism):
    """The SASL mechanism AMQPLAIN (RabbitMQ: documented): LOGIN and PASSWORD in a field table."""

    def step(self, response: bytes) -> User | bytes:
        octets = len(response).to_bytes(4, "big") + response
        try:
            table, _ = RABBITMQ.decode(octets, 0, len(octets))
        except WireError as problem:
            raise MalformedResponse(f"response is not a field table: {problem}") from None
        login = _credential(table.get("LOGIN"))
        if login is None or "PASSWORD" not in table:
            raise MalformedResponse("response lacks LOGIN or PASSWORD")
        # A password of another type is a wrong one (measured), as the empty one is.
        return self._state.access.authenticate(login, _credential(table["PASSWORD"]) or "")


def _credential(value: object) -> str | None:
    """A long string or a byte array as text; None for other types."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return value if isinstance(value, str) else None


def _start_ok(connection: Amqp091Connection[Any], method: Any) -> None:
    connection.client_properties = method.client_properties
    try:
        connection.login.choose(method.mechanism, method.locale)
    except NotOffered as problem:
        # connection.start-ok/mechanism-validity, connection.start-ok/locale-one-offered
        connection.refuse(str(problem))
        return
    _authenticate(connection, method.response)


def _authenticate(connection: Amqp091Connection[Any], response: bytes) -> None:
    """Run one step of the SASL mechanism, and send a challenge, connection.tune or a refusal."""
    login = connection.login
    try:
        answer = login.step(response)
    except MalformedResponse as problem:
        connection.refuse(f"login with {login.mechanism}: {problem}")
        return
    except AuthenticationFailed as problem:
        connection.refuse_login(
            f"Login was refused using authentication mechanism {login.mechanism}. "
            "For details see the broker logfile.",
            problem.why,
        )
        return
    if not isinstance(answer, User):
        connection.challenge()
        connection.send(0, m.ConnectionSecure(challenge=answer))
        return
    connection.authenticated(answer)
    personality = connection.personality
    connection.send(
        0,
        m.ConnectionTune(
            channel_max=personality.channel_max,
            frame_max=personality.frame_max,
            heartbeat=personality.heartbeat,
        ),
    )


def _tune_ok(connection: Amqp091Connection[Any], method: Any) -> None:
    offered = connection.personality
    _check_limit(connection, "channel_max", method.channel_max, offered.channel_max, 1)
    _check_limit(connection, "frame_max", method.frame_max, offered.frame_max, offered.smallest_frame_max)
    connection.agree(method.channel_max, method.frame_max, method.heartbeat)


def _check_limit(connection: Amqp091Connection[Any], name: str, asked: int, offered: int, least: int) -> None:
    """Check that a limit is not above the offered one; 0 means no limit (connection.tune-ok/*)."""
    if offered and (asked == 0 or asked > offered):
        raise ProtocolError(
            "not-allowed",
            f"negotiated {name} = {'0 (no limit)' if asked == 0 else asked} is higher than the maximum "
            f"allowed value ({offered})",
        )
    if asked and asked < least:
        raise ProtocolError(
            "not-allowed",
            f"negotiated {name} = {asked} is lower than the minimum allowed value ({least})",
        )


def open_virtual_host(connection: Amqp091Connection[Any], name: str) -> VirtualHost:
    """Return the virtual host that a client opens.

    Raises:
        NotAllowed: the virtual host does not exist, the user may not access it, or a connection limit is
            reached.
        InvalidPath: the virtual host does not exist, in personalities that use this code.
    """
    assert connection.user is not None
    if len(name.encode("utf-8", "surrogateescape")) > connection.personality.longest_name:
        raise NotAllowed(f"a virtual host's name has at most {connection.personality.longest_name} bytes")
    try:
        virtual_host = connection.broker.virtual_host(name)
        check_connection_limits(connection.broker, virtual_host, connection.user)
        connection.broker.access.check_virtual_host(connection.user, virtual_host.name)
    except (NotAllowed, InvalidPath) as problem:
        connection.login_refused(why_not_opened(connection.broker, connection.user, name, problem))
        raise
    return virtual_host


def _open(connection: Amqp091Connection[Any], method: m.ConnectionOpen) -> None:
    virtual_host = open_virtual_host(connection, method.virtual_host)
    connection.send(0, m.ConnectionOpenOk())
    connection.opened(virtual_host)


def _update_secret(connection: Amqp091Connection[Any], method: m.ConnectionUpdateSecret) -> None:
    """Accept a new secret for the connection's user (RabbitMQ: documented extension).

    Secrets do not expire in this broker, so the new one is only acknowledged. Some personalities also check
    the user's permissions again.
    """
    assert connection.user is not None and connection.virtual_host is not None
    if connection.personality.new_secret_is_checked:
        connection.user = connection.broker.access.users.get(connection.user.name, connection.user)
        connection.broker.access.check_virtual_host(connection.user, connection.virtual_host.name)
        for channel in list(connection.channels.values()):
            channel.check_consumers(connection.user)
    connection.send(0, m.ConnectionUpdateSecretOk())


def notify_blocked(connection: Amqp091Connection[Any], reason: str | None) -> None:
    """Send connection.blocked or unblocked to a client with the capability (RabbitMQ: documented)."""
    if connection.has_capability("connection.blocked"):
        connection.send(0, m.ConnectionUnblocked() if reason is None else m.ConnectionBlocked(reason=reason))


HANDLERS: Handlers = {
    "connection.start-ok": _start_ok,
    "connection.secure-ok": lambda connection, method: _authenticate(connection, method.response),
    "connection.tune-ok": _tune_ok,
    "connection.open": _open,
    "connection.update-secret": _update_secret,
    "connection.close": lambda connection, _: connection.closed_by_client(),
    "connection.close-ok": lambda connection, _: connection.close_confirmed(),
}
"""Method name -> handler."""
