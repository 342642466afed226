"""A classic queue: messages in order, subscriptions in turn.

Theory of operation. After every operation one condition holds: no message waits while a subscription could
take it. `enqueue` and `dispatch` keep it. A message that arrives while a subscription can take it is handed
over at once (server-model/immediate-handover) and, where no acknowledgement is expected, never becomes an
object of the queue. Every other message becomes a `QueuedMessage` with a position; positions only grow, and a
message that comes back returns to the place of its position.

A queue is plain as long as all messages suit all subscriptions and all subscriptions acquire what they get.
Otherwise it selects, has a `Browsing`, or both, which only AMQP 0-9, AMQP 0-10 and personality `spec` need.
Nearly all messages are of class basic: as long as all are, subscriptions to that class are like any others.

A queue selects from the first message or subscription on that makes a difference: a subscription may ask for
a content class, or for no messages of its own (no-local). In personality `spec` a rejected message does not
suit the channel that rejected it. Then the queue looks beyond its head: a message blocks the subscriptions
that may have it and cannot take it now, and no others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING
from weakref import ref

from fakeamqp.model.deliveries.delivery import Delivery, resume_credits
from fakeamqp.model.operations import STEP, carry_out, freeing, in_steps
from fakeamqp.model.queues.queue import (
    NOT_SECURED,
    DeathReason,
    Queue,
    expires_messages,
    not_persistent,
)
from fakeamqp.model.queues.waiting import Browsing, Fifo, IndexedFifo, PriorityFifo, QueuedMessage
from fakeamqp.model.timers import MARGIN, Deadline

if TYPE_CHECKING:
    from fakeamqp.model.arguments.queue_arguments import QueueOptions
    from fakeamqp.model.deliveries.subscription import Subscription
    from fakeamqp.model.history import DropReason
    from fakeamqp.model.messages.message import Message

_HIGHEST_PRIORITY = 9
"""Of queues that have priorities without naming a number (message/min-priority-levels)."""


class ClassicQueue(Queue):
    """A queue of RabbitMQ's type classic, the only type that the AMQP specifications have."""

    type_name = "classic"

    __slots__ = (
        "_bounded",
        "_browsing",
        "_checks_stored",
        "_expects_basic",
        "_failures",
        "_has_priorities",
        "_head_expiry",
        "_next_position",
        "_plain",
        "_refuses",
        "_ttl",
        "ready",
        "ready_bytes",
        "selects",
    )

    ready: Fifo | PriorityFifo | IndexedFifo

    def _prepare(self) -> None:
        state = self.virtual_host.state
        self.ready = self.empty_ready()
        self.ready_bytes: int = 0
        self._next_position = 0
        self.selects: bool = False
        """Whether messages are selected, because some may not suit all subscriptions."""
        self._browsing: Browsing | None = None
        self._plain = True
        """Whether it neither selects nor is browsed."""
        self._expects_basic = False
        """Whether subscriptions take basic messages only, and no other message has come since they did."""
        self._has_priorities = self._checks_stored = isinstance(self.ready, PriorityFifo)
        """Whether a stored message may have to be delivered at once, or to be selected."""
        self._head_expiry = Deadline(state.timers, lambda: state.operations.run(self._expire()))
        self._failures = state.personality.classic_failures
        """The outcomes of deliveries that are counted."""
        self._adopt_limits()

    def empty_ready(self) -> Fifo | PriorityFifo:
        """An empty list of the kind in which the queue's messages wait."""
        priorities = self.options.max_priority
        if priorities is None:
            has_some = self.priorities
            if has_some is None:
                has_some = self.virtual_host.state.personality.queues_have_priorities
            priorities = _HIGHEST_PRIORITY if has_some else None
        return Fifo() if priorities is None else PriorityFifo(priorities)

    def apply(self, options: QueueOptions) -> None:
        """New limits apply at once, a new time to live to new messages."""
        # RabbitMQ applies new limits before a new overflow: the old overflow still drops (measured).
        drops = self.options.overflow == "drop-head" or options.overflow == "drop-head"
        super().apply(options)
        self._adopt_limits()
        self._trim(overflow=self._bounded and drops)

    def _adopt_limits(self) -> None:
        """Cache the options that every publish needs."""
        options = self.options
        self._ttl = options.message_ttl
        self._bounded = options.max_length is not None or options.max_length_bytes is not None
        self._refuses = self._bounded and options.overflow != "drop-head"

    # --- arrival -----------------------------------------------------------------------------------

    def enqueue(self, message: Message, dead_letter: bool = False) -> bool:
        if self._refuses and self._full_with(message):
            if self.options.overflow == "reject-publish-dlx":
                self.virtual_host.dead_letters.died(self, message, "maxlen")
            return False
        plain = self._plain
        if plain and not self.ready:
            subscription = self.rotation.next_able(message)
            if subscription is not None:
                if subscription.no_ack:
                    subscription.subscriber.deliver(subscription, message, False, None)
                else:
                    self.hand_over(self._queued(message), subscription)
                return True
        queued = self._queued(message)
        if message.failures and self._failures:
            # A dead letter brings them along; one that is handed over at once loses them.
            queued.failures = message.failures
            queued.redelivered = True
        self.ready.append(queued)
        self.ready_bytes += len(message.body) + message.further_bytes
        if not plain:
            self._announce(queued)
        elif self._checks_stored:
            self._check_stored(queued)
        if self._bounded:
            self._trim(overflow=not self._refuses)  # What is there was accepted, perhaps by promise.
        elif queued.expires_at is not None and queued is self.ready.head():
            self.drop_expired()
        return True

    def _check_stored(self, queued: QueuedMessage) -> None:
        """A message was stored that may stand before others, or may not suit all subscriptions."""
        self._check_class(queued)
        if self._has_priorities and queued is self.ready.head():
            # A subscription that could not take the old head may be able to take the new one.
            self.dispatch()

    def _check_class(self, queued: QueuedMessage) -> None:
        """Select messages from now on if this one is not of the class that subscriptions expect."""
        if self._expects_basic and queued.message.content_class != "basic":
            self._select()

    def _select(self) -> None:
        """From now on messages are selected: one may not suit all subscriptions."""
        self.selects = True
        self._plain = self._expects_basic = False

    def _announce(self, queued: QueuedMessage) -> None:
        """A message was stored in a queue that is not plain."""
        self._check_class(queued)
        if self._browsing is not None:
            self._browsing.show_new(queued)
        is_head = queued is self.ready.head()
        if not self.selects:
            # It is handed over even if its time to live is 0, as without browsers. If it is not the next
            # one, no subscription can take it.
            subscription = self.rotation.next_able(queued.message) if is_head else None
            if subscription is not None:
                self.take_out(queued)
                self.hand_over(queued, subscription)
        elif not (is_head and self._offer(queued, {})):
            self.dispatch()  # Otherwise no subscription could take the messages behind it before, either.

    def would_refuse(self, message: Message) -> bool:
        return self._refuses and self._full_with(message)

    def has_room(self, messages: Sequence[Message]) -> bool:
        if not self._refuses:
            return True
        options = self.options
        if options.max_length is not None and len(self.ready) + len(messages) > options.max_length:
            return False
        octets = self.ready_bytes + sum(len(message.body) + message.further_bytes for message in messages)
        return options.max_length_bytes is None or octets <= options.max_length_bytes

    def next_taker(self, message: Message) -> Subscription | None:
        if not self.selects:
            return None if self.ready else self.rotation.first_able(message)
        able = self.rotation.able(message)
        return next((each for each in able if not any(self.suits(each, old) for old in self.ready)), None)

    def _queued(self, message: Message) -> QueuedMessage:
        self._next_position = position = self._next_position + 1
        expiry = message.expiry
        ttl = self._ttl
        if ttl is not None and (expiry is None or ttl < expiry):
            expiry = ttl
        expires_at = None if expiry is None else self.virtual_host.now() + expiry
        queued = QueuedMessage(message, position, expires_at)
        self.virtual_host.state.memory.hold_queued(queued)
        return queued

    def _count_failure(self, delivery: Delivery) -> None:
        if delivery.ending in self._failures:
            queued = delivery.queued
            queued.failures = getattr(queued, "failures", 0) + 1

    def _full_with(self, message: Message) -> bool:
        """Whether one more message would pass the limits; a message above the limit alone is refused too."""
        if message is self.virtual_host.branches.promised:
            return False
        options = self.options
        if options.max_length is not None and len(self.ready) >= options.max_length:
            return True
        return (
            options.max_length_bytes is not None
            and self.ready_bytes + len(message.body) + message.further_bytes > options.max_length_bytes
        )

    @property
    def _drops_lowest(self) -> bool:
        """Whether a queue that is too long drops its least urgent message (stream/01)."""
        return bool(self.priorities) or self.virtual_host.state.personality.discards_low_priority_first

    def _trim(self, *, overflow: bool) -> None:
        """Drop messages above the limits if `overflow`, then expired ones.

        Their dead letters leave afterwards: one that comes back finds the queue trimmed (RabbitMQ: measured).
        """
        dead_letters = self.virtual_host.dead_letters
        holds = dead_letters.hold()
        try:
            if overflow:
                self._drop_overflow()
            self.drop_expired()
        finally:
            if holds:
                dead_letters.release()

    def _drop_overflow(self) -> None:
        """Drop from the head, as documented, or by priority (server-model/discard-low-priority-first)."""
        options = self.options
        lowest_first = self._drops_lowest
        waiting = len(self.ready)
        while self.ready and (
            (options.max_length is not None and len(self.ready) > options.max_length)
            or (options.max_length_bytes is not None and self.ready_bytes > options.max_length_bytes)
        ):
            self._die(self._pop(lowest=lowest_first), "maxlen")
        if self.subscriptions and len(self.ready) < waiting:
            self.dispatch()  # The next message may be small enough for a subscription.

    # --- departure ---------------------------------------------------------------------------------

    def dispatch(self) -> None:
        if not self._plain:
            if self._browsing is not None:
                self._browsing.show_all()
            if self.selects:
                self._select_all()
                if self._browsing is not None:
                    self._browsing.show_all()
                return
        taken = False
        ready = self.ready
        rotation = self.rotation
        rotation.rejoin()
        while rotation:
            queued = self.live_head()
            if queued is None:
                break
            subscription = rotation.next_able(queued.message)
            if subscription is None:
                break
            self._pop()
            self.hand_over(queued, subscription)
            taken = True
        if taken and self._browsing is not None:
            self._browsing.show_all()
        if ready or self._head_expiry.due is not None:
            self._watch_head()

    def _select_all(self) -> None:
        """Deliver what waits; a message that suits no subscription does not block those behind it."""
        rotation = self.rotation
        rotation.rejoin()
        blocked = {each: None for each in rotation if each.paused}
        # As long as the head suits a subscription, the messages behind it need no look.
        while len(blocked) < len(rotation) and (head := self.live_head()) is not None:
            if not self._offer(head, blocked):
                break
        if self.ready and len(blocked) < len(rotation):
            for queued in list(self.ready):
                if len(blocked) == len(rotation):
                    break
                if not self.is_expired(queued):
                    self._offer(queued, blocked)
        self.drop_expired()

    def _offer(self, queued: QueuedMessage, blocked: dict[Subscription, None]) -> bool:
        """Hand a message to the next subscription that it suits and that is not blocked.

        Where none can take it now, it blocks all of them, so that none is sent a message from behind it.
        """
        rotation = self.rotation
        rotation.rejoin()
        suited = [each for each in rotation if each not in blocked and self.suits(each, queued)]
        for subscription in suited:
            if subscription.admits(queued.message):
                self.take_out(queued)
                rotation.passed(subscription)
                self.hand_over(queued, subscription)
                if subscription.paused:
                    blocked[subscription] = None
                return True
        blocked.update(dict.fromkeys(suited))
        return False

    def suits(self, subscription: Subscription, queued: QueuedMessage) -> bool:
        """Whether a subscription may have a message (domain.no-local, basic.reject/requeue-01)."""
        return subscription.suits(queued.message) and (
            queued.avoid is None or not queued.avoids(subscription.group)
        )

    def waits(self, queued: QueuedMessage) -> bool:
        """Whether a message that waited once still waits, and has not expired."""
        ready = self.ready
        waits = queued is ready.head() or (
            queued in ready if isinstance(ready, IndexedFifo) else any(each is queued for each in ready)
        )
        return waits and not self.is_expired(queued)

    def acquire(self, delivery: Delivery) -> bool:
        queued = delivery.queued
        if delivery.acquired or delivery.settled or self.deleted or not self.waits(queued):
            return False
        self.take_out(queued)
        delivery.acquired = True
        delivery.delivered_at = self.virtual_host.now()
        self.unacked[delivery] = None
        self.drop_expired()
        self.dispatch()  # The next message may be small enough for a subscription.
        return True

    def could_take(self, message: Message) -> bool:
        if not self.ready:
            self.rotation.rejoin()
        return super().could_take(message)

    def get(
        self, owner: object, *, no_ack: bool, group: object = None, content_class: str | None = None
    ) -> tuple[QueuedMessage, Delivery | None] | None:
        self.used()
        queued = self.live_head()
        if content_class is not None or (queued is not None and queued.avoids(group)):
            queued = self._next_for(group, content_class)
        if queued is None:
            return None
        self.take_out(queued)
        delivery = None
        if not no_ack:
            delivery = Delivery(self, queued, None, owner, (), self.virtual_host.now())
            self.unacked[delivery] = None
        self.live_head()  # Expired messages behind it go before the rest is counted (RabbitMQ: measured).
        if self.ready or self._head_expiry.due is not None:
            self._watch_head()
        if self.subscriptions:
            self.dispatch()  # The next message may be small enough for a subscription.
        return queued, delivery

    def _next_for(self, group: object, content_class: str | None) -> QueuedMessage | None:
        """The first message of a class, or of any class, that a channel may get."""
        for queued in self.ready:
            if (
                not queued.avoids(group)
                and (content_class is None or queued.message.content_class == content_class)
                and not self.is_expired(queued)
            ):
                return queued
        return None

    def purge(self) -> int:
        self.drop_expired()
        dropped = self.ready.clear()
        self.ready_bytes = 0
        self._watch_head()
        return self._drop(dropped, "purged", "the queue was purged")

    def clear(self) -> list[Message]:
        self.ready_bytes = 0
        return [queued.message for queued in self.ready.clear()]

    def drop_all(self, reason: DropReason, detail: str) -> None:
        self.ready_bytes = 0
        self._drop(self.ready.clear(), reason, detail)

    def _pop(self, *, lowest: bool = False) -> QueuedMessage:
        queued = self.ready.pop_lowest() if lowest else self.ready.pop()
        self.ready_bytes -= len(queued.message.body) + queued.message.further_bytes
        return queued

    def take_out(self, queued: QueuedMessage) -> None:
        self.ready.remove(queued)
        self.ready_bytes -= len(queued.message.body) + queued.message.further_bytes

    # --- settlement --------------------------------------------------------------------------------

    def reject(self, delivery: Delivery) -> None:
        self.unacked.pop(delivery, None)
        if self.deleted:
            self._too_late((delivery.queued,), "rejected")
        else:
            self._count_failure(delivery)
            self._die(delivery.queued, "rejected")

    def in_order_of_rejection(self, deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
        """The most urgent messages die first (RabbitMQ: measured)."""
        if isinstance(ready := self.ready, PriorityFifo):
            return sorted(deliveries, key=lambda each: ready.number(each.queued), reverse=True)
        return deliveries

    def taking_back(
        self, deliveries: Sequence[Delivery], *, avoid: object = None, redelivered: bool = True
    ) -> Iterator[None]:
        """All are in place at the same moment. One that returns without the mark counts as never sent."""
        returned = self.ready.returning()
        octets = latest = 0
        ordered = True
        avoided = None if avoid is None else ref(avoid)
        failures = self._failures
        unacked = self.unacked

        def take(part: Sequence[Delivery]) -> None:
            nonlocal octets, latest, ordered
            for delivery in part:
                if not delivery.acquired:
                    continue  # The queue was deleted since, and passed the message on.
                unacked.pop(delivery, None)
                if failures:
                    self._count_failure(delivery)
                queued = delivery.queued
                queued.avoid = avoided
                if not redelivered or self._comes_back(queued):
                    returned.append(queued)
                    octets += len(queued.message.body) + queued.message.further_bytes
                    ordered = ordered and latest < queued.position
                    latest = queued.position

        yield from in_steps(deliveries, take)
        if self.deleted or not returned:
            lost = list(returned)
            self._too_late(lost, "deleted")
            yield from freeing(lost)
            return
        if avoid is not None or (self._expects_basic and not _all_basic(returned)):
            self._select()
        ready = self.ready
        if not (
            ordered
            and isinstance(ready, Fifo)
            and isinstance(returned, deque)
            and ready.put_in_front(returned)
        ):
            ready.put_back(returned)
        self.ready_bytes += octets
        self._trim(overflow=self._bounded and not self._refuses)

    def redeliver(self, delivery: Delivery) -> bool:
        """A subscription that has ended or is stopped gets nothing (channel.flow/stops-deliveries)."""
        holder = delivery.holder
        if holder is None or not holder.active or holder.stopped or self.deleted:
            return False
        self.unacked.pop(delivery, None)
        delivery.settle()
        if self._comes_back(delivery.queued):
            self.hand_over(delivery.queued, holder)
        else:
            resume_credits((delivery,))
        return True

    def _comes_back(self, queued: QueuedMessage) -> bool:
        """Count a return. False if the message came back too often and dies (basic.deliver/01)."""
        queued.redelivered = True
        queued.returns += 1
        most = self.virtual_host.state.personality.most_deliveries
        if not most or queued.returns < most:
            return True
        if self.deleted:
            return True  # A deleted queue accepts nothing back.
        self._die(queued, "delivery_limit")
        return False

    def keep_persistent(self, *, crash: bool = False) -> None:
        carry_out(self.taking_back(self.keep_in_doubt(crash=crash)))
        kept: list[QueuedMessage] = []
        for queued in self.ready.clear():
            if not queued.message.persistent:
                self._dropped((queued,), *not_persistent(crash))
            elif crash and not queued.message.secured:
                self._dropped((queued,), "crash", NOT_SECURED)
            else:
                kept.append(queued)
        self.ready_bytes = sum(len(each.message.body) + each.message.further_bytes for each in kept)
        if kept:
            self.ready.put_back(kept)
        self.selects = self._expects_basic = False
        self._plain = self._browsing is None
        self._watch_head()

    def abandon(self) -> list[Message]:
        self.ready.put_back(delivery.queued for delivery in self._taken_away())
        return self.clear()

    # --- subscriptions -----------------------------------------------------------------------------

    def subscribe(self, subscription: Subscription) -> None:
        super().subscribe(subscription)
        if not subscription.acquires:
            return
        if subscription.no_local or subscription.content_class not in (None, "basic"):
            self._select()
        elif subscription.content_class is not None and not self.selects:
            if _all_basic(self.ready):
                self._expects_basic = self._checks_stored = True
            else:
                self._select()

    def _enter(self, subscription: Subscription) -> None:
        """A browsing subscription takes no turns."""
        if subscription.acquires:
            super()._enter(subscription)
            return
        if self._browsing is None:
            self._browsing = Browsing(self)
        self._browsing.begin(subscription)
        self._plain = False

    def _leave(self, subscription: Subscription) -> None:
        if self._browsing is None or subscription not in self._browsing:
            super()._leave(subscription)
            return
        self._browsing.end(subscription)
        if not self._browsing:
            self._stop_browsing()

    def _stop_browsing(self) -> None:
        if self._browsing is not None:
            self._browsing.end_all()
            self._browsing = None
            self._plain = not self.selects

    def detach_all(self) -> list[Subscription]:
        self._stop_browsing()
        self._head_expiry.stop()
        return super().detach_all()

    # --- time --------------------------------------------------------------------------------------

    def is_expired(self, queued: QueuedMessage) -> bool:
        return queued.expires_at is not None and queued.expires_at <= self.virtual_host.now() + MARGIN

    def live_head(self) -> QueuedMessage | None:
        """The head after expired messages are dropped (RabbitMQ: classic queues expire at the head)."""
        ready = self.ready
        queued = ready.head()
        while queued is not None and queued.expires_at is not None and self.is_expired(queued):
            self._die(self._pop(), "expired")
            queued = ready.head()
        return queued

    def drop_expired(self) -> None:
        """Drop expired messages at the head, and set the timer for the new head."""
        if self.live_head() is not None or self._head_expiry.due is not None:
            self._watch_head()

    def _watch_head(self) -> None:
        head = self.ready.head()
        due = None if head is None else head.expires_at
        if due != self._head_expiry.due:
            self._head_expiry.set(due, self._expiring)

    def _expiring(self) -> str:
        head = self.ready.head()
        due = (head and head.expires_at) or 0.0
        expired = takewhile(lambda each: each.expires_at is not None and each.expires_at <= due, self.ready)
        return expires_messages(self.name, len(list(expired)))

    def _expire(self) -> Iterator[None]:
        left = STEP
        while (queued := self.ready.head()) is not None and self.is_expired(queued):
            if not left:
                yield
                left = STEP
                continue
            left -= 1
            self._die(self._pop(), "expired")
        if self.deleted:
            return
        self.drop_expired()
        if self.subscriptions:
            self.dispatch()  # The next message may be small enough for a subscription.

    def _die(self, queued: QueuedMessage, reason: DeathReason) -> None:
        failures = getattr(queued, "failures", 0) if self._failures else None
        self.virtual_host.dead_letters.died(self, queued.message, reason, failures)


def _all_basic(messages: Iterable[QueuedMessage]) -> bool:
    return all(queued.message.content_class == "basic" for queued in messages)
