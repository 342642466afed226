"""Direct reply-to: replies go directly to the requesting channel, without a queue (RabbitMQ: documented)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.model.delivery import Ledger
    from fakeamqp.model.message import Message
    from fakeamqp.model.subscription import Subscription

__all__ = ["PSEUDO_QUEUE", "ReplyAddress", "is_reply_address"]

PSEUDO_QUEUE = "amq.rabbitmq.reply-to"


class ReplyAddress:
    """The reply address of one consumer of the pseudo-queue; it stores no messages.

    `untouched` is the channel's ledger, if by personality replies do not use up its delivery tags.
    """

    __slots__ = ("deleted", "name", "subscription", "untouched")

    def __init__(self, name: str, subscription: Subscription, untouched: Ledger | None = None) -> None:
        self.name: str = name
        self.subscription: Subscription = subscription
        self.untouched: Ledger | None = untouched
        self.deleted: bool = False

    def enqueue(self, message: Message) -> bool:
        """Deliver a reply."""
        self.subscription.subscriber.deliver(self.subscription, message, False, None)
        if self.untouched is not None:
            self.untouched.reuse_tag()
        return True

    def accept(self, message: Message) -> bool:
        """Deliver a dead letter."""
        return self.enqueue(message)


_is_address = re.compile(rf"{re.escape(PSEUDO_QUEUE)}(\.[A-Za-z0-9_-]{{22}}){{2}}").fullmatch


def is_reply_address(name: str) -> bool:
    """Whether a name has the form of a reply address, live or not."""
    return _is_address(name) is not None
