"""The service queue of a quorum queue: the consumers with credit, in the order in which they are served."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.model.message import Message
    from fakeamqp.model.subscription import Subscription

__all__ = ["ServiceQueue"]


class ServiceQueue:
    """Higher priorities go first; among equals the consumer that has waited longest (RabbitMQ: measured).

    A consumer leaves with its last credit, and rejoins at the end when it has credit again. This differs from
    a `Rotation`, where the consumer that took a message last is last.
    """

    __slots__ = ("_groups", "_left")

    def __init__(self) -> None:
        self._groups: dict[int, dict[Subscription, None]] = {}
        """By priority, the highest first; none is empty."""
        self._left: dict[Subscription, None] = {}
        """The consumers without credit, in the order in which they left."""

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
                self._left[subscription] = None
                return
        self._left.pop(subscription, None)
        group = self._groups.get(subscription.priority)
        if group is None:
            self._groups[subscription.priority] = {subscription: None}
            self._groups = dict(sorted(self._groups.items(), reverse=True))
        else:
            group.setdefault(subscription)

    def remove(self, subscription: Subscription) -> None:
        """Remove a consumer, if it is in the queue."""
        self._left.pop(subscription, None)
        self._leave(subscription)

    def _leave(self, subscription: Subscription) -> None:
        group = self._groups.get(subscription.priority)
        if group is not None and subscription in group:
            del group[subscription]
            if not group:
                del self._groups[subscription.priority]

    def rejoin(self) -> None:
        """Return consumers that have credit again."""
        if self._left:
            for subscription in list(self._left):
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
