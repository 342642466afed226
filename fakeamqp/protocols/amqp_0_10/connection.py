"""Class connection: from the protocol header to an open virtual host, and its close."""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fakeamqp.model.access import User
from fakeamqp.model.errors import AuthenticationFailed, InvalidPath, NotAllowed
from fakeamqp.model.limits import check_connection_limits
from fakeamqp.protocols.amqp_0_10.codec import controls
from fakeamqp.protocols.amqp_0_10.codec.constants import MIN_MAX_FRAME_SIZE
from fakeamqp.protocols.amqp_0_10.codec.frames import HEADER_SIZE
from fakeamqp.protocols.amqp_0_10.codec.types import Array
from fakeamqp.protocols.amqp_0_10.replies import ConnectionFault
from fakeamqp.protocols.base.connection_states import ConnectionState
from fakeamqp.protocols.base.login import LOCALES, NotOffered, why_not_opened

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_10.codec.structs import Control
    from fakeamqp.protocols.amqp_0_10.server_connection import Amqp010Connection

CLASS = controls.ConnectionStart.CLASS
_DEFAULT_VIRTUAL_HOST = "/"
_HEARTBEAT_SIZE = HEADER_SIZE + len(controls.ConnectionHeartbeat().encode())


def start(connection: Amqp010Connection) -> None:
    """Send connection.start: the broker's properties, and the mechanisms and locales to choose from."""
    personality = connection.personality
    connection.send(
        0,
        controls.ConnectionStart(
            server_properties={
                "host": connection.peer.server_host,
                "product": personality.product,
                "version": personality.version,
                "platform": f"Python {platform.python_version()}",
                "copyright": "Copyright (c) the fakeamqp developers",
                "information": "fakeamqp, a broker for tests: licensed under Apache-2.0",
            },
            mechanisms=Array.of("str16", connection.login.offered),
            locales=Array.of("str16", LOCALES),
        ),
    )


def receive(connection: Amqp010Connection, control: Control) -> None:
    """A control of this class. A closing connection heeds only close and close-ok."""
    if connection.state is ConnectionState.CLOSING and not isinstance(
        control, (controls.ConnectionClose, controls.ConnectionCloseOk)
    ):
        return
    connection.enter(control.NAME)
    _HANDLERS[type(control)](connection, control)


def _start_ok(connection: Amqp010Connection, control: controls.ConnectionStartOk) -> None:
    connection.client_properties = control.client_properties or {}
    try:
        connection.login.choose(control.mechanism or "", control.locale)
    except NotOffered as problem:
        connection.refuse(str(problem))  # connection.start-ok/mechanism-validity, connection.start-ok/locale
        return
    _authenticate(connection, control.response)


def _authenticate(connection: Amqp010Connection, response: bytes | None) -> None:
    """Take one step of the mechanism: to a challenge, a user or a refusal."""
    try:
        answer = connection.login.step(response or b"")
    except AuthenticationFailed as problem:
        connection.refuse(f"login with {connection.login.mechanism} failed: {problem}", problem.why)
        return
    if not isinstance(answer, User):
        connection.challenge()
        connection.send(0, controls.ConnectionSecure(challenge=answer))
        return
    connection.authenticated(answer)
    choices = connection.choices
    connection.send(
        0,
        controls.ConnectionTune(
            channel_max=choices.channel_max,
            max_frame_size=choices.max_frame_size,
            heartbeat_min=choices.heartbeat_min,
            # Without a lower bound there is no upper one (connection.tune/heartbeat-max-no-heartbeat-min).
            heartbeat_max=None if choices.heartbeat_min is None else choices.heartbeat_max,
        ),
    )


def _tune_ok(connection: Amqp010Connection, control: controls.ConnectionTuneOk) -> None:
    """Settle the limits; for a field that the client leaves out, the offer holds."""
    choices = connection.choices
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
    connection.agree(channel_max, max_frame_size, heartbeat)


def _settled(name: str, asked: int | None, offered: int) -> int:
    """Refuse a limit above the offered one (connection.tune-ok/*-upper-limit)."""
    if asked is not None and asked > offered:
        raise _too(name, asked, "higher", offered)
    return offered if asked is None else asked


def _too(name: str, asked: int, how: str, bound: int) -> ConnectionFault:
    text = f"negotiated {name} = {asked} is {how} than what is allowed ({bound})"
    return ConnectionFault("connection-forced", text, silent=True)


def _open(connection: Amqp010Connection, control: controls.ConnectionOpen) -> None:
    """Open a virtual host; a client that names none gets the default one.

    A broker that has moved redirects clients that do not insist (connection.open/insist-behavior).
    """
    assert connection.user is not None
    redirect = connection.broker.redirect
    if redirect is not None and not control.insist:
        known_hosts = Array.of("str16", redirect.known_hosts)
        connection.redirected(controls.ConnectionRedirect(host=redirect.host, known_hosts=known_hosts))
        redirect.on_redirect()
        return
    name = control.virtual_host or _DEFAULT_VIRTUAL_HOST
    try:
        virtual_host = connection.broker.virtual_hosts.get(name)
        if virtual_host is None:
            raise InvalidPath(f"no virtual host '{name}'")  # connection.open/unknown-vhost
        check_connection_limits(connection.broker, virtual_host, connection.user)
        connection.broker.access.check_virtual_host(connection.user, virtual_host.name)
    except (NotAllowed, InvalidPath) as problem:
        connection.login_refused(why_not_opened(connection.broker, connection.user, name, problem))
        raise
    connection.send(0, controls.ConnectionOpenOk(known_hosts=Array.of("str16", ())))
    connection.opened(virtual_host)


_HANDLERS: dict[type[Control], Callable[[Amqp010Connection, Any], None]] = {
    controls.ConnectionStartOk: _start_ok,
    controls.ConnectionSecureOk: lambda connection, control: _authenticate(connection, control.response),
    controls.ConnectionTuneOk: _tune_ok,
    controls.ConnectionOpen: _open,
    # A sign of life, like any byte; heartbeats have no answer (connection.heartbeat/no-reply).
    controls.ConnectionHeartbeat: lambda connection, _: connection.note_idle(_HEARTBEAT_SIZE),
    controls.ConnectionClose: lambda connection, _: connection.closed_by_client(),
    controls.ConnectionCloseOk: lambda connection, _: connection.close_confirmed(),
}
