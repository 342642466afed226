"""The place of messages that return to their quorum queue.

Returned messages do not take their old place: they go before all new messages, or behind them, or wait for a
retry, or are dead-lettered. That depends on the outcome of the delivery and on the delivery limit (RabbitMQ:
measured).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from fakeamqp.model.delivery import by_consumer, grouped
from fakeamqp.model.operations import in_steps
from fakeamqp.model.queues.quorum.retries import retry_delay

if TYPE_CHECKING:
    from fakeamqp.model.arguments import QueueOptions
    from fakeamqp.model.delivery import Delivery
    from fakeamqp.model.queues.quorum.message import QuorumMessage
    from fakeamqp.model.queues.quorum.queue import QuorumQueue

__all__ = ["Requeueing"]


class Requeueing:
    """Places the messages that return to one queue."""

    __slots__ = ("_queue", "limit")

    def __init__(self, queue: QuorumQueue) -> None:
        self._queue = queue
        self.limit: float | None = None
        """How often a message may return; None means any number of times."""

    def adopt(self, options: QueueOptions) -> None:
        """Apply new options."""
        choices = self._queue.choices
        limit = choices.delivery_limit if options.delivery_limit is None else options.delivery_limit
        if limit is not None and limit < 0 and choices.negative_limit_is_none:
            limit = None
        self.limit = limit

    def taking_back(self, deliveries: Sequence[Delivery], *, redelivered: bool) -> Iterator[None]:
        """Requeue deliveries that were not accepted, in steps; the queue dispatches between groups.

        `redelivered` says whether messages are marked so.
        """
        queue = self._queue

        def requeue(part: Sequence[Delivery]) -> None:
            for delivery in part:
                if not queue.end(delivery):
                    continue
                queued = cast("QuorumMessage", delivery.queued)
                if queue.deleted:
                    queue._too_late((queued,), "deleted")
                else:
                    marked = queued.redelivered or redelivered
                    self.requeue(queued, delivery.ending or "lost")
                    queued.redelivered = marked

        groups = yield from self._in_order(deliveries)
        del deliveries
        while groups:
            yield from in_steps(groups.pop(), requeue)
            if not queue.deleted:
                queue.consumers.elect(returned=True)
                queue.dispatch()

    def _in_order(self, deliveries: Sequence[Delivery]) -> Generator[None, None, list[Sequence[Delivery]]]:
        """The order in which deliveries return: groups, the first at the end of the list."""
        by_age: dict[tuple[int, Any], list[Delivery]] = {}
        lost = True

        def enter(part: Sequence[Delivery]) -> None:
            nonlocal lost
            lost = lost and all(delivery.ending == "lost" for delivery in part)
            if lost:
                for delivery in part:
                    by_age.setdefault(self._age_of_holder(delivery), []).append(delivery)

        yield from in_steps(deliveries, enter)
        if not lost:
            return (yield from grouped(deliveries))
        return [[delivery for age in sorted(by_age) for delivery in by_age[age]]]

    def _age_of_holder(self, delivery: Delivery) -> tuple[int, Any]:
        """The sort key of deliveries that return because their channel was lost."""
        holder = delivery.holder
        if not self._queue.choices.losses_by_age:
            return by_consumer(delivery)
        return (1, delivery.tag) if holder is None else (0, holder.age)

    def requeue(self, queued: QuorumMessage, ending: str) -> None:
        """Place a message whose delivery was not accepted."""
        queue = self._queue
        choices = queue.choices
        limit = self.limit
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
            queue.parked.die(queued, "delivery_limit")
            return
        delay = retry_delay(queue.options, queued.failures, failed=failed)
        if delay is None:
            queue.ready.put_back(queued)
            queue.ready_bytes += queued.size
        else:
            queue.parked.retries.add(queued, delay)
