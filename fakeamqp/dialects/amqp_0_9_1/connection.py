"""Class connection: from the protocol header to an open virtual host, and the close."""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fakeamqp.dialects.amqp_0_9_1.replies import ProtocolError
from fakeamqp.dialects.connection_states import ConnectionState
from fakeamqp.dialects.login import NotOffered
from fakeamqp.dialects.sasl import MalformedResponse
from fakeamqp.model.access import User
from fakeamqp.model.errors import AuthenticationFailed, NotAllowed
from fakeamqp.model.limits import check_connection_limits
from fakeamqp.wire.amqp_0_9_1 import methods as m
from fakeamqp.wire.amqp_0_9_1.constants import VERSION_MAJOR, VERSION_MINOR

if TYPE_CHECKING:
    from fakeamqp.dialects.amqp_0_9_1.endpoint import Endpoint
    from fakeamqp.wire.amqp_0_9_x.method import Method

__all__ = ["CONNECTION_METHODS", "receive", "start"]

_LOCALE = "en_US"


def start(endpoint: Endpoint) -> None:
    """Send connection.start: who we are and how a client may log in (connection.start/first-frame)."""
    personality = endpoint.personality
    properties: dict[str, Any] = {
        "capabilities": dict.fromkeys(personality.capabilities, True),
        "cluster_name": endpoint.broker.cluster_name,
        "copyright": "Copyright (c) the fakeamqp developers",
        "information": "fakeamqp, a broker for tests: licensed under Apache-2.0",
        "platform": f"Python {platform.python_version()}",
        "product": personality.product,
        "version": personality.version,
    }
    if personality.announces_host:
        properties["host"] = endpoint.peer.server_host
    endpoint.send(
        0,
        m.ConnectionStart(
            version_major=VERSION_MAJOR,
            version_minor=VERSION_MINOR,
            server_properties=properties,
            mechanisms=" ".join(endpoint.login.offered).encode(),
            locales=_LOCALE.encode(),
        ),
    )


def receive(endpoint: Endpoint, method: Method) -> None:
    """A method on channel 0. In a closing connection only close and close-ok count."""
    if endpoint.state is ConnectionState.CLOSING and not isinstance(
        method, (m.ConnectionClose, m.ConnectionCloseOk)
    ):
        return
    handler = _HANDLERS.get(type(method))
    if handler is not None:
        endpoint.enter(method.NAME)
        handler(endpoint, method)
    elif isinstance(method, CONNECTION_METHODS):
        raise endpoint.out_of_order(endpoint.personality.connection_method_out_of_order)
    else:
        raise endpoint.out_of_order("channel-error")  # frame/channel-nonzero-others


def _start_ok(endpoint: Endpoint, method: m.ConnectionStartOk) -> None:
    endpoint.client_properties = method.client_properties
    try:
        endpoint.login.choose(method.mechanism)
    except NotOffered as problem:  # connection.start-ok/mechanism-validity
        endpoint.refuse(str(problem))
        return
    _authenticate(endpoint, method.response)


def _secure_ok(endpoint: Endpoint, method: m.ConnectionSecureOk) -> None:
    _authenticate(endpoint, method.response)


def _authenticate(endpoint: Endpoint, response: bytes) -> None:
    """One step of the mechanism: a challenge, a user, or a refusal."""
    login = endpoint.login
    try:
        answer = login.step(response)
    except MalformedResponse as problem:
        endpoint.refuse(f"login with {login.mechanism}: {problem}")
        return
    except AuthenticationFailed:
        endpoint.refuse_login(
            f"Login was refused using authentication mechanism {login.mechanism}. "
            "For details see the broker logfile."
        )
        return
    if not isinstance(answer, User):
        endpoint.challenge()
        endpoint.send(0, m.ConnectionSecure(challenge=answer))
        return
    endpoint.authenticated(answer)
    personality = endpoint.personality
    endpoint.send(
        0,
        m.ConnectionTune(
            channel_max=personality.channel_max,
            frame_max=personality.frame_max,
            heartbeat=personality.heartbeat,
        ),
    )


def _tune_ok(endpoint: Endpoint, method: m.ConnectionTuneOk) -> None:
    offered = endpoint.personality
    _check_limit(endpoint, "channel_max", method.channel_max, offered.channel_max, 1)
    _check_limit(endpoint, "frame_max", method.frame_max, offered.frame_max, offered.smallest_frame_max)
    endpoint.agree(method.channel_max, method.frame_max, method.heartbeat)


def _check_limit(endpoint: Endpoint, name: str, asked: int, offered: int, least: int) -> None:
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


def _open(endpoint: Endpoint, method: m.ConnectionOpen) -> None:
    assert endpoint.user is not None
    if len(method.virtual_host.encode("utf-8", "surrogateescape")) > endpoint.personality.longest_name:
        raise NotAllowed(f"a virtual host's name has at most {endpoint.personality.longest_name} octets")
    virtual_host = endpoint.broker.virtual_host(method.virtual_host)
    check_connection_limits(endpoint.broker, virtual_host, endpoint.user)
    endpoint.broker.access.check_virtual_host(endpoint.user, virtual_host.name)
    endpoint.send(0, m.ConnectionOpenOk())
    endpoint.opened(virtual_host)


def _update_secret(endpoint: Endpoint, method: m.ConnectionUpdateSecret) -> None:
    """A new secret for the session's user (RabbitMQ: documented extension).

    The identity was proved at login; passwords do not expire here, so the new one is only acknowledged.
    What the user may do now is looked at where the personality does so.
    """
    assert endpoint.user is not None and endpoint.virtual_host is not None
    if endpoint.personality.new_secret_is_checked:
        endpoint.user = endpoint.broker.access.users.get(endpoint.user.name, endpoint.user)
        endpoint.broker.access.check_virtual_host(endpoint.user, endpoint.virtual_host.name)
        for channel in list(endpoint.channels.values()):
            channel.check_consumers(endpoint.user)
    endpoint.send(0, m.ConnectionUpdateSecretOk())


def _close(endpoint: Endpoint, method: m.ConnectionClose) -> None:
    endpoint.closed_by_client()


def _close_ok(endpoint: Endpoint, method: m.ConnectionCloseOk) -> None:
    endpoint.close_confirmed()


_HANDLERS: dict[type[Method], Callable[[Endpoint, Any], None]] = {
    m.ConnectionStartOk: _start_ok,
    m.ConnectionSecureOk: _secure_ok,
    m.ConnectionTuneOk: _tune_ok,
    m.ConnectionOpen: _open,
    m.ConnectionUpdateSecret: _update_secret,
    m.ConnectionClose: _close,
    m.ConnectionCloseOk: _close_ok,
}

CONNECTION_METHODS = tuple(each for each in m.METHODS.values() if each.NAME.startswith("connection."))
