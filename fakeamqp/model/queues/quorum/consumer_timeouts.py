"""Takes back deliveries of a quorum queue that stay unsettled too long (RabbitMQ 4.3: documented)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from fakeamqp.model.queues.delivery_timeouts import DeliveryTimeouts

if TYPE_CHECKING:
    from fakeamqp.model.delivery import Delivery
    from fakeamqp.model.queues.quorum.message import QuorumMessage
    from fakeamqp.model.queues.quorum.queue import QuorumQueue
    from fakeamqp.model.subscription import Subscriber, Subscription

__all__ = ["ConsumerTimeouts"]


class ConsumerTimeouts:
    """The timeouts of one queue's deliveries.

    `times` watches the deliveries, in personalities that do so; `getters` maps deliveries of basic.get to the
    channels that hold them.
    """

    __slots__ = ("_queue", "getters", "times")

    def __init__(self, queue: QuorumQueue) -> None:
        self._queue = queue
        self.getters: dict[Delivery, Subscriber] = {}
        self.times: DeliveryTimeouts | None = None
        if queue.choices.consumers_time_out:
            self.times = DeliveryTimeouts(
                queue.virtual_host, queue.name, queue.unacked, self._limit, self._take_back
            )

    def patience(self) -> float | None:
        """The timeout in seconds where a consumer asks for no other; None means no timeout."""
        queue = self._queue
        asked = queue.options.consumer_timeout
        return (queue.virtual_host.state.personality.consumer_timeout or None) if asked is None else asked

    def _limit(self, delivery: Delivery) -> float | None:
        """The timeout of a delivery in seconds; None where a prepared branch will settle it."""
        if delivery in self._queue.virtual_host.branches.in_doubt:
            return None
        return self.patience() if delivery.holder is None else delivery.holder.patience

    def _take_back(self, deliveries: list[Delivery]) -> None:
        """Take messages back. Their consumers get no others until they settle them, or lose their channel."""
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
                if delivery.holder.active:
                    consumers.held_too_long(delivery.holder, delivery)
            queue.virtual_host.report(
                "requeued",
                message=delivery.queued.message,
                queue=queue.name,
                consumer=None if delivery.holder is None else delivery.holder.tag,
                connection=getattr(delivery.owner, "name", None),
                delivery_tag=delivery.tag,
                detail="it was held too long",
            )
            queue.requeueing.requeue(cast("QuorumMessage", delivery.queued), "timed out")
        consumers.stand_back(holders)
        for holder in holders:
            holder.subscriber.held_too_long(holder)
        for getter in getters:
            getter.held_too_long(None)
        queue.dispatch()
