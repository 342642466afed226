"""Class connection, as 0-9 and 0-9-1 have it: from the protocol header to a virtual host, and the close.

The methods that a client sends are the same to the byte in both, so the functions here take either's.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from fakeamqp.model.access import User
from fakeamqp.model.errors import AuthenticationFailed, NotAllowed
from fakeamqp.model.limits import check_connection_limits
from fakeamqp.protocols.common.connection_states import ConnectionState
from fakeamqp.protocols.common.login import NotOffered
from fakeamqp.protocols.common.sasl import MalformedResponse
from fakeamqp.protocols.framed.replies import ProtocolError

if TYPE_CHECKING:
    from fakeamqp.model.virtual_host import VirtualHost
    from fakeamqp.protocols.framed.codec.method import Method
    from fakeamqp.protocols.framed.server_connection import FramedConnection

__all__ = ["HANDLERS", "Handlers", "open_virtual_host", "receive", "server_properties", "start"]

Handlers: TypeAlias = Mapping[str, Callable[[Any, Any], None]]
"""By the name of a method, what deals with it."""

_LOCALE = "en_US"


def server_properties(connection: FramedConnection[Any]) -> dict[str, Any]:
    """Who we are, in texts: clients of 0-9 read little else (connection.start/server-properties)."""
    personality = connection.personality
    properties = {
        "cluster_name": connection.broker.cluster_name,
        "copyright": "Copyright (c) the fakeamqp developers",
        "information": "fakeamqp, a broker for tests: licensed under Apache-2.0",
        "platform": f"Python {platform.python_version()}",
        "product": personality.product,
        "version": personality.version,
    }
    if personality.announces_host:
        properties["host"] = connection.peer.server_host
    return properties


def start(connection: FramedConnection[Any], properties: Mapping[str, Any], version: tuple[int, int]) -> None:
    """Send connection.start: who we are and how a client may log in (connection.start/first-frame)."""
    major, minor = version
    connection.send(
        0,
        connection.vocabulary.ConnectionStart(
            version_major=major,
            version_minor=minor,
            server_properties=dict(properties),
            mechanisms=" ".join(connection.login.offered).encode(),
            locales=_LOCALE.encode(),
        ),
    )


def receive(connection: FramedConnection[Any], method: Method, handlers: Handlers) -> None:
    """A method on channel 0. In a closing connection only close and close-ok count."""
    name = method.NAME
    if connection.state is ConnectionState.CLOSING and name not in (
        "connection.close",
        "connection.close-ok",
    ):
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
        connection.login.choose(method.mechanism)
    except NotOffered as problem:  # connection.start-ok/mechanism-validity
        connection.refuse(str(problem))
        return
    _authenticate(connection, method.response)


def _secure_ok(connection: FramedConnection[Any], method: Any) -> None:
    _authenticate(connection, method.response)


def _authenticate(connection: FramedConnection[Any], response: bytes) -> None:
    """One step of the mechanism: a challenge, a user, or a refusal."""
    login = connection.login
    try:
        answer = login.step(response)
    except MalformedResponse as problem:
        connection.refuse(f"login with {login.mechanism}: {problem}")
        return
    except AuthenticationFailed:
        connection.refuse_login(
            f"Login was refused using authentication mechanism {login.mechanism}. "
            "For details see the broker logfile."
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
    """A limit must not be above the one offered, and 0 means none (connection.tune-ok/*)."""
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
    """The virtual host that a client opens, once it may.

    Raises:
        NotAllowed: there is no such virtual host, or the user may not work in it, or not on that many
            connections.
        InvalidPath: there is no such virtual host, by personality.
    """
    assert connection.user is not None
    if len(name.encode("utf-8", "surrogateescape")) > connection.personality.longest_name:
        raise NotAllowed(f"a virtual host's name has at most {connection.personality.longest_name} bytes")
    virtual_host = connection.broker.virtual_host(name)
    check_connection_limits(connection.broker, virtual_host, connection.user)
    connection.broker.access.check_virtual_host(connection.user, virtual_host.name)
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
"""By the name of the method; opening a virtual host is the protocol's."""
