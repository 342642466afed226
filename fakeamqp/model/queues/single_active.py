"""The single active consumer of a quorum queue (RabbitMQ: documented)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.model.subscription import Subscription

__all__ = ["SingleActive"]


class SingleActive:
    """One consumer is active, the others wait.

    The personality decides what happens next. Either the longest waiting consumer follows when the active one
    ends. Or a consumer of the highest priority follows, even while one of a lower priority is active: the
    latter gets no new messages, and waits again once it has settled all deliveries.

    Args:
        by_priority: the second rule holds.
        holds: whether a consumer holds deliveries.
        may: whether a consumer may be active at all.
    """

    __slots__ = ("_by_priority", "_holds", "_may", "_waiting", "active", "leaving")

    def __init__(
        self,
        by_priority: bool,
        holds: Callable[[Subscription], bool],
        may: Callable[[Subscription], bool],
    ) -> None:
        self.active: Subscription | None = None
        self.leaving = False
        """Whether the active consumer gets no new messages."""
        self._by_priority = by_priority
        self._holds = holds
        self._may = may
        self._waiting: dict[Subscription, None] = {}

    @property
    def serving(self) -> Subscription | None:
        """The consumer that gets messages, or None."""
        return None if self.leaving else self.active

    def add(self, subscription: Subscription) -> None:
        """Add a consumer."""
        self._waiting[subscription] = None

    def remove(self, subscription: Subscription) -> None:
        """Remove a consumer."""
        self._waiting.pop(subscription, None)
        if self.active is subscription:
            self.active = None
            self.leaving = False

    def stand_back(self) -> None:
        """The active consumer, if any, waits again."""
        if self.active is not None:
            self._waiting[self.active] = None
        self.active = None
        self.leaving = False

    def stand_back_if_done(self) -> None:
        """The same, if it gets no new messages and has settled all deliveries."""
        if self.leaving and self.active is not None and not self._holds(self.active):
            self.stand_back()

    def first_waiting(self) -> Subscription | None:
        """The consumer that would be active next, or None."""
        able = [each for each in self._waiting if self._may(each)]
        if not able:
            return None
        if not self._by_priority:
            return able[0]
        return min(able, key=lambda each: (-each.priority, -_window(each), each.age))

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
            del self._waiting[following]
            self.active = following


def _window(subscription: Subscription) -> int:
    """How many messages the consumer may hold."""
    return min((credit.message_limit for credit in subscription.credits if credit.message_limit), default=0)
