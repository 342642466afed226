"""A classic queue: messages in order, subscriptions in turn.

Theory of operation. After every operation one thing holds: no message waits while a subscription could
take it. `enqueue` and `dispatch` keep it so. A message that arrives while somebody is able to take it is
handed over at once (server-model/immediate-handover) and, where no acknowledgement is expected, never
becomes an object of the queue. Everything else becomes a `QueuedMessage` with a position; positions
only grow, and a message that comes back returns to the place its position gives it.

Some messages are not for everybody (no-local, a content class, a rejected message in personality `spec`).
Only queues that hold one, or whose subscriptions ask for it, look further than the head. There a message
holds up those subscriptions that may have it and cannot take it now, and no others. Nearly all messages are
of class basic, though: as long as all are, subscriptions that take only these are like any others.

Subscriptions that only look are shown a new message before anybody takes it, as far as their credit goes.
Only while there are such does every message wait, be it for a moment: see `browsing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING
from weakref import ref

from fakeamqp.model.delivery import Delivery, resume_credits
from fakeamqp.model.queues.browsing import Browser
from fakeamqp.model.queues.queue import (
    NOT_PERSISTENT,
    NOT_SECURED,
    DeathReason,
    Queue,
    QueuedMessage,
    expires_messages,
)
from fakeamqp.model.queues.ready import Fifo, PriorityFifo, Watched

if TYPE_CHECKING:
    from fakeamqp.model.ends import DropReason
    from fakeamqp.model.message import Message
    from fakeamqp.model.queues.options import QueueOptions
    from fakeamqp.model.subscription import Subscription
    from fakeamqp.model.timers import Timer

__all__ = ["ClassicQueue"]

_TIMER_MARGIN = 1e-9
_HIGHEST_PRIORITY = 9
"""Of queues that have priorities without naming a number (message/min-priority-levels)."""


class ClassicQueue(Queue):
    """A queue of the type that RabbitMQ calls classic, and the documents know as the only one."""

    type_name = "classic"

    __slots__ = (
        "_attentive",
        "_bounded",
        "_browsers",
        "_expects_basic",
        "_head_timer",
        "_next_position",
        "_picky",
        "_plain",
        "_ranked",
        "_refuses",
        "_ttl",
        "ready",
        "ready_bytes",
    )

    ready: Fifo | PriorityFifo | Watched

    def _prepare(self) -> None:
        """See the base class."""
        self.ready = self._empty()
        self._ranked = self._attentive = isinstance(self.ready, PriorityFifo)
        """Whether there are priorities; and whether what is stored is looked at again."""
        self._expects_basic = False
        """Whether some take basic messages only, of a queue that has seen no others since they came."""
        self.ready_bytes = 0
        self._next_position = 0
        self._picky = False
        self._browsers: dict[Subscription, Browser] = {}
        self._plain = True
        """Whether nothing is picky and nobody only looks."""
        self._head_timer: Timer | None = None
        self._adopt_limits()

    def _empty(self) -> Fifo | PriorityFifo:
        """Where the messages will wait."""
        priorities = self.options.max_priority
        if priorities is None:
            has_some = self.priorities
            if has_some is None:
                has_some = self.virtual_host.state.personality.queues_have_priorities
            priorities = _HIGHEST_PRIORITY if has_some else None
        return Fifo() if priorities is None else PriorityFifo(priorities)

    def apply(self, options: QueueOptions) -> None:
        """See the base class: new limits hold at once, a new time to live for what comes from now on."""
        # RabbitMQ puts limits into force before the way they are kept: the old way still drops (measured).
        drops = self.options.overflow == "drop-head" or options.overflow == "drop-head"
        super().apply(options)
        self._adopt_limits()
        if self._bounded and drops:
            self._drop_overflow()
        self._drop_expired()

    def _adopt_limits(self) -> None:
        """Keep at hand what every publish asks for."""
        options = self.options
        self._ttl = options.message_ttl
        self._bounded = options.max_length is not None or options.max_length_bytes is not None
        self._refuses = self._bounded and options.overflow != "drop-head"

    # --- arrival -----------------------------------------------------------------------------------

    def enqueue(self, message: Message) -> bool:
        """See the base class."""
        if self._refuses and self._full_with(message):
            if self.options.overflow == "reject-publish-dlx":
                self.virtual_host.dead_letters.died(self, message, "maxlen")
            return False
        plain = self._plain
        if plain and not self.ready:
            subscription = self._rotation.next_able(message)
            if subscription is not None:
                if subscription.no_ack:
                    subscription.subscriber.deliver(subscription, message, False, None)
                else:
                    self._hand_over(self._queued(message), subscription)
                return True
        queued = self._queued(message)
        self.ready.append(queued)
        self.ready_bytes += len(message.body)
        if not plain:
            self._announce(queued)
        elif self._attentive:
            self._attend_to(queued)
        if self._bounded:
            if not self._refuses:  # What is there was taken in, be it by promise.
                self._drop_overflow()
            self._drop_expired()
        elif queued.expires_at is not None and queued is self.ready.head():
            self._drop_expired()
        return True

    def _attend_to(self, queued: QueuedMessage) -> None:
        """A message was stored that may stand before others, or may not be for everybody."""
        if self._expects_basic and queued.message.content_class != "basic":
            self._look_further()
        if self._ranked and queued is self.ready.head():
            self.dispatch()  # Who cannot take what waited may be able to take what came before that.

    def _look_further(self) -> None:
        """There is something that is not for everybody."""
        self._picky = True
        self._plain = self._expects_basic = False

    def _announce(self, queued: QueuedMessage) -> None:
        """A message has come that some are to see, or not everybody may have."""
        if self._expects_basic and queued.message.content_class != "basic":
            self._look_further()
        ready = self.ready
        if isinstance(ready, Watched):
            for browser in list(self._browsers.values()):
                browser.add(queued, ready, self.unacked)
                self._show(browser)
            if not self._picky:
                # Whoever is able gets it even if its time to live is 0, as where nobody looks. Where it is
                # not the next one nobody is able.
                if queued is ready.head():
                    subscription = self._rotation.next_able(queued.message)
                    if subscription is not None:
                        self._take_out(queued)
                        self._hand_over(queued, subscription)
                return
        if self._picky and queued is ready.head() and self._offer(queued, {}):
            return  # What waits behind it nobody could take before, either.
        self.dispatch()

    def would_refuse(self, message: Message) -> bool:
        """See the base class."""
        return self._refuses and self._full_with(message)

    def has_room(self, messages: Sequence[Message]) -> bool:
        """See the base class."""
        if not self._refuses:
            return True
        options = self.options
        if options.max_length is not None and len(self.ready) + len(messages) > options.max_length:
            return False
        octets = self.ready_bytes + sum(len(message.body) for message in messages)
        return options.max_length_bytes is None or octets <= options.max_length_bytes

    def next_taker(self, message: Message) -> Subscription | None:
        """See the base class; what is not for everybody is looked at as if nothing waited."""
        if self.ready and not self._picky:
            return None
        return self._next_picky_taker(message) if self._picky else self._rotation.first_able(message)

    def _next_picky_taker(self, message: Message) -> Subscription | None:
        """The same in a queue that looks further than its head."""
        for subscription in self._rotation.able(message):
            if not any(self._suits(subscription, each) for each in self.ready):
                return subscription
        return None

    def _queued(self, message: Message) -> QueuedMessage:
        self._next_position = position = self._next_position + 1
        now = self.virtual_host.now()
        expiry = message.expiry
        ttl = self._ttl
        if ttl is not None and (expiry is None or ttl < expiry):
            expiry = ttl
        return QueuedMessage(message, position, None if expiry is None else now + expiry, now)

    def _full_with(self, message: Message) -> bool:
        """Whether one more message would pass the limits; a message above the limit alone is refused too."""
        if message is self.virtual_host.branches.promised:
            return False
        options = self.options
        if options.max_length is not None and len(self.ready) >= options.max_length:
            return True
        return (
            options.max_length_bytes is not None
            and self.ready_bytes + len(message.body) > options.max_length_bytes
        )

    @property
    def _drops_lowest(self) -> bool:
        """Whether a queue that is too long drops what is least urgent (stream/01)."""
        return bool(self.priorities) or self.virtual_host.state.personality.discards_low_priority_first

    def _drop_overflow(self) -> None:
        """Drop until the limits hold: from the head, as RabbitMQ documents, or what is least urgent.

        Source: server-model/discard-low-priority-first.
        """
        options = self.options
        lowest_first = self._drops_lowest
        waiting = len(self.ready)
        while self.ready and (
            (options.max_length is not None and len(self.ready) > options.max_length)
            or (options.max_length_bytes is not None and self.ready_bytes > options.max_length_bytes)
        ):
            self._die(self._pop(lowest=lowest_first), "maxlen")
        if self.subscriptions and len(self.ready) < waiting:
            self.dispatch()  # What is next may be small enough for somebody.

    # --- departure ---------------------------------------------------------------------------------

    def dispatch(self) -> None:
        """See the base class."""
        if not self._plain:
            self._show_all()
            if self._picky:
                self._dispatch_picky()
                self._show_all()
                return
        taken = False
        ready = self.ready
        rotation = self._rotation
        rotation.rejoin()
        while rotation:
            queued = self._live_head()
            if queued is None:
                break
            subscription = rotation.next_able(queued.message)
            if subscription is None:
                break
            self._pop()
            self._hand_over(queued, subscription)
            taken = True
        if taken and self._browsers:
            self._show_all()
        if ready or self._head_timer is not None:
            self._watch_head()

    def _show_all(self) -> None:
        """Show all who only look what is before them: of that something may have gone that was too large."""
        for browser in list(self._browsers.values()):
            self._show(browser)

    def _dispatch_picky(self) -> None:
        """As `dispatch`, but a message nobody present may have does not hold up those behind it."""
        rotation = self._rotation
        rotation.rejoin()
        held_up = {each: None for each in rotation if each.paused}
        # As long as the head is for somebody, nothing behind it need be looked at.
        while len(held_up) < len(rotation) and (head := self._live_head()) is not None:
            if not self._offer(head, held_up):
                break
        if self.ready and len(held_up) < len(rotation):
            for queued in list(self.ready):
                if len(held_up) == len(rotation):
                    break
                if not self._expired(queued):
                    self._offer(queued, held_up)
        if self._live_head() is not None or self._head_timer is not None:
            self._watch_head()

    def _offer(self, queued: QueuedMessage, held_up: dict[Subscription, None]) -> bool:
        """Hand a message to the one whose turn it is of those that may have it, unless they are held up.

        Returns:
            False where none of them can take it now. It then holds up all of them, so that none of them is
            sent what is behind it.
        """
        rotation = self._rotation
        rotation.rejoin()
        suited = [each for each in rotation if each not in held_up and self._suits(each, queued)]
        for subscription in suited:
            if all(limit.admits(queued.message) for limit in subscription.limits):
                self._take_out(queued)
                rotation.passed(subscription)
                self._hand_over(queued, subscription)
                if subscription.paused:
                    held_up[subscription] = None
                return True
        held_up.update(dict.fromkeys(suited))
        return False

    def _suits(self, subscription: Subscription, queued: QueuedMessage) -> bool:
        """Whether this subscription may have this message (domain.no-local, basic.reject/requeue-01)."""
        return subscription.suits(queued.message) and (
            queued.avoid is None or not queued.avoids(subscription.group)
        )

    def _show(self, browser: Browser) -> None:
        """Show a subscription that only looks what is before it, as far as its credit goes."""
        subscription = browser.subscription
        while subscription.active and not subscription.paused:
            queued = browser.next(self._waits)
            if queued is None:
                return
            if not all(limit.admits(queued.message) for limit in subscription.limits):
                if queued.expires_at is not None:
                    browser.look_again_at(queued.expires_at, partial(self._look_again, browser))
                return
            browser.passed()
            self._let_see(queued, subscription)

    def _look_again(self, browser: Browser, due: float) -> Timer:
        """Have a subscription go on once the message that is too large for its credit has expired."""
        label = f"'{browser.subscription.tag}' looks on in q '{self.name}'"
        return self.virtual_host.call_at(due, lambda: self._show(browser), label)

    def _waits(self, queued: QueuedMessage) -> bool:
        """Whether a message waits that did once."""
        ready = self.ready
        waits = queued is ready.head() or (
            queued in ready if isinstance(ready, Watched) else any(each is queued for each in ready)
        )
        return waits and not self._expired(queued)

    def acquire(self, delivery: Delivery) -> bool:
        """See the base class."""
        queued = delivery.queued
        if delivery.acquired or delivery.settled or self.deleted or not self._waits(queued):
            return False
        self._take_out(queued)
        delivery.acquired = True
        delivery.delivered_at = self.virtual_host.now()
        self.unacked[delivery] = None
        self._drop_expired()
        self.dispatch()  # What is next may be small enough for somebody.
        return True

    def could_take(self, message: Message) -> bool:
        """See the base class."""
        if self._picky:
            return self._next_picky_taker(message) is not None
        if self.ready:
            return False
        return any(True for _ in self._rotation.able(message))

    def get(
        self, owner: object, *, no_ack: bool, group: object = None, content_class: str | None = None
    ) -> tuple[QueuedMessage, Delivery | None] | None:
        """See the base class."""
        self.used()
        queued = self._live_head()
        if content_class is not None or (queued is not None and queued.avoids(group)):
            queued = self._next_for(group, content_class)
        if queued is None:
            return None
        self._take_out(queued)
        delivery = None
        if not no_ack:
            delivery = Delivery(self, queued, None, owner, (), self.virtual_host.now())
            self.unacked[delivery] = None
        self._live_head()  # What has expired behind it goes before the rest is counted (RabbitMQ: measured).
        if self.ready or self._head_timer is not None:
            self._watch_head()
        if self.subscriptions:
            self.dispatch()  # What is next may be small enough for somebody.
        return queued, delivery

    def _next_for(self, group: object, content_class: str | None) -> QueuedMessage | None:
        """The first message that a channel may get which wants one of a class, or of any."""
        for queued in self.ready:
            if (
                not queued.avoids(group)
                and (content_class is None or queued.message.content_class == content_class)
                and not self._expired(queued)
            ):
                return queued
        return None

    def purge(self) -> int:
        """See the base class."""
        self._drop_expired()
        dropped = self.ready.clear()
        self.ready_bytes = 0
        self._watch_head()
        self._dropped(dropped, "purged", "the queue was purged")
        return len(dropped)

    def clear(self) -> list[Message]:
        """See the base class."""
        self.ready_bytes = 0
        return [queued.message for queued in self.ready.clear()]

    def _hand_over(self, queued: QueuedMessage, subscription: Subscription) -> None:
        message = queued.message
        if subscription.no_ack:
            subscription.subscriber.deliver(subscription, message, queued.redelivered, None)
            return
        credits = subscription.credits
        for credit in credits:
            credit.take(message)
        delivery = Delivery(self, queued, subscription, subscription.owner, credits, self.virtual_host.now())
        self.unacked[delivery] = None
        subscription.subscriber.deliver(subscription, message, queued.redelivered, delivery)

    def _pop(self, *, lowest: bool = False) -> QueuedMessage:
        queued = self.ready.pop_lowest() if lowest else self.ready.pop()
        self.ready_bytes -= len(queued.message.body)
        return queued

    def _take_out(self, queued: QueuedMessage) -> None:
        self.ready.remove(queued)
        self.ready_bytes -= len(queued.message.body)

    # --- settlement --------------------------------------------------------------------------------

    def forget(self, delivery: Delivery) -> None:
        """See the base class."""
        self.unacked.pop(delivery, None)

    def refuse(self, delivery: Delivery) -> None:
        """See the base class."""
        self.unacked.pop(delivery, None)
        if self.deleted:
            self._too_late((delivery.queued,), "rejected")
        else:
            self._die(delivery.queued, "rejected")

    def take_back(
        self, deliveries: Iterable[Delivery], *, avoid: object = None, redelivered: bool = True
    ) -> None:
        """See the base class; what comes back without a mark counts as never sent."""
        returned = []
        avoided = None if avoid is None else ref(avoid)
        for delivery in deliveries:
            self.unacked.pop(delivery, None)
            queued = delivery.queued
            queued.avoid = avoided
            if not redelivered or self._comes_back(queued):
                returned.append(queued)
        if self.deleted or not returned:
            self._too_late(returned, "deleted")
            return
        if avoid is not None or (self._expects_basic and not _all_basic(returned)):
            self._look_further()
        self.ready.put_back(returned)
        self.ready_bytes += sum(len(queued.message.body) for queued in returned)
        if self._bounded and not self._refuses:
            self._drop_overflow()
        self._drop_expired()

    def redeliver(self, delivery: Delivery) -> bool:
        """See the base class: nothing goes to a subscription that has ended or takes nothing now.

        Source: channel.flow/stops-deliveries.
        """
        holder = delivery.holder
        if holder is None or not holder.active or holder.stopped or self.deleted:
            return False
        self.unacked.pop(delivery, None)
        delivery.settle()
        if self._comes_back(delivery.queued):
            self._hand_over(delivery.queued, holder)
        else:
            resume_credits((delivery,))
        return True

    def _comes_back(self, queued: QueuedMessage) -> bool:
        """Count a return. False where the message has come back too often and dies (basic.deliver/01)."""
        queued.redelivered = True
        queued.returns += 1
        most = self.virtual_host.state.personality.most_deliveries
        if not most or queued.returns < most:
            return True
        if self.deleted:
            return True  # Nothing comes back to it anyhow.
        self._die(queued, "delivery_limit")
        return False

    def keep_persistent(self, *, crash: bool = False) -> None:
        """See the base class."""
        self.take_back(self.keep_in_doubt(crash=crash))
        reason: DropReason = "crash" if crash else "restart"
        detail = NOT_PERSISTENT.format(how="crashed" if crash else "restarted")
        kept: list[QueuedMessage] = []
        for queued in self.ready.clear():
            if not queued.message.persistent:
                self._dropped((queued,), reason, detail)
            elif crash and not queued.message.secured:
                self._dropped((queued,), reason, NOT_SECURED)
            else:
                kept.append(queued)
        self.ready_bytes = sum(len(queued.message.body) for queued in kept)
        if kept:
            self.ready.put_back(kept)
        self._picky = self._expects_basic = False
        self._plain = not self._browsers
        self._watch_head()

    def abandon(self) -> list[Message]:
        """See the base class."""
        self.ready.put_back(delivery.queued for delivery in self._taken_away())
        return self.clear()

    # --- subscriptions -----------------------------------------------------------------------------

    def subscribe(self, subscription: Subscription) -> None:
        """See the base class."""
        super().subscribe(subscription)
        if not subscription.acquires:
            return
        if subscription.no_local or subscription.content_class not in (None, "basic"):
            self._look_further()
        elif subscription.content_class is not None and not self._picky:
            if _all_basic(self.ready):
                self._expects_basic = self._attentive = True
            else:
                self._look_further()

    def _enter(self, subscription: Subscription) -> None:
        """See the base class: who only looks takes no turns."""
        if subscription.acquires:
            super()._enter(subscription)
            return
        if not isinstance(self.ready, Watched):
            self.ready = Watched(self.ready)
        self._browsers[subscription] = Browser(
            subscription, self._empty(), self.ready, (delivery.queued for delivery in self.unacked)
        )
        self._plain = False

    def _leave(self, subscription: Subscription) -> None:
        """See the base class."""
        browser = self._browsers.pop(subscription, None)
        if browser is None:
            super()._leave(subscription)
            return
        browser.end()
        if not self._browsers:
            self._watch_no_more()

    def _watch_no_more(self) -> None:
        """The last subscription that only looks has ended."""
        if isinstance(self.ready, Watched):
            self.ready = self.ready.plain
        self._plain = not self._picky

    def detach_all(self) -> list[Subscription]:
        """See the base class."""
        for browser in self._browsers.values():
            browser.end()
        self._browsers.clear()
        self._watch_no_more()
        if self._head_timer is not None:
            self._head_timer.cancel()
        return super().detach_all()

    # --- time --------------------------------------------------------------------------------------

    def _expired(self, queued: QueuedMessage) -> bool:
        return queued.expires_at is not None and queued.expires_at <= self.virtual_host.now() + _TIMER_MARGIN

    def _live_head(self) -> QueuedMessage | None:
        """The head once expired messages before it are gone (RabbitMQ: classic queues expire at the head)."""
        ready = self.ready
        queued = ready.head()
        while queued is not None and queued.expires_at is not None and self._expired(queued):
            self._die(self._pop(), "expired")
            queued = ready.head()
        return queued

    def _drop_expired(self) -> None:
        if self._live_head() is not None or self._head_timer is not None:
            self._watch_head()

    def _watch_head(self) -> None:
        """Have the head dropped when its time comes."""
        head = self.ready.head()
        due = None if head is None else head.expires_at
        timer = self._head_timer
        if timer is not None:
            if timer.due == due:
                return
            timer.cancel()
            self._head_timer = None
        if due is not None:
            self._head_timer = self.virtual_host.call_at(due, self._head_is_due, self._expiring)

    def _expiring(self) -> str:
        """What the timer of the head is for, in words."""
        head = self.ready.head()
        due = None if head is None else head.expires_at
        count = 0
        for queued in self.ready:
            if due is None or queued.expires_at is None or queued.expires_at > due:
                break
            count += 1
        return expires_messages(self.name, count)

    def _head_is_due(self) -> None:
        self._head_timer = None
        self._drop_expired()
        if self.subscriptions:
            self.dispatch()  # What is next may be small enough for somebody.

    def _die(self, queued: QueuedMessage, reason: DeathReason) -> None:
        self.virtual_host.dead_letters.died(self, queued.message, reason)


def _all_basic(messages: Iterable[QueuedMessage]) -> bool:
    """Whether these are of the class that nearly all messages are of."""
    return all(queued.message.content_class == "basic" for queued in messages)
