"""What a quorum queue takes back from who has held it too long (RabbitMQ 4.3: documented)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from fakeamqp.model.queues.holding import HoldingTimes

if TYPE_CHECKING:
    from fakeamqp.model.delivery import Delivery
    from fakeamqp.model.queues.quorum.message import QuorumMessage
    from fakeamqp.model.queues.quorum.queue import QuorumQueue
    from fakeamqp.model.subscription import Subscriber, Subscription

__all__ = ["Overdue"]


class Overdue:
    """Takes messages back for one queue.

    `times` watches how long deliveries are held, where the personality has it so; `getters` are those who
    hold what was taken with a get.
    """

    __slots__ = ("_queue", "getters", "times")

    def __init__(self, queue: QuorumQueue) -> None:
        self._queue = queue
        self.getters: dict[Delivery, Subscriber] = {}
        self.times: HoldingTimes | None = None
        if queue.choices.consumers_time_out:
            self.times = HoldingTimes(
                queue.virtual_host, queue.name, queue.unacked, self._limit, self._take_back
            )

    def patience(self) -> float | None:
        """For how many seconds a message may be held by who asked for nothing else; None is for ever."""
        queue = self._queue
        asked = queue.options.consumer_timeout
        return (queue.virtual_host.state.personality.consumer_timeout or None) if asked is None else asked

    def _limit(self, delivery: Delivery) -> float | None:
        """For how many seconds a message may be held; what a prepared branch will settle, for ever."""
        if delivery in self._queue.virtual_host.branches.in_doubt:
            return None
        return self.patience() if delivery.holder is None else delivery.holder.patience

    def _take_back(self, deliveries: list[Delivery]) -> None:
        """Take messages back; who held them gets nothing until it has settled them, or loses its channel."""
        queue = self._queue
        consumers = queue.consumers
        holders: dict[Subscription, None] = {}
        getters: dict[Subscriber, None] = {}
        for delivery in deliveries:
            del queue.unacked[delivery]
            if delivery.holder is None:
                getters[self.getters.pop(delivery)] = None
            else:
                holders[delivery.holder] = None
                consumers.held_too_long(delivery.holder, delivery)
            queue.virtual_host.note(
                "requeued",
                message=delivery.queued.message,
                queue=queue.name,
                consumer=None if delivery.holder is None else delivery.holder.tag,
                connection=getattr(delivery.owner, "name", None),
                delivery_tag=delivery.tag,
                detail="it was held too long",
            )
            queue.returning.come_back(cast("QuorumMessage", delivery.queued), "timed out")
        consumers.stand_back(holders)
        for holder in holders:
            holder.subscriber.held_too_long(holder)
        for getter in getters:
            getter.held_too_long(None)
        queue.dispatch()
