"""Operations that quorum queues do not support, with RabbitMQ's texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.model.errors import NotImplementedHere, ResourceLocked

if TYPE_CHECKING:
    from fakeamqp.model.queues.quorum.queue import QuorumQueue
    from fakeamqp.model.subscription import Subscription

__all__ = ["check_deletion", "check_get", "check_subscription"]


def check_deletion(queue: QuorumQueue, *, if_unused: bool, if_empty: bool) -> None:
    """Refuse conditions of a deletion.

    Raises:
        NotImplementedHere: a condition is set.
    """
    for asked, flag in ((if_unused, "if-unused"), (if_empty, "if-empty")):
        if asked:
            raise NotImplementedHere(
                f"cannot delete queue '{queue.name}' in vhost '{queue.virtual_host.name}'. queue.delete "
                f"operations with {flag} flag set are not supported by quorum queues"
            )


def check_get(queue: QuorumQueue) -> None:
    """Refuse basic.get where the queue has single active consumers.

    Raises:
        ResourceLocked: it has.
    """
    if queue.consumers.single is not None:
        kind = queue.virtual_host.state.personality.single_active_get_refusal
        raise ResourceLocked(
            f"cannot obtain access to locked queue '{queue.name}' in vhost '{queue.virtual_host.name}'. "
            f"basic.get operations are not supported by {kind} queues with single active consumer"
        )


def check_subscription(queue: QuorumQueue, subscription: Subscription) -> None:
    """Refuse browsing and shared windows.

    Raises:
        NotImplementedHere: the subscription browses, or shares its window with others in a personality that
            forbids that.
    """
    if not subscription.acquires:
        raise NotImplementedHere(
            f"queue '{queue.name}' in vhost '{queue.virtual_host.name}' cannot be browsed: quorum queues "
            "deliver only to subscriptions that acquire messages. Browse a classic queue or a stream"
        )
    if subscription.shares_window and queue.choices.refuses_shared_windows:
        raise NotImplementedHere(
            f"queue '{queue.name}' in vhost '{queue.virtual_host.name}' does not support global qos"
        )
