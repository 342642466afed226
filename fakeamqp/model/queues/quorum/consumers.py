"""The consumers of a quorum queue: their order, and the single active one."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakSet

from fakeamqp.model.queues.service_queue import ServiceQueue
from fakeamqp.model.queues.single_active import SingleActive

if TYPE_CHECKING:
    from fakeamqp.model.delivery import Delivery
    from fakeamqp.model.queues.quorum.queue import QuorumQueue
    from fakeamqp.model.subscription import Subscription

__all__ = ["QuorumConsumers"]


class QuorumConsumers:
    """The consumers of one queue.

    `service_queue` holds those that can be served. `single` is there if only one is active. `pick` is True
    once some messages may not suit every consumer.
    """

    __slots__ = ("_ended", "_late", "_newest", "_queue", "pick", "service_queue", "single")

    def __init__(self, queue: QuorumQueue) -> None:
        self._queue = queue
        self.service_queue: ServiceQueue = ServiceQueue()
        self.pick: bool = False
        self.single: SingleActive | None = None
        if queue.options.single_active_consumer:
            by_priority = queue.choices.single_active_by_priority
            self.single = SingleActive(by_priority, self._holds, self._keeps_time)
        self._newest = 0
        """The age of the latest consumer: its number in the order of arrival."""
        self._ended: WeakSet[Subscription] = WeakSet()
        """Consumers that have ended. Those that hold deliveries are kept by these."""
        self._late: dict[Subscription | None, dict[Delivery, None]] = {}
        """By consumer, the deliveries that timed out and that it has not settled since."""

    def enter(self, subscription: Subscription) -> None:
        """Add a consumer."""
        self._newest = subscription.age = self._newest + 1
        self.pick = self.pick or subscription.picks
        if self.single is None:
            self.service_queue.add(subscription)
        else:
            self.single.add(subscription)
            self.elect()

    def leave(self, subscription: Subscription) -> None:
        """Remove a consumer."""
        self.service_queue.remove(subscription)
        self._late.pop(subscription, None)
        self._ended.add(subscription)
        if self.single is not None:
            self.single.remove(subscription)
            self.elect()

    def count(self) -> int:
        """The consumer count of declare-ok, with ended consumers that still hold deliveries.

        Consumers that wait to be active do not count.
        """
        queue, single = self._queue, self.single
        count = len(queue.subscriptions) if single is None else int(single.active is not None)
        if not self._ended:
            return count
        in_doubt = queue.virtual_host.branches.in_doubt
        held = (each.holder for each in queue.unacked if each.holder is not None and each not in in_doubt)
        return count + len({holder for holder in held if not holder.active})

    def elect(self, *, returned: bool = False) -> None:
        """Choose the single active consumer; the caller dispatches.

        `returned` says that messages have just returned.
        """
        single = self.single
        if single is None or self._queue.deleted:
            return
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

    def _holds(self, subscription: Subscription) -> bool:
        return any(delivery.holder is subscription for delivery in self._queue.unacked)

    def _keeps_time(self, subscription: Subscription) -> bool:
        return subscription not in self._late

    # --- delivery timeouts --------------------------------------------------------------------------

    def held_too_long(self, holder: Subscription, delivery: Delivery) -> None:
        """A delivery timed out: its consumer gets no messages until it has settled it."""
        self._late.setdefault(holder, {})[delivery] = None
        self.service_queue.remove(holder)

    def stand_back(self, late: dict[Subscription, None]) -> None:
        """The active consumer waits again if it is one of these."""
        if self.single is not None and self.single.active in late:
            self.single.stand_back()
            self.elect()

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
