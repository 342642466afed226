"""What nobody may ask of a quorum queue, with RabbitMQ's texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.model.errors import NotImplementedHere, ResourceLocked

if TYPE_CHECKING:
    from fakeamqp.model.queues.quorum.queue import QuorumQueue
    from fakeamqp.model.subscription import Subscription

__all__ = ["check_deletion", "check_get", "check_subscription"]


def check_deletion(queue: QuorumQueue, *, if_unused: bool, if_empty: bool) -> None:
    """It is deleted without conditions.

    Raises:
        NotImplementedHere: there is one.
    """
    for asked, flag in ((if_unused, "if-unused"), (if_empty, "if-empty")):
        if asked:
            raise NotImplementedHere(
                f"cannot delete queue '{queue.name}' in vhost '{queue.virtual_host.name}'. queue.delete "
                f"operations with {flag} flag set are not supported by quorum queues"
            )


def check_get(queue: QuorumQueue) -> None:
    """Messages are not taken from it one by one where one consumer alone is to have them.

    Raises:
        ResourceLocked: there is a single active consumer, or may be one.
    """
    if queue.consumers.single is not None:
        kind = queue.virtual_host.state.personality.single_active_get_refusal
        raise ResourceLocked(
            f"cannot obtain access to locked queue '{queue.name}' in vhost '{queue.virtual_host.name}'. "
            f"basic.get operations are not supported by {kind} queues with single active consumer"
        )


def check_subscription(queue: QuorumQueue, subscription: Subscription) -> None:
    """Its consumers acquire what they get, and have their windows for themselves.

    Raises:
        NotImplementedHere: this one would only look; or share its window with others, where the personality
            forbids that.
    """
    if not subscription.acquires:
        raise NotImplementedHere(
            f"queue '{queue.name}' in vhost '{queue.virtual_host.name}' cannot be browsed: quorum queues "
            "send messages only to whoever acquires them. Browse a classic queue or a stream"
        )
    if subscription.shares_window and queue.choices.refuses_shared_windows:
        raise NotImplementedHere(
            f"queue '{queue.name}' in vhost '{queue.virtual_host.name}' does not support global qos"
        )
