"""Views of queues, exchanges, bindings, consumers and policies, and of connections, channels and sessions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from fakeamqp.dialects import default_protocol, protocol_named
from fakeamqp.inspect.collection import Collection
from fakeamqp.inspect.errors import NoSuchConsumer, NoSuchExchange, NoSuchQueue, NoSuchVirtualHost, nearest
from fakeamqp.inspect.frozen import FrozenDict, frozen
from fakeamqp.inspect.messages import (
    MessageView,
    aside_view,
    content_of,
    elsewhere,
    name_of,
    number_of,
    queued_view,
    unacked_view,
)
from fakeamqp.model.deliveries.subscription import Grant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fakeamqp.model.arguments.queue_arguments import QueueOptions
    from fakeamqp.model.deliveries.subscription import Subscription
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.exchanges.exchange import Binding
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.state import BrokerState, ClientChannel, ClientConnection, ClientSession
    from fakeamqp.model.virtual_host import VirtualHost

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, repr=False)
class BindingView:
    """One binding from an exchange (`source`) to a queue or another exchange."""

    source: str
    destination: str
    destination_kind: Literal["queue", "exchange"]
    routing_key: str
    arguments: FrozenDict

    def __repr__(self) -> str:
        kind = "" if self.destination_kind == "queue" else "exchange "
        arguments = f" arguments={self.arguments!r}" if self.arguments else ""
        return f"<binding {self.source!r} -> {kind}{self.destination!r} by {self.routing_key!r}{arguments}>"


@dataclass(frozen=True, kw_only=True)
class CreditView:
    """The credit left of a 0-10 subscription; a delivery needs credit of both kinds.

    Args:
        messages: the number of messages; None means unlimited.
        bytes: the number of bytes, headers included; None means unlimited.
        window: whether a completed transfer restores its credit.
    """

    messages: int | None
    bytes: int | None
    window: bool

    def __str__(self) -> str:
        """In words: "2 messages"."""
        limits = ((self.messages, "messages"), (self.bytes, "bytes"))
        words = " and ".join(f"{limit} {unit}" for limit, unit in limits if limit is not None)
        return (words or "unlimited") + (" (window)" if self.window else "")


@dataclass(frozen=True, kw_only=True, repr=False)
class ConsumerView:
    """One consumer of a queue.

    Args:
        tag: its consumer tag; in AMQP 0-10 the destination of the subscription.
        queue: the name of its queue.
        connection: the name of its connection.
        channel: the number of its channel.
        no_ack: whether messages are settled when they are sent.
        exclusive: whether the queue may have no other consumer.
        priority: `x-priority`; consumers with a higher priority are served first.
        prefetch: the maximum number of unacked messages; 0 means no limit.
        unacked: the number of unacked messages.
        arguments: the arguments of basic.consume.
        next_offset: the next offset to read in a stream; None for other queues.
        credit: in AMQP 0-10 the credit left; None for 0-9-x.
        browses: whether it reads messages without acquiring them.
    """

    tag: str
    queue: str
    connection: str | None
    channel: int | None
    no_ack: bool
    exclusive: bool
    priority: int
    prefetch: int
    unacked: int
    arguments: FrozenDict
    next_offset: int | None = None
    credit: CreditView | None = None
    browses: bool = False

    def __repr__(self) -> str:
        words = [f"<consumer {self.tag!r} of queue {self.queue!r} on {self.connection}"]
        if self.channel is not None:
            words.append(f"channel {self.channel}")
        if self.no_ack:
            words.append("no_ack")
        else:
            words.append(f"unacked={self.unacked}")
            if self.credit is None:
                words.append(f"prefetch={self.prefetch or 'unlimited'}")
        if self.credit is not None:
            words.append(f"credit={self.credit}")
        if self.browses:
            words.append("browses")
        if self.next_offset is not None:
            words.append(f"next_offset={self.next_offset}")
        if self.exclusive:
            words.append("exclusive")
        if self.priority:
            words.append(f"priority={self.priority}")
        return " ".join(words) + ">"


@dataclass(frozen=True, kw_only=True, repr=False)
class QueueView:
    """One queue at one moment.

    Args:
        name: the name of the queue.
        virtual_host: the name of its virtual host.
        type: "classic", "quorum" or "stream".
        durable: whether it survives a restart.
        exclusive: whether it belongs to one connection.
        owner: the name of that connection, or None.
        auto_delete: whether it is deleted with its last consumer.
        arguments: the arguments of queue.declare.
        policy: the name of the policy that applies, or None.
        operator_policy: the name of the operator policy that applies, or None.
        options: the effective options, from the arguments and the policies.
        ready: the number of messages ready for delivery.
        unacked: the number of messages delivered to clients and not settled yet.
        set_aside: the number of messages of a quorum queue that wait for a delayed retry, or for the confirm
            of a dead letter.
        consumers: its consumers, in the order they started.
        messages: ready messages in delivery order, then unacked ones in the order they were sent, then those
            set aside.
        bindings: the bindings to this queue, without its implicit binding to the default exchange.
    """

    name: str
    virtual_host: str
    type: str
    durable: bool
    exclusive: bool
    owner: str | None
    auto_delete: bool
    arguments: FrozenDict
    policy: str | None
    operator_policy: str | None
    options: QueueOptions
    ready: int
    unacked: int
    set_aside: int
    consumers: tuple[ConsumerView, ...]
    messages: tuple[MessageView, ...]
    bindings: tuple[BindingView, ...]

    def __repr__(self) -> str:
        line = _counts_line(self.name, self.virtual_host, self.ready, self.unacked, len(self.consumers))
        aside = f" set_aside={self.set_aside}" if self.set_aside else ""
        return line[:-1] + aside + _policies(self.policy, self.operator_policy) + ">"


@dataclass(frozen=True, kw_only=True, repr=False)
class ExchangeView:
    """One exchange at one moment.

    Args:
        name: the name of the exchange.
        virtual_host: the name of its virtual host.
        type: the exchange type.
        durable: whether it survives a restart.
        auto_delete: whether it is deleted with its last binding.
        internal: whether clients cannot publish to it.
        arguments: the arguments of exchange.declare.
        policy: the name of the policy that applies, or None.
        operator_policy: the name of the operator policy that applies, or None.
        alternate_exchange: the alternate exchange from its arguments or a policy, or None.
        bindings: the bindings from this exchange, in the order they were created.
        delayed: the number of messages that it delays.
        messages: the delayed messages, soonest first.
    """

    name: str
    virtual_host: str
    type: str
    durable: bool
    auto_delete: bool
    internal: bool
    arguments: FrozenDict
    policy: str | None
    operator_policy: str | None
    alternate_exchange: str | None
    bindings: tuple[BindingView, ...]
    delayed: int = 0
    messages: tuple[MessageView, ...] = ()

    def __repr__(self) -> str:
        flags = [name for name in ("durable", "auto_delete", "internal") if getattr(self, name)]
        where = elsewhere(self.virtual_host)
        words = [f"<exchange {self.name!r}{where} type={self.type}", *flags, f"bindings={len(self.bindings)}"]
        if self.delayed:
            words.append(f"delayed={self.delayed}")
        return " ".join(words) + _policies(self.policy, self.operator_policy) + ">"


def _policies(policy: str | None, operator_policy: str | None) -> str:
    """The part of a representation about policies."""
    named = (("policy", policy), ("operator_policy", operator_policy))
    return "".join(f" {word}={name!r}" for word, name in named if name is not None)


def _counts_line(name: str, virtual_host: str, ready: int, unacked: int, consumers: int) -> str:
    """The representation of a queue."""
    return f"<queue {name!r}{elsewhere(virtual_host)} ready={ready} unacked={unacked} consumers={consumers}>"


def queue_line(queue: Queue) -> str:
    """The representation of a queue, made without its view."""
    counts = (len(queue.ready), len(queue.unacked), len(queue.subscriptions))
    return _counts_line(queue.name, queue.virtual_host.name, *counts)


def queue_view(state: BrokerState, name: str, virtual_host: str = "/") -> QueueView:
    """The view of the queue called `name`, its messages included; raises as `find_queue`."""
    return _queue_view(find_queue(state, name, virtual_host))


def queue_views(state: BrokerState) -> Collection[QueueView]:
    """The queues of all virtual hosts, in the order they were declared."""
    return _by_host("queues", state, lambda host: map(_queue_view, host.queues.values()))


def _by_host(word: str, state: BrokerState, views: Callable[[VirtualHost], Iterable[T]]) -> Collection[T]:
    """What `views` returns for each virtual host, one after the other."""
    hosts = state.virtual_hosts
    return Collection._made(
        word, ((name, view) for name, host in hosts.items() for view in views(host)), hosts
    )


def _queue_view(queue: Queue) -> QueueView:
    return QueueView(
        name=queue.name,
        virtual_host=queue.virtual_host.name,
        type=queue.type_name,
        durable=queue.durable,
        exclusive=queue.exclusive_owner is not None,
        owner=name_of(queue.exclusive_owner),
        auto_delete=queue.auto_delete,
        arguments=frozen(queue.arguments),
        policy=None if queue.policy is None else queue.policy.name,
        operator_policy=None if queue.operator_policy is None else queue.operator_policy.name,
        options=queue.options,
        ready=len(queue.ready),
        unacked=len(queue.unacked),
        set_aside=queue.parked_count,
        consumers=tuple(consumer_view(subscription) for subscription in queue.subscriptions),
        messages=message_views(queue),
        bindings=binding_views(queue),
    )


def message_views(queue: Queue) -> tuple[MessageView, ...]:
    """The messages of a queue: ready, unacked, set aside. In a stream all are ready."""
    now = queue.virtual_host.now()
    time = queue.virtual_host.state.clock.time()
    ready = [queued_view(queued, now) for queued in queue.ready]
    if queue.keeps_delivered:
        return tuple(ready)
    unacked = (unacked_view(delivery, now, time) for delivery in queue.unacked)
    return (*ready, *unacked, *(aside_view(message) for message in queue.parked_messages()))


def binding_views(destination: Queue | Exchange) -> tuple[BindingView, ...]:
    """The bindings to a queue or an exchange."""
    return tuple(_binding_view(binding) for binding in destination.incoming)


def consumer_views(state: BrokerState) -> Collection[ConsumerView]:
    """The consumers of all virtual hosts, queue by queue."""
    return _by_host("consumers", state, _consumers)


def _consumers(host: VirtualHost) -> Iterator[ConsumerView]:
    for queue in host.queues.values():
        yield from map(consumer_view, queue.subscriptions)


def find_consumer(state: BrokerState, tag: str, virtual_host: str = "/") -> ConsumerView:
    """The consumer with this tag.

    Raises:
        NoSuchConsumer: there is none, and the text names the nearest match; or several channels have one.
        NoSuchVirtualHost: no virtual host has this name.
    """
    consumers = list(_consumers(find_virtual_host(state, virtual_host)))
    found = [each for each in consumers if each.tag == tag]
    if len(found) == 1:
        return found[0]
    if found:
        queues = ", ".join(repr(each.queue) for each in found)
        raise NoSuchConsumer(
            f"{len(found)} consumers in virtual host {virtual_host!r} have the tag {tag!r}, of the queues "
            f"{queues}: take one of broker.consumers.named({tag!r})"
        )
    hint = nearest(tag, dict.fromkeys(each.tag for each in consumers))
    raise NoSuchConsumer(f"there is no consumer {tag!r} in virtual host {virtual_host!r}{hint}")


def consumer_view(subscription: Subscription) -> ConsumerView:
    """The view of one consumer."""
    windows = [credit.message_limit for credit in subscription.credits if credit.message_limit]
    queue = subscription.queue
    return ConsumerView(
        tag=subscription.tag,
        queue=queue.name,
        connection=name_of(subscription.owner),
        channel=number_of(subscription.group),
        no_ack=subscription.no_ack,
        exclusive=subscription.exclusive,
        priority=subscription.priority,
        prefetch=min(windows, default=0),
        unacked=sum(delivery.holder is subscription for delivery in queue.unacked),
        arguments=frozen(subscription.arguments),
        next_offset=queue.next_offset(subscription),
        credit=_credit(subscription),
        browses=not subscription.acquires,
    )


def _credit(subscription: Subscription) -> CreditView | None:
    for limit in subscription.limits:
        if isinstance(limit, Grant):
            return CreditView(messages=limit.messages, bytes=limit.octets, window=limit.window)
    return None


def exchange_view(state: BrokerState, name: str, virtual_host: str = "/") -> ExchangeView:
    """The view of the exchange called `name`; raises as `find_exchange`."""
    return _exchange_view(find_exchange(state, name, virtual_host))


def exchange_views(state: BrokerState) -> Collection[ExchangeView]:
    """The exchanges of all virtual hosts, in the order they were declared."""
    return _by_host("exchanges", state, lambda host: map(_exchange_view, host.exchanges.values()))


def _exchange_view(exchange: Exchange) -> ExchangeView:
    now = exchange.virtual_host.now()
    kept = exchange.virtual_host.delays.messages(exchange.name)
    return ExchangeView(
        name=exchange.name,
        virtual_host=exchange.virtual_host.name,
        type=exchange.type_name,
        durable=exchange.durable,
        auto_delete=exchange.auto_delete,
        internal=exchange.internal,
        arguments=frozen(exchange.arguments),
        policy=None if exchange.policy is None else exchange.policy.name,
        operator_policy=None if exchange.operator_policy is None else exchange.operator_policy.name,
        alternate_exchange=exchange.alternate_exchange,
        bindings=tuple(_binding_view(binding) for binding in exchange.bindings.values()),
        delayed=len(kept),
        messages=tuple(
            MessageView(**content_of(message), state="delayed", due_in=due - now) for message, due in kept
        ),
    )


def _binding_view(binding: Binding) -> BindingView:
    return BindingView(
        source=binding.source.name,
        destination=binding.destination.name,
        destination_kind=binding.destination.kind,
        routing_key=binding.routing_key,
        arguments=frozen(binding.arguments),
    )


# --- policies ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, repr=False)
class PolicyView:
    """One policy.

    Args:
        name: the name of the policy.
        virtual_host: the name of its virtual host.
        pattern: a regular expression that is searched in names.
        definition: the keys and values that it sets, with RabbitMQ's keys.
        apply_to: the entities that it applies to, such as "queues" or "all".
        priority: of several matching policies, the one with the highest priority applies.
        operator: whether it is an operator policy.
    """

    name: str
    virtual_host: str
    pattern: str
    definition: FrozenDict
    apply_to: str
    priority: float
    operator: bool

    def __repr__(self) -> str:
        words = ["<operator policy" if self.operator else "<policy", repr(self.name)]
        if self.virtual_host != "/":
            words.append(f"in virtual host {self.virtual_host!r}")
        words.append(f"{self.pattern!r} -> {dict(self.definition)!r}")
        if self.apply_to != "all":
            words.append(f"apply_to={self.apply_to!r}")
        if self.priority:
            words.append(f"priority={self.priority}")
        return " ".join(words) + ">"


def policy_views(state: BrokerState) -> Collection[PolicyView]:
    """The policies of all virtual hosts, then the operator policies, in the order of setting."""
    hosts = state.virtual_hosts
    policies = [
        (name, False, policy) for name, host in hosts.items() for policy in host.policies.policies.values()
    ]
    policies += [
        (name, True, policy)
        for name, host in hosts.items()
        for policy in host.policies.operator_policies.values()
    ]
    views = (
        PolicyView(
            name=policy.name,
            virtual_host=name,
            pattern=policy.pattern,
            definition=frozen(policy.definition),
            apply_to=policy.apply_to,
            priority=policy.priority,
            operator=operator,
        )
        for name, operator, policy in policies
    )
    return Collection._made("policies", ((view.virtual_host, view) for view in views), hosts)


# --- lookup -----------------------------------------------------------------------------------------------


def find_virtual_host(state: BrokerState, name: str) -> VirtualHost:
    """The virtual host called `name`; raises NoSuchVirtualHost, and names the nearest match."""
    found = state.virtual_hosts.get(name)
    if found is None:
        text = f"there is no virtual host {name!r}{nearest(name, state.virtual_hosts)}"
        raise NoSuchVirtualHost(text + _went(state, "virtual host", "", name))
    return found


def _went(state: BrokerState, kind: str, virtual_host: str, name: str) -> str:
    """A line about the reset that has removed the missing entity; "" if none has. The broker has started."""
    state.check_started()
    hint = state.resets.miss(kind, virtual_host, name)
    return hint and f"\n{hint}"


def select_virtual_hosts(state: BrokerState, name: str | None) -> tuple[VirtualHost, ...]:
    """The virtual host called `name`, or (None) all."""
    return tuple(state.virtual_hosts.values()) if name is None else (find_virtual_host(state, name),)


def find_queue(state: BrokerState, name: str, virtual_host: str = "/") -> Queue:
    """The queue called `name`; raises NoSuchQueue or NoSuchVirtualHost, and names the nearest match."""
    queues = find_virtual_host(state, virtual_host).queues
    queue = queues.get(name)
    if queue is None:
        text = f"there is no queue {name!r} in virtual host {virtual_host!r}{nearest(name, queues)}"
        raise NoSuchQueue(text + _went(state, "queue", virtual_host, name))
    return queue


def find_exchange(state: BrokerState, name: str, virtual_host: str = "/") -> Exchange:
    """The exchange called `name`; raises NoSuchExchange or NoSuchVirtualHost, and names the nearest match."""
    exchanges = find_virtual_host(state, virtual_host).exchanges
    exchange = exchanges.get(name)
    if exchange is None:
        text = f"there is no exchange {name!r} in virtual host {virtual_host!r}{nearest(name, exchanges)}"
        raise NoSuchExchange(text + _went(state, "exchange", virtual_host, name))
    return exchange


# --- connections and channels -----------------------------------------------------------------------------


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
        links: in AMQP 1.0 the links of the session, without those to the management node.
    """

    number: int
    consumers: tuple[ConsumerView, ...]
    unacked: int
    prefetch: int
    mode: Literal["confirm", "tx", "dtx"] | None
    links: tuple[LinkView, ...] = ()

    def __repr__(self) -> str:
        words = [f"<channel {self.number} consumers={len(self.consumers)} unacked={self.unacked}"]
        words.append(f"prefetch={self.prefetch or 'unlimited'}")
        if self.mode is not None:
            words.append(self.mode)
        if self.links:
            words.append(f"links={len(self.links)}")
        return " ".join(words) + ">"


@dataclass(frozen=True, kw_only=True)
class LinkView:
    """One link of AMQP 1.0.

    Args:
        handle: the client's number of the link in its session.
        name: the name of the link.
        role: what the client is: "sender" or "receiver".
        address: of the target that the client sends to, or of the source that it receives from; None for the
            anonymous terminus.
        queue: the name of the queue that it receives from; None for senders.
        credit: how many messages may still be sent on the link.
        delivery_count: how many have been, from an initial number on that depends on the version.
    """

    handle: int
    name: str
    role: Literal["sender", "receiver"]
    address: str | None
    queue: str | None
    credit: int
    delivery_count: int


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
        channels: the open channels by number; in AMQP 0-10 and 1.0 those of the sessions.
        protocol: the client's protocol version: "0-9-1", "0-10", "1-0", "0-9" or "0-8".
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


def channel_views(state: BrokerState) -> Collection[ChannelView]:
    """The open channels of all connections."""
    pairs = (
        (each.virtual_host_name, _channel_view(channel))
        for each in state.connections
        for channel in each.open_channels
    )
    return Collection._made("channels", pairs, state.virtual_hosts)


def _channel_view(channel: ClientChannel) -> ChannelView:
    shared = 0 if channel.credit is None else channel.credit.message_limit
    return ChannelView(
        number=channel.number,
        consumers=tuple(consumer_view(subscription) for subscription in channel.consumers.values()),
        unacked=sum(len(ledger.outstanding) for ledger in channel.ledgers),
        prefetch=channel.prefetch[0] or shared,
        mode=channel.mode,
        links=tuple(
            LinkView(
                handle=int(link.handle),
                name=link.link_name,
                role=link.role,
                address=link.address,
                queue=link.source_queue,
                credit=link.credit_left,
                delivery_count=link.delivery_count,
            )
            for link in getattr(channel, "links", ())
        ),
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
    return tuple(_session_view(session, state) for session in state.sessions.values())


def session_collection(state: BrokerState) -> Collection[SessionView]:
    """All sessions, including detached ones, oldest first."""
    views = session_views(state)
    return Collection._made("sessions", ((each.virtual_host, each) for each in views), state.virtual_hosts)


def _session_view(session: ClientSession, state: BrokerState) -> SessionView:
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
