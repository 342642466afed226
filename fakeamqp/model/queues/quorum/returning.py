"""Where a message goes that came back to its quorum queue.

Messages that come back do not return to their old place: they go before all that is new, or behind it, or
wait, or die, by how the delivery ended and whether there is a delivery limit (RabbitMQ: measured).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

from fakeamqp.model.delivery import by_consumer
from fakeamqp.model.queues.quorum.retries import retry_delay

if TYPE_CHECKING:
    from fakeamqp.model.delivery import Delivery
    from fakeamqp.model.queues.options import QueueOptions
    from fakeamqp.model.queues.quorum.message import QuorumMessage
    from fakeamqp.model.queues.quorum.queue import QuorumQueue

__all__ = ["Returning"]


class Returning:
    """Finds the place of what comes back to one queue."""

    __slots__ = ("_limit", "_queue")

    def __init__(self, queue: QuorumQueue) -> None:
        self._queue = queue
        self._limit: float | None = None
        """How often a message may come back."""

    def adopt(self, options: QueueOptions) -> None:
        """Go by these options from now on."""
        choices = self._queue.choices
        limit = choices.delivery_limit if options.delivery_limit is None else options.delivery_limit
        if limit is not None and limit < 0 and choices.negative_limit_is_none:
            limit = None
        self._limit = limit

    def take_back(self, deliveries: Iterable[Delivery], *, redelivered: bool) -> None:
        """Deliveries were not accepted, or lost; `redelivered` says whether their messages are marked so."""
        queue = self._queue
        for group in self._in_order(deliveries):
            for delivery in group:
                if not queue.end(delivery):
                    continue
                queued = cast("QuorumMessage", delivery.queued)
                if queue.deleted:
                    queue._too_late((queued,), "deleted")
                else:
                    marked = queued.redelivered or redelivered
                    self.come_back(queued, delivery.ending or "lost")
                    queued.redelivered = marked
            if not queue.deleted:
                queue.consumers.elect(returned=True)
                queue.dispatch()

    def _in_order(self, deliveries: Iterable[Delivery]) -> list[list[Delivery]]:
        """The order in which deliveries come back; consumers take turns between the lists."""
        returned = list(deliveries)
        if all(delivery.ending == "lost" for delivery in returned):
            return [sorted(returned, key=self._age_of_holder)]
        returned.sort(key=by_consumer)
        return [list(group) for _, group in groupby(returned, key=by_consumer)]

    def _age_of_holder(self, delivery: Delivery) -> tuple[int, Any]:
        """By what order a channel's deliveries come back that it lost."""
        holder = delivery.holder
        if not self._queue.choices.losses_by_age:
            return by_consumer(delivery)
        return (1, delivery.tag) if holder is None else (0, holder.age)

    def come_back(self, queued: QuorumMessage, ending: str) -> None:
        """A delivery was not accepted: where its message goes now."""
        queue = self._queue
        choices = queue.choices
        limit = self._limit
        queued.returns += 1
        queued.redelivered = True
        if limit is None and ending in choices.back_without_limit:
            queued.position = queue.next_position()
            queue.ready.append_plain(queued)
            queue.ready_bytes += queued.size
            return
        failed = ending in choices.failures
        if failed:
            queued.failures += 1
        count = queued.returns if choices.limit_counts == "returns" else queued.failures
        if limit is not None and count > limit:
            queue.kept_aside.die(queued, "delivery_limit")
            return
        delay = retry_delay(queue.options, queued.failures, failed=failed)
        if delay is None:
            queue.ready.put_back(queued)
            queue.ready_bytes += queued.size
        else:
            queue.kept_aside.retries.add(queued, delay)
