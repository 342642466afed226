"""The order in which a queue serves its subscriptions: by priority and round robin."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.subscription import Subscription
    from fakeamqp.model.messages.message import Message

__all__ = ["Rotation"]


class _Group:
    """The subscriptions of one priority: those that take turns, the next one first, and those that rest.

    An `OrderedDict` takes its first key, moves a key to the end and deletes one in constant time.
    """

    __slots__ = ("resting", "turns")

    def __init__(self) -> None:
        self.turns: OrderedDict[Subscription, None] = OrderedDict()
        self.resting: dict[Subscription, int] = {}
        """The subscriptions that left the rotation; the numbers ascend in that order."""


class Rotation:
    """Higher priorities go first; equals take turns as they subscribed (server-model/round-robin).

    A subscription without credit on its turn leaves the rotation. It rejoins as the last of its equals once
    it has credit again (RabbitMQ: measured). Limits tell when that can be (`wake`), so that those who rest
    cost nothing.
    """

    __slots__ = ("_groups", "_rests", "_woken")

    def __init__(self) -> None:
        self._groups: dict[int, _Group] = {}
        """By priority, the highest first; none is without members."""
        self._rests = 0
        """How often a subscription has left the rotation."""
        self._woken: dict[Subscription, None] = {}
        """The resting subscriptions of which a limit has changed."""

    def __len__(self) -> int:
        return sum(len(group.turns) + len(group.resting) for group in self._groups.values())

    def __bool__(self) -> bool:
        return bool(self._groups)

    def __iter__(self) -> Iterator[Subscription]:
        for group in self._groups.values():
            yield from group.turns
            yield from group.resting

    def __contains__(self, subscription: Subscription) -> bool:
        group = self._groups.get(subscription.priority)
        return group is not None and (subscription in group.turns or subscription in group.resting)

    def add(self, subscription: Subscription) -> None:
        """Add a subscription as the last of its equals."""
        group = self._groups.get(subscription.priority)
        if group is None:
            group = self._groups[subscription.priority] = _Group()
            self._groups = dict(sorted(self._groups.items(), reverse=True))
        group.turns[subscription] = None

    def remove(self, subscription: Subscription) -> None:
        """Remove a subscription; it must be in the rotation or resting."""
        group = self._groups[subscription.priority]
        if subscription in group.resting:
            self._wake_up(group, subscription)
        else:
            del group.turns[subscription]
        if not group.turns and not group.resting:
            del self._groups[subscription.priority]

    def first(self) -> Subscription | None:
        """The first subscription, whether it has credit or not."""
        return next(iter(self), None)

    def wake(self, subscription: Subscription) -> None:
        """See `RestingPlace`."""
        self._woken[subscription] = None

    def _rest(self, group: _Group, subscription: Subscription) -> None:
        """A subscription without credit leaves the rotation."""
        del group.turns[subscription]
        self._rests = group.resting[subscription] = self._rests + 1
        subscription.resting = self

    def _wake_up(self, group: _Group, subscription: Subscription) -> int:
        """A subscription does not rest any more. Returns when it left, in comparison with others."""
        self._woken.pop(subscription, None)
        if subscription.resting is self:
            subscription.resting = None
        return group.resting.pop(subscription)

    def rejoin(self) -> None:
        """Return resting subscriptions with credit to the rotation, in the order in which they left."""
        if not self._woken:
            return
        woken = [each for each in self._woken if not each.paused]
        if len(woken) > 1:
            woken.sort(key=lambda each: self._groups[each.priority].resting[each])
        self._woken.clear()
        for subscription in woken:
            group = self._groups[subscription.priority]
            self._wake_up(group, subscription)
            group.turns[subscription] = None

    def next_able(self, message: Message) -> Subscription | None:
        """The next subscription in the rotation that can take a message now, or None.

        The chosen one moves to the end of its group.
        """
        if self._woken:
            self.rejoin()
        for group in self._groups.values():
            turns = group.turns
            for subscription in turns:
                for limit in subscription.limits:
                    if not limit.admits(message):
                        break
                else:
                    if len(turns) > 1:
                        turns.move_to_end(subscription)
                    return subscription
                found = self._next_behind_first(group, message)
                if found is not None:
                    return found
                break
        return None

    def _next_behind_first(self, group: _Group, message: Message) -> Subscription | None:
        """The choice of `next_able` in a group of which the first cannot take the message.

        Those that are passed over leave the rotation, or have had their turn if they only cannot take this
        message.
        """
        chosen: Subscription | None = None
        passed: list[Subscription] = []
        without_credit: list[Subscription] = []
        for subscription in group.turns:
            for limit in subscription.limits:
                if not limit.admits(message):
                    (passed if limit.open else without_credit).append(subscription)
                    break
            else:
                chosen = subscription
                break
        for subscription in without_credit:
            self._rest(group, subscription)
        if chosen is not None:
            for subscription in (*passed, chosen):
                group.turns.move_to_end(subscription)
        return chosen

    def first_able(self, message: Message) -> Subscription | None:
        """The choice of `next_able` after a `dispatch`; the rotation does not move."""
        for group in self._groups.values():
            for subscription in group.turns:
                if all(limit.admits(message) for limit in subscription.limits):
                    return subscription
        return None

    def able(self, message: Message) -> Iterator[Subscription]:
        """All subscriptions that can take a message now, in order; the rotation does not move."""
        self.rejoin()
        for group in self._groups.values():
            for subscription in list(group.turns):
                if all(limit.admits(message) for limit in subscription.limits):
                    yield subscription

    def passed(self, subscription: Subscription) -> None:
        """Move a subscription chosen from `able` to the end of its group."""
        self._groups[subscription.priority].turns.move_to_end(subscription)
