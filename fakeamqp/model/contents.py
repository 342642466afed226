"""Publishing contents of class file and stream, which every protocol that has them does in the same way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from fakeamqp.model.outcome import UNROUTABLE
from fakeamqp.model.queues import ClassicQueue, Queue
from fakeamqp.model.transactions import PlannedPublish

if TYPE_CHECKING:
    from fakeamqp.model.exchanges.exchange import Target
    from fakeamqp.model.message import Message
    from fakeamqp.model.outcome import Outcome
    from fakeamqp.model.transactions import Transaction
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["publish_content"]


def publish_content(
    virtual_host: VirtualHost,
    message: Message,
    *,
    mandatory: bool,
    immediate: bool,
    told: Callable[[Outcome], None],
    transaction: Transaction | None = None,
) -> None:
    """Route a message, now or when a transaction is committed.

    No file may be discarded for want of room (file/no-discard): one that would push something out of a queue
    goes nowhere, and counts as refused by it.

    Args:
        virtual_host: where.
        message: of whatever class.
        mandatory: as in `VirtualHost.publish`.
        immediate: as in `VirtualHost.publish`.
        told: what became of it, once that is known. Nobody is told after a restart.
        transaction: what it is part of.
    """
    # An exchange may have gone while a content was staged for it. Header fields that name further keys are
    # RabbitMQ's: to publishers of these classes they mean nothing.
    there = message.exchange in virtual_host.exchanges
    plan = virtual_host.routing.route(message) if there else UNROUTABLE
    if transaction is not None:
        planned = PlannedPublish(
            virtual_host, message, plan, immediate=immediate, mandatory=mandatory, told=told
        )
        transaction.publish(planned)
        return
    full: tuple[Queue, ...] = ()
    if message.content_class == "file":
        full = tuple(queue for queue in plan.queues if _would_discard(queue, message))
    if full:
        told(replace(plan, refused=full))
    else:
        told(virtual_host.offer(message, plan, immediate=immediate, mandatory=mandatory))


def _would_discard(queue: Target, message: Message) -> bool:
    """Whether a queue would have to drop something for this message, or drop the message itself."""
    if not isinstance(queue, Queue) or queue.could_take(message):
        return False
    if queue.would_refuse(message):
        return True
    if not isinstance(queue, ClassicQueue):
        return False
    most, most_bytes = queue.options.max_length, queue.options.max_length_bytes
    if most is not None and len(queue.ready) >= most:
        return True
    return most_bytes is not None and queue.ready_bytes + len(message.body) > most_bytes
