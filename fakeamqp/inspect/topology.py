"""Queues, exchanges, bindings and consumers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fakeamqp.inspect.errors import NoSuchExchange, NoSuchQueue, NoSuchVirtualHost, nearest
from fakeamqp.inspect.frozen import FrozenDict, frozen
from fakeamqp.inspect.messages import (
    MessageView,
    aside_view,
    delayed_view,
    elsewhere,
    name_of,
    number_of,
    queued_view,
    unacked_view,
)
from fakeamqp.model.credit import Grant

if TYPE_CHECKING:
    from fakeamqp.model.binding import Binding
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.queues.options import QueueOptions
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.subscription import Subscription
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = [
    "BindingView",
    "ConsumerView",
    "CreditView",
    "ExchangeView",
    "QueueView",
    "binding_views",
    "consumer_view",
    "consumer_views",
    "exchange_names",
    "exchange_view",
    "find_queue",
    "message_views",
    "queue_names",
    "queue_view",
]


@dataclass(frozen=True, kw_only=True, repr=False)
class BindingView:
    """One binding: messages go from an exchange (`source`) to a queue or another exchange."""

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
    """What is left of the credit of a 0-10 subscription; both balances must allow a message.

    Args:
        messages: how many it may be sent; None is any number.
        octets: how many bytes they may have, headers included; None is any number.
        window: what a completed transfer took is given back.
    """

    messages: int | None
    octets: int | None
    window: bool

    def __str__(self) -> str:
        """In words: "2 messages"."""
        limits = ((self.messages, "messages"), (self.octets, "bytes"))
        words = " and ".join(f"{limit} {unit}" for limit, unit in limits if limit is not None)
        return (words or "unlimited") + (" (window)" if self.window else "")


@dataclass(frozen=True, kw_only=True, repr=False)
class ConsumerView:
    """One consumer of a queue.

    Args:
        tag: its consumer tag.
        queue: the name of the queue it consumes from.
        connection: the name of its connection.
        channel: the number of its channel.
        no_ack: its messages count as settled when they are sent.
        exclusive: it keeps others away from the queue.
        priority: `x-priority`; higher ones are served first.
        prefetch: how many unacked messages it may hold; 0 means any number.
        unacked: how many it holds.
        arguments: of basic.consume.
        next_offset: where in a stream it will read on; None for other queues.
        credit: of a subscription of AMQP 0-10, whose tag is its destination: what is left of what its client
            has granted; None for 0-9-x.
        browses: it only looks, and acquires nothing by itself.
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
        name: of the queue.
        virtual_host: where it is.
        type: "classic", "quorum" or "stream".
        durable: it survives a restart.
        exclusive: it belongs to one connection.
        owner: the name of that connection, or None.
        auto_delete: it goes with its last consumer.
        arguments: of queue.declare.
        policy: the name of the policy it has, or None.
        operator_policy: the same for operator policies.
        options: what is in force: the arguments, and what policies say.
        ready: how many messages wait.
        unacked: how many messages clients hold.
        set_aside: how many a quorum queue keeps that nobody can be sent now: until a retry is due, or because
            no queue has taken them as dead letters yet.
        consumers: in the order they came.
        messages: those that wait, in the order of delivery, then those that clients hold, in the order they
            were sent, then those that are set aside.
        bindings: those that end here. The binding that every queue has to the default exchange is left out.
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
        line = counts_line(self.name, self.virtual_host, self.ready, self.unacked, len(self.consumers))
        aside = f" set_aside={self.set_aside}" if self.set_aside else ""
        return line[:-1] + aside + _policies(self.policy, self.operator_policy) + ">"


@dataclass(frozen=True, kw_only=True, repr=False)
class ExchangeView:
    """One exchange at one moment.

    Args:
        name: of the exchange.
        virtual_host: where it is.
        type: its type.
        durable: it survives a restart.
        auto_delete: it goes with the last thing bound to it.
        internal: clients cannot publish to it.
        arguments: of exchange.declare.
        policy: the name of the policy it has, or None.
        operator_policy: the same for operator policies.
        alternate_exchange: where a message goes that finds no way, by argument or policy, or None.
        bindings: those that begin here, in the order they were made.
        delayed: how many messages it keeps for later.
        messages: these messages, soonest first.
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
    """The end of a representation, where there are policies."""
    named = (("policy", policy), ("operator_policy", operator_policy))
    return "".join(f" {word}={name!r}" for word, name in named if name is not None)


def counts_line(name: str, virtual_host: str, ready: int, unacked: int, consumers: int) -> str:
    """How a queue is represented."""
    return f"<queue {name!r}{elsewhere(virtual_host)} ready={ready} unacked={unacked} consumers={consumers}>"


def find_queue(state: BrokerState, name: str, virtual_host: str = "/") -> Queue:
    """The queue called `name`.

    Raises:
        NoSuchQueue, NoSuchVirtualHost: there is none.
    """
    queues = _find_virtual_host(state, virtual_host).queues
    queue = queues.get(name)
    if queue is None:
        raise NoSuchQueue(
            f"there is no queue {name!r} in virtual host {virtual_host!r}{nearest(name, queues)}"
        )
    return queue


def queue_names(state: BrokerState, virtual_host: str = "/") -> tuple[str, ...]:
    """The queues of a virtual host, in the order they were declared.

    Raises:
        NoSuchVirtualHost: there is none of this name.
    """
    return tuple(_find_virtual_host(state, virtual_host).queues)


def queue_view(state: BrokerState, name: str, virtual_host: str = "/") -> QueueView:
    """A picture of the queue called `name`, its messages included.

    Raises:
        NoSuchQueue, NoSuchVirtualHost: there is none.
    """
    queue = find_queue(state, name, virtual_host)
    return QueueView(
        name=queue.name,
        virtual_host=virtual_host,
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
        set_aside=queue.set_aside,
        consumers=tuple(consumer_view(subscription) for subscription in queue.subscriptions),
        messages=message_views(queue),
        bindings=binding_views(queue),
    )


def message_views(queue: Queue) -> tuple[MessageView, ...]:
    """What a queue holds: what waits, what clients hold, what is set aside. In a stream all waits."""
    now = queue.virtual_host.now()
    time = queue.virtual_host.state.clock.time()
    ready = [queued_view(queued, now) for queued in queue.ready]
    if queue.keeps_delivered:
        return tuple(ready)
    unacked = (unacked_view(delivery, now, time) for delivery in queue.unacked)
    return (*ready, *unacked, *(aside_view(message) for message in queue.aside()))


def binding_views(destination: Queue | Exchange) -> tuple[BindingView, ...]:
    """The bindings that end at a queue or exchange."""
    return tuple(_binding_view(binding) for binding in destination.incoming)


def consumer_views(state: BrokerState) -> tuple[ConsumerView, ...]:
    """All consumers, by virtual host and queue."""
    hosts = state.virtual_hosts.values()
    queues = [queue for host in hosts for queue in host.queues.values()]
    return tuple(consumer_view(each) for queue in queues for each in queue.subscriptions)


def consumer_view(subscription: Subscription) -> ConsumerView:
    """One consumer, with what it holds."""
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
            return CreditView(messages=limit.messages, octets=limit.octets, window=limit.window)
    return None


def exchange_names(state: BrokerState, virtual_host: str = "/") -> tuple[str, ...]:
    """The exchanges of a virtual host, those that every one has included, in the order they were declared.

    Raises:
        NoSuchVirtualHost: there is none of this name.
    """
    return tuple(_find_virtual_host(state, virtual_host).exchanges)


def exchange_view(state: BrokerState, name: str, virtual_host: str = "/") -> ExchangeView:
    """A picture of the exchange called `name`.

    Raises:
        NoSuchExchange, NoSuchVirtualHost: there is none.
    """
    exchanges = _find_virtual_host(state, virtual_host).exchanges
    exchange = exchanges.get(name)
    if exchange is None:
        hint = nearest(name, exchanges)
        raise NoSuchExchange(f"there is no exchange {name!r} in virtual host {virtual_host!r}{hint}")
    now = exchange.virtual_host.now()
    kept = exchange.virtual_host.delays.messages(exchange.name)
    return ExchangeView(
        name=exchange.name,
        virtual_host=virtual_host,
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
        messages=tuple(delayed_view(message, due - now) for message, due in kept),
    )


def _binding_view(binding: Binding) -> BindingView:
    return BindingView(
        source=binding.source.name,
        destination=binding.destination.name,
        destination_kind=binding.destination.kind,
        routing_key=binding.routing_key,
        arguments=frozen(binding.arguments),
    )


def _find_virtual_host(state: BrokerState, name: str) -> VirtualHost:
    found = state.virtual_hosts.get(name)
    if found is None:
        raise NoSuchVirtualHost(f"there is no virtual host {name!r}{nearest(name, state.virtual_hosts)}")
    return found
