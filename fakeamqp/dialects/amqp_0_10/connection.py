"""Class connection: from the protocol header to an open virtual host, and the close."""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fakeamqp.dialects.amqp_0_10.replies import ConnectionFault
from fakeamqp.dialects.connection_states import ConnectionState
from fakeamqp.dialects.login import NotOffered
from fakeamqp.model.access import User
from fakeamqp.model.errors import AuthenticationFailed, InvalidPath
from fakeamqp.model.limits import check_connection_limits
from fakeamqp.wire.amqp_0_10 import controls
from fakeamqp.wire.amqp_0_10.constants import MIN_MAX_FRAME_SIZE
from fakeamqp.wire.amqp_0_10.types import Array

if TYPE_CHECKING:
    from fakeamqp.dialects.amqp_0_10.endpoint import Endpoint
    from fakeamqp.wire.amqp_0_10.packed import Control

__all__ = ["CLASS", "receive", "start"]

CLASS = controls.ConnectionStart.CLASS
_LOCALES = ("en_US",)
_DEFAULT_VIRTUAL_HOST = "/"


def start(endpoint: Endpoint) -> None:
    """Send connection.start: who we are and how a client may log in."""
    personality = endpoint.personality
    endpoint.send(
        0,
        controls.ConnectionStart(
            server_properties={
                "host": endpoint.peer.server_host,
                "product": personality.product,
                "version": personality.version,
                "platform": f"Python {platform.python_version()}",
                "copyright": "Copyright (c) the fakeamqp developers",
                "information": "fakeamqp, a broker for tests: licensed under Apache-2.0",
            },
            mechanisms=Array.of("str16", endpoint.login.offered),
            locales=Array.of("str16", _LOCALES),
        ),
    )


def receive(endpoint: Endpoint, control: Control) -> None:
    """A control of this class. In a closing connection only close and close-ok count."""
    if endpoint.state is ConnectionState.CLOSING and not isinstance(
        control, (controls.ConnectionClose, controls.ConnectionCloseOk)
    ):
        return
    endpoint.enter(control.NAME)
    _HANDLERS[type(control)](endpoint, control)


def _start_ok(endpoint: Endpoint, control: controls.ConnectionStartOk) -> None:
    endpoint.client_properties = control.client_properties or {}
    try:
        endpoint.login.choose(control.mechanism or "")
    except NotOffered as problem:
        endpoint.refuse(str(problem))  # connection.start-ok/mechanism-validity
        return
    _authenticate(endpoint, control.response)


def _secure_ok(endpoint: Endpoint, control: controls.ConnectionSecureOk) -> None:
    _authenticate(endpoint, control.response)


def _authenticate(endpoint: Endpoint, response: bytes | None) -> None:
    """One step of the mechanism: a challenge, a user, or a refusal."""
    try:
        answer = endpoint.login.step(response or b"")
    except AuthenticationFailed as problem:
        endpoint.refuse(f"login with {endpoint.login.mechanism} failed: {problem}")
        return
    if not isinstance(answer, User):
        endpoint.challenge()
        endpoint.send(0, controls.ConnectionSecure(challenge=answer))
        return
    endpoint.authenticated(answer)
    choices = endpoint.choices
    endpoint.send(
        0,
        controls.ConnectionTune(
            channel_max=choices.channel_max,
            max_frame_size=choices.max_frame_size,
            heartbeat_min=choices.heartbeat_min,
            # Without a lower bound there is no upper one (connection.tune/heartbeat-max-no-heartbeat-min).
            heartbeat_max=None if choices.heartbeat_min is None else choices.heartbeat_max,
        ),
    )


def _tune_ok(endpoint: Endpoint, control: controls.ConnectionTuneOk) -> None:
    """Settle the limits; what the client leaves out is as it was offered."""
    choices = endpoint.choices
    channel_max = _settled("channel-max", control.channel_max, choices.channel_max)
    max_frame_size = _settled("max-frame-size", control.max_frame_size, choices.max_frame_size)
    if max_frame_size < MIN_MAX_FRAME_SIZE:
        raise _too("max-frame-size", max_frame_size, "lower", MIN_MAX_FRAME_SIZE)
    heartbeat = control.heartbeat or 0
    if heartbeat and choices.heartbeat_min is None:
        raise ConnectionFault("connection-forced", "heartbeats were not offered", silent=True)
    if heartbeat and heartbeat < (choices.heartbeat_min or 0):
        raise _too("heartbeat", heartbeat, "lower", choices.heartbeat_min or 0)
    if heartbeat > choices.heartbeat_max:
        raise _too("heartbeat", heartbeat, "higher", choices.heartbeat_max)
    endpoint.agree(channel_max, max_frame_size, heartbeat)


def _settled(name: str, asked: int | None, offered: int) -> int:
    """A limit must not be above the one offered (connection.tune-ok/*-upper-limit)."""
    if asked is not None and asked > offered:
        raise _too(name, asked, "higher", offered)
    return offered if asked is None else asked


def _too(name: str, asked: int, how: str, bound: int) -> ConnectionFault:
    text = f"negotiated {name} = {asked} is {how} than what is allowed ({bound})"
    return ConnectionFault("connection-forced", text, silent=True)


def _open(endpoint: Endpoint, control: controls.ConnectionOpen) -> None:
    """Open a virtual host; a client that names none gets the default one.

    Where the broker has moved, clients are sent there that do not insist (connection.open/insist-behavior).
    """
    assert endpoint.user is not None
    redirect = endpoint.broker.redirect
    if redirect is not None and not control.insist:
        known_hosts = Array.of("str16", redirect.known_hosts)
        endpoint.redirected(controls.ConnectionRedirect(host=redirect.host, known_hosts=known_hosts))
        redirect.note()
        return
    name = control.virtual_host or _DEFAULT_VIRTUAL_HOST
    virtual_host = endpoint.broker.virtual_hosts.get(name)
    if virtual_host is None:
        raise InvalidPath(f"no virtual host '{name}'")  # connection.open/unknown-vhost
    check_connection_limits(endpoint.broker, virtual_host, endpoint.user)
    endpoint.broker.access.check_virtual_host(endpoint.user, virtual_host.name)
    endpoint.send(0, controls.ConnectionOpenOk(known_hosts=Array.of("str16", ())))
    endpoint.opened(virtual_host)


def _heartbeat(endpoint: Endpoint, control: controls.ConnectionHeartbeat) -> None:
    """A sign of life, which any octet is; there is no answer (connection.heartbeat/no-reply)."""


def _close(endpoint: Endpoint, control: controls.ConnectionClose) -> None:
    endpoint.closed_by_client()


def _close_ok(endpoint: Endpoint, control: controls.ConnectionCloseOk) -> None:
    endpoint.close_confirmed()


_HANDLERS: dict[type[Control], Callable[[Endpoint, Any], None]] = {
    controls.ConnectionStartOk: _start_ok,
    controls.ConnectionSecureOk: _secure_ok,
    controls.ConnectionTuneOk: _tune_ok,
    controls.ConnectionOpen: _open,
    controls.ConnectionHeartbeat: _heartbeat,
    controls.ConnectionClose: _close,
    controls.ConnectionCloseOk: _close_ok,
}
