"""Whose turn it is at a quorum queue: the consumers with credit, as they got in line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.model.message import Message
    from fakeamqp.model.subscription import Subscription

__all__ = ["WaitingLine"]


class WaitingLine:
    """Higher priorities go first; among equals whoever has waited longest (RabbitMQ: measured).

    A consumer leaves with its last credit and gets in line again, at the end, when some comes back. That is
    how it differs from a `Rotation`, where who took a message last is last.
    """

    __slots__ = ("_groups", "_left")

    def __init__(self) -> None:
        self._groups: dict[int, dict[Subscription, None]] = {}
        """By priority, the highest first; none is empty."""
        self._left: dict[Subscription, None] = {}
        """Those without credit, in the order they left."""

    def __bool__(self) -> bool:
        return bool(self._groups)

    def __iter__(self) -> Iterator[Subscription]:
        for group in self._groups.values():
            yield from group

    def __contains__(self, subscription: Subscription) -> bool:
        return subscription in self._groups.get(subscription.priority, ())

    def add(self, subscription: Subscription) -> None:
        """Let a consumer get in line, unless it is or has no credit."""
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
        """A consumer takes no turns any more. Harmless where it took none."""
        self._left.pop(subscription, None)
        self._leave(subscription)

    def _leave(self, subscription: Subscription) -> None:
        group = self._groups.get(subscription.priority)
        if group is not None and subscription in group:
            del group[subscription]
            if not group:
                del self._groups[subscription.priority]

    def rejoin(self) -> None:
        """Let those get in line again who have credit by now."""
        if self._left:
            for subscription in list(self._left):
                self.add(subscription)

    def credited(self, subscription: Subscription) -> None:
        """Some of a consumer's credit came back."""
        if subscription in self._left:
            self.add(subscription)

    def first_able(self, message: Message) -> Subscription | None:
        """The first in line of those that can take a message now, or None."""
        for group in self._groups.values():
            for subscription in group:
                for limit in subscription.limits:
                    if not limit.admits(message):
                        break
                else:
                    return subscription
        return None

    def served(self, subscription: Subscription) -> None:
        """A consumer took a message, and its credit: it goes to the end, or leaves."""
        group = self._groups[subscription.priority]
        if len(group) > 1 or not all(credit.open for credit in subscription.credits):
            self._leave(subscription)
            self.add(subscription)
