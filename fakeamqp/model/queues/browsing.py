"""The subscriptions that only look at the messages of a classic queue, and what each has still to see.

Theory of operation. Each browser has a list of its own of what is ahead of it, in the queue's order: what
waits or is held by a client when it comes, and then whatever arrives. It is shown a message once, if that
waits when its turn comes; what has gone by then, or is held by a client, it passes over for good. So what
comes back to the queue is seen by those browsers that had not come as far, and by no other, and by none
twice (the documents leave that open).

Messages that go are not looked for in these lists, which would cost each consumer for each browser. They
are swept out when a list has become twice as long as it need be: that costs a constant for each message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.model.delivery import Delivery
    from fakeamqp.model.queues.queue import QueuedMessage
    from fakeamqp.model.queues.ready import Fifo, PriorityFifo, Watched
    from fakeamqp.model.subscription import Subscription
    from fakeamqp.model.timers import Timer

__all__ = ["Browser"]

_SHORT = 64
"""Lists up to this length are not swept."""


class Browser:
    """One subscription that only looks.

    Args:
        subscription: whose way through the queue this is.
        ahead: an empty list of the kind that the queue has.
        waiting: what waits, in order.
        held: what clients hold.
    """

    __slots__ = ("_ahead", "_longest", "_timer", "subscription")

    def __init__(
        self,
        subscription: Subscription,
        ahead: Fifo | PriorityFifo,
        waiting: Iterable[QueuedMessage],
        held: Iterable[QueuedMessage],
    ) -> None:
        self.subscription = subscription
        self._ahead = ahead
        for queued in waiting:
            ahead.append(queued)
        ahead.put_back(held)
        self._longest = max(_SHORT, 2 * len(ahead))
        self._timer: Timer | None = None

    def add(self, queued: QueuedMessage, waiting: Watched, unacked: Iterable[Delivery]) -> None:
        """A new message has come: it is one of those that wait."""
        ahead = self._ahead
        ahead.append(queued)
        if len(ahead) > self._longest:
            held = {delivery.queued for delivery in unacked}
            for each in ahead.clear():  # In order: so they can go in again as if they were new.
                if each in waiting or each in held:
                    ahead.append(each)
            self._longest = max(_SHORT, 2 * len(ahead))

    def next(self, waits: Callable[[QueuedMessage], bool]) -> QueuedMessage | None:
        """The next message that waits and is for this subscription; what is not is passed over."""
        subscription = self.subscription
        while (queued := self._ahead.head()) is not None:
            if waits(queued) and subscription.suits(queued.message):
                return queued
            self._ahead.pop()
        return None

    def passed(self) -> None:
        """The message that `next` named has been shown."""
        self._ahead.pop()

    def look_again_at(self, due: float, call_at: Callable[[float], Timer]) -> None:
        """It waits for credit for a message that expires then; what is behind that it is to see after all."""
        if self._timer is None or not self._timer.active or self._timer.due != due:
            self.end()
            self._timer = call_at(due)

    def end(self) -> None:
        """It looks no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
