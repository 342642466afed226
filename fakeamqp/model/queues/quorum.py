"""A quorum queue, as the one client of a cluster sees it: a classic queue's promises, other rules.

Theory of operation. Whatever happens ends in `dispatch`: what has expired at a head goes, what is left goes
to the consumers whose turn it is, and then the limits are looked at. So a message beyond a limit is still
delivered where somebody waits for it. Messages that come back do not return to their old place: they go
before all that is new, or behind it, by how the delivery ended and whether there is a delivery limit.

RabbitMQ: documented; what is not is measured, or read in its sources. What differs between its versions is
in `QuorumChoices`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from fakeamqp.model.at_least_once import HeldDeadLetters
from fakeamqp.model.delivery import Delivery, by_consumer
from fakeamqp.model.errors import NotImplementedHere, ResourceLocked
from fakeamqp.model.long import Long
from fakeamqp.model.queues.holding import HoldingTimes
from fakeamqp.model.queues.lanes import ReturnsFirst
from fakeamqp.model.queues.queue import (
    NOT_SECURED,
    UNUSED_TOO_LONG,
    DeathReason,
    Queue,
    QueuedMessage,
    expires_messages,
)
from fakeamqp.model.queues.single_active import SingleActive
from fakeamqp.model.queues.waiting_line import WaitingLine

if TYPE_CHECKING:
    from fakeamqp.model.ends import DropReason
    from fakeamqp.model.message import Message
    from fakeamqp.model.personality import QuorumChoices
    from fakeamqp.model.queues.options import QueueOptions
    from fakeamqp.model.subscription import Subscriber, Subscription
    from fakeamqp.model.timers import Timer

__all__ = ["QuorumQueue"]

_TIMER_MARGIN = 1e-9
_SHORTEST_LIFE = 0.001
"""A message with a time to live of 0 lives for a millisecond: long enough for a consumer that waits."""
_SOFT_LIMIT = 0.8
"""Publishers that were held off may go on when no more than this part of a limit is used up."""


class _Anybody:
    """Publishers that are no connection."""


_ANYBODY = _Anybody()


class QuorumMessage(QueuedMessage):
    """A message in a quorum queue. `returns` counts all returns, `failures` those that were failures."""

    __slots__ = ("failures", "size")

    def __init__(
        self, message: Message, position: int, expires_at: float | None, enqueued_at: float, size: int
    ) -> None:
        super().__init__(message, position, expires_at, enqueued_at)
        self.size = size
        self.failures = message.failures
        self.redelivered = self.failures > 0


class QuorumQueue(Queue):
    """A queue of the type that RabbitMQ calls quorum."""

    type_name = "quorum"
    replicated = True
    shares_windows = False
    fails_commits = False
    default_prefetch = 2000

    __slots__ = (
        "_blocked",
        "_bounded",
        "_choices",
        "_delayed",
        "_delayed_octets",
        "_delivery_limit",
        "_getters",
        "_head_timer",
        "_held",
        "_holding_times",
        "_last_used",
        "_late",
        "_line",
        "_newest",
        "_next_position",
        "_perishable",
        "_rejects",
        "_retry_timer",
        "_single",
        "_ttl",
        "ready",
        "ready_octets",
    )

    ready: ReturnsFirst

    def _prepare(self) -> None:
        """See the base class."""
        virtual_host = self.virtual_host
        self._choices: QuorumChoices = virtual_host.state.personality.quorum
        self._last_used = virtual_host.now()
        self.ready = ReturnsFirst(self._choices.priorities)
        self.ready_octets = 0
        self._next_position = 0
        self._perishable = False
        """Whether any message so far had a time to live."""
        self._line = WaitingLine()
        self._single: SingleActive | None = None
        if self.options.single_active_consumer:
            self._single = SingleActive(
                self._choices.single_active_by_priority, self._holds, self._keeps_time
            )
        self._newest = 0
        """The age of the latest consumer."""
        self._getters: dict[Delivery, Subscriber] = {}
        """Who holds what was taken with a get."""
        self._late: dict[Subscription | None, dict[Delivery, None]] = {}
        """By consumer, the deliveries that were taken back from it and that it has not settled since."""
        self._blocked: WeakKeyDictionary[object, bool] = WeakKeyDictionary()
        """By publisher, whether it may publish no more for now (overflow reject-publish)."""
        self._delayed: list[tuple[float, int, QuorumMessage]] = []
        """A heap of what waits to be tried again: when, position, message."""
        self._delayed_octets = 0
        self._held: HeldDeadLetters | None = None
        self._holding_times: HoldingTimes | None = None
        if self._choices.consumers_time_out:
            self._holding_times = HoldingTimes(
                virtual_host, self.name, self.unacked, self._holding_limit, self._held_too_long
            )
        self._head_timer: Timer | None = None
        self._retry_timer: Timer | None = None
        self._adopt()

    # --- declaration --------------------------------------------------------------------------------

    def check_deletion(self, *, if_unused: bool, if_empty: bool) -> int:
        """See the base class: the conditions themselves are refused.

        Raises:
            NotImplementedHere: there is one.
        """
        for asked, flag in ((if_unused, "if-unused"), (if_empty, "if-empty")):
            if asked:
                raise NotImplementedHere(
                    f"cannot delete queue '{self.name}' in vhost '{self.virtual_host.name}'. queue.delete "
                    f"operations with {flag} flag set are not supported by quorum queues"
                )
        return len(self.ready)

    def apply(self, options: QueueOptions) -> None:
        """See the base class: new limits hold at once, a new time to live for what comes from now on."""
        self.options = options
        self.acknowledgement_timeout = self._acknowledgement_timeout()
        self._adopt()
        self._watch_use()
        if self._held is not None:
            self._held.try_again()
        self.dispatch()

    def _adopt(self) -> None:
        """Keep at hand what every message asks for."""
        options = self.options
        self._ttl = options.message_ttl
        self._bounded = options.max_length is not None or options.max_length_bytes is not None
        self._rejects = self._bounded and options.overflow == "reject-publish"
        limit = self._choices.delivery_limit if options.delivery_limit is None else options.delivery_limit
        if limit is not None and limit < 0 and self._choices.negative_limit_is_none:
            limit = None
        self._delivery_limit = limit
        # Dropping from the head and keeping every dead letter contradict each other: RabbitMQ then drops.
        keeps = (
            options.dead_letter_strategy == "at-least-once"
            and options.overflow == "reject-publish"
            and options.dead_letter_exchange is not None
        )
        if keeps and self._held is None:
            self._held = HeldDeadLetters(self, self._keep_limits)
        elif not keeps and self._held is not None:
            self._held.clear("the queue no longer keeps dead letters until they have arrived")
            self._held = None

    # --- arrival ------------------------------------------------------------------------------------

    def enqueue(self, message: Message) -> bool:
        """See the base class."""
        if self._rejects and self._refuses(message.publisher):
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
            expires_at = now + max(expiry, _SHORTEST_LIFE)
            self._perishable = True
        size = len(message.body)
        if self._choices.counts_properties:
            size += len(message.properties_octets)
        self._next_position += 1
        queued = QuorumMessage(message, self._next_position, expires_at, now, size)
        if not self._choices.carries_failures:
            queued.failures = 0
            queued.redelivered = False
        self.ready.append(queued)
        self.ready_octets += size
        self.dispatch()
        return True

    def would_refuse(self, message: Message) -> bool:
        """See the base class."""
        if not self._rejects:
            return False
        publisher = _ANYBODY if message.publisher is None else message.publisher
        blocked = self._blocked.get(publisher)
        return self._above_limits() if blocked is None else blocked

    def next_taker(self, message: Message) -> Subscription | None:
        """See the base class."""
        return None if len(self.ready) else self._line.first_able(message)

    def _refuses(self, publisher: object) -> bool:
        """Whether this publisher is held off; one that is new is if the queue is above its limits now."""
        if publisher is None:
            publisher = _ANYBODY
        blocked = self._blocked.get(publisher)
        if blocked is None:
            blocked = self._blocked[publisher] = self._above_limits()
        return blocked

    # --- limits -------------------------------------------------------------------------------------

    @property
    def set_aside(self) -> int:
        """See the base class."""
        return len(self._delayed) + (0 if self._held is None else len(self._held))

    def aside(self) -> list[Message]:
        """See the base class."""
        delayed = [queued.message for _, _, queued in sorted(self._delayed)]
        return [*delayed, *(() if self._held is None else self._held.messages())]

    def _counts(self) -> tuple[int, int]:
        """Messages and octets that count for the limits."""
        held = self._held
        return (
            len(self.ready) + self.set_aside,
            self.ready_octets + self._delayed_octets + (0 if held is None else held.octets),
        )

    def _above_limits(self) -> bool:
        count, octets = self._counts()
        options = self.options
        return (options.max_length is not None and count > options.max_length) or (
            options.max_length_bytes is not None and octets > options.max_length_bytes
        )

    def _below_soft_limits(self) -> bool:
        count, octets = self._counts()
        options = self.options
        return (options.max_length is None or count <= int(options.max_length * _SOFT_LIMIT)) and (
            options.max_length_bytes is None or octets <= int(options.max_length_bytes * _SOFT_LIMIT)
        )

    def _keep_limits(self) -> None:
        """Drop from the head, or hold publishers off, or let them go on."""
        if self._rejects:
            if self._above_limits():
                for publisher in self._blocked:
                    self._blocked[publisher] = True
                return
            if not self._below_soft_limits():
                return
        elif self._bounded:
            while len(self.ready) and self._above_limits():
                self._die(self._pop(), "maxlen")
        if self._blocked:
            for publisher in self._blocked:
                self._blocked[publisher] = False

    # --- departure ----------------------------------------------------------------------------------

    def dispatch(self) -> None:
        """See the base class; expiry and limits are looked at as well."""
        line = self._line
        line.rejoin()
        while True:
            if self._perishable:
                self._drop_expired()
            if not line or (queued := self.ready.head()) is None:
                break
            subscription = line.first_able(queued.message)
            if subscription is None:
                break
            self._hand_over(self._pop(), subscription)
        if self._bounded:
            self._keep_limits()
        if self._perishable:
            self._watch_heads()

    def could_take(self, message: Message) -> bool:
        """See the base class."""
        return not len(self.ready) and self._line.first_able(message) is not None

    def _pop(self) -> QuorumMessage:
        queued = cast(QuorumMessage, self.ready.pop())
        self.ready_octets -= queued.size
        return queued

    def _hand_over(self, queued: QuorumMessage, subscription: Subscription) -> None:
        message = self.as_delivered(queued)
        redelivered = queued.redelivered
        if subscription.no_ack:
            self._line.served(subscription)
            subscription.subscriber.deliver(subscription, message, redelivered, None)
            return
        credits = subscription.credits
        for credit in credits:
            credit.take(message)
        self._line.served(subscription)
        delivery = Delivery(self, queued, subscription, subscription.owner, credits, self.virtual_host.now())
        self._begin(delivery)
        subscription.subscriber.deliver(subscription, message, redelivered, delivery)

    def _begin(self, delivery: Delivery) -> None:
        self.unacked[delivery] = None
        if self._holding_times is not None:
            self._holding_times.watch(delivery)

    def as_delivered(self, queued: QueuedMessage) -> Message:
        """See the base class: what came back tells how often."""
        assert isinstance(queued, QuorumMessage)
        message = queued.message
        count = queued.returns or queued.failures
        if not count:
            return message
        headers = {"x-delivery-count": Long(count)}
        if self._choices.shows_acquisitions:
            headers = {"x-acquired-count": Long(count)}
            if queued.failures:
                headers["x-delivery-count"] = Long(queued.failures)
        return message.with_properties(message.properties.with_headers(headers))

    def get(
        self, owner: object, *, no_ack: bool, group: object = None
    ) -> tuple[QueuedMessage, Delivery | None] | None:
        """See the base class.

        Raises:
            ResourceLocked: there is a single active consumer, or may be one.
        """
        if self._single is not None:
            kind = self.virtual_host.state.personality.single_active_get_refusal
            raise ResourceLocked(
                f"cannot obtain access to locked queue '{self.name}' in vhost '{self.virtual_host.name}'. "
                f"basic.get operations are not supported by {kind} queues with single active consumer"
            )
        self.used()
        if self._perishable:
            self._drop_expired()
        if not len(self.ready):
            return None
        queued = self._pop()
        delivery = None
        if not no_ack:
            delivery = Delivery(self, queued, None, owner, (), self.virtual_host.now())
            self._getters[delivery] = cast("Subscriber", group)
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
        if self._choices.purges_all:
            count += self._drop_aside(reason, detail)
        self._settled()
        return count

    def clear(self) -> list[Message]:
        """See the base class."""
        self.ready_octets = 0
        return [queued.message for queued in self.ready.clear()]

    def abandon(self) -> list[Message]:
        """See the base class; what waits to be tried again comes last."""
        delayed = [queued.message for _, _, queued in sorted(self._delayed)]
        self._delayed.clear()
        self._delayed_octets = 0
        return [*super().abandon(), *delayed]

    def drop_all(self, reason: DropReason, detail: str) -> None:
        """See the base class."""
        super().drop_all(reason, detail)
        self._drop_aside(reason, detail)

    def _drop_aside(self, reason: DropReason, detail: str) -> int:
        """Drop what waits for a retry, or to be dead-lettered. Returns how many there were."""
        delayed = [queued for _, _, queued in sorted(self._delayed)]
        self._delayed.clear()
        self._delayed_octets = 0
        self._watch_retries()
        self._dropped(delayed, reason, detail)
        return len(delayed) + (0 if self._held is None else self._held.clear(detail, reason))

    def _settled(self) -> None:
        """Something went that no consumer waits for: look after limits and timers."""
        if self._bounded:
            self._keep_limits()
        if self._perishable:
            self._watch_heads()

    # --- settlement ---------------------------------------------------------------------------------

    def forget(self, delivery: Delivery) -> None:
        """See the base class."""
        if self._end(delivery):
            self._elect()

    def refuse(self, delivery: Delivery) -> None:
        """See the base class."""
        if not self._end(delivery):
            return
        queued = cast(QuorumMessage, delivery.queued)
        if delivery.ending in self._choices.failures:
            queued.failures += 1
        if self.deleted:
            self._too_late((queued,), "rejected")
        else:
            self._die(queued, "rejected")
            self._elect()
            self._settled()

    def take_back(
        self, deliveries: Iterable[Delivery], *, avoid: object = None, redelivered: bool = True
    ) -> None:
        """See the base class; one consumer's after the other's, with turns in between. Nothing is avoided."""
        returned = list(deliveries)
        if all(delivery.ending == "lost" for delivery in returned):
            groups = [sorted(returned, key=self._age_of_holder)]
        else:
            returned.sort(key=by_consumer)
            groups = [list(group) for _, group in groupby(returned, key=by_consumer)]
        for group in groups:
            for delivery in group:
                if not self._end(delivery):
                    continue
                if self.deleted:
                    self._too_late((delivery.queued,), "deleted")
                else:
                    queued = cast(QuorumMessage, delivery.queued)
                    marked = queued.redelivered or redelivered
                    self._come_back(queued, delivery.ending or "lost")
                    queued.redelivered = marked
            if not self.deleted:
                self._elect(returned=True)
                self.dispatch()

    def _age_of_holder(self, delivery: Delivery) -> tuple[int, Any]:
        """By what order a channel's deliveries come back that it lost."""
        holder = delivery.holder
        if not self._choices.losses_by_age:
            return by_consumer(delivery)
        return (1, delivery.tag) if holder is None else (0, holder.age)

    def _end(self, delivery: Delivery) -> bool:
        """A delivery has ended. False where the message was taken back before."""
        if delivery not in self.unacked:
            self._settle_late(delivery)
            return False
        del self.unacked[delivery]
        holder = delivery.holder
        if holder is None:
            self._getters.pop(delivery, None)
        else:
            self._line.credited(holder)
        return True

    def _come_back(self, queued: QuorumMessage, ending: str) -> None:
        """A delivery was not accepted: where its message goes now."""
        limit = self._delivery_limit
        choices = self._choices
        queued.returns += 1
        queued.redelivered = True
        if limit is None and ending in choices.back_without_limit:
            self._next_position += 1
            queued.position = self._next_position
            self.ready.append_plain(queued)
            self.ready_octets += queued.size
            return
        failed = ending in choices.failures
        if failed:
            queued.failures += 1
        count = queued.returns if choices.limit_counts == "returns" else queued.failures
        if limit is not None and count > limit:
            self._die(queued, "delivery_limit")
            return
        delay = self._retry_delay(queued, failed)
        if delay is None:
            self.ready.put_back(queued)
            self.ready_octets += queued.size
        else:
            heappush(self._delayed, (self.virtual_host.now() + delay, queued.position, queued))
            self._delayed_octets += queued.size
            self._watch_retries()

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
            self.ready_octets = sum(cast(QuorumMessage, queued).size for queued in kept)
            lost = [queued for queued in everything if not queued.message.secured]
            self._dropped(lost, "crash", NOT_SECURED)
        self._settled()

    def restarted(self) -> None:
        """See the base class: dead letters set out again."""
        if self._held is not None:
            self._held.start_over()

    def _die(self, queued: QuorumMessage, reason: DeathReason) -> None:
        if self._held is not None:
            self._held.hold(queued.message, reason, queued.failures, queued.size)
        else:
            self.virtual_host.dead_letters.died(self, queued.message, reason, queued.failures)

    # --- delayed retry ------------------------------------------------------------------------------

    def _retry_delay(self, queued: QuorumMessage, failed: bool) -> float | None:
        """For how many seconds a message that came back waits; None where it does not."""
        options = self.options
        shortest = options.delayed_retry_min
        if options.delayed_retry_type not in ("all", "failed" if failed else "returned") or shortest is None:
            return None
        longest = shortest if options.delayed_retry_max is None else options.delayed_retry_max
        return min(shortest * max(1, queued.failures), longest)

    def _watch_retries(self) -> None:
        """Have a timer for the first of those that wait to be tried again."""
        due = self._delayed[0][0] if self._delayed else None
        timer = self._retry_timer
        if timer is not None:
            if timer.due == due:
                return
            timer.cancel()
            self._retry_timer = None
        if due is not None:
            self._retry_timer = self.virtual_host.call_at(
                due, self._retry_is_due, f"q '{self.name}' tries a message again"
            )

    def _retry_is_due(self) -> None:
        self._retry_timer = None
        now = self.virtual_host.now() + _TIMER_MARGIN
        while self._delayed and self._delayed[0][0] <= now:
            queued = heappop(self._delayed)[2]
            self._delayed_octets -= queued.size
            self.ready.put_back(queued)
            self.ready_octets += queued.size
        self._watch_retries()
        self.dispatch()

    # --- consumers ----------------------------------------------------------------------------------

    def check_subscription(self, subscription: Subscription) -> None:
        """See the base class: there is no exclusive access.

        Raises:
            NotImplementedHere: it would only look; or share its window with others, where the personality
                forbids that.
        """
        if not subscription.acquires:
            raise NotImplementedHere(
                f"queue '{self.name}' in vhost '{self.virtual_host.name}' cannot be browsed: quorum queues "
                "send messages only to whoever acquires them. Browse a classic queue or a stream"
            )
        if subscription.shares_window and self._choices.refuses_shared_windows:
            raise NotImplementedHere(
                f"queue '{self.name}' in vhost '{self.virtual_host.name}' does not support global qos"
            )

    def subscribe(self, subscription: Subscription) -> None:
        """See the base class."""
        super().subscribe(subscription)
        self.exclusive_subscription = None

    def _enter(self, subscription: Subscription) -> None:
        self._newest = subscription.age = self._newest + 1
        asked = subscription.options.timeout
        subscription.patience = self._patience() if asked is None else asked
        if self._single is None:
            self._line.add(subscription)
        else:
            self._single.add(subscription)
            self._elect()

    def _leave(self, subscription: Subscription) -> None:
        self._line.remove(subscription)
        self._late.pop(subscription, None)
        if self._single is not None:
            self._single.remove(subscription)
            self._elect()

    def detach_all(self) -> list[Subscription]:
        """See the base class."""
        for timer in (self._head_timer, self._retry_timer):
            if timer is not None:
                timer.cancel()
        if self._holding_times is not None:
            self._holding_times.stop()
        self._line = WaitingLine()
        return super().detach_all()

    @property
    def consumer_count(self) -> int:
        """See the base class: whoever holds something counts, and who waits to be the active one does not."""
        single = self._single
        count = len(self.subscriptions) if single is None else int(single.active is not None)
        in_doubt = self.virtual_host.branches.in_doubt
        held = (each.holder for each in self.unacked if each.holder is not None and each not in in_doubt)
        ended = {holder for holder in held if not holder.active}
        return count + len(ended) + len(self._getters)

    def _holds(self, subscription: Subscription) -> bool:
        return any(delivery.holder is subscription for delivery in self.unacked)

    def _keeps_time(self, subscription: Subscription) -> bool:
        return subscription not in self._late

    def _elect(self, *, returned: bool = False) -> None:
        """See that the right consumer is the single active one; the caller dispatches."""
        single = self._single
        if single is None or self.deleted:
            return
        before = single.serving
        single.stand_back_if_done()
        if not returned or self._choices.returns_activate:
            single.elect()
        after = single.serving
        if before is not after:
            if before is not None:
                self._line.remove(before)
            if after is not None:
                self._line.add(after)

    # --- consumers that hold a message too long -----------------------------------------------------

    def _holding_limit(self, delivery: Delivery) -> float | None:
        """For how many seconds a message may be held; what a prepared branch will settle, for ever."""
        if delivery in self.virtual_host.branches.in_doubt:
            return None
        return self._patience() if delivery.holder is None else delivery.holder.patience

    def _patience(self) -> float | None:
        asked = self.options.consumer_timeout
        return (self.virtual_host.state.personality.consumer_timeout or None) if asked is None else asked

    def _held_too_long(self, deliveries: list[Delivery]) -> None:
        """Take messages back; who held them gets nothing until it has settled them, or loses its channel."""
        holders: dict[Subscription, None] = {}
        getters: dict[Subscriber, None] = {}
        for delivery in deliveries:
            del self.unacked[delivery]
            if delivery.holder is None:
                getters[self._getters.pop(delivery)] = None
            else:
                holders[delivery.holder] = None
                self._late.setdefault(delivery.holder, {})[delivery] = None
                self._line.remove(delivery.holder)
            self.virtual_host.note(
                "requeued",
                message=delivery.queued.message,
                queue=self.name,
                consumer=None if delivery.holder is None else delivery.holder.tag,
                connection=getattr(delivery.owner, "name", None),
                delivery_tag=delivery.tag,
                detail="it was held too long",
            )
            self._come_back(cast(QuorumMessage, delivery.queued), "timed out")
        if self._single is not None and self._single.active in holders:
            self._single.stand_back()
            self._elect()
        for holder in holders:
            holder.subscriber.held_too_long(holder)
        for getter in getters:
            getter.held_too_long(None)
        self.dispatch()

    def _settle_late(self, delivery: Delivery) -> None:
        """A message that was taken back is settled after all: once all are, the consumer goes on."""
        holder = delivery.holder
        late = self._late.get(holder)
        if holder is None or late is None:
            return
        late.pop(delivery, None)
        if late:
            return
        del self._late[holder]
        if self._single is None:
            self._line.add(holder)
        else:
            self._elect()
        self.dispatch()

    # --- time ---------------------------------------------------------------------------------------

    def _expired(self, queued: QueuedMessage) -> bool:
        return queued.expires_at is not None and queued.expires_at <= self.virtual_host.now() + _TIMER_MARGIN

    def _drop_expired(self) -> None:
        for queued in self._taken(self.ready.take_while(self._expired)):
            self._die(queued, "expired")

    def _taken(self, taken: list[QueuedMessage]) -> Iterator[QuorumMessage]:
        """Messages that are no longer ready."""
        messages = cast("list[QuorumMessage]", taken)
        self.ready_octets -= sum(queued.size for queued in messages)
        return iter(messages)

    def _watch_heads(self) -> None:
        """Have what stands at a head dropped when its time comes."""
        due = min(
            (each.expires_at for each in self.ready.heads() if each.expires_at is not None), default=None
        )
        timer = self._head_timer
        if timer is not None:
            if timer.due == due:
                return
            timer.cancel()
            self._head_timer = None
        if due is not None:
            self._head_timer = self.virtual_host.call_at(due, self._head_is_due, lambda: self._expiring(due))

    def _expiring(self, due: float) -> str:
        """What the timer of the heads is for, in words."""
        return expires_messages(self.name, sum(each.expires_at == due for each in self.ready))

    def _head_is_due(self) -> None:
        self._head_timer = None
        self.dispatch()

    def asked_for(self) -> None:
        """See the base class: that is no use."""

    def used(self) -> None:
        """See the base class."""
        self._last_used = self.virtual_host.now()
        self._watch_use()

    def _watch_use(self) -> None:
        """Go when `x-expires` has passed without use; consumers keep the queue alive.

        RabbitMQ looks every few seconds and promises no more than that the queue goes some time after.
        """
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()
            self._expiry_timer = None
        expires = self.options.expires
        if expires is not None and not self.subscriptions and not self.deleted:
            self._look_at(self._last_used + expires)

    def _look_at(self, instant: float) -> None:
        self._expiry_timer = self.virtual_host.call_at(
            instant, self._unused_too_long, f"q '{self.name}' expires unused"
        )

    def _unused_too_long(self) -> None:
        self._expiry_timer = None
        if self.deleted or self.subscriptions:
            return
        if self.unacked:
            self._look_at(self.virtual_host.now() + self._choices.tick)
        else:
            self.virtual_host.remove_queue(self, UNUSED_TOO_LONG)
