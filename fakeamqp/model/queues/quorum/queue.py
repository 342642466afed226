"""The quorum queue itself: arrival, delivery and settlement of messages.

Every operation ends in `dispatch`: it drops expired messages at the heads, delivers to the consumers in
order, and then checks the limits. So a message beyond a limit is still delivered if a consumer waits for it.

Returned messages do not take their old place: they go before all new messages, or behind them, or wait for a
retry, or are dead-lettered. That depends on the outcome of the delivery and on the delivery limit (RabbitMQ:
measured).
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, cast

from fakeamqp.model.deliveries.delivery import Delivery, by_consumer, grouped
from fakeamqp.model.errors import NotImplementedHere, ResourceLocked
from fakeamqp.model.messages.message import Int64
from fakeamqp.model.operations import STEP, carry_out, in_steps
from fakeamqp.model.queues.queue import NOT_SECURED, Queue, expires_messages
from fakeamqp.model.queues.quorum.consumers import QuorumConsumers, ServiceQueue
from fakeamqp.model.queues.quorum.messages import Overflow, ParkedMessages, ReturnsFirst
from fakeamqp.model.queues.waiting import QueuedMessage
from fakeamqp.model.timers import MARGIN, Deadline

if TYPE_CHECKING:
    from fakeamqp.model.arguments.queue_arguments import QueueOptions
    from fakeamqp.model.deliveries.subscription import Subscriber, Subscription
    from fakeamqp.model.history import DropReason
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.personality import QuorumChoices


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


_MOST_LOOKED_AT = 1000
_SHORTEST_LIFE = 0.001
"""Seconds that a message with a time to live of 0 lives: long enough for a waiting consumer."""


class QuorumQueue(Queue):
    """A queue of RabbitMQ's type quorum."""

    type_name = "quorum"
    replicated = True
    shares_windows = False
    fails_commits = False
    inherits_credit = True
    default_prefetch = 2000

    __slots__ = (
        "_expiry",
        "_last_use",
        "_next_position",
        "_overflow",
        "_perishable",
        "_ttl",
        "choices",
        "consumers",
        "delivery_limit",
        "parked",
        "ready",
        "ready_bytes",
    )

    ready: ReturnsFirst

    def _prepare(self) -> None:
        state = self.virtual_host.state
        self.choices: QuorumChoices = state.personality.quorum
        self.ready = ReturnsFirst(self.choices.priorities)
        self.ready_bytes: int = 0
        self.delivery_limit: float | None = None
        """How often a message may return; None means any number of times."""
        self._next_position = 0
        self._perishable = False
        """True once a message had a time to live."""
        self.consumers: QuorumConsumers = QuorumConsumers(self)
        self._overflow = Overflow(self)
        self.parked: ParkedMessages = ParkedMessages(self, self._overflow.check)
        self._expiry = Deadline(state.timers, lambda: state.operations.run(self._expire()))
        self._adopt()

    # --- declaration --------------------------------------------------------------------------------

    def check_deletion(self, *, if_unused: bool, if_empty: bool) -> int:
        """Quorum queues support no conditions."""
        for asked, flag in ((if_unused, "if-unused"), (if_empty, "if-empty")):
            if asked:
                raise NotImplementedHere(
                    f"cannot delete {self.place}. queue.delete operations with {flag} flag set are not "
                    "supported by quorum queues"
                )
        return len(self.ready)

    def apply(self, options: QueueOptions) -> None:
        """New limits apply at once, a new time to live to new messages."""
        self.options = options
        self.acknowledgement_timeout: float | None = self._acknowledgement_timeout()
        self._adopt()
        self._expire_unused_at(None if options.expires is None else self._last_use + options.expires)
        if self.parked.held is not None:
            self.parked.held.try_again()
        self.dispatch()

    def _adopt(self) -> None:
        options = self.options
        limit = self.choices.delivery_limit if options.delivery_limit is None else options.delivery_limit
        if limit is not None and limit < 0 and self.choices.negative_limit_is_none:
            limit = None
        self.delivery_limit = limit
        self._ttl = options.message_ttl
        self._overflow.adopt(options)
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
            expires_at = self.virtual_host.now() + max(expiry, _SHORTEST_LIFE)
            self._perishable = True
        size = len(message.body) + message.further_bytes
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
        messages = islice(chain(held, self.parked.waiting(), self.ready), _MOST_LOOKED_AT)
        by_returns = cast("Iterator[QuorumMessage]", messages)
        return max(by_returns, key=lambda queued: queued.returns - queued.failures, default=None)

    # --- departure ----------------------------------------------------------------------------------

    def dispatch(self) -> None:
        """Expiry and limits are checked as well."""
        service_queue = self.consumers.service_queue
        service_queue.rejoin()
        while True:
            if self._perishable:
                self._drop_expired()
            if not service_queue or (queued := self.ready.head()) is None:
                break
            subscription = service_queue.first_able(queued.message)
            if subscription is None:
                if self.consumers.pick and self._serve_behind_head():
                    continue
                break
            self.hand_over(self.pop(), subscription)
        if self._overflow.bounded:
            self._overflow.check()
        if self._perishable:
            self._watch_heads()

    def _serve_behind_head(self) -> bool:
        """Hand over the first message behind the head that suits an unblocked consumer; False without one.

        A message blocks the consumers that it suits and that cannot take it now.
        """
        service_queue = self.consumers.service_queue
        waiting = {each: None for each in service_queue if not each.paused}
        for queued in list(self.ready):
            for subscription in [each for each in waiting if each.suits(queued.message)]:
                if subscription.admits(queued.message):
                    self.hand_over(self._take_out(queued), subscription)
                    return True
                del waiting[subscription]
            if not waiting:
                break
        return False

    def pop(self) -> QuorumMessage:
        queued = cast(QuorumMessage, self.ready.pop())
        self.ready_bytes -= queued.size
        return queued

    def _take_out(self, queued: QueuedMessage) -> QuorumMessage:
        self.ready.remove(queued)
        taken = cast(QuorumMessage, queued)
        self.ready_bytes -= taken.size
        return taken

    def hand_over(self, queued: QueuedMessage, subscription: Subscription) -> None:
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
        self.unacked[delivery] = None
        if self.consumers.timeouts is not None:
            self.consumers.watch(delivery)
        subscription.subscriber.deliver(subscription, message, redelivered, delivery)

    def as_delivered(self, queued: QueuedMessage, *, asked: bool = False) -> Message:
        """A returned message carries how often it was returned."""
        assert isinstance(queued, QuorumMessage)
        choices = self.choices
        count = queued.returns or queued.failures
        if not (count or (asked and choices.counts_on_get)):
            return queued.message
        headers = {"x-delivery-count": Int64(count)}
        if choices.shows_acquisitions:
            headers = {"x-acquired-count": Int64(count)}
            if queued.failures:
                headers["x-delivery-count"] = Int64(queued.failures)
        ordered = self.virtual_host.state.personality.sorts_headers
        message = queued.message
        return message.with_properties(message.properties.with_headers(headers, ordered=ordered))

    def get(
        self, owner: object, *, no_ack: bool, group: object = None, content_class: str | None = None
    ) -> tuple[QueuedMessage, Delivery | None] | None:
        if self.consumers.single is not None:
            kind = self.virtual_host.state.personality.single_active_get_refusal
            raise ResourceLocked(
                f"cannot obtain access to locked {self.place}. basic.get operations are not supported by "
                f"{kind} queues with single active consumer"
            )
        self.used()
        if self._perishable:
            self._drop_expired()
        head = self.ready.head()
        chosen = head
        if content_class is not None:
            chosen = next((each for each in self.ready if each.message.content_class == content_class), None)
        if chosen is None:
            return None
        queued = self.pop() if chosen is head else self._take_out(chosen)
        delivery = None
        if not no_ack:
            delivery = Delivery(self, queued, None, owner, (), self.virtual_host.now())
            self.consumers.getters[delivery] = cast("Subscriber", group)
            self.unacked[delivery] = None
            self.consumers.watch(delivery)
            self._settled()
        else:
            self.dispatch()  # Settled at once: expired messages behind it go as well.
        return queued, delivery

    def purge(self) -> int:
        count = self._drop_ready("purged", "the queue was purged")
        if self.choices.purges_all:
            count += self._drop_parked("purged", "the queue was purged")
        self._settled()
        return count

    def _drop_ready(self, reason: DropReason, detail: str) -> int:
        self.ready_bytes = 0
        return self._drop(self.ready.clear(), reason, detail)

    def _drop_parked(self, reason: DropReason, detail: str) -> int:
        count = self._drop(self.parked.clear_retries(), reason, detail)
        return count if self.parked.held is None else count + self.parked.held.clear(detail, reason)

    def drop_all(self, reason: DropReason, detail: str) -> None:
        self._drop_ready(reason, detail)
        self._drop_parked(reason, detail)

    def clear(self) -> list[Message]:
        self.ready_bytes = 0
        return [queued.message for queued in self.ready.clear()]

    def abandon(self) -> list[Message]:
        """Messages that wait for a retry come last."""
        delayed = [queued.message for queued in self.parked.clear_retries()]
        return [*super().abandon(), *delayed]

    def _settled(self) -> None:
        """Check limits and timers after messages left without a dispatch."""
        if self._overflow.bounded:
            self._overflow.check()
        if self._perishable:
            self._watch_heads()

    # --- settlement ---------------------------------------------------------------------------------

    def forget(self, delivery: Delivery) -> None:
        if self.end(delivery) and self.consumers.elect():
            self.dispatch()

    def reject(self, delivery: Delivery) -> None:
        if not self.end(delivery):
            return
        queued = cast(QuorumMessage, delivery.queued)
        if delivery.ending in self.choices.failures:
            queued.failures += 1
        if self.deleted:
            self._too_late((queued,), "rejected")
        else:
            self.parked.die(queued, "rejected")
            if self.consumers.elect():
                self.dispatch()
            self._settled()

    def taking_back(
        self, deliveries: Sequence[Delivery], *, avoid: object = None, redelivered: bool = True
    ) -> Iterator[None]:
        """Per consumer, with dispatches in between. `avoid` has no effect."""

        def requeue(part: Sequence[Delivery]) -> None:
            for delivery in part:
                if not self.end(delivery):
                    continue
                queued = cast(QuorumMessage, delivery.queued)
                if self.deleted:
                    self._too_late((queued,), "deleted")
                else:
                    marked = queued.redelivered or redelivered
                    self.requeue(queued, delivery.ending or "lost")
                    queued.redelivered = marked

        groups = yield from self._in_order(deliveries)
        del deliveries
        while groups:
            yield from in_steps(groups.pop(), requeue)
            if not self.deleted:
                self.consumers.elect(returned=True)
                self.dispatch()

    def _in_order(self, deliveries: Sequence[Delivery]) -> Generator[None, None, list[Sequence[Delivery]]]:
        """The order in which deliveries return: groups, the first at the end of the list."""
        by_age: dict[tuple[int, Any], list[Delivery]] = {}
        lost = True

        def enter(part: Sequence[Delivery]) -> None:
            nonlocal lost
            lost = lost and all(delivery.ending == "lost" for delivery in part)
            if lost:
                for delivery in part:
                    by_age.setdefault(self._age_of_holder(delivery), []).append(delivery)

        yield from in_steps(deliveries, enter)
        if not lost:
            return (yield from grouped(deliveries))
        return [[delivery for age in sorted(by_age) for delivery in by_age[age]]]

    def _age_of_holder(self, delivery: Delivery) -> tuple[int, Any]:
        """The sort key of deliveries that return because their channel was lost."""
        holder = delivery.holder
        if not self.choices.losses_by_age:
            return by_consumer(delivery)
        return (1, delivery.tag) if holder is None else (0, holder.age)

    def requeue(self, queued: QuorumMessage, ending: str) -> None:
        """Place a message whose delivery was not accepted."""
        choices = self.choices
        limit = self.delivery_limit
        queued.returns += 1
        queued.redelivered = True
        if limit is None and ending in choices.back_without_limit:
            self._next_position += 1
            queued.position = self._next_position
            self.ready.append_plain(queued)
            self.ready_bytes += queued.size
            return
        failed = ending in choices.failures
        if failed:
            queued.failures += 1
        count = queued.returns if choices.limit_counts == "returns" else queued.failures
        if limit is not None and count > limit:
            self.parked.die(queued, "delivery_limit")
        elif not self.parked.delay(queued, failed=failed):
            self.put_back(queued)

    def put_back(self, queued: QuorumMessage) -> None:
        self.ready.put_back(queued)
        self.ready_bytes += queued.size

    def end(self, delivery: Delivery) -> bool:
        """A delivery has ended. False if the queue has already taken the message back."""
        if delivery not in self.unacked:
            if self.consumers.settled_late(delivery):
                self.dispatch()
            return False
        del self.unacked[delivery]
        holder = delivery.holder
        if holder is None:
            self.consumers.getters.pop(delivery, None)
        else:
            self.consumers.service_queue.credited(holder)
        return True

    def keep_persistent(self, *, crash: bool = False) -> None:
        """All messages are persistent. A crash loses those that were not confirmed."""
        for delivery in self.keep_in_doubt(crash=crash):
            delivery.settle("lost")
            carry_out(self.taking_back((delivery,)))
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
        if self.parked.held is not None:
            self.parked.held.start_over()

    # --- consumers ----------------------------------------------------------------------------------

    def check_subscription(self, subscription: Subscription) -> None:
        """There is no exclusive access."""
        if not subscription.acquires:
            raise NotImplementedHere(
                f"{self.place} cannot be browsed: quorum queues deliver only to subscriptions that acquire "
                "messages. Browse a classic queue or a stream"
            )
        if subscription.shares_window and self.choices.refuses_shared_windows:
            raise NotImplementedHere(f"{self.place} does not support global qos")

    def _enter(self, subscription: Subscription) -> None:
        self.consumers.enter(subscription)

    @property
    def single_active(self) -> Subscription | None:
        return None if self.consumers.single is None else self.consumers.single.active

    def _leave(self, subscription: Subscription) -> None:
        self.consumers.leave(subscription)

    def granted(self, subscription: Subscription) -> None:
        self.consumers.service_queue.granted(subscription)

    def withdraw(self, subscription: Subscription) -> None:
        """It need not be passed over until it leaves."""
        self.consumers.service_queue.remove(subscription)

    def detach_all(self) -> list[Subscription]:
        self._expiry.stop()
        self.parked.stop()
        if self.consumers.timeouts is not None:
            self.consumers.timeouts.stop()
        self.consumers.service_queue = ServiceQueue()
        return super().detach_all()

    @property
    def consumer_count(self) -> int:
        return self.consumers.count()

    # --- time ---------------------------------------------------------------------------------------

    def _drop_expired(self, most: int = sys.maxsize) -> int:
        """Dead-letter expired messages at the heads, at most so many; returns how many."""
        now = self.virtual_host.now() + MARGIN
        left = most

        def taken_now(queued: QueuedMessage) -> bool:
            nonlocal left
            if not left or queued.expires_at is None or queued.expires_at > now:
                return False
            left -= 1
            return True

        taken = cast("list[QuorumMessage]", self.ready.take_while(taken_now))
        self.ready_bytes -= sum(queued.size for queued in taken)
        for queued in taken:
            self.parked.die(queued, "expired")
        return len(taken)

    def _expire(self) -> Iterator[None]:
        while self._drop_expired(STEP) == STEP:
            yield
        if not self.deleted:
            self.dispatch()

    def _watch_heads(self) -> None:
        """Set the timer for the next expiry at a head."""
        due = min(
            (each.expires_at for each in self.ready.heads() if each.expires_at is not None), default=None
        )
        self._expiry.set(
            due, lambda: expires_messages(self.name, sum(each.expires_at == due for each in self.ready))
        )

    def asked_for(self) -> None:
        """It does not count as use."""

    def used(self) -> None:
        self._last_use = self.virtual_host.now()
        super().used()

    def _unused_too_long(self) -> None:
        """RabbitMQ checks every few seconds, and only promises that the queue is deleted some time after."""
        if self.unacked and not self.subscriptions and not self.deleted:
            self._expire_unused_at(self.virtual_host.now() + self.choices.tick)
        else:
            super()._unused_too_long()
