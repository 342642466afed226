"""A virtual host: exchanges, queues and bindings under one name, wholly separate from any other.

The life of a published message passes here: `publish` has `routing` find the queues and offers the
message to each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fakeamqp.model.dead_lettering import DeadLettering
from fakeamqp.model.delays import DelayedMessages
from fakeamqp.model.ends import Ends
from fakeamqp.model.errors import NotFound
from fakeamqp.model.extensions import Extensions
from fakeamqp.model.history import Publication
from fakeamqp.model.interrupted import InterruptedMessages
from fakeamqp.model.limits import VirtualHostLimits
from fakeamqp.model.message import Message
from fakeamqp.model.metadata import VirtualHostMetadata
from fakeamqp.model.outcome import Outcome
from fakeamqp.model.policies import Policies
from fakeamqp.model.reply_to import PSEUDO_QUEUE, ReplyAddress
from fakeamqp.model.routing import Router
from fakeamqp.model.transactions import Branches
from fakeamqp.model.virtual_host.bindings import BindingRegister
from fakeamqp.model.virtual_host.exchanges import ExchangeRegister
from fakeamqp.model.virtual_host.queues import QueueRegister, check_owner

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from fakeamqp.model.binding import Binding, Destination
    from fakeamqp.model.delivery import Ledger
    from fakeamqp.model.ends import DropReason
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.interrupted import Interrupted
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.staging import Staged
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.subscription import Subscription
    from fakeamqp.model.timers import Label, Timer
    from fakeamqp.model.virtual_host.exchanges import ExchangeProperties
    from fakeamqp.model.virtual_host.queues import QueueProperties

__all__ = ["VirtualHost"]


class VirtualHost:
    """One virtual host of a broker.

    How exchanges, queues and bindings come and go is for their registers to say; what is here of that hands
    on to them, and they say what is raised.
    """

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
        self.extensions = Extensions(self)
        self._binding_register = BindingRegister(self)
        self._exchange_register = ExchangeRegister(self, self._binding_register)
        self._queue_register = QueueRegister(self, self._binding_register)
        self._exchange_register.predeclare()

    def __repr__(self) -> str:
        return f"<VirtualHost {self.name!r} {len(self.queues)} queues, {len(self.exchanges)} exchanges>"

    # --- what the tap is told -----------------------------------------------------------------------

    def note(self, event: str, **facts: object) -> None:
        """Tell whoever watches of something that does not happen to every message."""
        tap = self.state.tap
        if tap is not None:
            tap.model(event, **facts, virtual_host=self.name)

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
        """See `ExchangeRegister.type_called`."""
        return self._exchange_register.type_called(name)

    def declare_exchange(
        self, name: str, type_name: str, **properties: Unpack[ExchangeProperties]
    ) -> Exchange:
        """Create the exchange, or confirm that the one there is means the same; see `ExchangeRegister`."""
        return self._exchange_register.declare(name, type_name, **properties)

    def create_exchange(
        self, name: str, type_name: str, **properties: Unpack[ExchangeProperties]
    ) -> Exchange:
        """Create the exchange, whose name nothing has and may be reserved; see `ExchangeRegister`."""
        return self._exchange_register.create(name, type_name, **properties)

    def delete_exchange(self, name: str, *, if_unused: bool = False) -> None:
        """Delete an exchange and its bindings, on a client's behalf; see `ExchangeRegister`."""
        self._exchange_register.delete(name, if_unused=if_unused)

    def check_deletable(self, exchange: str) -> None:
        """Refuse to delete what the broker itself declared; see `ExchangeRegister`."""
        self._exchange_register.check_deletable(exchange)

    def used_as_alternate(self, name: str) -> bool:
        """Whether this is the alternate exchange of any queue or exchange."""
        return self._exchange_register.used_as_alternate(name)

    def remove_exchange(self, exchange: Exchange) -> None:
        """Take an exchange out with everything bound to it or by it."""
        self._exchange_register.remove(exchange)

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
        check_owner(queue, owner)
        return queue

    def declare_queue(
        self, name: str, *, reserved: bool = False, **properties: Unpack[QueueProperties]
    ) -> Queue:
        """Create the queue (with a name of the broker's making where `name` is empty), or confirm it.

        What the properties mean and what is raised: see `QueueRegister.declare`.
        """
        return self._queue_register.declare(name, reserved=reserved, **properties)

    def create_queue(
        self,
        name: str | None,
        *,
        special: type[Queue] | None = None,
        permits_all: bool = False,
        **properties: Unpack[QueueProperties],
    ) -> Queue:
        """Create the queue, whose name nothing has and may be any at all; see `QueueRegister.create`."""
        return self._queue_register.create(name, special=special, permits_all=permits_all, **properties)

    def check_queue_name(self, name: str) -> None:
        """May a queue be declared under this name? See `QueueRegister.check_name`."""
        self._queue_register.check_name(name)

    def delete_queue(
        self,
        name: str,
        owner: object,
        *,
        if_unused: bool = False,
        if_empty: bool = False,
        confirm: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Delete a queue with what it holds, on a client's behalf; see `QueueRegister.delete`."""
        self._queue_register.delete(name, owner, if_unused=if_unused, if_empty=if_empty, confirm=confirm)

    def remove_queue(
        self, queue: Queue, why: str = "the queue was deleted", reason: DropReason = "deleted"
    ) -> None:
        """Take a queue out, for what reason soever; see `QueueRegister.remove`."""
        self._queue_register.remove(queue, why, reason)

    def release_owner(self, owner: object) -> None:
        """The owner has gone: its exclusive queues go too; see `QueueRegister.release`."""
        self._queue_register.release(owner)

    # --- bindings -----------------------------------------------------------------------------------

    def bindable(self, source: str) -> Exchange:
        """The exchange that something is to be bound to; see `BindingRegister`."""
        return self._binding_register.bindable(source)

    def bind(
        self,
        source: str,
        destination: Destination,
        routing_key: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        permits_default: bool = False,
    ) -> None:
        """Bind a queue or exchange to the exchange called `source`; see `BindingRegister`."""
        self._binding_register.bind(
            source, destination, routing_key, arguments, permits_default=permits_default
        )

    def unbind(
        self,
        source: str,
        destination: Destination | None,
        routing_key: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        owner: object = None,
        permits_default: bool = False,
    ) -> None:
        """Undo `bind`, on behalf of `owner`; see `BindingRegister`."""
        self._binding_register.unbind(
            source, destination, routing_key, arguments, owner=owner, permits_default=permits_default
        )

    def bindings(self) -> list[Binding]:
        """All explicit bindings, by exchange."""
        return self._binding_register.all()

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
        self.extensions.restarted()
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
