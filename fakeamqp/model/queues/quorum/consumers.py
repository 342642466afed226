"""The consumers of a quorum queue: their order, the single active one, and those that hold messages too long.

Source: RabbitMQ, documented; timeouts of consumers since 4.3.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, TypeAlias, cast
from weakref import WeakSet

from fakeamqp.model.deliveries.delivery import Delivery, DeliveryTimeouts

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.subscription import Subscriber, Subscription
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.queues.quorum.queue import QuorumMessage, QuorumQueue

    Entry: TypeAlias = "tuple[tuple[int, int, int], int, Subscription]"


class ServiceQueue:
    """Higher priorities go first; among equals the consumer that has waited longest (RabbitMQ: measured).

    A consumer leaves with its last credit, and rejoins at the end when it has credit again. This differs from
    a `Rotation`, where the consumer that took a message last is last. Limits tell when a consumer may have
    credit again (`wake`), so that those without credit cost nothing.
    """

    __slots__ = ("_departures", "_groups", "_left", "_woken")

    def __init__(self) -> None:
        self._groups: dict[int, OrderedDict[Subscription, None]] = {}
        """By priority, the highest first; none is empty. See `Rotation` for the type."""
        self._left: dict[Subscription, int] = {}
        """The consumers without credit; the numbers ascend in the order in which they left."""
        self._departures = 0
        self._woken: dict[Subscription, None] = {}
        """Those among them of which a limit has changed."""

    def __bool__(self) -> bool:
        return bool(self._groups)

    def __iter__(self) -> Iterator[Subscription]:
        for group in self._groups.values():
            yield from group

    def __contains__(self, subscription: Subscription) -> bool:
        return subscription in self._groups.get(subscription.priority, ())

    def add(self, subscription: Subscription) -> None:
        """Add a consumer, unless it is in the queue or has no credit."""
        for credit in subscription.credits:
            if not credit.open:
                if subscription not in self._left:
                    self._departures = self._left[subscription] = self._departures + 1
                subscription.resting = self
                return
        self._forget(subscription)
        group = self._groups.get(subscription.priority)
        if group is None:
            self._groups[subscription.priority] = OrderedDict({subscription: None})
            self._groups = dict(sorted(self._groups.items(), reverse=True))
        else:
            group.setdefault(subscription)

    def remove(self, subscription: Subscription) -> None:
        self._forget(subscription)
        self._leave(subscription)

    def _forget(self, subscription: Subscription) -> None:
        if self._left.pop(subscription, None) is not None:
            self._woken.pop(subscription, None)
            if subscription.resting is self:
                subscription.resting = None

    def _leave(self, subscription: Subscription) -> None:
        group = self._groups.get(subscription.priority)
        if group is not None and subscription in group:
            del group[subscription]
            if not group:
                del self._groups[subscription.priority]

    def wake(self, subscription: Subscription) -> None:
        self._woken[subscription] = None

    def rejoin(self) -> None:
        """Return consumers that have credit again, in the order in which they left."""
        if self._woken:
            woken = sorted(self._woken, key=self._left.__getitem__)
            self._woken.clear()
            for subscription in woken:
                self.add(subscription)

    def credited(self, subscription: Subscription) -> None:
        if subscription in self._left:
            self.add(subscription)

    def granted(self, subscription: Subscription) -> None:
        """A consumer without a grant has got one: it goes to the end."""
        if subscription in self:
            self._leave(subscription)
            self.add(subscription)

    def first_able(self, message: Message) -> Subscription | None:
        """The first consumer that can take a message now, or None."""
        for group in self._groups.values():
            for subscription in group:
                for limit in subscription.limits:
                    if not limit.admits(message):
                        break
                else:
                    return subscription
        return None

    def served(self, subscription: Subscription) -> None:
        """A consumer took a message: it goes to the end, or leaves without credit."""
        group = self._groups[subscription.priority]
        if len(group) > 1 or not all(credit.open for credit in subscription.credits):
            self._leave(subscription)
            self.add(subscription)


_SHORT = 64
"""A heap up to this length is not cleared of stale entries."""


class SingleActive:
    """One consumer is active, the others wait.

    The personality decides what happens next. Either the longest waiting consumer follows when the active one
    ends. Or a consumer of the highest priority follows, even while one of a lower priority is active: the
    latter gets no new messages, and waits again once it has settled all deliveries.

    Waiting consumers are in a heap, so that finding the next one costs the logarithm of their number. An
    entry whose consumer does not wait any more, or has got another place, stays until it comes to the top.

    With `by_priority` the second rule holds. `holds` says whether a consumer holds deliveries, `may` whether
    it may be active at all; after a change to True the caller calls `permit`.
    """

    __slots__ = ("_by_priority", "_entered", "_holds", "_may", "_order", "_waiting", "active", "leaving")

    def __init__(
        self,
        by_priority: bool,
        holds: Callable[[Subscription], bool],
        may: Callable[[Subscription], bool],
    ) -> None:
        self.active: Subscription | None = None
        self.leaving: bool = False
        """Whether the active consumer gets no new messages."""
        self._by_priority = by_priority
        self._holds = holds
        self._may = may
        self._entered = 0
        self._waiting: dict[Subscription, Entry] = {}
        """By consumer, its latest entry in the heap. That of one that may not be active may have left it."""
        self._order: list[Entry] = []

    @property
    def serving(self) -> Subscription | None:
        """The consumer that gets messages, or None."""
        return None if self.leaving else self.active

    def add(self, subscription: Subscription) -> None:
        self._entered += 1
        self._place(subscription, self._entered)
        subscription.resting = self

    def remove(self, subscription: Subscription) -> None:
        self._stop_waiting(subscription)
        if self.active is subscription:
            self.active = None
            self.leaving = False

    def _stop_waiting(self, subscription: Subscription) -> None:
        if self._waiting.pop(subscription, None) is not None and subscription.resting is self:
            subscription.resting = None

    def _place(self, subscription: Subscription, entered: int) -> None:
        if len(self._order) > max(_SHORT, 2 * len(self._waiting)):
            self._order = list(self._waiting.values())
            heapify(self._order)
        entry = self._waiting[subscription] = (self._rank(subscription), entered, subscription)
        heappush(self._order, entry)

    def _rank(self, subscription: Subscription) -> tuple[int, int, int]:
        """What decides before the time of waiting: the priority, and the number of messages it may hold."""
        if not self._by_priority:
            return (0, 0, 0)
        limits = [credit.message_limit for credit in subscription.credits if credit.message_limit]
        return (-subscription.priority, -min(limits, default=0), subscription.age)

    def wake(self, subscription: Subscription) -> None:
        """The number of messages that a consumer may hold may have changed."""
        rank, entered, _ = self._waiting[subscription]
        if rank != self._rank(subscription):
            self._place(subscription, entered)

    def permit(self, subscription: Subscription) -> None:
        """A consumer may be active again."""
        if subscription in self._waiting:
            self._place(subscription, self._waiting[subscription][1])

    def stand_back(self) -> None:
        """The active consumer, if any, waits again."""
        if self.active is not None:
            self.add(self.active)
        self.active = None
        self.leaving = False

    def stand_back_if_done(self) -> None:
        """The same, if it gets no new messages and has settled all deliveries."""
        if self.leaving and self.active is not None and not self._holds(self.active):
            self.stand_back()

    def first_waiting(self) -> Subscription | None:
        """The consumer that would be active next, or None."""
        while self._order:
            entry = self._order[0]
            subscription = entry[2]
            if self._waiting.get(subscription) is entry and self._may(subscription):
                return subscription
            heappop(self._order)
        return None

    def elect(self) -> None:
        following = self.first_waiting()
        if following is None:
            return
        active = self.active
        if active is not None and self._by_priority and following.priority > active.priority:
            if self._holds(active):
                self.leaving = True
                return
            self.stand_back()
            active = None
        if active is None:
            self._stop_waiting(following)
            self.active = following


class QuorumConsumers:
    """The consumers of one queue.

    `service_queue` holds those that can be served. `single` is there if only one is active. `pick` is True
    once some messages may not suit every consumer. `getters` maps deliveries of basic.get to the channels
    that hold them. `timeouts` watches deliveries, in personalities that do so: a message that was held too
    long returns, and its consumer gets no others until it has settled the delivery, or loses its channel.
    """

    __slots__ = (
        "_ended",
        "_known",
        "_late",
        "_newest",
        "_queue",
        "getters",
        "pick",
        "service_queue",
        "single",
        "timeouts",
    )

    def __init__(self, queue: QuorumQueue) -> None:
        self._queue = queue
        self.service_queue: ServiceQueue = ServiceQueue()
        self.pick: bool = False
        self.getters: dict[Delivery, Subscriber] = {}
        self._newest = 0
        """The age of the latest consumer: its number in the order of arrival."""
        self._ended: WeakSet[Subscription] = WeakSet()
        """Consumers that have ended. Those that hold deliveries are kept by these."""
        self._late: dict[Subscription | None, dict[Delivery, None]] = {}
        """By consumer, the deliveries that timed out and that it has not settled since."""
        choices = queue.choices
        self._known: Subscription | None = None
        """The consumer that was active when consumers were told last."""
        self.single: SingleActive | None = None
        if queue.options.single_active_consumer:
            self.single = SingleActive(
                choices.single_active_by_priority, self._holds, lambda each: each not in self._late
            )
        self.timeouts: DeliveryTimeouts | None = None
        if choices.consumers_time_out:
            label = f"q '{queue.name}' times out unsettled deliveries"
            timers = queue.virtual_host.state.timers
            self.timeouts = DeliveryTimeouts(timers, self._held_under, self._time_out, lambda timeout: label)

    def enter(self, subscription: Subscription) -> None:
        asked = subscription.options.timeout
        subscription.patience = self._queue.consumer_timeout() if asked is None else asked
        self._newest = subscription.age = self._newest + 1
        self.pick = self.pick or subscription.picks
        if self.single is None:
            self.service_queue.add(subscription)
        else:
            self.single.add(subscription)
            self.elect()

    def leave(self, subscription: Subscription) -> None:
        self.service_queue.remove(subscription)
        self._late.pop(subscription, None)
        self._ended.add(subscription)
        if self.single is not None:
            self.single.remove(subscription)
            self.elect()

    def count(self) -> int:
        """The count of declare-ok: consumers that do not wait to be active, ended ones with deliveries."""
        queue, single = self._queue, self.single
        count = len(queue.subscriptions) if single is None else int(single.active is not None)
        count += len(self.getters)
        if not self._ended:
            return count
        in_doubt = queue.virtual_host.branches.in_doubt
        held = (each.holder for each in queue.unacked if each.holder is not None and each not in in_doubt)
        return count + len({holder for holder in held if not holder.active})

    def elect(self, *, returned: bool = False) -> bool:
        """Choose the single active consumer. True if another one is served now: then the caller dispatches.

        `returned`: messages have returned.
        """
        single = self.single
        if single is None or self._queue.deleted:
            return False
        before = single.serving
        single.stand_back_if_done()
        if not returned or self._queue.choices.returns_activate:
            single.elect()
        after = single.serving
        if before is not after:
            if before is not None:
                self.service_queue.remove(before)
            if after is not None:
                self.service_queue.add(after)
        known = self._known
        if single.active is not known:
            self._known = single.active
            for each in (known, single.active):
                if each is not None and each.on_activity is not None:
                    each.on_activity()
        return after is not before and after is not None

    def _holds(self, subscription: Subscription) -> bool:
        return any(delivery.holder is subscription for delivery in self._queue.unacked)

    # --- timeouts -----------------------------------------------------------------------------------

    def _limit(self, delivery: Delivery) -> float | None:
        """The timeout of a delivery in seconds; None where a prepared branch will settle it."""
        if delivery in self._queue.virtual_host.branches.in_doubt:
            return None
        return self._queue.consumer_timeout() if delivery.holder is None else delivery.holder.patience

    def _held_under(self, timeout: float) -> Iterator[Delivery]:
        return (each for each in self._queue.unacked if self._limit(each) == timeout)

    def watch(self, delivery: Delivery) -> None:
        if self.timeouts is not None:
            limit = self._limit(delivery)
            if limit is not None and limit not in self.timeouts.running:
                self.timeouts.start(limit, delivery)

    def _time_out(self, late: list[Delivery], timeout: float) -> None:
        queue = self._queue
        holders: dict[Subscription, None] = {}
        getters: dict[Subscriber, None] = {}
        for delivery in late:
            holder = delivery.holder
            del queue.unacked[delivery]
            if holder is None:
                getters[self.getters.pop(delivery)] = None
            else:
                holders[holder] = None
                if holder.active:
                    self._late.setdefault(holder, {})[delivery] = None
                    self.service_queue.remove(holder)
            queue.virtual_host.report(
                "requeued",
                message=delivery.queued.message,
                queue=queue.name,
                consumer=None if holder is None else holder.tag,
                connection=getattr(delivery.owner, "name", None),
                delivery_tag=delivery.tag,
                detail="it was held too long",
            )
            queue.requeue(cast("QuorumMessage", delivery.queued), "timed out")
        if self.single is not None and self.single.active in holders:
            self.single.stand_back()
            self.elect()
        for holder in holders:
            holder.subscriber.held_too_long(holder)
        for getter in getters:
            getter.held_too_long(None)
        queue.dispatch()

    def settled_late(self, delivery: Delivery) -> bool:
        """A delivery that timed out is settled. True if its consumer has settled all such deliveries."""
        holder = delivery.holder
        late = self._late.get(holder)
        if holder is None or late is None:
            return False
        late.pop(delivery, None)
        if late:
            return False
        del self._late[holder]
        if self.single is None:
            self.service_queue.add(holder)
        else:
            self.single.permit(holder)
            self.elect()
        return True
