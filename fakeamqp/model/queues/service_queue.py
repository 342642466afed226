"""The service queue of a quorum queue: the consumers with credit, in the order in which they are served."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.model.message import Message
    from fakeamqp.model.subscription import Subscription

__all__ = ["ServiceQueue"]


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
        """Remove a consumer, if it is in the queue."""
        self._forget(subscription)
        self._leave(subscription)

    def _forget(self, subscription: Subscription) -> None:
        """A consumer is not without credit any more."""
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
        """See `RestingPlace`."""
        self._woken[subscription] = None

    def rejoin(self) -> None:
        """Return consumers that have credit again, in the order in which they left."""
        if self._woken:
            woken = sorted(self._woken, key=self._left.__getitem__)
            self._woken.clear()
            for subscription in woken:
                self.add(subscription)

    def credited(self, subscription: Subscription) -> None:
        """A consumer got credit back."""
        if subscription in self._left:
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
