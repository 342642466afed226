"""Direct reply-to: answers go straight to the asking channel, through no queue (RabbitMQ: documented)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.model.delivery import Ledger
    from fakeamqp.model.message import Message
    from fakeamqp.model.subscription import Subscription

__all__ = ["PSEUDO_QUEUE", "ReplyAddress"]

PSEUDO_QUEUE = "amq.rabbitmq.reply-to"


class ReplyAddress:
    """Where answers to one consumer of the pseudo-queue are sent; it stores nothing.

    `untouched` is the ledger whose tags the answers do not use up, where the personality has it so.
    """

    __slots__ = ("deleted", "name", "subscription", "untouched")

    def __init__(self, name: str, subscription: Subscription, untouched: Ledger | None = None) -> None:
        self.name = name
        self.subscription = subscription
        self.untouched = untouched
        self.deleted = False

    def enqueue(self, message: Message) -> bool:
        """Deliver the answer."""
        self.subscription.subscriber.deliver(self.subscription, message, False, None)
        if self.untouched is not None:
            self.untouched.reuse_tag()
        return True

    def bury(self, message: Message) -> bool:
        """Deliver a dead letter, which nobody waits to hear of."""
        return self.enqueue(message)
