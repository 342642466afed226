"""The quorum queue itself: arrival, delivery and settlement of messages, and its limits.

Every operation ends in `dispatch`: it drops expired messages at the heads, delivers to the consumers in
order, and then checks the limits. So a message beyond a limit is still delivered if a consumer waits for it.

Above a limit the queue drops from its head, or it blocks publishers: a publisher that finds the queue above a
limit is refused until at most four fifths of the limits are used. The queue remembers this for each
publisher (RabbitMQ: documented).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, cast
from weakref import WeakKeyDictionary

from fakeamqp.model.deliveries.credit import InheritedCredit
from fakeamqp.model.deliveries.delivery import Delivery
from fakeamqp.model.errors import NotImplementedHere, ResourceLocked
from fakeamqp.model.messages.properties import Int64
from fakeamqp.model.queues.queue import NOT_SECURED, Queue
from fakeamqp.model.queues.quorum.consumers import QuorumConsumers, ServiceQueue
from fakeamqp.model.queues.quorum.expiry import SHORTEST_LIFE, Expiry, IdleExpiry
from fakeamqp.model.queues.quorum.new_messages import ReturnsFirst
from fakeamqp.model.queues.quorum.parked import ParkedMessages, Requeueing
from fakeamqp.model.queues.quorum.timeouts import ConsumerTimeouts
from fakeamqp.model.queues.waiting import QueuedMessage

if TYPE_CHECKING:
    from fakeamqp.model.arguments import QueueOptions
    from fakeamqp.model.deliveries.credit import Credit
    from fakeamqp.model.deliveries.subscription import Subscriber, Subscription
    from fakeamqp.model.history import DropReason
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.personality import QuorumChoices

__all__ = ["Overflow", "QuorumMessage", "QuorumQueue", "check_deletion", "check_get", "check_subscription"]


def check_deletion(queue: QuorumQueue, *, if_unused: bool, if_empty: bool) -> None:
    """Refuse conditions of a deletion.

    Raises:
        NotImplementedHere: a condition is set.
    """
    for asked, flag in ((if_unused, "if-unused"), (if_empty, "if-empty")):
        if asked:
            raise NotImplementedHere(
                f"cannot delete queue '{queue.name}' in vhost '{queue.virtual_host.name}'. queue.delete "
                f"operations with {flag} flag set are not supported by quorum queues"
            )


def check_get(queue: QuorumQueue) -> None:
    """Refuse basic.get where the queue has single active consumers.

    Raises:
        ResourceLocked: it has.
    """
    if queue.consumers.single is not None:
        kind = queue.virtual_host.state.personality.single_active_get_refusal
        raise ResourceLocked(
            f"cannot obtain access to locked queue '{queue.name}' in vhost '{queue.virtual_host.name}'. "
            f"basic.get operations are not supported by {kind} queues with single active consumer"
        )


def check_subscription(queue: QuorumQueue, subscription: Subscription) -> None:
    """Refuse browsing and shared windows.

    Raises:
        NotImplementedHere: the subscription browses, or shares its window with others in a personality that
            forbids that.
    """
    if not subscription.acquires:
        raise NotImplementedHere(
            f"queue '{queue.name}' in vhost '{queue.virtual_host.name}' cannot be browsed: quorum queues "
            "deliver only to subscriptions that acquire messages. Browse a classic queue or a stream"
        )
    if subscription.shares_window and queue.choices.refuses_shared_windows:
        raise NotImplementedHere(
            f"queue '{queue.name}' in vhost '{queue.virtual_host.name}' does not support global qos"
        )


class QuorumMessage(QueuedMessage):
    """A message in a quorum queue. `returns` counts all returns, `failures` those that were failures.

    `size` is the number of bytes that limits count.
    """

    __slots__ = ("size",)

    def __init__(self, message: Message, position: int, expires_at: float | None, size: int) -> None:
        super().__init__(message, position, expires_at)
        self.size: int = size
        self.failures: int = message.failures
        self.redelivered: bool = self.failures > 0

    def shown(self, count: int, choices: QuorumChoices, *, ordered: bool) -> Message:
        """The message as a client sees it that gets it now, after this number of returns.

        `ordered` sorts its headers.
        """
        headers = {"x-delivery-count": Int64(count)}
        if choices.shows_acquisitions:
            headers = {"x-acquired-count": Int64(count)}
            if self.failures:
                headers["x-delivery-count"] = Int64(self.failures)
        return self.message.with_properties(self.message.properties.with_headers(headers, ordered=ordered))


_SOFT_LIMIT = 0.8
"""Publishers are unblocked when at most this part of a limit is used."""


class _Anybody:
    """Stands for publishers that are not connections."""


_ANYBODY = _Anybody()


class Overflow:
    """The limits of one queue: `bounded` if there are any, `rejects` if it blocks publishers then."""

    __slots__ = ("_blocked", "_max_bytes", "_max_length", "_queue", "bounded", "rejects")

    def __init__(self, queue: QuorumQueue) -> None:
        self._queue = queue
        self.bounded: bool = False
        self.rejects: bool = False
        self._max_length: int | None = None
        self._max_bytes: int | None = None
        self._blocked: WeakKeyDictionary[object, bool] = WeakKeyDictionary()
        """By publisher, whether it is blocked (overflow reject-publish)."""

    def adopt(self, options: QueueOptions) -> None:
        """Apply new options."""
        self._max_length = options.max_length
        self._max_bytes = options.max_length_bytes
        self.bounded = self._max_length is not None or self._max_bytes is not None
        self.rejects = self.bounded and options.overflow == "reject-publish"

    def refuses(self, publisher: object) -> bool:
        """Whether this publisher is blocked; a new one is if the queue is above its limits now."""
        if publisher is None:
            publisher = _ANYBODY
        blocked = self._blocked.get(publisher)
        if blocked is None:
            blocked = self._blocked[publisher] = self._above()
        return blocked

    def would_refuse(self, publisher: object) -> bool:
        """The answer of `refuses`. Nothing changes."""
        if not self.rejects:
            return False
        blocked = self._blocked.get(_ANYBODY if publisher is None else publisher)
        return self._above() if blocked is None else blocked

    def _counts(self) -> tuple[int, int]:
        """The messages and bytes that count for the limits."""
        queue = self._queue
        count, octets = queue.parked.amount()
        return len(queue.ready) + count, queue.ready_bytes + octets

    def _above(self) -> bool:
        count, octets = self._counts()
        return (self._max_length is not None and count > self._max_length) or (
            self._max_bytes is not None and octets > self._max_bytes
        )

    def _below_soft_limits(self) -> bool:
        count, octets = self._counts()
        return (self._max_length is None or count <= int(self._max_length * _SOFT_LIMIT)) and (
            self._max_bytes is None or octets <= int(self._max_bytes * _SOFT_LIMIT)
        )

    def check(self) -> None:
        """Drop from the head, or block or unblock publishers."""
        if self.rejects:
            if self._above():
                for publisher in self._blocked:
                    self._blocked[publisher] = True
                return
            if not self._below_soft_limits():
                return
        elif self.bounded:
            queue = self._queue
            while len(queue.ready) and self._above():
                queue.parked.die(queue.pop(), "maxlen")
        if self._blocked:
            for publisher in self._blocked:
                self._blocked[publisher] = False


_MOST_LOOKED_AT = 1000


class QuorumQueue(Queue):
    """A queue of RabbitMQ's type quorum."""

    type_name = "quorum"
    replicated = True
    shares_windows = False
    fails_commits = False
    default_prefetch = 2000

    __slots__ = (
        "_consumer_timeouts",
        "_expiry",
        "_idle_expiry",
        "_next_position",
        "_overflow",
        "_perishable",
        "_ttl",
        "choices",
        "consumers",
        "parked",
        "ready",
        "ready_bytes",
        "requeueing",
    )

    ready: ReturnsFirst

    def _prepare(self) -> None:
        virtual_host = self.virtual_host
        self.choices: QuorumChoices = virtual_host.state.personality.quorum
        self._idle_expiry = IdleExpiry(self)
        self.ready = ReturnsFirst(self.choices.priorities)
        self.ready_bytes: int = 0
        self._next_position = 0
        self._perishable = False
        """True once a message had a time to live."""
        self.consumers: QuorumConsumers = QuorumConsumers(self)
        self.requeueing: Requeueing = Requeueing(self)
        self._consumer_timeouts = ConsumerTimeouts(self)
        self._overflow = Overflow(self)
        self.parked: ParkedMessages = ParkedMessages(self, self._overflow.check)
        self._expiry = Expiry(self)
        self._adopt()

    # --- declaration --------------------------------------------------------------------------------

    def check_deletion(self, *, if_unused: bool, if_empty: bool) -> int:
        """Quorum queues support no conditions.

        Raises:
            NotImplementedHere: a condition is set.
        """
        check_deletion(self, if_unused=if_unused, if_empty=if_empty)
        return len(self.ready)

    def apply(self, options: QueueOptions) -> None:
        """New limits apply at once, a new time to live to new messages."""
        self.options = options
        self.acknowledgement_timeout: float | None = self._acknowledgement_timeout()
        self._adopt()
        self._idle_expiry.watch()
        self.parked.try_again()
        self.dispatch()

    def _adopt(self) -> None:
        options = self.options
        self._ttl = options.message_ttl
        self._overflow.adopt(options)
        self.requeueing.adopt(options)
        self.parked.adopt(options)

    # --- arrival ------------------------------------------------------------------------------------

    def enqueue(self, message: Message, dead_letter: bool = False) -> bool:
        """Dead letters are not subject to the limits."""
        overflow = self._overflow
        refuses = overflow.rejects and not dead_letter and overflow.refuses(message.publisher)
        if refuses and message is not self.virtual_host.branches.promised:
            return False
        expiry = message.expiry
        ttl = self._ttl
        if ttl is not None and (expiry is None or ttl < expiry):
            expiry = ttl
        expires_at = None
        if expiry is not None:
            expires_at = self.virtual_host.now() + max(expiry, SHORTEST_LIFE)
            self._perishable = True
        size = len(message.body)
        if self.choices.counts_properties:
            size += len(message.properties_bytes)
        self._next_position += 1
        queued = QuorumMessage(message, self._next_position, expires_at, size)
        self.virtual_host.state.memory.hold_queued(queued)
        if not self.choices.carries_failures:
            queued.failures = 0
            queued.redelivered = False
        self.ready.append(queued)
        self.ready_bytes += size
        self.dispatch()
        return True

    def next_position(self) -> int:
        """A new position behind all others."""
        self._next_position += 1
        return self._next_position

    def would_refuse(self, message: Message) -> bool:
        return self._overflow.would_refuse(message.publisher)

    def next_taker(self, message: Message) -> Subscription | None:
        service_queue = self.consumers.service_queue
        if not len(self.ready):
            return service_queue.first_able(message)
        if self.consumers.pick:
            for taker in service_queue:
                if taker.admits(message) and not any(taker.suits(each.message) for each in self.ready):
                    return taker
        return None

    @property
    def parked_count(self) -> int:
        return self.parked.amount()[0]

    def parked_messages(self) -> list[Message]:
        return self.parked.messages()

    def most_returned(self) -> QuorumMessage | None:
        """The message, among the first ones, with the most returns that were no failures."""
        held = (delivery.queued for delivery in self.unacked)
        messages = islice(chain(held, self.parked.retries.waiting(), self.ready), _MOST_LOOKED_AT)
        by_returns = cast("Iterator[QuorumMessage]", messages)
        return max(by_returns, key=lambda queued: queued.returns - queued.failures, default=None)

    # --- departure ----------------------------------------------------------------------------------

    def dispatch(self) -> None:
        """Expiry and limits are checked as well."""
        service_queue = self.consumers.service_queue
        service_queue.rejoin()
        while True:
            if self._perishable:
                self._expiry.drop()
            if not service_queue or (queued := self.ready.head()) is None:
                break
            subscription = service_queue.first_able(queued.message)
            if subscription is None:
                if self.consumers.pick and self._serve_behind_head():
                    continue
                break
            self._hand_over(self.pop(), subscription)
        if self._overflow.bounded:
            self._overflow.check()
        if self._perishable:
            self._expiry.watch()

    def _serve_behind_head(self) -> bool:
        """Hand over the first message behind the head that suits an unblocked consumer.

        A message blocks the consumers that it suits and that cannot take it now. Returns False if there is
        none.
        """
        service_queue = self.consumers.service_queue
        waiting = {each: None for each in service_queue if not each.paused}
        for queued in list(self.ready):
            for subscription in [each for each in waiting if each.suits(queued.message)]:
                if subscription.admits(queued.message):
                    self._hand_over(self._take_out(queued), subscription)
                    return True
                del waiting[subscription]
            if not waiting:
                break
        return False

    def could_take(self, message: Message) -> bool:
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
            self.consumers.service_queue.served(subscription)
            subscription.subscriber.deliver(subscription, message, redelivered, None)
            return
        credits = subscription.credits
        for credit in credits:
            credit.take(message)
        self.consumers.service_queue.served(subscription)
        delivery = Delivery(self, queued, subscription, subscription.owner, credits, self.virtual_host.now())
        self._begin(delivery)
        subscription.subscriber.deliver(subscription, message, redelivered, delivery)

    def _begin(self, delivery: Delivery) -> None:
        self.unacked[delivery] = None
        times = self._consumer_timeouts.times
        if times is not None:
            times.watch(delivery)

    def as_delivered(self, queued: QueuedMessage, *, asked: bool = False) -> Message:
        """A returned message carries how often it was returned."""
        assert isinstance(queued, QuorumMessage)
        count = queued.returns or queued.failures
        if not (count or (asked and self.choices.counts_on_get)):
            return queued.message
        ordered = self.virtual_host.state.personality.sorts_headers
        return queued.shown(count, self.choices, ordered=ordered)

    def get(
        self, owner: object, *, no_ack: bool, group: object = None, content_class: str | None = None
    ) -> tuple[QueuedMessage, Delivery | None] | None:
        """See the base class.

        Raises:
            ResourceLocked: the queue has single active consumers.
        """
        check_get(self)
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
            self._consumer_timeouts.getters[delivery] = cast("Subscriber", group)
            self._begin(delivery)
            self._settled()
        else:
            self.dispatch()  # Settled at once: expired messages behind it go as well.
        return queued, delivery

    def purge(self) -> int:
        reason: DropReason = "purged"
        detail = "the queue was purged"
        count = self._drop_ready(reason, detail)
        if self.choices.purges_all:
            count += self._drop_parked(reason, detail)
        self._settled()
        return count

    def _drop_ready(self, reason: DropReason, detail: str) -> int:
        """Drop the messages that wait. Returns how many there were."""
        self.ready_bytes = 0
        return self._drop(self.ready.clear(), reason, detail)

    def clear(self) -> list[Message]:
        self.ready_bytes = 0
        return [queued.message for queued in self.ready.clear()]

    def abandon(self) -> list[Message]:
        """Messages that wait for a retry come last."""
        delayed = [queued.message for queued in self.parked.retries.clear()]
        return [*super().abandon(), *delayed]

    def drop_all(self, reason: DropReason, detail: str) -> None:
        self._drop_ready(reason, detail)
        self._drop_parked(reason, detail)

    def _drop_parked(self, reason: DropReason, detail: str) -> int:
        """Drop the parked messages. Returns how many there were."""
        delayed = self._drop(self.parked.retries.clear(), reason, detail)
        return delayed + self.parked.clear_dead_letters(reason, detail)

    def _settled(self) -> None:
        """Check limits and timers after messages left without a dispatch."""
        if self._overflow.bounded:
            self._overflow.check()
        if self._perishable:
            self._expiry.watch()

    # --- settlement ---------------------------------------------------------------------------------

    def forget(self, delivery: Delivery) -> None:
        if self.end(delivery):
            self.consumers.elect()

    def refuse(self, delivery: Delivery) -> None:
        if not self.end(delivery):
            return
        queued = cast(QuorumMessage, delivery.queued)
        if delivery.ending in self.choices.failures:
            queued.failures += 1
        if self.deleted:
            self._too_late((queued,), "rejected")
        else:
            self.parked.die(queued, "rejected")
            self.consumers.elect()
            self._settled()

    def take_back(
        self, deliveries: Iterable[Delivery], *, avoid: object = None, redelivered: bool = True
    ) -> None:
        """Per consumer, with dispatches in between. `avoid` has no effect."""
        for _ in self.requeueing.taking_back(tuple(deliveries), redelivered=redelivered):
            pass

    def taking_back(
        self, deliveries: Sequence[Delivery], *, avoid: object = None, redelivered: bool = True
    ) -> Iterator[None]:
        return self.requeueing.taking_back(deliveries, redelivered=redelivered)

    def end(self, delivery: Delivery) -> bool:
        """A delivery has ended. False if the queue has already taken the message back."""
        if delivery not in self.unacked:
            if self.consumers.settled_late(delivery):
                self.dispatch()
            return False
        del self.unacked[delivery]
        holder = delivery.holder
        if holder is None:
            self._consumer_timeouts.getters.pop(delivery, None)
        else:
            self.consumers.service_queue.credited(holder)
        return True

    def keep_persistent(self, *, crash: bool = False) -> None:
        """All messages are persistent. A crash loses those that were not confirmed."""
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
        """Held dead letters are published again."""
        self.parked.start_over()

    # --- consumers ----------------------------------------------------------------------------------

    def check_subscription(self, subscription: Subscription) -> None:
        """See the base class and `check_subscription`: there is no exclusive access."""
        check_subscription(self, subscription)

    def subscribe(self, subscription: Subscription) -> None:
        super().subscribe(subscription)
        self.exclusive_subscription: Subscription | None = None

    def _enter(self, subscription: Subscription) -> None:
        asked = subscription.options.timeout
        subscription.patience = self._consumer_timeouts.patience() if asked is None else asked
        self.consumers.enter(subscription)

    @property
    def single_active(self) -> Subscription | None:
        return None if self.consumers.single is None else self.consumers.single.active

    def succession_credit(self, prefetch: tuple[int, int], held: int) -> Credit:
        """Here they count (RabbitMQ: measured on 4.0.5 and 4.3.6)."""
        return InheritedCredit(*prefetch, held)

    def _leave(self, subscription: Subscription) -> None:
        self.consumers.leave(subscription)

    def withdraw(self, subscription: Subscription) -> None:
        """It need not be passed over until it leaves."""
        self.consumers.service_queue.remove(subscription)

    def detach_all(self) -> list[Subscription]:
        self._idle_expiry.stop()
        self._expiry.stop()
        self.parked.retries.stop()
        if self._consumer_timeouts.times is not None:
            self._consumer_timeouts.times.stop()
        self.consumers.service_queue = ServiceQueue()
        return super().detach_all()

    @property
    def consumer_count(self) -> int:
        """Holders of deliveries count, consumers that wait to be active do not."""
        return self.consumers.count() + len(self._consumer_timeouts.getters)

    # --- idle expiry --------------------------------------------------------------------------------

    def asked_for(self) -> None:
        """It does not count as use."""

    def used(self) -> None:
        self._idle_expiry.now()
