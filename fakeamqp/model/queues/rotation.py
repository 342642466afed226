"""The order in which a queue serves its subscriptions: by priority and round robin."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.model.message import Message
    from fakeamqp.model.subscription import Subscription

__all__ = ["Rotation"]


class Rotation:
    """Higher priorities go first; equals take turns as they subscribed (server-model/round-robin).

    A subscription without credit on its turn leaves the rotation. It rejoins as the last of its equals once
    it has credit again (RabbitMQ: measured).
    """

    __slots__ = ("_groups", "_resting")

    def __init__(self) -> None:
        self._groups: dict[int, deque[Subscription]] = {}
        """By priority, the highest first; a group is empty while all its members rest."""
        self._resting: dict[Subscription, None] = {}
        """The subscriptions that left the rotation, in that order."""

    def __len__(self) -> int:
        return sum(map(len, self._groups.values())) + len(self._resting)

    def __bool__(self) -> bool:
        return bool(self._groups)

    def __iter__(self) -> Iterator[Subscription]:
        for priority, group in self._groups.items():
            yield from group
            yield from (each for each in self._resting if each.priority == priority)

    def add(self, subscription: Subscription) -> None:
        """Add a subscription as the last of its equals."""
        group = self._groups.get(subscription.priority)
        if group is None:
            self._groups[subscription.priority] = deque((subscription,))
            self._groups = dict(sorted(self._groups.items(), reverse=True))
        else:
            group.append(subscription)

    def remove(self, subscription: Subscription) -> None:
        """Remove a subscription; it must be in the rotation or resting."""
        priority = subscription.priority
        group = self._groups[priority]
        if subscription in self._resting:
            del self._resting[subscription]
        else:
            group.remove(subscription)
        if not group and all(each.priority != priority for each in self._resting):
            del self._groups[priority]

    def rejoin(self) -> None:
        """Return resting subscriptions with credit to the rotation."""
        for subscription in [each for each in self._resting if not each.paused]:
            del self._resting[subscription]
            self._groups[subscription.priority].append(subscription)

    def next_able(self, message: Message) -> Subscription | None:
        """The next subscription in the rotation that can take a message now, or None.

        The chosen one moves to the end of its group.
        """
        if self._resting:
            self.rejoin()
        for group in self._groups.values():
            for _ in range(len(group)):
                subscription = group[0]
                group.rotate(-1)
                for limit in subscription.limits:
                    if not limit.admits(message):
                        if not limit.open:
                            self._resting[group.pop()] = None
                        break
                else:
                    return subscription
        return None

    def first_able(self, message: Message) -> Subscription | None:
        """The choice of `next_able` after a `dispatch`; the rotation does not move."""
        for group in self._groups.values():
            for subscription in group:
                if all(limit.admits(message) for limit in subscription.limits):
                    return subscription
        return None

    def able(self, message: Message) -> Iterator[Subscription]:
        """All subscriptions that can take a message now, in order; the rotation does not move."""
        self.rejoin()
        for group in self._groups.values():
            for subscription in list(group):
                if all(limit.admits(message) for limit in subscription.limits):
                    yield subscription

    def passed(self, subscription: Subscription) -> None:
        """Move a subscription chosen from `able` to the end of its group."""
        group = self._groups[subscription.priority]
        group.remove(subscription)
        group.append(subscription)
