"""Stand-ins for what the classes of the model work with."""

from __future__ import annotations

from typing import Any, cast

from fakeamqp.model.arguments.queue_arguments import ConsumerOptions
from fakeamqp.model.deliveries.subscription import ConsumerTerms, Credit, DeliveryLimits, Limit, Subscription
from fakeamqp.model.messages.message import Message, PlainProperties
from fakeamqp.model.queues import QueuedMessage


def queued(position: int, priority: int | None = None, size: int = 1) -> QueuedMessage:
    """A message that stands at this place of a queue."""
    message = Message("", "q", PlainProperties(priority=priority), b"x" * size)
    return QueuedMessage(message, position, None)


def message(size: int = 1) -> Message:
    """A message that is as large as it is said to be, without taking the memory."""
    return Message("", "q", PlainProperties(), range(size))  # type: ignore[arg-type]


def positions(ready: Any) -> list[int]:
    """Where the messages of a ready list stand, in order."""
    return [each.position for each in ready]


class QueueThatCounts:
    """Counts how often it is asked to dispatch; `then` is done each time."""

    def __init__(self) -> None:
        self.dispatched = 0
        self.then: Any = None

    def dispatch(self) -> None:
        self.dispatched += 1
        if self.then is not None:
            self.then()


def subscription(
    tag: str = "t", *, priority: int = 0, limits: tuple[Limit, ...] = (), queue: Any = None
) -> Subscription:
    """A subscription of a queue that only counts."""
    return Subscription(
        tag,
        queue if queue is not None else QueueThatCounts(),
        cast(Any, None),
        owner=None,
        group=None,
        terms=ConsumerTerms(options=ConsumerOptions(priority=priority)),
        limits=DeliveryLimits(
            limits=limits, credits=tuple(limit for limit in limits if isinstance(limit, Credit))
        ),
    )
