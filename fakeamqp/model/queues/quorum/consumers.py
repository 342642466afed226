"""The consumers of a quorum queue: whose turn it is, and which is the single active one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.model.queues.single_active import SingleActive
from fakeamqp.model.queues.waiting_line import WaitingLine

if TYPE_CHECKING:
    from fakeamqp.model.delivery import Delivery
    from fakeamqp.model.queues.quorum.queue import QuorumQueue
    from fakeamqp.model.subscription import Subscription

__all__ = ["Consumers"]


class Consumers:
    """Those of one queue. `line` are those whose turn it may be, `single` is there if one alone is active.

    `pick` says that some may not have every message.
    """

    __slots__ = ("_late", "_newest", "_queue", "line", "pick", "single")

    def __init__(self, queue: QuorumQueue) -> None:
        self._queue = queue
        self.line = WaitingLine()
        self.pick = False
        self.single: SingleActive | None = None
        if queue.options.single_active_consumer:
            by_priority = queue.choices.single_active_by_priority
            self.single = SingleActive(by_priority, self._holds, self._keeps_time)
        self._newest = 0
        """The age of the latest consumer."""
        self._late: dict[Subscription | None, dict[Delivery, None]] = {}
        """By consumer, the deliveries that were taken back from it and that it has not settled since."""

    def enter(self, subscription: Subscription) -> None:
        """A consumer came."""
        self._newest = subscription.age = self._newest + 1
        self.pick = self.pick or subscription.picks
        if self.single is None:
            self.line.add(subscription)
        else:
            self.single.add(subscription)
            self.elect()

    def leave(self, subscription: Subscription) -> None:
        """A consumer takes no turns any more."""
        self.line.remove(subscription)
        self._late.pop(subscription, None)
        if self.single is not None:
            self.single.remove(subscription)
            self.elect()

    def count(self) -> int:
        """How many there are for declare-ok, with those that have ended and still hold something.

        Who waits to be the active one does not count.
        """
        queue, single = self._queue, self.single
        count = len(queue.subscriptions) if single is None else int(single.active is not None)
        in_doubt = queue.virtual_host.branches.in_doubt
        held = (each.holder for each in queue.unacked if each.holder is not None and each not in in_doubt)
        return count + len({holder for holder in held if not holder.active})

    def elect(self, *, returned: bool = False) -> None:
        """See that the right consumer is the single active one; the caller dispatches.

        `returned` says that messages came back just now.
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
                self.line.remove(before)
            if after is not None:
                self.line.add(after)

    def _holds(self, subscription: Subscription) -> bool:
        return any(delivery.holder is subscription for delivery in self._queue.unacked)

    def _keeps_time(self, subscription: Subscription) -> bool:
        return subscription not in self._late

    # --- those that hold a message too long ---------------------------------------------------------

    def held_too_long(self, holder: Subscription, delivery: Delivery) -> None:
        """A delivery was taken back from a consumer: it gets nothing until it has settled it."""
        self._late.setdefault(holder, {})[delivery] = None
        self.line.remove(holder)

    def stand_back(self, late: dict[Subscription, None]) -> None:
        """The active one waits again if it is among these."""
        if self.single is not None and self.single.active in late:
            self.single.stand_back()
            self.elect()

    def settled_late(self, delivery: Delivery) -> bool:
        """A message that was taken back is settled after all. True where its consumer has settled all."""
        holder = delivery.holder
        late = self._late.get(holder)
        if holder is None or late is None:
            return False
        late.pop(delivery, None)
        if late:
            return False
        del self._late[holder]
        if self.single is None:
            self.line.add(holder)
        else:
            self.elect()
        return True
