"""Views of the sessions of AMQP 0-10, which may outlive their connections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fakeamqp.inspect.topology import ConsumerView, consumer_view

if TYPE_CHECKING:
    from fakeamqp.model.state import BrokerState, ClientSession

__all__ = ["SessionView", "session_view", "session_views"]


@dataclass(frozen=True, kw_only=True, repr=False)
class SessionView:
    """One session of AMQP 0-10.

    Args:
        name: the name as text; bytes that are not UTF-8 are escaped.
        user: the name of the user.
        virtual_host: the name of its virtual host.
        connection: the name of its connection; None while it is detached.
        channel: the number of its channel; None while it is detached.
        failed: whether an exception has ended it before its client has detached.
        timeout: the seconds for which a detached session is kept; None means for ever.
        left: the seconds left of these; None while it is attached, or kept for ever.
        subscriptions: its subscriptions, in the order they started; their tags are the destinations.
        unacked: the number of transfers that its client has not settled.
        mode: "tx" or "dtx" if selected; otherwise None.
    """

    name: str
    user: str
    virtual_host: str
    connection: str | None
    channel: int | None
    failed: bool
    timeout: float | None
    left: float | None
    subscriptions: tuple[ConsumerView, ...]
    unacked: int
    mode: Literal["tx", "dtx"] | None

    @property
    def attached(self) -> bool:
        """Whether the session has a connection."""
        return self.connection is not None

    def __repr__(self) -> str:
        words = [f"<session {self.name!r} of {self.user!r}"]
        if self.connection is None:
            kept = "for ever" if self.left is None else f"for {self.left:g} s more"
            words.append(f"detached, kept {kept}")
        else:
            words.append(f"on {self.connection} channel {self.channel}")
        if self.failed:
            words.append("failed")
        words.append(f"subscriptions={len(self.subscriptions)} unacked={self.unacked}")
        if self.mode is not None:
            words.append(self.mode)
        return " ".join(words) + ">"


def session_views(state: BrokerState) -> tuple[SessionView, ...]:
    """All sessions, including detached ones, oldest first."""
    return tuple(session_view(session, state) for session in state.sessions.values())


def session_view(session: ClientSession, state: BrokerState) -> SessionView:
    """The view of one session."""
    ends_at = session.ends_at
    return SessionView(
        name=session.display_name,
        user=session.user.name,
        virtual_host=session.virtual_host.name,
        connection=session.connection_name if session.attached else None,
        channel=session.number if session.attached else None,
        failed=session.attached and not session.alive,
        timeout=session.timeout,
        left=None if ends_at is None else max(0.0, ends_at - state.clock.now()),
        subscriptions=tuple(consumer_view(subscription) for subscription in session.consumers.values()),
        unacked=len(session.ledger.outstanding),
        mode=session.mode,
    )
