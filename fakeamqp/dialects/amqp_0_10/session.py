"""Class session: controls that attach a session to a channel, and keep its two command streams in step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fakeamqp.dialects.amqp_0_10.replies import ConnectionFault
from fakeamqp.dialects.amqp_0_10.sessions.session_end import SessionEnd
from fakeamqp.wire.amqp_0_10 import controls
from fakeamqp.wire.amqp_0_10.constants import DetachCode

if TYPE_CHECKING:
    from fakeamqp.dialects.amqp_0_10.endpoint import Endpoint
    from fakeamqp.wire.amqp_0_10.packed import Control

__all__ = ["not_attached", "receive"]


def receive(endpoint: Endpoint, channel: int, control: Control) -> None:
    """A control of this class on a channel.

    All but four need a session that is attached to the channel (session/attachment). A session that an
    exception has ended hears nothing but its detach and detached.
    """
    attaching = _ATTACHING.get(type(control))
    if attaching is not None:
        attaching(endpoint, channel, control)
        return
    session = endpoint.sessions.get(channel)
    if session is None:
        not_attached(endpoint, channel)
    elif session.alive:
        handler = _HANDLERS.get(type(control))
        if handler is None:
            raise ConnectionFault("framing-error", f"{control.NAME} is not for a broker")
        handler(session, control)


def not_attached(endpoint: Endpoint, channel: int, name: bytes = b"") -> None:
    """Say that the channel has no session."""
    endpoint.send(channel, controls.SessionDetached(name=name, code=DetachCode.NOT_ATTACHED))


# --- transports --------------------------------------------------------------------------------------


def _attach(endpoint: Endpoint, channel: int, control: controls.SessionAttach) -> None:
    """Attach a session to this channel: a new one, or the one of that name (session.attach/*)."""
    assert endpoint.virtual_host is not None and endpoint.user is not None
    name = control.name or b""
    here = endpoint.sessions.get(channel)
    if here is not None and here.session_name != name:
        # session.attach/one-session-per-transport
        endpoint.send(channel, controls.SessionDetached(name=name, code=DetachCode.TRANSPORT_BUSY))
        return
    key = (endpoint.virtual_host.name, endpoint.user.name, name)
    session = _known(endpoint, key)
    if session.endpoint is not None and (session.endpoint is not endpoint or session.channel != channel):
        if not control.force:
            # session.attach/one-transport-per-session
            endpoint.send(channel, controls.SessionDetached(name=name, code=DetachCode.SESSION_BUSY))
            return
        session.forced_off()
        session = _known(endpoint, key)
    if session.endpoint is None:
        session.attach(endpoint, channel)
    else:
        endpoint.send(channel, controls.SessionAttached(name=name))  # session.attach/idempotence


def _known(endpoint: Endpoint, key: tuple[str, str, bytes]) -> SessionEnd:
    """The session of that name; a new one where there is none."""
    session = endpoint.broker.sessions.get(key)
    if session is None:
        session = endpoint.broker.sessions[key] = SessionEnd(endpoint, key)
    assert isinstance(session, SessionEnd)
    return session


def _attached(endpoint: Endpoint, channel: int, control: controls.SessionAttached) -> None:
    """The broker attaches nothing by itself, so there is nothing that this could confirm."""
    if channel not in endpoint.sessions:
        not_attached(endpoint, channel, control.name or b"")


def _detach(endpoint: Endpoint, channel: int, control: controls.SessionDetach) -> None:
    """Detach the session, and confirm it (session.detach/confirmed)."""
    session = endpoint.sessions.get(channel)
    name = control.name or b""
    if session is None or session.session_name != name:
        not_attached(endpoint, channel, name)
        return
    session.detached_by_client()
    endpoint.send(channel, controls.SessionDetached(name=name, code=DetachCode.NORMAL))


def _detached(endpoint: Endpoint, channel: int, control: controls.SessionDetached) -> None:
    """The client has detached: because it was asked to, or of its own (session.detached/spontaneous)."""
    session = endpoint.sessions.get(channel)
    if session is not None and session.session_name == (control.name or b""):
        session.detached_by_client()


_ATTACHING: dict[type[Control], Callable[[Endpoint, int, Any], None]] = {
    controls.SessionAttach: _attach,
    controls.SessionAttached: _attached,
    controls.SessionDetach: _detach,
    controls.SessionDetached: _detached,
}


# --- timeouts ----------------------------------------------------------------------------------------


def _request_timeout(session: SessionEnd, control: controls.SessionRequestTimeout) -> None:
    """Keep the state of the session for so long once it is detached; absent means for ever."""
    session.set_timeout(control.timeout)
    session.send_control(controls.SessionTimeout(timeout=session.timeout))


def _timeout(session: SessionEnd, control: controls.SessionTimeout) -> None:
    """How long the client keeps its part; the broker asks for nothing and relies on nothing."""


# --- the client's commands ---------------------------------------------------------------------------


def _command_point(session: SessionEnd, control: controls.SessionCommandPoint) -> None:
    """From which command, and which octet of it, the client goes on (session.command-point/numbering)."""
    session.incoming.point(control.command_id or 0, control.command_offset or 0)


def _known_completed(session: SessionEnd, control: controls.SessionKnownCompleted) -> None:
    """The client knows of these: they need not be told again."""
    if control.commands is not None:
        session.incoming.known(control.commands)


def _flush(session: SessionEnd, control: controls.SessionFlush) -> None:
    """Tell of the client's commands what it wants to know, now (session.flush/*)."""
    incoming = session.incoming
    if control.expected:
        session.send_control(incoming.expected())
    if control.confirmed:
        session.send_control(incoming.confirmed())
    if control.completed:
        session.send_control(incoming.completed())


def _gap(session: SessionEnd, control: controls.SessionGap) -> None:
    """The client will not send these commands (session.gap/*)."""
    if control.commands is not None:
        session.incoming.skip(control.commands)


# --- the broker's commands ---------------------------------------------------------------------------


def _expected(session: SessionEnd, control: controls.SessionExpected) -> None:
    """What the client waits for: it gets that now (session/replay)."""
    session.outgoing.replay(control.commands, control.fragments)


def _confirmed(session: SessionEnd, control: controls.SessionConfirmed) -> None:
    """These need not be replayed."""
    if control.commands is not None:
        session.outgoing.confirmed(control.commands)


def _completed(session: SessionEnd, control: controls.SessionCompleted) -> None:
    """These are done: what waited for that goes on."""
    if control.commands is None:
        return
    session.outgoing.completed(control.commands)
    if control.timely_reply or session.choices.replies_known_completed == "always":
        session.send_control(controls.SessionKnownCompleted(commands=control.commands))


_HANDLERS: dict[type[Control], Callable[[SessionEnd, Any], None]] = {
    controls.SessionRequestTimeout: _request_timeout,
    controls.SessionTimeout: _timeout,
    controls.SessionCommandPoint: _command_point,
    controls.SessionKnownCompleted: _known_completed,
    controls.SessionFlush: _flush,
    controls.SessionGap: _gap,
    controls.SessionExpected: _expected,
    controls.SessionConfirmed: _confirmed,
    controls.SessionCompleted: _completed,
}
