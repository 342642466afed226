"""The queue itself: what arrives, what leaves, what is settled.

Whatever happens ends in `dispatch`: what has expired at a head goes, what is left goes to the consumers whose
turn it is, and then the limits are looked at. So a message beyond a limit is still delivered where somebody
waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from fakeamqp.model.delivery import Delivery
from fakeamqp.model.queues.lanes import ReturnsFirst
from fakeamqp.model.queues.queue import NOT_SECURED, Queue, QueuedMessage
from fakeamqp.model.queues.quorum import refusals
from fakeamqp.model.queues.quorum.aside import Aside
from fakeamqp.model.queues.quorum.consumers import Consumers
from fakeamqp.model.queues.quorum.expiry import SHORTEST_LIFE, Expiry
from fakeamqp.model.queues.quorum.message import QuorumMessage
from fakeamqp.model.queues.quorum.overdue import Overdue
from fakeamqp.model.queues.quorum.overflow import Overflow
from fakeamqp.model.queues.quorum.returning import Returning
from fakeamqp.model.queues.quorum.use import Use
from fakeamqp.model.queues.waiting_line import WaitingLine

if TYPE_CHECKING:
    from fakeamqp.model.ends import DropReason
    from fakeamqp.model.message import Message
    from fakeamqp.model.personality import QuorumChoices
    from fakeamqp.model.queues.options import QueueOptions
    from fakeamqp.model.subscription import Subscriber, Subscription

__all__ = ["QuorumQueue"]


class QuorumQueue(Queue):
    """A queue of the type that RabbitMQ calls quorum."""

    type_name = "quorum"
    replicated = True
    shares_windows = False
    fails_commits = False
    default_prefetch = 2000

    __slots__ = (
        "_expiry",
        "_next_position",
        "_overdue",
        "_overflow",
        "_perishable",
        "_ttl",
        "_use",
        "choices",
        "consumers",
        "kept_aside",
        "ready",
        "ready_bytes",
        "returning",
    )

    ready: ReturnsFirst

    def _prepare(self) -> None:
        """See the base class."""
        virtual_host = self.virtual_host
        self.choices: QuorumChoices = virtual_host.state.personality.quorum
        self._use = Use(self)
        self.ready = ReturnsFirst(self.choices.priorities)
        self.ready_bytes = 0
        self._next_position = 0
        self._perishable = False
        """Whether any message so far had a time to live."""
        self.consumers = Consumers(self)
        self.returning = Returning(self)
        self._overdue = Overdue(self)
        self._overflow = Overflow(self)
        self.kept_aside = Aside(self, self._overflow.look)
        self._expiry = Expiry(self)
        self._adopt()

    # --- declaration --------------------------------------------------------------------------------

    def check_deletion(self, *, if_unused: bool, if_empty: bool) -> int:
        """See the base class: the conditions themselves are refused.

        Raises:
            NotImplementedHere: there is one.
        """
        refusals.check_deletion(self, if_unused=if_unused, if_empty=if_empty)
        return len(self.ready)

    def apply(self, options: QueueOptions) -> None:
        """See the base class: new limits hold at once, a new time to live for what comes from now on."""
        self.options = options
        self.acknowledgement_timeout = self._acknowledgement_timeout()
        self._adopt()
        self._use.watch()
        self.kept_aside.try_again()
        self.dispatch()

    def _adopt(self) -> None:
        options = self.options
        self._ttl = options.message_ttl
        self._overflow.adopt(options)
        self.returning.adopt(options)
        self.kept_aside.adopt(options)

    # --- arrival ------------------------------------------------------------------------------------

    def enqueue(self, message: Message) -> bool:
        """See the base class."""
        overflow = self._overflow
        if overflow.rejects and overflow.refuses(message.publisher):
            return message is self.virtual_host.branches.promised and self.bury(message)
        return self.bury(message)

    def bury(self, message: Message) -> bool:
        """See the base class: dead letters pass the limits."""
        now = self.virtual_host.now()
        expiry = message.expiry
        ttl = self._ttl
        if ttl is not None and (expiry is None or ttl < expiry):
            expiry = ttl
        expires_at = None
        if expiry is not None:
            expires_at = now + max(expiry, SHORTEST_LIFE)
            self._perishable = True
        size = len(message.body)
        if self.choices.counts_properties:
            size += len(message.properties_bytes)
        self._next_position += 1
        queued = QuorumMessage(message, self._next_position, expires_at, now, size)
        if not self.choices.carries_failures:
            queued.failures = 0
            queued.redelivered = False
        self.ready.append(queued)
        self.ready_bytes += size
        self.dispatch()
        return True

    def next_position(self) -> int:
        """The position behind all others."""
        self._next_position += 1
        return self._next_position

    def would_refuse(self, message: Message) -> bool:
        """See the base class."""
        return self._overflow.would_refuse(message.publisher)

    def next_taker(self, message: Message) -> Subscription | None:
        """See the base class."""
        line = self.consumers.line
        if not len(self.ready):
            return line.first_able(message)
        if self.consumers.pick:
            for taker in line:
                if all(limit.admits(message) for limit in taker.limits) and not any(
                    taker.suits(each.message) for each in self.ready
                ):
                    return taker
        return None

    @property
    def set_aside(self) -> int:
        """See the base class."""
        return self.kept_aside.amount()[0]

    def aside(self) -> list[Message]:
        """See the base class."""
        return self.kept_aside.messages()

    # --- departure ----------------------------------------------------------------------------------

    def dispatch(self) -> None:
        """See the base class; expiry and limits are looked at as well."""
        line = self.consumers.line
        line.rejoin()
        while True:
            if self._perishable:
                self._expiry.drop()
            if not line or (queued := self.ready.head()) is None:
                break
            subscription = line.first_able(queued.message)
            if subscription is None:
                if self.consumers.pick and self._serve_behind_head():
                    continue
                break
            self._hand_over(self.pop(), subscription)
        if self._overflow.bounded:
            self._overflow.look()
        if self._perishable:
            self._expiry.watch()

    def _serve_behind_head(self) -> bool:
        """Hand over the first message that is for somebody who may not have those before it.

        A message holds up those who may have it and cannot take it now. Returns False where there is none.
        """
        line = self.consumers.line
        waiting = {each: None for each in line if not each.paused}
        for queued in list(self.ready):
            for subscription in [each for each in waiting if each.suits(queued.message)]:
                if all(limit.admits(queued.message) for limit in subscription.limits):
                    self._hand_over(self._take_out(queued), subscription)
                    return True
                del waiting[subscription]
            if not waiting:
                break
        return False

    def could_take(self, message: Message) -> bool:
        """See the base class."""
        return self.next_taker(message) is not None

    def pop(self) -> QuorumMessage:
        """Take the message delivered next."""
        queued = cast(QuorumMessage, self.ready.pop())
        self.ready_bytes -= queued.size
        return queued

    def _take_out(self, queued: QueuedMessage) -> QuorumMessage:
        """Take a message from anywhere."""
        self.ready.remove(queued)
        taken = cast(QuorumMessage, queued)
        self.ready_bytes -= taken.size
        return taken

    def _hand_over(self, queued: QuorumMessage, subscription: Subscription) -> None:
        message = self.as_delivered(queued)
        redelivered = queued.redelivered
        if subscription.no_ack:
            self.consumers.line.served(subscription)
            subscription.subscriber.deliver(subscription, message, redelivered, None)
            return
        credits = subscription.credits
        for credit in credits:
            credit.take(message)
        self.consumers.line.served(subscription)
        delivery = Delivery(self, queued, subscription, subscription.owner, credits, self.virtual_host.now())
        self._begin(delivery)
        subscription.subscriber.deliver(subscription, message, redelivered, delivery)

    def _begin(self, delivery: Delivery) -> None:
        self.unacked[delivery] = None
        times = self._overdue.times
        if times is not None:
            times.watch(delivery)

    def as_delivered(self, queued: QueuedMessage) -> Message:
        """See the base class: what came back tells how often."""
        assert isinstance(queued, QuorumMessage)
        count = queued.returns or queued.failures
        return queued.shown(count, self.choices) if count else queued.message

    def get(
        self, owner: object, *, no_ack: bool, group: object = None, content_class: str | None = None
    ) -> tuple[QueuedMessage, Delivery | None] | None:
        """See the base class.

        Raises:
            ResourceLocked: there is a single active consumer, or may be one.
        """
        refusals.check_get(self)
        self.used()
        if self._perishable:
            self._expiry.drop()
        head = self.ready.head()
        if content_class is not None and head is not None and head.message.content_class != content_class:
            head = next((each for each in self.ready if each.message.content_class == content_class), None)
            queued = None if head is None else self._take_out(head)
        else:
            queued = None if head is None else self.pop()
        if queued is None:
            return None
        delivery = None
        if not no_ack:
            delivery = Delivery(self, queued, None, owner, (), self.virtual_host.now())
            self._overdue.getters[delivery] = cast("Subscriber", group)
            self._begin(delivery)
            self._settled()
        else:
            self.dispatch()  # Settled at once: what it hid and has expired goes, too.
        return queued, delivery

    def purge(self) -> int:
        """See the base class."""
        reason: DropReason = "purged"
        detail = "the queue was purged"
        dropped = self.clear()
        self.virtual_host.ends.dropped_all(dropped, self.name, reason, detail)
        count = len(dropped)
        if self.choices.purges_all:
            count += self._drop_aside(reason, detail)
        self._settled()
        return count

    def clear(self) -> list[Message]:
        """See the base class."""
        self.ready_bytes = 0
        return [queued.message for queued in self.ready.clear()]

    def abandon(self) -> list[Message]:
        """See the base class; what waits to be tried again comes last."""
        delayed = [queued.message for queued in self.kept_aside.retries.clear()]
        return [*super().abandon(), *delayed]

    def drop_all(self, reason: DropReason, detail: str) -> None:
        """See the base class."""
        super().drop_all(reason, detail)
        self._drop_aside(reason, detail)

    def _drop_aside(self, reason: DropReason, detail: str) -> int:
        """Drop what waits for a retry, or to be dead-lettered. Returns how many there were."""
        delayed = self.kept_aside.retries.clear()
        self._dropped(delayed, reason, detail)
        return len(delayed) + self.kept_aside.clear_dead_letters(reason, detail)

    def _settled(self) -> None:
        """Something went that no consumer waits for: look after limits and timers."""
        if self._overflow.bounded:
            self._overflow.look()
        if self._perishable:
            self._expiry.watch()

    # --- settlement ---------------------------------------------------------------------------------

    def forget(self, delivery: Delivery) -> None:
        """See the base class."""
        if self.end(delivery):
            self.consumers.elect()

    def refuse(self, delivery: Delivery) -> None:
        """See the base class."""
        if not self.end(delivery):
            return
        queued = cast(QuorumMessage, delivery.queued)
        if delivery.ending in self.choices.failures:
            queued.failures += 1
        if self.deleted:
            self._too_late((queued,), "rejected")
        else:
            self.kept_aside.die(queued, "rejected")
            self.consumers.elect()
            self._settled()

    def take_back(
        self, deliveries: Iterable[Delivery], *, avoid: object = None, redelivered: bool = True
    ) -> None:
        """See the base class; one consumer's after the other's, with turns in between. Nothing is avoided."""
        self.returning.take_back(deliveries, redelivered=redelivered)

    def end(self, delivery: Delivery) -> bool:
        """A delivery has ended. False where the message was taken back before."""
        if delivery not in self.unacked:
            if self.consumers.settled_late(delivery):
                self.dispatch()
            return False
        del self.unacked[delivery]
        holder = delivery.holder
        if holder is None:
            self._overdue.getters.pop(delivery, None)
        else:
            self.consumers.line.credited(holder)
        return True

    def keep_persistent(self, *, crash: bool = False) -> None:
        """See the base class: all messages are persistent here. After a crash, those that were confirmed."""
        for delivery in self.keep_in_doubt(crash=crash):
            delivery.settle("lost")
            self.take_back((delivery,))
        if crash:
            everything = self.ready.clear()
            kept = [queued for queued in everything if queued.message.secured]
            for queued in kept:
                self.ready.put_back(queued)
            self.ready_bytes = sum(cast(QuorumMessage, queued).size for queued in kept)
            lost = [queued for queued in everything if not queued.message.secured]
            self._dropped(lost, "crash", NOT_SECURED)
        self._settled()

    def restarted(self) -> None:
        """See the base class: dead letters set out again."""
        self.kept_aside.start_over()

    # --- consumers ----------------------------------------------------------------------------------

    def check_subscription(self, subscription: Subscription) -> None:
        """See the base class and `refusals`: there is no exclusive access."""
        refusals.check_subscription(self, subscription)

    def subscribe(self, subscription: Subscription) -> None:
        """See the base class."""
        super().subscribe(subscription)
        self.exclusive_subscription = None

    def _enter(self, subscription: Subscription) -> None:
        asked = subscription.options.timeout
        subscription.patience = self._overdue.patience() if asked is None else asked
        self.consumers.enter(subscription)

    def _leave(self, subscription: Subscription) -> None:
        self.consumers.leave(subscription)

    def detach_all(self) -> list[Subscription]:
        """See the base class."""
        self._use.stop()
        self._expiry.stop()
        self.kept_aside.retries.stop()
        if self._overdue.times is not None:
            self._overdue.times.stop()
        self.consumers.line = WaitingLine()
        return super().detach_all()

    @property
    def consumer_count(self) -> int:
        """See the base class: whoever holds something counts, and who waits to be the active one does not."""
        return self.consumers.count() + len(self._overdue.getters)

    # --- how long it lives --------------------------------------------------------------------------

    def asked_for(self) -> None:
        """See the base class: that is no use."""

    def used(self) -> None:
        """See the base class."""
        self._use.now()
