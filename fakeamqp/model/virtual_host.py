"""A virtual host: exchanges, queues and bindings under one name, wholly separate from any other.

The life of a published message passes here: `publish` has `routing` find the queues and offers the
message to each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fakeamqp.model.dead_lettering import DeadLettering
from fakeamqp.model.declarations import (
    check_alternate,
    check_name,
    check_removed_arguments,
    check_same_exchange,
    check_same_queue,
)
from fakeamqp.model.delays import DelayedMessages
from fakeamqp.model.ends import Ends
from fakeamqp.model.equivalence import type_name as type_of
from fakeamqp.model.errors import (
    AccessRefused,
    CommandInvalid,
    NotAllowed,
    NotFound,
    PreconditionFailed,
    ResourceLocked,
)
from fakeamqp.model.exchanges import EXCHANGE_TYPES, STANDARD_TYPES, DefaultExchange, Exchange
from fakeamqp.model.history import Publication
from fakeamqp.model.interrupted import InterruptedMessages
from fakeamqp.model.limits import VirtualHostLimits, check_queue_limit
from fakeamqp.model.message import Message
from fakeamqp.model.metadata import VirtualHostMetadata
from fakeamqp.model.outcome import Outcome
from fakeamqp.model.policies import Policies
from fakeamqp.model.queues import Queue, queue_class
from fakeamqp.model.queues.options import KINDS, check_dead_letter_exchange, queue_options, queue_type
from fakeamqp.model.reply_to import PSEUDO_QUEUE, ReplyAddress
from fakeamqp.model.routing import Router
from fakeamqp.model.transactions import Branches

if TYPE_CHECKING:
    from fakeamqp.model.binding import Binding, Destination
    from fakeamqp.model.delivery import Ledger
    from fakeamqp.model.ends import DropReason
    from fakeamqp.model.interrupted import Interrupted
    from fakeamqp.model.staging import Staged
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.subscription import Subscription
    from fakeamqp.model.timers import Label, Timer

__all__ = ["VirtualHost"]


class VirtualHost:
    """One virtual host of a broker."""

    def __init__(self, state: BrokerState, name: str) -> None:
        self.state = state
        self.name = name
        self.now: Callable[[], float] = state.clock.now
        self.exchanges: dict[str, Exchange] = {}
        self.queues: dict[str, Queue] = {}
        self.metadata = VirtualHostMetadata(
            default_queue_type="classic" if state.personality.names_default_queue_type else None
        )
        self.policies = Policies(self)
        self.limits = VirtualHostLimits()
        self.reply_addresses: dict[str, ReplyAddress] = {}
        self.routing = Router(self)
        self.ends = Ends(self)
        self.dead_letters = DeadLettering(self)
        self.delays = DelayedMessages(self)
        self.branches = Branches(self)
        self.staged: InterruptedMessages[Staged] = InterruptedMessages(self)
        self.interrupted: InterruptedMessages[Interrupted] = InterruptedMessages(self)
        self._predeclare()

    def __repr__(self) -> str:
        return f"<VirtualHost {self.name!r} {len(self.queues)} queues, {len(self.exchanges)} exchanges>"

    def _predeclare(self) -> None:
        """The instances every virtual host has (exchange/required-instances, exchange/required-match)."""
        self.exchanges[""] = DefaultExchange(self, "", durable=True)
        for type_name, kind in STANDARD_TYPES.items():
            self.exchanges[f"amq.{type_name}"] = kind(self, f"amq.{type_name}", durable=True)
        self.exchanges["amq.match"] = EXCHANGE_TYPES["headers"](self, "amq.match", durable=True)
        if self.state.personality.has_trace_exchange:
            trace = EXCHANGE_TYPES["topic"](self, "amq.rabbitmq.trace", durable=True, internal=True)
            self.exchanges[trace.name] = trace

    # --- what the tap is told -----------------------------------------------------------------------

    def note(self, event: str, **facts: object) -> None:
        """Tell whoever watches of something that does not happen to every message."""
        tap = self.state.tap
        if tap is not None:
            tap.model(event, **facts, virtual_host=self.name)

    def _note_binding(self, event: str, source: str, destination: Destination, routing_key: str) -> None:
        whose = {"queue": destination.name} if destination.kind == "queue" else {"to": destination.name}
        self.note(event, **whose, exchange=source, routing_key=routing_key)

    # --- time ---------------------------------------------------------------------------------------

    def call_at(self, due: float, callback: Callable[[], None], label: Label) -> Timer:
        """Have `callback` run at an instant of the broker's clock."""
        return self.state.timers.call_at(due, callback, label)

    def call_later(self, delay: float, callback: Callable[[], None], label: Label) -> Timer:
        """Have `callback` run after `delay` seconds of the broker's clock."""
        return self.state.timers.call_at(self.now() + delay, callback, label)

    # --- exchanges ----------------------------------------------------------------------------------

    def exchange(self, name: str) -> Exchange:
        """The exchange called `name`.

        Raises:
            NotFound: there is none.
        """
        found = self.exchanges.get(name)
        if found is None:
            raise NotFound(f"no exchange '{name}' in vhost '{self.name}'")
        return found

    def exchange_type(self, name: str) -> type[Exchange]:
        """The exchange type called `name` (exchange.declare/type-support).

        Raises:
            CommandInvalid, PreconditionFailed: there is none, by personality.
        """
        personality = self.state.personality
        kind = EXCHANGE_TYPES.get(name)
        if kind is None or name not in personality.exchange_types:
            refusal = {"command-invalid": CommandInvalid, "precondition-failed": PreconditionFailed}
            problem = "invalid" if name in personality.invalid_exchange_types else "unknown"
            raise refusal[personality.unknown_exchange_type](f"{problem} exchange type '{name}'")
        return kind

    def declare_exchange(
        self,
        name: str,
        type_name: str,
        *,
        durable: bool = False,
        auto_delete: bool = False,
        internal: bool = False,
        arguments: Mapping[str, Any] | None = None,
        alternate_exchange: str | None = None,
    ) -> Exchange:
        """Create the exchange, or confirm that the one there is means the same.

        `alternate_exchange` names one beside the arguments; it is that of the exchange, whatever they say.

        Raises:
            AccessRefused: the name is empty or reserved.
            PreconditionFailed: there is one that differs, or an argument or the name is illegal.
            CommandInvalid, PreconditionFailed: the type is unknown, by personality.
            NotAllowed: there is one of another type, in personality `spec`; or another alternate exchange.
            NotFound: there is no such alternate exchange.
        """
        personality = self.state.personality
        arguments = arguments or {}
        if personality.exchange_flags_reserved:
            auto_delete = internal = False
        if not name:
            raise AccessRefused("operation not permitted on the default exchange")
        check_name(personality, "exchange", name)
        self.exchange_type(type_name)
        existing = self.exchanges.get(name)
        if existing is not None:
            if personality.type_mismatch_ends_connection and existing.type_name != type_name:
                raise NotAllowed(
                    f"exchange '{name}' in vhost '{self.name}' is of type '{existing.type_name}', "
                    f"not '{type_name}'"
                )
            check_same_exchange(
                existing,
                type_name,
                durable=durable,
                auto_delete=auto_delete,
                internal=internal,
                arguments=arguments,
            )
            check_alternate(self, alternate_exchange, existing)
            return existing
        if name.startswith("amq."):
            raise AccessRefused(f"exchange name '{name}' contains reserved prefix 'amq.*'")
        return self.create_exchange(
            name,
            type_name,
            durable=durable,
            auto_delete=auto_delete,
            internal=internal,
            arguments=arguments,
            alternate_exchange=alternate_exchange,
        )

    def create_exchange(
        self,
        name: str,
        type_name: str,
        *,
        durable: bool = False,
        auto_delete: bool = False,
        internal: bool = False,
        arguments: Mapping[str, Any] | None = None,
        alternate_exchange: str | None = None,
    ) -> Exchange:
        """Create the exchange, whose name nothing has and may be reserved; see `declare_exchange`.

        Raises:
            PreconditionFailed: an argument is illegal.
            CommandInvalid, PreconditionFailed: the type is unknown, by personality.
            NotFound: there is no such alternate exchange.
        """
        arguments = arguments or {}
        kind = self.exchange_type(type_name)
        alternate = arguments.get("alternate-exchange")
        if "alternate-exchange" in arguments and not isinstance(alternate, str):
            raise PreconditionFailed(
                f"invalid type '{type_of(alternate)}' for arg 'alternate-exchange' in exchange '{name}' "
                f"in vhost '{self.name}'"
            )
        kind.check_declaration(self, arguments)
        check_alternate(self, alternate_exchange)
        exchange = kind(
            self,
            name,
            durable=durable,
            auto_delete=auto_delete,
            internal=internal,
            arguments=arguments,
            alternate_exchange=alternate_exchange,
        )
        self.exchanges[name] = exchange
        self.note("exchange declared", exchange=name, type=type_name)
        self.policies.adopt_exchange(exchange)
        self.routing.forget()
        return exchange

    def delete_exchange(self, name: str, *, if_unused: bool = False) -> None:
        """Delete an exchange and its bindings.

        Raises:
            AccessRefused: it is one of those the broker itself declared (exchange/predeclared-permanent).
            PreconditionFailed: it has bindings and `if_unused` is set.
            NotFound: there is none, in personality `spec`.
        """
        if not name:
            raise AccessRefused("operation not permitted on the default exchange")
        self.check_deletable(name)
        exchange = self.exchanges.get(name)
        if exchange is None:
            if self.state.personality.deleting_missing_is_an_error:
                raise NotFound(f"no exchange '{name}' in vhost '{self.name}'")
            return
        if if_unused and exchange.bindings:
            raise PreconditionFailed(f"exchange '{name}' in vhost '{self.name}' in use")
        self.remove_exchange(exchange)

    def check_deletable(self, exchange: str) -> None:
        """Refuse to delete what the broker itself declared (exchange/predeclared-permanent).

        Raises:
            AccessRefused: the name is one of those reserved for such exchanges.
        """
        if exchange.startswith("amq."):
            raise AccessRefused(
                f"deletion of system exchange '{exchange}' in vhost '{self.name}' not allowed"
            )

    def used_as_alternate(self, name: str) -> bool:
        """Whether this is the alternate exchange of any queue or exchange.

        Source: exchange.delete/exchange-used-as-alternate.
        """
        return any(each.alternate_exchange == name for each in self.exchanges.values()) or any(
            each.alternate_exchange == name for each in self.queues.values()
        )

    def remove_exchange(self, exchange: Exchange) -> None:
        """Take an exchange out with everything bound to it or by it."""
        if self.exchanges.pop(exchange.name, None) is None:
            return
        self.note("exchange deleted", exchange=exchange.name)
        for binding in list(exchange.bindings.values()):
            exchange.drop(binding)
        self._cut_off(exchange)
        self.routing.forget()

    # --- queues -------------------------------------------------------------------------------------

    def queue(self, name: str, owner: object = None) -> Queue:
        """The queue called `name`, for use by `owner`.

        Raises:
            NotFound: there is none.
            ResourceLocked: it is exclusive to somebody else (queue.declare/exclusive-exclusive).
        """
        queue = self.queues.get(name)
        if queue is None:
            raise NotFound(f"no queue '{name}' in vhost '{self.name}'")
        self._check_owner(queue, owner)
        return queue

    def _check_owner(self, queue: Queue, owner: object) -> None:
        if queue.exclusive_owner is not None and queue.exclusive_owner is not owner:
            self._locked(queue.name)

    def _locked(self, name: str) -> None:
        raise ResourceLocked(
            f"cannot obtain exclusive access to locked queue '{name}' in vhost '{self.name}'. It could be "
            "originally declared on another connection or the exclusive property value does not match that "
            "of the original declaration."
        )

    def declare_queue(
        self,
        name: str,
        *,
        owner: object,
        durable: bool = False,
        exclusive: bool = False,
        auto_delete: bool = False,
        arguments: Mapping[str, Any] | None = None,
        reserved: bool = False,
        alternate_exchange: str | None = None,
        freeable: bool = False,
        priorities: bool | None = None,
    ) -> Queue:
        """Create the queue (with a name of the broker's making where `name` is empty), or confirm it.

        `owner` is the connection or session that declares it, and that an exclusive queue belongs to; None
        where nobody does, who is denied nothing. `reserved` permits a name that only the broker may give.
        `alternate_exchange`, `freeable` and `priorities` are those of a new queue: see `Queue`. An exclusive
        queue can be durable only if it is freeable.

        Raises:
            AccessRefused: the name is reserved.
            InternalError: it needs a deprecated feature that is not permitted.
            ResourceLocked: the queue is exclusive to somebody else, or exclusivity differs.
            PreconditionFailed: there is one that differs, or an argument or the name is illegal.
            NotAllowed: there is one with another alternate exchange.
            NotFound: there is no such alternate exchange.
            PreconditionFailed, ResourceError: there may be no more queues, by personality.
        """
        arguments = self.metadata.with_queue_type(
            self.state.personality,
            arguments or {},
            durable=durable,
            exclusive=exclusive,
            auto_delete=auto_delete,
        )
        if name:
            if not reserved:
                self.check_queue_name(name)
            existing = self.queues.get(name)
            if existing is not None:
                self._check_owner(existing, owner)
                if exclusive != (existing.exclusive_owner is not None):
                    self._locked(name)
                check_same_queue(existing, durable=durable, auto_delete=auto_delete, arguments=arguments)
                check_alternate(self, alternate_exchange, existing)
                existing.asked_for()
                return existing
        else:
            self._check_server_named(arguments)
        return self.create_queue(
            name or None,
            owner=owner,
            durable=durable,
            exclusive=exclusive,
            auto_delete=auto_delete,
            arguments=arguments,
            alternate_exchange=alternate_exchange,
            freeable=freeable,
            priorities=priorities,
        )

    def create_queue(
        self,
        name: str | None,
        *,
        owner: object,
        durable: bool = False,
        exclusive: bool = False,
        auto_delete: bool = False,
        arguments: Mapping[str, Any] | None = None,
        alternate_exchange: str | None = None,
        freeable: bool = False,
        priorities: bool | None = None,
        special: type[Queue] | None = None,
        permits_all: bool = False,
    ) -> Queue:
        """Create the queue, whose name nothing has and may be any at all; see `declare_queue`.

        With None the broker finds a name. `permits_all` leaves out what the personality denies or has removed
        in 0-9-1.

        Raises:
            InternalError: it needs a deprecated feature that is not permitted.
            PreconditionFailed: an argument is illegal.
            NotFound: there is no such alternate exchange.
            PreconditionFailed, ResourceError: there may be no more queues, by personality.
        """
        personality = self.state.personality
        arguments = self.metadata.with_queue_type(
            personality, arguments or {}, durable=durable, exclusive=exclusive, auto_delete=auto_delete
        )
        shown = name or ""
        check_dead_letter_exchange(shown, self.name, arguments)
        default = self.metadata.default_queue_type or "classic"
        type_name = queue_type(shown, self.name, arguments, personality, default)
        options = queue_options(type_name, shown, self.name, arguments, personality)
        features = self.state.features
        denies = owner is not None and not permits_all
        if denies:
            check_removed_arguments(shown, self.name, arguments, personality)
            if not durable and not exclusive:
                features.require("transient_nonexcl_queues")
        kind = special if special is not None and type_name == "classic" else queue_class(type_name)
        kind.check_declaration(
            shown, self.name, durable=durable, exclusive=exclusive, auto_delete=auto_delete
        )
        kind.check_arguments(shown, self.name, arguments, personality)
        check_alternate(self, alternate_exchange)
        name = self.state.names.queue() if name is None else name
        check_queue_limit(self, name)
        if denies and type_name == "classic" and "x-queue-master-locator" in arguments:
            features.require("queue_master_locator")
        queue = kind(
            self,
            name,
            # What goes with its owner is never durable.
            durable=durable and (not exclusive or freeable),
            exclusive_owner=owner if exclusive else None,
            auto_delete=auto_delete,
            arguments=arguments,
            options=options,
            alternate_exchange=alternate_exchange,
            freeable=freeable,
            priorities=priorities,
        )
        self.policies.adopt_queue(queue)
        self.queues[name] = queue
        self.note("queue declared", queue=name, type=type_name, connection=getattr(owner, "name", None))
        self.routing.forget()
        return queue

    def _check_server_named(self, arguments: Mapping[str, Any]) -> None:
        """Refuse to find a name for a queue whose type is for names that programs agree on."""
        asked = arguments.get("x-queue-type")
        kind = queue_class(asked) if isinstance(asked, str) and asked in KINDS else None
        if kind is not None and kind.replicated:
            raise PreconditionFailed(f"Cannot declare a server-named queue for type {KINDS[kind.type_name]}")

    def check_queue_name(self, name: str) -> None:
        """May a queue be declared under this name?

        Raises:
            AccessRefused: it is reserved (queue.declare/queue-reserved).
            PreconditionFailed: it is illegal.
        """
        check_name(self.state.personality, "queue", name)
        known = self.state.personality.reserved_queue_redeclarable and name in self.queues
        if name.startswith("amq.") and not known:
            raise AccessRefused(f"queue name '{name}' contains reserved prefix 'amq.*'")

    def delete_queue(
        self,
        name: str,
        owner: object,
        *,
        if_unused: bool = False,
        if_empty: bool = False,
        confirm: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Delete a queue with what it holds.

        `confirm` is told how many messages were ready, before consumers hear that the queue has gone
        (RabbitMQ: measured).

        Raises:
            PreconditionFailed: it is in use or not empty and the request forbids that.
            ResourceLocked: it is exclusive to somebody else.
            NotFound: there is none, in personality `spec`.
        """
        queue = self.queues.get(name)
        if queue is None:
            if self.state.personality.deleting_missing_is_an_error:
                raise NotFound(f"no queue '{name}' in vhost '{self.name}'")
            confirm(0)
            return
        self._check_owner(queue, owner)
        confirm(queue.check_deletion(if_unused=if_unused, if_empty=if_empty))
        dead_letters = self.state.personality.dead_letters_deleted and queue.alternate_exchange is None
        dying = queue.clear() if dead_letters else []
        self.remove_queue(queue)
        for message in dying:
            self.dead_letters.died(queue, message, "deleted")

    def remove_queue(
        self, queue: Queue, why: str = "the queue was deleted", reason: DropReason = "deleted"
    ) -> None:
        """Take a queue out: its bindings go, its subscriptions end and their clients are told.

        What it holds, and what clients hold of it, goes to its alternate exchange if it is deleted and has
        one (queue.delete/orphans); otherwise what it holds is dropped. `why` says in words what has happened,
        `reason` in one.
        """
        if self.queues.get(queue.name) is not queue:
            return
        del self.queues[queue.name]
        self.note("queue deleted", queue=queue.name, detail=why)
        self._cut_off(queue)
        self.routing.forget()
        # By tag, as RabbitMQ tells them (measured).
        for subscription in sorted(queue.detach_all(), key=lambda each: each.tag):
            subscription.subscriber.cancelled(subscription)
        if reason == "deleted" and queue.alternate_exchange is not None:
            for message in queue.abandon():
                self.dead_letters.passed_on(queue, message, "deleted")
        queue.drop_all(reason, why)

    def release_owner(self, owner: object) -> None:
        """The owner has gone: its exclusive queues go too (queue.declare/exclusive-deleted-on-close).

        Those that are freeable and not auto-delete stay, for all. Who owned has ended its subscriptions and
        released what it held before this; what it holds all the same a queue hands on where it goes.
        """
        for queue in [queue for queue in self.queues.values() if queue.exclusive_owner is owner]:
            if queue.freeable and not queue.auto_delete:
                queue.exclusive_owner = None
            else:
                queue.unused("the connection has gone that the queue was exclusive to")

    # --- bindings -----------------------------------------------------------------------------------

    def bindable(self, source: str) -> Exchange:
        """The exchange that something is to be bound to.

        Raises:
            NotFound: there is no such exchange.
            AccessRefused: it is the default exchange, where the personality forbids that.
        """
        self._check_bindable(source)
        return self.exchange(source)

    def bind(
        self,
        source: str,
        destination: Destination,
        routing_key: str,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        """Bind a queue or exchange to the exchange called `source`.

        Raises:
            NotFound: there is no such exchange.
            AccessRefused: it is the default exchange, where the personality forbids that.
            PreconditionFailed: the exchange cannot work with the arguments.
        """
        exchange = self.bindable(source)
        arguments = arguments or {}
        known = exchange.binding(destination, routing_key, arguments)
        exchange.bind(destination, routing_key, arguments)
        self.routing.forget()
        if known is None:
            self._note_binding("bound", source, destination, routing_key)

    def unbind(
        self,
        source: str,
        destination: Destination | None,
        routing_key: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        owner: object = None,
    ) -> None:
        """Undo `bind`, on behalf of `owner`. A destination that does not exist (None) has no bindings.

        Raises:
            AccessRefused: it is the default exchange, where the personality forbids that.
            NotFound: there is no such exchange or binding, in personality `spec` (queue.unbind/01).
            ResourceLocked: the binding is that of a queue exclusive to somebody else.
        """
        self._check_bindable(source)
        strict = self.state.personality.unbinding_missing_is_an_error
        exchange = self.exchanges.get(source)
        if exchange is None:
            if strict:
                raise NotFound(f"no exchange '{source}' in vhost '{self.name}'")
            return
        if destination is None:
            return
        binding = exchange.binding(destination, routing_key, arguments or {})
        if binding is not None:
            if isinstance(destination, Queue):
                self._check_owner(destination, owner)
            exchange.drop(binding)
            self.routing.forget()
            self._note_binding("unbound", source, destination, routing_key)
            if exchange.auto_delete and not exchange.bindings:
                self.remove_exchange(exchange)
        elif strict:
            raise NotFound(
                f"no binding '{routing_key}' between exchange '{source}' in vhost '{self.name}' and "
                f"'{destination.name}' in vhost '{self.name}'"
            )

    def _check_bindable(self, source: str) -> None:
        if not source and not self.state.personality.default_exchange_bindable:
            raise AccessRefused("operation not permitted on the default exchange")

    def _cut_off(self, destination: Destination) -> None:
        """Drop the bindings to what has gone.

        An auto-delete exchange goes with the last thing bound to it (RabbitMQ: documented), and then the
        same is done to it, and so on: chains of them may be longer than the stack is deep.
        """
        gone = [destination]
        for each in gone:
            sources = dict.fromkeys(binding.source for binding in each.incoming)
            for binding in list(each.incoming):
                binding.source.drop(binding)
            for source in sources:
                if source.auto_delete and not source.bindings:
                    del self.exchanges[source.name]
                    self.note("exchange deleted", exchange=source.name)
                    gone.append(source)

    def bindings(self) -> list[Binding]:
        """All explicit bindings, by exchange."""
        return [binding for exchange in self.exchanges.values() for binding in exchange.bindings.values()]

    # --- messages -----------------------------------------------------------------------------------

    def publish(self, message: Message, *, immediate: bool = False, mandatory: bool = False) -> Outcome:
        """Route a message and offer it to each queue found.

        `immediate` messages are only handed over where a subscription can take them at once. `mandatory`
        says that the caller returns what finds no queue, so that it is not lost.

        Raises:
            NotFound: there is no such exchange.
            AccessRefused: it is internal (basic.publish/exchange-02).
        """
        message, outcome = self.routing.plan(message)
        return self.offer(message, outcome, immediate=immediate, mandatory=mandatory)

    def offer(
        self, message: Message, outcome: Outcome, *, immediate: bool = False, mandatory: bool = False
    ) -> Outcome:
        """Offer a message to each queue it was routed to; `immediate` and `mandatory` as in `publish`.

        Returns:
            What became of it: `outcome`, and which queues refused.
        """
        if immediate:
            able = tuple(queue for queue in outcome.queues if queue.could_take(message))
            outcome = replace(outcome, queues=able) if able else replace(outcome, unconsumed=outcome.routed)
        tap = self.state.tap
        if tap is not None:
            message.number = next(self.state.message_numbers)
            tap.published(message, outcome, self.name)
        if immediate and outcome.unconsumed:
            return self._published(message, outcome)
        refused: tuple[Queue, ...] = ()
        # What a full queue passes on comes behind the message itself, also where both come to one queue.
        holds = len(outcome.queues) > 1 and self.dead_letters.hold()
        try:
            for queue in outcome.queues:
                if not queue.enqueue(message):
                    refused = (*refused, queue)
        finally:
            if holds:
                self.dead_letters.release()
        if refused:
            outcome = replace(outcome, refused=refused)
            if tap is not None:
                tap.refused(message, outcome, self.name)
            for queue in refused:
                self.dead_letters.refused(queue, message)
        elif not outcome.queues:
            self._lost(message, outcome, mandatory)
        return outcome if self.state.published is None else self._published(message, outcome)

    def _lost(self, message: Message, outcome: Outcome, mandatory: bool) -> None:
        """No queue has it; unless an exchange keeps it or it is returned, that is the end of it."""
        if not mandatory and not outcome.delays:
            self.ends.dropped(message, None, "unroutable", "no queue was there for it")

    def _published(self, message: Message, outcome: Outcome) -> Outcome:
        """Leave a record for whoever looks."""
        if self.state.published is not None:
            self.state.published.append(Publication(self.name, message, outcome))
        return outcome

    # --- direct reply-to ----------------------------------------------------------------------------

    def open_reply_address(self, subscription: Subscription, ledger: Ledger) -> ReplyAddress:
        """Give a consumer of the pseudo-queue an address of its own; `ledger` is its channel's."""
        token = self.state.names.token
        untouched = None if self.state.personality.replies_count_tags else ledger
        address = ReplyAddress(f"{PSEUDO_QUEUE}.{token()}.{token()}", subscription, untouched)
        self.reply_addresses[address.name] = address
        self.routing.forget()
        return address

    def close_reply_address(self, address: ReplyAddress) -> None:
        """The consumer has gone: answers find nobody."""
        self.reply_addresses.pop(address.name, None)
        address.deleted = True
        self.routing.forget()

    # --- restart ------------------------------------------------------------------------------------

    def restart(self, *, crash: bool = False) -> None:
        """Forget what a restart loses: transient entities, and non-persistent messages of durable queues.

        What clients held unsettled is ready again, in its old place, marked redelivered. All connections
        are gone by the time this is called. After a crash only what publishers were told of remains. What
        prepared branches of transactions will do is kept for them, as far as it is persistent.
        """
        self.branches.abandon()
        self.interrupted.clear()
        self.staged.clear()
        for queue in list(self.queues.values()):
            if queue.durable:
                queue.keep_persistent(crash=crash)
            else:
                how = "crashed" if crash else "restarted"
                why = f"the broker {how}, and the queue is not durable"
                self.remove_queue(queue, why, "crash" if crash else "restart")
        for exchange in list(self.exchanges.values()):
            if exchange.durable:
                exchange.restarted()
            else:
                self.remove_exchange(exchange)
        self.branches.restarted(crash=crash)
        self.delays.restart(crash=crash)
        self.routing.forget()
        for queue in list(self.queues.values()):
            queue.restarted()
