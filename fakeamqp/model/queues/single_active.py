"""The single active consumer of a quorum queue (RabbitMQ: documented)."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from fakeamqp.model.subscription import Subscription

    Entry: TypeAlias = "tuple[tuple[int, int, int], int, Subscription]"

__all__ = ["SingleActive"]

_SHORT = 64
"""A heap up to this length is not cleared of stale entries."""


class SingleActive:
    """One consumer is active, the others wait.

    The personality decides what happens next. Either the longest waiting consumer follows when the active one
    ends. Or a consumer of the highest priority follows, even while one of a lower priority is active: the
    latter gets no new messages, and waits again once it has settled all deliveries.

    Waiting consumers are in a heap, so that finding the next one costs the logarithm of their number. An
    entry whose consumer does not wait any more, or has got another place, stays until it comes to the top.

    Args:
        by_priority: the second rule holds.
        holds: whether a consumer holds deliveries.
        may: whether a consumer may be active at all; after a change to True the caller calls `permit`.
    """

    __slots__ = (
        "_barred",
        "_by_priority",
        "_entered",
        "_holds",
        "_may",
        "_order",
        "_waiting",
        "active",
        "leaving",
    )

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
        """By consumer, its entry in the heap, or the entry that it gets there when it is not barred."""
        self._order: list[Entry] = []
        self._barred: dict[Subscription, None] = {}
        """The consumers that came to the top and may not be active; they are not in the heap."""

    @property
    def serving(self) -> Subscription | None:
        """The consumer that gets messages, or None."""
        return None if self.leaving else self.active

    def add(self, subscription: Subscription) -> None:
        """Add a consumer."""
        self._entered += 1
        self._place(subscription, self._entered)
        subscription.resting = self

    def remove(self, subscription: Subscription) -> None:
        """Remove a consumer."""
        self._stop_waiting(subscription)
        if self.active is subscription:
            self.active = None
            self.leaving = False

    def _stop_waiting(self, subscription: Subscription) -> None:
        if self._waiting.pop(subscription, None) is not None:
            self._barred.pop(subscription, None)
            if subscription.resting is self:
                subscription.resting = None

    def _place(self, subscription: Subscription, entered: int) -> None:
        """Enter a consumer into the heap."""
        if len(self._order) > max(_SHORT, 2 * len(self._waiting)):
            self._order = [entry for each, entry in self._waiting.items() if each not in self._barred]
            heapify(self._order)
        entry = self._waiting[subscription] = (self._rank(subscription), entered, subscription)
        heappush(self._order, entry)

    def _rank(self, subscription: Subscription) -> tuple[int, int, int]:
        """What decides before the time of waiting; the lowest goes first."""
        if not self._by_priority:
            return (0, 0, 0)
        return (-subscription.priority, -_window(subscription), subscription.age)

    def wake(self, subscription: Subscription) -> None:
        """See `RestingPlace`: the window of a consumer may have changed."""
        rank, entered, _ = self._waiting[subscription]
        if rank != self._rank(subscription):
            self._barred.pop(subscription, None)
            self._place(subscription, entered)

    def permit(self, subscription: Subscription) -> None:
        """A consumer may be active again."""
        if subscription in self._barred:
            del self._barred[subscription]
            heappush(self._order, self._waiting[subscription])

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
            if self._waiting.get(subscription) is entry:
                if self._may(subscription):
                    return subscription
                self._barred[subscription] = None
            heappop(self._order)
        return None

    def elect(self) -> None:
        """Choose the active consumer."""
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


def _window(subscription: Subscription) -> int:
    """How many messages the consumer may hold."""
    return min((credit.message_limit for credit in subscription.credits if credit.message_limit), default=0)
