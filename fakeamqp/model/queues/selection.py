"""How a classic queue delivers while some messages do not suit every subscription.

A subscription may ask for a content class, or for no messages of its own (no-local). In personality `spec` a
rejected message does not suit the channel that rejected it. A queue gets a `Selection` with the first such
message or subscription. Then it looks beyond its head: a message blocks the subscriptions that may have it
and cannot take it now, and no others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.model.message import Message
    from fakeamqp.model.queues.classic import ClassicQueue
    from fakeamqp.model.queues.queue import QueuedMessage
    from fakeamqp.model.subscription import Subscription

__all__ = ["Selection"]


class Selection:
    """Delivers the messages of a classic queue, each to a subscription that it suits."""

    __slots__ = ("_queue",)

    def __init__(self, queue: ClassicQueue) -> None:
        self._queue = queue

    def next_taker(self, message: Message) -> Subscription | None:
        """The subscription that a new message would be handed to at once, or None. Nothing changes."""
        queue = self._queue
        for subscription in queue.rotation.able(message):
            if not any(queue.suits(subscription, each) for each in queue.ready):
                return subscription
        return None

    def dispatch(self) -> None:
        """Deliver what waits; a message that suits no subscription does not block those behind it."""
        queue = self._queue
        rotation = queue.rotation
        rotation.rejoin()
        blocked = {each: None for each in rotation if each.paused}
        # As long as the head suits a subscription, the messages behind it need no look.
        while len(blocked) < len(rotation) and (head := queue.live_head()) is not None:
            if not self.offer(head, blocked):
                break
        if queue.ready and len(blocked) < len(rotation):
            for queued in list(queue.ready):
                if len(blocked) == len(rotation):
                    break
                if not queue.is_expired(queued):
                    self.offer(queued, blocked)
        queue.drop_expired()

    def offer(self, queued: QueuedMessage, blocked: dict[Subscription, None]) -> bool:
        """Hand a message to the next subscription that it suits and that is not blocked.

        Returns:
            False where none of them can take it now. The message then blocks all of them, so that none of
            them is sent a message from behind it.
        """
        queue = self._queue
        rotation = queue.rotation
        rotation.rejoin()
        suited = [each for each in rotation if each not in blocked and queue.suits(each, queued)]
        for subscription in suited:
            if all(limit.admits(queued.message) for limit in subscription.limits):
                queue.take_out(queued)
                rotation.passed(subscription)
                queue.hand_over(queued, subscription)
                if subscription.paused:
                    blocked[subscription] = None
                return True
        blocked.update(dict.fromkeys(suited))
        return False
