"""Publishing contents of the classes file and stream, for all protocols that have them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from fakeamqp.model.outcome import UNROUTABLE
from fakeamqp.model.queues import ClassicQueue, Queue
from fakeamqp.model.transactions import PlannedPublish

if TYPE_CHECKING:
    from fakeamqp.model.exchanges.exchange import Target
    from fakeamqp.model.messages.message import Message
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
    on_outcome: Callable[[Outcome], None],
    transaction: Transaction | None = None,
) -> None:
    """Publish a message, now or when a transaction is committed.

    A full queue may not discard files (file/no-discard): it refuses a file that would push a message out.

    Args:
        virtual_host: where it is published.
        message: the message, of any class.
        mandatory: as in `VirtualHost.publish`.
        immediate: as in `VirtualHost.publish`.
        on_outcome: called with the outcome once it is known; not called after a restart.
        transaction: the transaction it is part of, if any.
    """
    # The exchange may have been deleted while the content was staged. The headers CC and BCC are RabbitMQ's
    # and have no meaning in these classes.
    there = message.exchange in virtual_host.exchanges
    plan = virtual_host.routing.route(message) if there else UNROUTABLE
    if transaction is not None:
        planned = PlannedPublish(
            virtual_host, message, plan, immediate=immediate, mandatory=mandatory, on_outcome=on_outcome
        )
        transaction.publish(planned)
        return
    full: tuple[Queue, ...] = ()
    if message.content_class == "file":
        full = tuple(queue for queue in plan.queues if _would_discard(queue, message))
    if full:
        on_outcome(replace(plan, refused=full))
    else:
        outcome = virtual_host.offer(message, plan, immediate, mandatory, sliced=True)
        virtual_host.state.operations.then(partial(on_outcome, outcome))


def _would_discard(queue: Target, message: Message) -> bool:
    """Whether a queue would have to drop another message for this one, or refuse it."""
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
