"""Takes back deliveries of a quorum queue that stay unsettled too long (RabbitMQ 4.3: documented)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.deliveries.subscription import Subscriber, Subscription
    from fakeamqp.model.queues.quorum.queue import QuorumMessage, QuorumQueue
    from fakeamqp.model.timers import Timer
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["ConsumerTimeouts", "DeliveryTimeouts"]

_TIMER_MARGIN = 1e-9


class DeliveryTimeouts:
    """Watches the deliveries of one queue.

    A queue has few different timeouts, mostly one. There is one timer for each, set for the oldest delivery
    with this timeout. Settling touches no timer; pending timers tell of the oldest delivery that is left.

    Args:
        virtual_host: its clock is used.
        name: of the queue, for the timers' labels.
        outstanding: its deliveries, oldest first.
        limit: how many seconds a delivery may stay unsettled; None means no timeout.
        expired: called with the deliveries that timed out.
    """

    __slots__ = ("_expired", "_limit", "_name", "_outstanding", "_running", "_virtual_host")

    def __init__(
        self,
        virtual_host: VirtualHost,
        name: str,
        outstanding: Iterable[Delivery],
        limit: Callable[[Delivery], float | None],
        expired: Callable[[list[Delivery]], None],
    ) -> None:
        self._virtual_host = virtual_host
        self._name = name
        self._outstanding = outstanding
        self._limit = limit
        self._expired = expired
        self._running: dict[float, Timer] = {}

    def watch(self, delivery: Delivery) -> None:
        """A delivery has begun."""
        limit = self._limit(delivery)
        if limit is not None and limit not in self._running:
            self._start(limit, delivery)

    def stop(self) -> None:
        """Cancel all timers."""
        for timer in self._running.values():
            timer.cancel()
        self._running.clear()

    def _start(self, limit: float, delivery: Delivery) -> None:
        self._running[limit] = self._virtual_host.call_at(
            delivery.delivered_at + limit,
            lambda: self._look(limit),
            f"q '{self._name}' times out unsettled deliveries",
            revise=lambda: self._due(limit),
        )

    def _due(self, limit: float) -> float | None:
        """When the oldest unsettled delivery with this timeout is late; None if there is none."""
        held = (each for each in self._outstanding if self._limit(each) == limit)
        oldest = next(held, None)
        return None if oldest is None else oldest.delivered_at + limit

    def _look(self, limit: float) -> None:
        del self._running[limit]
        now = self._virtual_host.now() + _TIMER_MARGIN
        held = [each for each in self._outstanding if self._limit(each) == limit]
        late = [each for each in held if each.delivered_at + limit <= now]
        if len(late) < len(held):
            self._start(limit, held[len(late)])
        if late:
            self._expired(late)


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
