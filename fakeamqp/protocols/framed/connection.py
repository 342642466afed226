"""The methods of class connection that 0-9 and 0-9-1 share: the handshake and the close.

The client's methods have the same bytes in both protocols, so these functions accept the methods of either.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from fakeamqp.model.access import User
from fakeamqp.model.errors import AuthenticationFailed, InvalidPath, NotAllowed
from fakeamqp.model.limits import check_connection_limits
from fakeamqp.protocols.common.connection_states import ConnectionState
from fakeamqp.protocols.common.login import LOCALES, NotOffered, why_not_opened
from fakeamqp.protocols.common.sasl import MalformedResponse
from fakeamqp.protocols.framed.replies import ProtocolError

if TYPE_CHECKING:
    from fakeamqp.model.virtual_host import VirtualHost
    from fakeamqp.protocols.framed.codec.method import Method
    from fakeamqp.protocols.framed.server_connection import FramedConnection

__all__ = ["HANDLERS", "Handlers", "open_virtual_host", "receive", "server_properties", "start"]

Handlers: TypeAlias = Mapping[str, Callable[[Any, Any], None]]
"""Method name -> handler."""

_CLOSING_STATES = frozenset((ConnectionState.CLOSING, ConnectionState.CLOSED))


def server_properties(connection: FramedConnection[Any]) -> dict[str, Any]:
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


def start(connection: FramedConnection[Any], properties: Mapping[str, Any], version: tuple[int, int]) -> None:
    """Send connection.start, with server properties and mechanisms (connection.start/first-frame)."""
    major, minor = version
    connection.send(
        0,
        connection.vocabulary.ConnectionStart(
            version_major=major,
            version_minor=minor,
            server_properties=dict(properties),
            mechanisms=" ".join(connection.login.offered).encode(),
            locales=" ".join(LOCALES).encode(),
        ),
    )


def receive(connection: FramedConnection[Any], method: Method, handlers: Handlers) -> None:
    """Dispatch a method on channel 0. A closing connection ignores all but close and close-ok."""
    name = method.NAME
    if connection.state in _CLOSING_STATES and name not in ("connection.close", "connection.close-ok"):
        return
    handler = handlers.get(name)
    if handler is not None:
        connection.enter(name)
        handler(connection, method)
    elif name.startswith("connection."):
        raise connection.out_of_order(connection.personality.connection_method_out_of_order)
    else:
        raise connection.out_of_order("channel-error")  # frame/channel-nonzero-others


def _start_ok(connection: FramedConnection[Any], method: Any) -> None:
    connection.client_properties = method.client_properties
    try:
        connection.login.choose(method.mechanism, method.locale)
    except (
        NotOffered
    ) as problem:  # connection.start-ok/mechanism-validity, connection.start-ok/locale-one-offered
        connection.refuse(str(problem))
        return
    _authenticate(connection, method.response)


def _secure_ok(connection: FramedConnection[Any], method: Any) -> None:
    _authenticate(connection, method.response)


def _authenticate(connection: FramedConnection[Any], response: bytes) -> None:
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
        connection.send(0, connection.vocabulary.ConnectionSecure(challenge=answer))
        return
    connection.authenticated(answer)
    personality = connection.personality
    connection.send(
        0,
        connection.vocabulary.ConnectionTune(
            channel_max=personality.channel_max,
            frame_max=personality.frame_max,
            heartbeat=personality.heartbeat,
        ),
    )


def _tune_ok(connection: FramedConnection[Any], method: Any) -> None:
    offered = connection.personality
    _check_limit(connection, "channel_max", method.channel_max, offered.channel_max, 1)
    _check_limit(connection, "frame_max", method.frame_max, offered.frame_max, offered.smallest_frame_max)
    connection.agree(method.channel_max, method.frame_max, method.heartbeat)


def _check_limit(connection: FramedConnection[Any], name: str, asked: int, offered: int, least: int) -> None:
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


def open_virtual_host(connection: FramedConnection[Any], name: str) -> VirtualHost:
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


def _close(connection: FramedConnection[Any], method: Method) -> None:
    connection.closed_by_client()


def _close_ok(connection: FramedConnection[Any], method: Method) -> None:
    connection.close_confirmed()


HANDLERS: Handlers = {
    "connection.start-ok": _start_ok,
    "connection.secure-ok": _secure_ok,
    "connection.tune-ok": _tune_ok,
    "connection.close": _close,
    "connection.close-ok": _close_ok,
}
"""Method name -> handler. Each protocol adds connection.open."""
