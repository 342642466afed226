"""Client connections and their channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fakeamqp.inspect.frozen import FrozenDict, frozen
from fakeamqp.inspect.sessions import SessionView, session_views
from fakeamqp.inspect.topology import ConsumerView, consumer_view

if TYPE_CHECKING:
    from fakeamqp.model.state import BrokerState, ClientChannel, ClientConnection

__all__ = ["ChannelView", "ConnectionView", "connection_view", "connection_views"]


@dataclass(frozen=True, kw_only=True, repr=False)
class ChannelView:
    """One open channel.

    Args:
        number: of the channel.
        consumers: in the order they came.
        unacked: how many messages the channel holds.
        prefetch: how many unacked messages each new consumer (with `global`, all together) may hold; 0 means
            any number.
        mode: "confirm" or "tx", or in the other protocols "tx" or "dtx", where that was asked for.
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
        name: where it comes from and where it goes, as RabbitMQ writes it.
        user: who logged in; None before that.
        virtual_host: what was opened; None before that.
        client_properties: what the client says of itself.
        heartbeat: the interval agreed on, in seconds; 0 means none.
        blocked: why the client may not publish, or None.
        channels: the open channels, ascending; in AMQP 0-10 those that a session is attached to.
        protocol: what the client speaks: "0-9-1", "0-10", "0-9" or "0-8".
        sessions: in AMQP 0-10 the sessions attached to it, by channel; those that it has lost are among
            `Broker.sessions`.
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
        """Product and version of the client library, as far as it tells."""
        words = (self.client_properties.get("product"), self.client_properties.get("version"))
        return " ".join(word for word in words if isinstance(word, str))

    @property
    def connection_name(self) -> str | None:
        """The name that the app gave the connection, if it did."""
        name = self.client_properties.get("connection_name")
        return name if isinstance(name, str) else None

    def __repr__(self) -> str:
        words = [f"<connection {self.name!r}"]
        if self.connection_name is not None:
            words.append(f"called {self.connection_name!r}")
        if self.client:
            words.append(f"from {self.client!r}")
        words.append(f"user={self.user!r} virtual_host={self.virtual_host!r}")
        if self.protocol != "0-9-1":
            words.append(f"protocol={self.protocol!r}")
        if self.protocol == "0-10":
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
    """A picture of one connection."""
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
