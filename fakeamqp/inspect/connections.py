"""Views of client connections, their channels and their sessions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fakeamqp.dialects import default_protocol, protocol_named
from fakeamqp.inspect.frozen import FrozenDict, frozen
from fakeamqp.inspect.topology import ConsumerView, consumer_view

if TYPE_CHECKING:
    from fakeamqp.model.state import BrokerState, ClientChannel, ClientConnection, ClientSession

__all__ = [
    "ChannelView",
    "ConnectionView",
    "SessionView",
    "connection_view",
    "connection_views",
    "session_view",
    "session_views",
]


@dataclass(frozen=True, kw_only=True, repr=False)
class ChannelView:
    """One open channel.

    Args:
        number: the number of the channel.
        consumers: its consumers, in the order they started.
        unacked: the number of unacked messages.
        prefetch: the maximum number of unacked messages of each new consumer (with `global`, of all
            together); 0 means no limit.
        mode: "confirm" or "tx", in the other protocols "tx" or "dtx", if selected; otherwise None.
    """

    number: int
    consumers: tuple[ConsumerView, ...]
    unacked: int
    prefetch: int
    mode: Literal["confirm", "tx", "dtx"] | None

    def __repr__(self) -> str:
        words = [f"<channel {self.number} consumers={len(self.consumers)} unacked={self.unacked}"]
        words.append(f"prefetch={self.prefetch or 'unlimited'}")
        if self.mode is not None:
            words.append(self.mode)
        return " ".join(words) + ">"


@dataclass(frozen=True, kw_only=True, repr=False)
class ConnectionView:
    """One client connection.

    Args:
        name: the addresses of client and broker, in RabbitMQ's format.
        user: the name of the user; None before the login.
        virtual_host: the name of the virtual host; None before connection.open.
        client_properties: the properties that the client has sent.
        heartbeat: the negotiated interval, in seconds; 0 means none.
        blocked: the reason why the client may not publish, or None.
        channels: the open channels by number; in AMQP 0-10 those with an attached session.
        protocol: the client's protocol version: "0-9-1", "0-10", "0-9" or "0-8".
        sessions: in AMQP 0-10 the attached sessions, by channel; `Broker.sessions` includes detached ones.
    """

    name: str
    user: str | None
    virtual_host: str | None
    client_properties: FrozenDict
    heartbeat: int
    blocked: str | None
    channels: tuple[ChannelView, ...]
    protocol: str
    sessions: tuple[SessionView, ...]

    @property
    def client(self) -> str:
        """Product and version of the client library, as far as known."""
        words = (self.client_properties.get("product"), self.client_properties.get("version"))
        return " ".join(word for word in words if isinstance(word, str))

    @property
    def connection_name(self) -> str | None:
        """The name that the app has set for the connection, or None."""
        name = self.client_properties.get("connection_name")
        return name if isinstance(name, str) else None

    def __repr__(self) -> str:
        words = [f"<connection {self.name!r}"]
        if self.connection_name is not None:
            words.append(f"called {self.connection_name!r}")
        if self.client:
            words.append(f"from {self.client!r}")
        words.append(f"user={self.user!r} virtual_host={self.virtual_host!r}")
        if self.protocol != default_protocol().name:
            words.append(f"protocol={self.protocol!r}")
        if "sessions" in protocol_named(self.protocol).capabilities:
            words.append(f"sessions={len(self.sessions)}")
        else:
            words.append(f"channels={len(self.channels)}")
        if self.blocked is not None:
            words.append(f"blocked={self.blocked!r}")
        return " ".join(words) + ">"


def connection_views(state: BrokerState) -> tuple[ConnectionView, ...]:
    """All connections, oldest first."""
    return tuple(connection_view(connection, state) for connection in state.connections)


def connection_view(connection: ClientConnection, state: BrokerState) -> ConnectionView:
    """The view of one connection."""
    sessions = [each for each in session_views(state) if each.connection == connection.name]
    return ConnectionView(
        name=connection.name,
        user=connection.user_name,
        virtual_host=connection.virtual_host_name,
        client_properties=frozen(connection.client_properties),
        heartbeat=connection.heartbeat,
        blocked=connection.blocked_reason,
        channels=tuple(_channel_view(channel) for channel in connection.open_channels),
        protocol=connection.protocol,
        sessions=tuple(sorted(sessions, key=lambda session: session.channel or 0)),
    )


def _channel_view(channel: ClientChannel) -> ChannelView:
    shared = 0 if channel.credit is None else channel.credit.message_limit
    return ChannelView(
        number=channel.number,
        consumers=tuple(consumer_view(subscription) for subscription in channel.consumers.values()),
        unacked=sum(len(ledger.outstanding) for ledger in channel.ledgers),
        prefetch=channel.prefetch[0] or shared,
        mode=channel.mode,
    )


# --- sessions of AMQP 0-10, which may outlive their connections -------------------------------------------


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
