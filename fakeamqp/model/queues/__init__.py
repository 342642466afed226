"""Queues, one module per type: what they keep, and to whom they give it."""

from fakeamqp.model.queues.classic import ClassicQueue
from fakeamqp.model.queues.queue import DeathReason, Queue, QueuedMessage
from fakeamqp.model.queues.quorum import QuorumQueue
from fakeamqp.model.queues.stream import StreamQueue

__all__ = [
    "QUEUE_TYPES",
    "ClassicQueue",
    "DeathReason",
    "Queue",
    "QueuedMessage",
    "QuorumQueue",
    "StreamQueue",
]

QUEUE_TYPES: dict[str, type[Queue]] = {
    each.type_name: each for each in (ClassicQueue, QuorumQueue, StreamQueue)
}
"""The queue types by the name that `x-queue-type` has for them."""
