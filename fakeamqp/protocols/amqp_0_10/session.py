"""Class session: controls that attach a session to a channel and synchronize its two command streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_0_10.codec import controls
from fakeamqp.protocols.amqp_0_10.codec.constants import DetachCode
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet
from fakeamqp.protocols.amqp_0_10.replies import ConnectionFault
from fakeamqp.protocols.amqp_0_10.server_session import ServerSession

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_10.codec.structs import Control
    from fakeamqp.protocols.amqp_0_10.server_connection import Amqp010Connection


def receive(connection: Amqp010Connection, channel: int, control: Control) -> None:
    """A control of this class on a channel.

    All but four need a session that is attached to the channel (session/attachment). A session that an
    exception has ended heeds only detach and detached.
    """
    attaching = _ATTACHING.get(type(control))
    if attaching is not None:
        attaching(connection, channel, control)
        return
    session = connection.sessions.get(channel)
    if session is None:
        not_attached(connection, channel)
    elif session.alive:
        handler = _HANDLERS.get(type(control))
        if handler is None:
            raise ConnectionFault("framing-error", f"{control.NAME} is not for a broker")
        handler(session, control)


def not_attached(connection: Amqp010Connection, channel: int, name: bytes = b"") -> None:
    """Tell the client that the channel has no session."""
    connection.send(channel, controls.SessionDetached(name=name, code=DetachCode.NOT_ATTACHED))


def _attach(connection: Amqp010Connection, channel: int, control: controls.SessionAttach) -> None:
    """Attach a session to this channel: a new one, or the one of that name (session.attach/*)."""
    assert connection.virtual_host is not None and connection.user is not None
    name = control.name or b""
    here = connection.sessions.get(channel)
    if here is not None and here.session_name != name:
        # session.attach/one-session-per-transport
        connection.send(channel, controls.SessionDetached(name=name, code=DetachCode.TRANSPORT_BUSY))
        return
    key = (connection.virtual_host.name, connection.user.name, name)
    session = _known(connection, key)
    if session.connection is not None and (
        session.connection is not connection or session.channel != channel
    ):
        if not control.force:
            # session.attach/one-transport-per-session
            connection.send(channel, controls.SessionDetached(name=name, code=DetachCode.SESSION_BUSY))
            return
        session.forced_off()
        session = _known(connection, key)
    if session.connection is None:
        session.attach(connection, channel)
    else:
        connection.send(channel, controls.SessionAttached(name=name))  # session.attach/idempotence


def _known(connection: Amqp010Connection, key: tuple[str, str, bytes]) -> ServerSession:
    session = connection.broker.sessions.get(key)
    if session is None:
        session = connection.broker.sessions[key] = ServerSession(connection, key)
    assert isinstance(session, ServerSession)
    return session


def _attached(connection: Amqp010Connection, channel: int, control: controls.SessionAttached) -> None:
    """Refuse attached: the broker attaches no session by itself, so there is nothing to confirm."""
    if channel not in connection.sessions:
        not_attached(connection, channel, control.name or b"")


def _detach(connection: Amqp010Connection, channel: int, control: controls.SessionDetach) -> None:
    """Detach the session, and confirm it (session.detach/confirmed)."""
    session = connection.sessions.get(channel)
    name = control.name or b""
    if session is None or session.session_name != name:
        not_attached(connection, channel, name)
        return
    session.detach()
    connection.send(channel, controls.SessionDetached(name=name, code=DetachCode.NORMAL))


def _detached(connection: Amqp010Connection, channel: int, control: controls.SessionDetached) -> None:
    """The client has detached, on request or by itself (session.detached/spontaneous)."""
    session = connection.sessions.get(channel)
    if session is not None and session.session_name == (control.name or b""):
        session.detach()


_ATTACHING: dict[type[Control], Callable[[Amqp010Connection, int, Any], None]] = {
    controls.SessionAttach: _attach,
    controls.SessionAttached: _attached,
    controls.SessionDetach: _detach,
    controls.SessionDetached: _detached,
}


def _request_timeout(session: ServerSession, control: controls.SessionRequestTimeout) -> None:
    """Set for how many seconds a detached session is kept; absent means for ever."""
    timeout, longest = control.timeout, session.choices.longest_session_timeout
    session.timeout = longest if longest is not None and (timeout is None or timeout > longest) else timeout
    session.send_control(controls.SessionTimeout(timeout=session.timeout))


def _flush(session: ServerSession, control: controls.SessionFlush) -> None:
    """Send the states that the client requests for its commands (session.flush/*)."""
    incoming = session.incoming
    if control.expected:
        session.send_control(incoming.expected())
    if control.confirmed:
        session.send_control(incoming.confirmed())
    if control.completed:
        session.send_control(incoming.completed())


def _gap(session: ServerSession, control: controls.SessionGap) -> None:
    """The client does not send these commands (session.gap/*)."""
    if control.commands is not None:
        session.incoming.skip(control.commands)


def _completed(session: ServerSession, control: controls.SessionCompleted) -> None:
    """These commands are complete: their callbacks run."""
    if control.commands is None:
        return
    session.outgoing.completed(control.commands)
    if control.timely_reply or session.choices.replies_known_completed == "always":
        session.send_control(controls.SessionKnownCompleted(commands=control.commands))


_HANDLERS: dict[type[Control], Callable[[ServerSession, Any], None]] = {
    controls.SessionRequestTimeout: _request_timeout,
    controls.SessionTimeout: lambda session, control: None,
    # What the client sends next (session.command-point/numbering).
    controls.SessionCommandPoint: lambda session, control: session.incoming.point(
        control.command_id or 0, control.command_offset or 0
    ),
    # The client knows of these completions: they are not sent again.
    controls.SessionKnownCompleted: lambda session, control: session.incoming.known(
        control.commands or SequenceSet()
    ),
    controls.SessionFlush: _flush,
    controls.SessionGap: _gap,
    controls.SessionExpected: lambda session, control: session.outgoing.replay(
        control.commands, control.fragments
    ),
    controls.SessionConfirmed: lambda session, control: session.outgoing.confirmed(
        control.commands or SequenceSet()
    ),
    controls.SessionCompleted: _completed,
}
