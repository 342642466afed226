"""Sessions without a connection, which wait for their clients to come back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.model.extensions import Extension
from fakeamqp.protocols.base.limited_log import LimitedLog

if TYPE_CHECKING:
    from fakeamqp.model.state import BrokerState
    from fakeamqp.protocols.amqp_0_10.sessions.server_session import ServerSession

__all__ = ["DetachedSessions"]


class _DetachedLog(LimitedLog):
    about = "detached sessions that end"


class DetachedSessions(Extension):
    """The detached sessions of one broker, the one first that has been detached longest.

    Beyond `Bounds.detached_sessions` that one ends, as if its timeout had run out: a client that comes back
    finds a new session (session.attach, session.expected).
    """

    def __init__(self, owner: BrokerState) -> None:
        self._log = owner.extensions[_DetachedLog]
        self._most = owner.bounds.detached_sessions
        self._sessions: dict[ServerSession, None] = {}

    def add(self, session: ServerSession) -> None:
        """A session is detached, and kept."""
        self._sessions[session] = None
        if len(self._sessions) > self._most:
            longest = next(iter(self._sessions))
            self._log.warning(
                "more than %d sessions are detached; session %r, detached longest, ends",
                self._most,
                longest.display_name,
            )
            longest.end()

    def remove(self, session: ServerSession) -> None:
        """The session is attached again, or has ended."""
        self._sessions.pop(session, None)
