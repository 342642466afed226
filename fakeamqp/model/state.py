"""The state of one broker: virtual hosts, accounts, personality, time, connections and sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, count
from random import Random
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

from fakeamqp.errors import BrokerError
from fakeamqp.model.access import AccessControl, FailedLogins, Permission, User
from fakeamqp.model.errors import InvalidPath, NotAllowed
from fakeamqp.model.extensions import Extensions
from fakeamqp.model.history import History, OutcomeHistories, Publication
from fakeamqp.model.limits import DEFAULT_BOUNDS
from fakeamqp.model.memory import Memory, joint_reason
from fakeamqp.model.names import NODE, NameGenerator
from fakeamqp.model.operations import Operations
from fakeamqp.model.patterns import compiled
from fakeamqp.model.personality import PERSONALITIES, DeprecatedFeatures, Personality
from fakeamqp.model.timers import Timers
from fakeamqp.model.virtual_host import VirtualHost

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.delivery import Ledger
    from fakeamqp.model.deliveries.subscription import Credit, Subscription
    from fakeamqp.model.limits import Bounds
    from fakeamqp.model.policies import Policy
    from fakeamqp.model.races import Races
    from fakeamqp.model.tap import Tap
    from fakeamqp.model.timers import TimeSource

Entity: TypeAlias = "tuple[str, str, str]"
"""The kind of an entity, its virtual host ("" for one that has none), and its name."""

_MOST = 10_000
"""How many entities are remembered, the latest ones."""


class Resets:
    """The removed entities: the error about a missing entity names the reset that has removed it."""

    def __init__(self) -> None:
        self._removed: dict[Entity, int] = {}
        """By entity, the number of the latest reset that removed it."""
        self._missed: dict[Entity, None] = {}
        self._policies: dict[Entity, Policy] = {}
        self._count = 0
        self._name = ""

    def removes(self, entities: Iterable[Entity], policies: dict[Entity, Policy], name: str) -> None:
        """Note that a reset removes entities and policies; `name` is what the reset is called in errors."""
        self._count += 1
        self._name = name
        self._missed.clear()
        self._policies.update(policies)
        for entity in chain(entities, policies):
            self._removed.pop(entity, None)
            self._removed[entity] = self._count
        for entity in list(self._removed)[:-_MOST]:
            del self._removed[entity]
            self._policies.pop(entity, None)

    def miss(self, kind: str, virtual_host: str, name: str) -> str:
        """Note a request for a missing entity; return a hint if a reset has removed it, otherwise ""."""
        entity = (kind, virtual_host, name)
        if entity not in self._removed:
            return ""
        self._missed[entity] = None
        return self._hint(entity)

    def miss_policies(self, virtual_host: str, kind: str, name: str) -> None:
        """Note that no policy matches a queue of this type (or "exchange"), if a removed one would."""
        for entity, policy in self._policies.items():
            if (
                entity[1] == virtual_host
                and policy.applies_to(kind)
                and compiled(policy.pattern).search(name)
            ):
                self._missed[entity] = None

    def hints(self) -> list[str]:
        """A sentence about each entity that was missed since the last reset."""
        return [self._hint(entity) for entity in self._missed]

    def _hint(self, entity: Entity) -> str:
        kind, virtual_host, name = entity
        where = "" if virtual_host in ("", "/") else f" in virtual host {virtual_host!r}"
        reset = self._name if self._removed[entity] == self._count else "an earlier reset"
        return (
            f"{kind} {name!r}{where} existed until {reset}; load_definitions(..., keep=True) loads "
            "definitions that outlast resets"
        )


class Redirect(NamedTuple):
    """Another broker: clients are sent to `host`; `known_hosts` are alternatives.

    `on_redirect` is called for every client that is redirected.
    """

    host: str
    known_hosts: tuple[str, ...] = ()
    on_redirect: Callable[[], object] = lambda: None


class ClientChannel(Protocol):
    """What `inspect` reads of a client's channel (0-9-x) or session (0-10)."""

    @property
    def number(self) -> int:
        """The channel number."""

    @property
    def mode(self) -> Literal["confirm", "tx", "dtx"] | None:
        """Whether publishes are confirmed or are part of a transaction."""

    @property
    def prefetch(self) -> tuple[int, int]:
        """How many messages and bytes each new consumer may hold unacknowledged; 0 means no limit."""

    @property
    def credit(self) -> Credit | None:
        """The prefetch limit that all consumers of the channel share, if there is one."""

    @property
    def consumers(self) -> Mapping[str, Subscription]:
        """The consumers by tag, in order of subscription."""

    @property
    def unfinished(self) -> int:
        """Bytes of a content of which a part has come."""

    @property
    def ledgers(self) -> tuple[Ledger, ...]:
        """The unsettled deliveries by tag; classes with delivery tags of their own have one each (0-9)."""


class ClientConnection(Protocol):
    """What the model and `inspect` read of a connected client."""

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
        """Bytes queued for the client that its transport has not taken yet."""

    @property
    def waiting(self) -> int:
        """Bytes that wait in either direction, without large bodies."""

    @property
    def blocked_reason(self) -> str | None:
        """Why the client may not publish, or None."""

    @property
    def open_channels(self) -> tuple[ClientChannel, ...]:
        """The open channels (0-9-x) or attached sessions (0-10), by ascending number."""

    def close_by_operator(self, code: int, text: str) -> None:
        """Close the connection with a handshake, on the operator's behalf."""

    def set_blocked(self, reason: str | None) -> None:
        """Stop reading from the client if it publishes, and send it the reason; None unblocks it."""


class ClientSession(Protocol):
    """A session (0-10), which may outlive the connection it was created on."""

    user: User
    virtual_host: VirtualHost
    connection_name: str
    timeout: int | None
    mode: Literal["tx", "dtx"] | None
    ledger: Ledger

    @property
    def display_name(self) -> str:
        """The session's name in readable form."""

    @property
    def attached(self) -> bool:
        """Whether it is attached to a connection."""

    @property
    def alive(self) -> bool:
        """Whether it is attached and no exception has ended it."""

    @property
    def number(self) -> int:
        """The channel it is or was attached to."""

    @property
    def ends_at(self) -> float | None:
        """The instant of the broker's clock at which a detached session ends; None if it does not end."""

    @property
    def consumers(self) -> Mapping[str, Subscription]:
        """The subscriptions by destination, in order of subscription."""

    def end(self) -> None:
        """End it: its deliveries return to their queues, and its exclusive queues are deleted."""


class BrokerState:
    """The root of the model. Only the holder of the engine's lock may access it.

    Args:
        clock: the time of everything in the model.
        personality: the broker whose behaviour is imitated.
        seed: of generated names and of random choices; None for a different one each time.
        history: how many publishes (`published`) and other outcomes of messages (`outcome_histories`) are
            kept for inspection; 0 for none, and then both are None.
        permit: deprecated features that are permitted, whatever the personality says.
        deny: deprecated features that are denied, whatever the personality says.
        peer_clock: the time that clients' own timers follow, used for `peer_timers`; by default `clock`.
        memory_limit: bytes of messages above which publishers are blocked; None for no limit.
        bounds: of what peers can make the broker keep.
    """

    def __init__(
        self,
        clock: TimeSource,
        *,
        personality: Personality = PERSONALITIES["rabbitmq-4.3"],
        seed: int | str | None = None,
        history: int = 0,
        permit: Iterable[str] = (),
        deny: Iterable[str] = (),
        peer_clock: TimeSource | None = None,
        memory_limit: int | None = None,
        bounds: Bounds = DEFAULT_BOUNDS,
    ) -> None:
        self.bounds = bounds
        self.memory: Memory = Memory(self, memory_limit)
        self.clock = clock
        self.timers: Timers = Timers(clock)
        self.operations: Operations = Operations()
        self.peer_timers: Timers = self.timers if peer_clock is None else Timers(peer_clock)
        self.personality = personality
        self.features: DeprecatedFeatures = DeprecatedFeatures(personality, permit, deny)
        self.draw_from(seed)
        self.resets: Resets = Resets()
        self.access: AccessControl = AccessControl(
            self.resets, names_permission=personality.refusals_name_permission
        )
        self.stage: Literal["not started", "running", "stopped"] = "running"
        """Whether clients can connect; the broker sets it."""
        self.tap: Tap | None = None
        self.latest_events: Callable[[int], str] | None = None
        """Text about at most so many of the latest events; None without a trace."""
        self.on_opened: Callable[[ClientConnection], object] | None = None
        """Called when a client has opened its connection; None if nothing is to happen."""
        self.races: Races | None = None
        """The late outcomes; None without races."""
        self.message_numbers: count[int] = count(1)
        self.connections: dict[ClientConnection, None] = {}
        self.leaving: dict[ClientConnection, None] = {}
        """Connections that are closed, or about to be, but whose transports have not ended: they still count
        for limits (RabbitMQ: measured)."""
        self.sessions: dict[tuple[str, str, bytes], ClientSession] = {}
        """All sessions, attached or not, by virtual host, user and session name."""
        self.published: History[Publication] | None = (
            History(history, self.memory, bounds.history_octets) if history else None
        )
        self.outcome_histories: OutcomeHistories | None = (
            OutcomeHistories(history, self.memory, bounds.history_octets) if history else None
        )
        self.blocked_reason: str | None = None
        """Why publishers are blocked, as clients are told."""
        self._alarms: dict[str, str] = {}
        """The reason of each alarm by its source, the latest at the end."""
        self.redirect: Redirect | None = None
        """Where clients are redirected when they open a connection, in protocols that can express it."""
        self.extensions: Extensions = Extensions(self)
        self.authentication_failure_delay: float = 0.0
        self.failed_logins: FailedLogins = FailedLogins(clock, personality)
        self.virtual_hosts: dict[str, VirtualHost] = {}
        self.global_parameters: dict[str, Any] = {}
        """RabbitMQ's global parameters by name, from definitions."""
        self.populate()

    def draw_from(self, seed: int | str | None) -> None:
        """Draw generated names and random choices from the beginning of a seed."""
        self.seed = seed
        self.names: NameGenerator = NameGenerator(seed)
        self.random: Random = Random(seed)

    def populate(self) -> None:
        """Create the virtual host "/" and the account "guest" of a new broker."""
        root = self.add_virtual_host("/")
        root.metadata = replace(root.metadata, description="Default virtual host")
        self.access.add(User("guest", "guest", ("administrator",), {"/": Permission()}))

    @property
    def cluster_name(self) -> str:
        """The global parameter `cluster_name`, by default the node's name."""
        return str(self.global_parameters.get("cluster_name", NODE))

    def add_virtual_host(self, name: str) -> VirtualHost:
        """The virtual host called `name`, created if it does not exist."""
        found = self.virtual_hosts.get(name)
        if found is None:
            found = self.virtual_hosts[name] = VirtualHost(self, name)
        return found

    def virtual_host(self, name: str) -> VirtualHost:
        """The virtual host called `name`; if there is none, NotAllowed or InvalidPath, by personality."""
        found = self.virtual_hosts.get(name)
        if found is not None:
            return found
        self.resets.miss("virtual host", "", name)
        if self.personality.unknown_virtual_host == "invalid-path":
            raise InvalidPath(f"no virtual host '{name}'")
        raise NotAllowed(f"vhost {name} not found")

    def remove_user(self, name: str) -> None:
        """Remove an account with its sessions. Its connections must be closed before."""
        self.access.remove(name)
        self._end_sessions(lambda session: session.user.name == name)

    def remove_virtual_host(self, name: str) -> None:
        """Remove an empty virtual host, with the permissions in it. Its connections must be closed before."""
        virtual_host = self.virtual_hosts[name]
        self._end_sessions(lambda session: session.virtual_host is virtual_host)
        del self.virtual_hosts[name]
        self.access.forget_virtual_host(name)

    def block(self, reason: str, source: str = "operator") -> None:
        """Raise an alarm: block all publishing connections, as RabbitMQ does during a resource alarm.

        Alarms of several sources stand together. A second one of the same source replaces the first.
        """
        self._alarms.pop(source, None)
        self._alarms[source] = reason
        self._apply_alarms()

    def unblock(self, source: str = "operator") -> None:
        """End the alarm of this source; publishers continue when there is no other."""
        if self._alarms.pop(source, None) is not None:
            self._apply_alarms()

    def _apply_alarms(self) -> None:
        self.blocked_reason = joint_reason(self._alarms.values())
        for connection in list(self.connections):
            # Not a local variable: input that had waited may raise or end an alarm meanwhile.
            connection.set_blocked(self.blocked_reason)

    def _forget_alarms(self) -> None:
        self._alarms.clear()
        self.blocked_reason = None
        self.memory.alarm = False

    def restart(self, *, crash: bool = False) -> None:
        """Discard what a restart loses, or what a crash loses. All connections must be closed before.

        A crash also loses persistent messages that are neither confirmed nor part of a committed transaction.
        """
        if self.races is not None:
            (self.races.forget if crash else self.races.settle)()
        self._forget_alarms()
        self.failed_logins.clear()
        self.leaving.clear()
        self._end_sessions()
        for virtual_host in self.virtual_hosts.values():
            virtual_host.restart(crash=crash)

    def check_started(self) -> None:
        """BrokerError if the broker was not started."""
        if self.stage == "not started":
            raise BrokerError(
                "the broker is not started: use it as a context manager (`with broker:`, `async with "
                "broker:`), or call broker.start()"
            )

    def check_not_stopped(self) -> None:
        """BrokerError if the broker is stopped. One that is prepared for its first start is not."""
        if self.stage == "stopped":
            raise BrokerError("the broker does not run; start it first")

    def clear(self, name: str = "the last reset") -> None:
        """Discard everything, histories included, as if the broker had just been created.

        `name` is what this reset is called in errors.
        """
        policies = {
            ("policy", each.name, policy.name): policy
            for each in self.virtual_hosts.values()
            for policy in each.policies.policies.values()
        }
        self.resets.removes(self._entities(), policies, name)
        self.discard("the broker was reset")
        if self.published is not None:
            self.published.clear()
        if self.outcome_histories is not None:
            self.outcome_histories.clear()

    def _entities(self) -> Iterator[Entity]:
        """The entities that a reset removes, without those that have generated names."""
        for user in self.access.users.values():
            yield "user", "", user.name
            yield from (("permissions of user", each, user.name) for each in user.permissions)
        for each in self.virtual_hosts.values():
            bound = (exchange.name for exchange in each.exchanges.values() if exchange.bindings)
            yield from (("bindings of exchange", each.name, name) for name in bound)
            yield "virtual host", "", each.name
            for kind, names in (("queue", each.queues), ("exchange", each.exchanges)):
                yield from ((kind, each.name, name) for name in names if name and not name.startswith("amq."))

    def discard(self, why: str) -> None:
        """Discard everything but the histories; `why` is the reason given for dropped messages."""
        if self.races is not None:
            self.races.forget()
        self.leaving.clear()
        self._end_sessions()
        for virtual_host in self.virtual_hosts.values():
            virtual_host.discard(why)
        self.virtual_hosts.clear()
        self.global_parameters.clear()
        self.failed_logins.clear()
        self.access.users.clear()
        self.access.changed()
        self.draw_from(self.seed)
        self._forget_alarms()

    def _end_sessions(self, ends: Callable[[ClientSession], bool] = lambda _: True) -> None:
        """Sessions are kept in memory only: none outlives the broker, whatever timeout was agreed."""
        for session in list(self.sessions.values()):
            if ends(session):
                session.end()
