"""Routing: from an exchange through bindings and alternate exchanges to queues.

Routes that depend on the exchange and the routing key alone are cached until a binding, queue or exchange
changes: programs publish with the same few keys again and again.

Sender-selected distribution: the headers CC and BCC hold further routing keys (RabbitMQ: documented).
Consumers see CC; BCC is removed before the message is enqueued.

Direct reply-to: replies go directly to the requesting channel, without a queue (RabbitMQ: documented).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from fakeamqp.errors import printable
from fakeamqp.model.erlang import type_name
from fakeamqp.model.errors import AccessRefused, InternalError, PreconditionFailed
from fakeamqp.model.exchanges import Exchange
from fakeamqp.model.messages.message import Message

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.delivery import Ledger
    from fakeamqp.model.deliveries.subscription import Subscription
    from fakeamqp.model.exchanges.exchange import Target
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.virtual_host import VirtualHost


class ExchangeDelay(NamedTuple):
    """An exchange delays the message by so many seconds."""

    exchange: str
    seconds: float

    def __str__(self) -> str:
        return f"delayed for {self.seconds:g} s by exchange {self.exchange!r}"


@dataclass(frozen=True)
class Outcome:
    """The outcome of one publish.

    Attributes:
        queues: the queues it was routed to, each once (queue.bind/unique).
        refused: those of `queues` that were full and refused it.
        unconsumed: an immediate message found no ready consumer.
        delays: the exchanges that delay it, beside the queues that it reached at once. A delay is not a route
            to a queue: a mandatory message is returned (RabbitMQ's delayed-message plugin: documented).
        late: those of `queues` that it reaches later; see `fakeamqp.model.races`.
    """

    queues: tuple[Queue, ...] = ()
    refused: tuple[Queue, ...] = ()
    unconsumed: bool = False
    delays: tuple[ExchangeDelay, ...] = ()
    late: tuple[Queue, ...] = ()

    @property
    def routed(self) -> bool:
        """True if it was routed to at least one queue."""
        return bool(self.queues)

    @property
    def accepted(self) -> bool:
        """True if no queue refused it: the publisher gets an ack, otherwise a nack."""
        return not self.refused

    def complete(self, refused: Iterable[Queue]) -> None:
        """Note the queues that refused it, once an operation of several slices has reached all of them."""
        object.__setattr__(self, "refused", tuple(refused))

    def __str__(self) -> str:
        queues = [] if self.delays and not self.queues else [self._queues_text()]
        return "; ".join([*queues, *map(str, self.delays)])

    def _queues_text(self) -> str:
        if self.unconsumed:
            return "no consumer ready"
        if not self.queues:
            return "unroutable"
        if self.refused:
            return "refused by full " + ", ".join(f"queue {queue.name!r}" for queue in self.refused)
        return "routed to " + ", ".join(printable(queue.name) for queue in self.queues)


class PassedOn(Outcome):
    """The outcome of a publish that another broker routes, behind a proxy."""

    elsewhere = True

    def __str__(self) -> str:
        return "passed on to the broker"


UNROUTABLE = Outcome()
PASSED_ON = PassedOn()


class Copies(NamedTuple):
    """Additional routing keys of a message: `shown` from CC, `hidden` from BCC."""

    shown: tuple[str, ...]
    hidden: tuple[str, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """All additional routing keys."""
        return self.shown + self.hidden


def carbon_copies(headers: Mapping[str, Any]) -> Copies:
    """The additional keys in `headers`, without items that are not text. A header must be an array, else
    PreconditionFailed is raised.
    """
    return Copies(_keys(headers, "CC"), _keys(headers, "BCC"))


def _keys(headers: Mapping[str, Any], name: str) -> tuple[str, ...]:
    if name not in headers:
        return ()
    value = headers[name]
    if not isinstance(value, (list, tuple)):
        raise PreconditionFailed(
            f'invalid message: {{unacceptable_type_in_header,"{name}",{type_name(value)}}}'
        )
    return tuple(key for key in value if isinstance(key, str))


def without_blind_copies(message: Message) -> Message:
    """The message without the header BCC."""
    if message.copies is None or "BCC" not in message.headers:
        return message
    return message.with_properties(message.properties.with_headers({}, ("BCC",)))


PSEUDO_QUEUE = "amq.rabbitmq.reply-to"


class ReplyAddress:
    """The reply address of one consumer of the pseudo-queue; it stores no messages.

    `untouched` is the channel's ledger, if by personality replies do not use up its delivery tags.
    """

    __slots__ = ("deleted", "name", "subscription", "untouched")

    def __init__(self, name: str, subscription: Subscription, untouched: Ledger | None = None) -> None:
        self.name: str = name
        self.subscription: Subscription = subscription
        self.untouched: Ledger | None = untouched
        self.deleted: bool = False

    def enqueue(self, message: Message, dead_letter: bool = False) -> bool:
        """Deliver a reply, or a dead letter. What finds no credit is lost (RabbitMQ: measured on 4.3.6)."""
        if not self.subscription.admits(message):
            host = self.subscription.queue.virtual_host
            host.message_outcomes.dropped(message, self.name, "maxlen", "its requester has no credit")
            return True
        self.subscription.subscriber.deliver(self.subscription, message, False, None)
        if self.untouched is not None:
            self.untouched.reuse_tag()
        return True


_is_address = re.compile(rf"{re.escape(PSEUDO_QUEUE)}(\.[A-Za-z0-9_-]{{22}}){{2}}").fullmatch


def is_reply_address(name: str) -> bool:
    """Whether a name has the form of a reply address, live or not."""
    return _is_address(name) is not None


Ask: TypeAlias = "Callable[[Exchange, Sequence[str], Message], tuple[float, Iterable[Target]]]"
"""Replaces an exchange's routing: returns for how many seconds the exchange delays the message, and the
targets to which it routes the message at once."""

_MOST_REMEMBERED = 10_000


class Router:
    """The routing of one virtual host."""

    __slots__ = ("_remembered", "_virtual_host")

    def __init__(self, virtual_host: VirtualHost) -> None:
        self._virtual_host = virtual_host
        self._remembered: dict[tuple[str, str], Outcome] = {}

    def invalidate(self) -> None:
        """Clear the cache: a binding, queue or exchange has changed."""
        self._remembered.clear()

    def plan(self, message: Message, alternates: bool = True) -> tuple[Message, Outcome]:
        """Find the queues for a published message, without enqueueing it.

        An exchange that delays messages keeps the message from this call on, even if the message is part of a
        transaction that is rolled back later (RabbitMQ's delayed-message plugin: documented). `alternates`
        says whether a message that cannot be routed goes to alternate exchanges.

        Raises:
            NotFound, AccessRefused: see `check_publishable`.
            PreconditionFailed: a header that names further routing keys is not an array.
            InternalError: an exchange cannot handle the value of a header.
            ContentRefused: a system exchange takes no contents of the message's class.
        """
        headers = message.properties.headers
        if headers and ("CC" in headers or "BCC" in headers) and self._routes_by_cc_headers:
            self.check_publishable(message.exchange)
            message.copies = carbon_copies(headers)
            message = without_blind_copies(message)
            return message, self._walk(
                message, self._virtual_host.exchanges.require(message.exchange), None, alternates
            )
        outcome = self._remembered.get((message.exchange, message.routing_key)) if alternates else None
        if outcome is None:
            self.check_publishable(message.exchange)
            outcome = self._walk(
                message, self._virtual_host.exchanges.require(message.exchange), None, alternates
            )
        return message, outcome

    @property
    def _routes_by_cc_headers(self) -> bool:
        return self._virtual_host.state.personality.routes_by_cc_headers

    def check_publishable(self, exchange: str) -> None:
        """AccessRefused if an exchange is internal (basic.publish/exchange-02), NotFound if there is none."""
        if self._virtual_host.exchanges.require(exchange).internal:
            raise AccessRefused(
                f"cannot publish to internal exchange '{exchange}' in vhost '{self._virtual_host.name}'"
            )

    def preview(self, message: Message) -> tuple[str, ...]:
        """The names of the queues that `plan` would find, at once or after a delay. This changes no state."""
        headers = message.properties.headers
        if headers and ("CC" in headers or "BCC" in headers) and self._routes_by_cc_headers:
            message.copies = carbon_copies(headers)
        random = self._virtual_host.state.random
        drawn = random.getstate()
        try:
            # As if no exchange delayed messages.
            outcome = self._walk(
                message,
                self._virtual_host.exchanges.require(message.exchange),
                lambda exchange, keys, asked: (0.0, exchange.route(keys, asked)),
            )
        finally:
            random.setstate(drawn)
        return tuple(queue.name for queue in outcome.queues)

    def route(self, message: Message, first: Exchange | None = None, *, alternates: bool = True) -> Outcome:
        """Find the queues for a message whose headers CC and BCC are not considered.

        These are dead letters, delayed messages, messages that go to the alternate exchange of their queue,
        and messages that a 0-10 client publishes. A message is unroutable if an exchange cannot handle the
        value of a header. `first` is the exchange to begin at, by default the one that the message was
        published to; `alternates` and the other errors are as in `plan`.
        """
        if first is None and message.copies is None and alternates:
            known = self._remembered.get((message.exchange, message.routing_key))
            if known is not None:
                return known
        try:
            first = first or self._virtual_host.exchanges.require(message.exchange)
            return self._walk(message, first, None, alternates)
        except InternalError:
            return UNROUTABLE

    def dry_run(self, message: Message, ask: Ask, first: Exchange | None = None) -> tuple[Message, Outcome]:
        """What `plan` would return, or (given `first`) what `route` would, without changing any state.

        `ask` is called in place of the routing of every exchange that the message passes.
        """
        if first is None:
            self.check_publishable(message.exchange)
            first = self._virtual_host.exchanges.require(message.exchange)
            if self._routes_by_cc_headers and not {"CC", "BCC"}.isdisjoint(message.headers):
                message.copies = carbon_copies(message.headers)
                message = without_blind_copies(message)
        return message, self._walk(message, first, ask)

    def _walk(
        self, message: Message, first: Exchange, ask: Ask | None = None, alternates: bool = True
    ) -> Outcome:
        """The queues that a message reaches from an exchange, each once, in the order of their bindings.

        `ask`, if given, replaces the routing of the exchanges. The outcome is not cached then, nor without
        `alternates`.
        """
        exchanges = self._virtual_host.exchanges
        loose = self._virtual_host.bindings.loose
        keys = [message.routing_key]
        if message.copies is not None:
            keys += message.copies.keys
        queues: dict[Any, None] = {}
        visited = {first}
        pending = deque((first,))
        delays: list[ExchangeDelay] = []
        last: set[Exchange] = set()
        # Only routes from the exchange that the message was published to are cached.
        by_key_alone = ask is None and alternates and len(keys) == 1 and first.name == message.exchange
        while pending:
            exchange = pending.popleft()
            by_key_alone = by_key_alone and exchange.by_key_alone
            found: Iterable[Target] = ()
            if ask is not None:
                delay, found = ask(exchange, keys, message)
            else:
                delay = exchange.hold_back(message)
                if not delay:
                    found = exchange.route(keys, message)
            if loose and found:
                found = [each for each in found if each not in loose]
            if delay:
                delays.append(ExchangeDelay(exchange.name, delay))
            other_way = exchange.alternate_exchange
            if other_way is not None and alternates and not found and exchange not in last:
                alternate = exchanges.get(other_way)
                if alternate is not None:
                    found = [alternate]
                    if exchange.alternate_is_last and alternate not in visited:
                        last.add(alternate)
            for destination in found:
                if not isinstance(destination, Exchange):
                    queues[destination] = None
                elif destination not in visited:
                    visited.add(destination)
                    pending.append(destination)
        outcome = Outcome(tuple(queues), delays=tuple(delays)) if queues or delays else UNROUTABLE
        if by_key_alone:
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[message.exchange, message.routing_key] = outcome
        return outcome
