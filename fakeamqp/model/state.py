"""Everything one broker knows: virtual hosts, accounts, personality, time, and who is connected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from fakeamqp.model.access import AccessControl, Permission, User
from fakeamqp.model.ends import Histories
from fakeamqp.model.errors import InvalidPath, NotAllowed
from fakeamqp.model.extensions import Extensions
from fakeamqp.model.history import History, Publication
from fakeamqp.model.names import NODE, NameGenerator
from fakeamqp.model.personality import RABBITMQ_4_2, DeprecatedFeatures, Personality
from fakeamqp.model.timers import Timers
from fakeamqp.model.virtual_host import VirtualHost

if TYPE_CHECKING:
    from fakeamqp.model.credit import Credit
    from fakeamqp.model.delivery import Ledger
    from fakeamqp.model.subscription import Subscription
    from fakeamqp.model.tap import Tap
    from fakeamqp.model.timers import Clock

__all__ = ["BrokerState", "ClientChannel", "ClientConnection", "ClientSession", "Redirect"]


class Redirect(NamedTuple):
    """Another broker: `host` is where to go, `known_hosts` are where else one may try.

    `note` is called for every client that is sent there.
    """

    host: str
    known_hosts: tuple[str, ...] = ()
    note: Callable[[], object] = lambda: None


class ClientChannel(Protocol):
    """What inspectors see of a connected client's channel (0-9-x) or session (0-10)."""

    @property
    def number(self) -> int:
        """What the client knows it by."""

    @property
    def mode(self) -> Literal["confirm", "tx", "dtx"] | None:
        """Whether publishes are confirmed or are part of a transaction."""

    @property
    def prefetch(self) -> tuple[int, int]:
        """Messages and bytes that each new consumer may have in advance; 0 means any number."""

    @property
    def credit(self) -> Credit | None:
        """The window that all consumers of the channel share, if there is one."""

    @property
    def consumers(self) -> Mapping[str, Subscription]:
        """The consumers by tag, in the order they came."""

    @property
    def ledgers(self) -> tuple[Ledger, ...]:
        """What is unsettled, by delivery tag; classes that count for themselves have one each (0-9)."""


class ClientConnection(Protocol):
    """What the model and its inspectors see of a connected client."""

    name: str
    protocol: str
    client_properties: Mapping[str, Any]
    heartbeat: int

    @property
    def user_name(self) -> str | None:
        """The authenticated user, or None before that."""

    @property
    def virtual_host_name(self) -> str | None:
        """The virtual host opened, or None before that."""

    @property
    def unsent(self) -> int:
        """Bytes for the client that it has not taken yet."""

    @property
    def blocked_reason(self) -> str | None:
        """Why the client may not publish, or None."""

    @property
    def open_channels(self) -> tuple[ClientChannel, ...]:
        """The open channels (0-9-x) or attached sessions (0-10), by ascending number."""

    def close_by_operator(self, code: int, text: str) -> None:
        """Close with a handshake, for a reason of the operator's."""

    def set_blocked(self, reason: str | None) -> None:
        """Stop reading from a publishing client and tell it why; None lets it go on."""


class ClientSession(Protocol):
    """A session (0-10), which may outlive the connection it was made on."""

    user: User
    virtual_host: VirtualHost
    connection_name: str
    timeout: int | None
    mode: Literal["tx", "dtx"] | None
    ledger: Ledger

    @property
    def display_name(self) -> str:
        """The session's name for people."""

    @property
    def attached(self) -> bool:
        """Whether it has a connection."""

    @property
    def alive(self) -> bool:
        """Whether it is attached and no exception has ended it."""

    @property
    def number(self) -> int:
        """The channel it is or was attached to."""

    @property
    def ends_at(self) -> float | None:
        """When, on the broker's clock, it ends unless it is attached again; None where it does not."""

    @property
    def consumers(self) -> Mapping[str, Subscription]:
        """The subscriptions by destination, in the order they came."""

    def end(self) -> None:
        """End it for good: what it holds goes back, what is exclusive to it goes."""


class BrokerState:
    """The root of the model. Only the holder of the engine's lock touches it.

    Everything in the model happens on `clock`. `peer_timers` run on `peer_clock`, the time that clients live
    by; unless given it is the broker's own. `published` keeps the latest publishes for inspection, `ends` how
    messages ended that no client dealt with, or they are None; `history` says how many.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        personality: Personality = RABBITMQ_4_2,
        seed: int | str | None = None,
        history: int = 0,
        permit: Iterable[str] = (),
        deny: Iterable[str] = (),
        peer_clock: Clock | None = None,
    ) -> None:
        self.clock = clock
        self.timers = Timers(clock)
        self.peer_timers = self.timers if peer_clock is None else Timers(peer_clock)
        self.personality = personality
        self.features = DeprecatedFeatures(personality, permit, deny)
        self.seed = seed
        self.names = NameGenerator(seed)
        self.random = Random(seed)
        self.access = AccessControl()
        self.tap: Tap | None = None
        self.message_numbers = count(1)
        self.connections: dict[ClientConnection, None] = {}
        self.sessions: dict[tuple[str, str, bytes], ClientSession] = {}
        """The sessions there are, attached or not: by virtual host, user and their own name."""
        self.published: History[Publication] | None = History(history) if history else None
        self.ends = Histories(history) if history else None
        self.blocked_reason: str | None = None
        self.redirect: Redirect | None = None
        """Where clients are sent that open a connection, in protocols that have words for it."""
        self.extensions = Extensions(self)
        self.authentication_failure_delay = 0.0
        self.virtual_hosts: dict[str, VirtualHost] = {}
        self.global_parameters: dict[str, Any] = {}
        """What definitions say of the whole broker, by name."""
        self.populate()

    def populate(self) -> None:
        """Make the virtual host and the account every fresh broker has."""
        root = self.add_virtual_host("/")
        root.metadata = replace(root.metadata, description="Default virtual host")
        self.access.add(User("guest", "guest", ("administrator",), {"/": Permission()}))

    @property
    def cluster_name(self) -> str:
        """What the broker calls itself, unless a global parameter has another name for it."""
        return str(self.global_parameters.get("cluster_name", NODE))

    def add_virtual_host(self, name: str) -> VirtualHost:
        """Add a virtual host; the one there is stays."""
        found = self.virtual_hosts.get(name)
        if found is None:
            found = self.virtual_hosts[name] = VirtualHost(self, name)
        return found

    def virtual_host(self, name: str) -> VirtualHost:
        """The virtual host called `name`.

        Raises:
            NotAllowed, InvalidPath: there is none, by personality.
        """
        found = self.virtual_hosts.get(name)
        if found is not None:
            return found
        if self.personality.unknown_virtual_host == "invalid-path":
            raise InvalidPath(f"no virtual host '{name}'")
        raise NotAllowed(f"vhost {name} not found")

    def block(self, reason: str) -> None:
        """Hold back everybody who publishes, as RabbitMQ does when an alarm goes off."""
        self.blocked_reason = reason
        for connection in list(self.connections):
            connection.set_blocked(reason)

    def unblock(self) -> None:
        """End the alarm."""
        self.blocked_reason = None
        for connection in list(self.connections):
            connection.set_blocked(None)

    def restart(self, *, crash: bool = False) -> None:
        """Forget what a restart loses, or what a crash does; connections must be gone.

        A crash also loses persistent messages that no publisher was told the broker has: those neither
        confirmed nor part of a committed transaction.
        """
        self.blocked_reason = None
        self._end_sessions()
        for virtual_host in self.virtual_hosts.values():
            virtual_host.restart(crash=crash)

    def clear(self) -> None:
        """Forget everything, history included, as if the broker had just been made."""
        self.forget("everything was forgotten")
        if self.published is not None:
            self.published.clear()
        if self.ends is not None:
            self.ends.clear()

    def forget(self, why: str) -> None:
        """Forget everything but what happened."""
        self._end_sessions()
        for virtual_host in self.virtual_hosts.values():
            virtual_host.branches.abandon(prepared=True)
            for queue in list(virtual_host.queues.values()):
                virtual_host.remove_queue(queue, why, "crash")
            virtual_host.delays.clear(why)
        self.virtual_hosts.clear()
        self.global_parameters.clear()
        self.access.users.clear()
        self.access.changed()
        self.names = NameGenerator(self.seed)
        self.random = Random(self.seed)
        self.blocked_reason = None

    def _end_sessions(self) -> None:
        """Sessions live in memory: whatever was agreed on, none outlives the broker."""
        for session in list(self.sessions.values()):
            session.end()
