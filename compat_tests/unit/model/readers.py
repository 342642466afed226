"""Subscriptions without a protocol: whoever reads keeps what it is sent."""

from __future__ import annotations

from typing import Any

from fakeamqp.model.arguments.queue_arguments import ConsumerOptions
from fakeamqp.model.deliveries.delivery import Delivery
from fakeamqp.model.deliveries.subscription import (
    ConsumerTerms,
    Credit,
    DeliveryLimits,
    Grant,
    Limit,
    Subscription,
)
from fakeamqp.model.messages.message import Message, PlainProperties
from fakeamqp.model.queues import Queue

__all__ = ["Reader", "publish", "text", "waiting"]


class Reader:
    """One subscription and its client in one, as wide open as it can be unless it is given less.

    `got` is what it was sent: bodies, with `*` behind those that are redelivered. `limits` go beside its
    `grant`.
    """

    def __init__(
        self,
        queue: Queue,
        tag: str = "r",
        *,
        acquires: bool = True,
        messages: int | None = None,
        octets: int | None = None,
        window: bool = False,
        limits: tuple[Limit, ...] = (),
        credits: tuple[Credit, ...] = (),
        priority: int = 0,
        owner: object = None,
        **terms: Any,
    ) -> None:
        self.got: list[str] = []
        self.deliveries: list[Delivery] = []
        self.receipts: list[tuple[int, int]] = []
        self.grant = Grant(window=window)
        self.was_cancelled = False
        self.subscription = Subscription(
            tag,
            queue,
            self,
            owner=self if owner is None else owner,
            group=self,
            terms=ConsumerTerms(
                acquires=acquires,
                options=ConsumerOptions(priority=priority),
                **terms,
            ),
            limits=DeliveryLimits((*limits, self.grant), credits),
        )
        queue.subscribe(self.subscription)
        self.grant.grant("byte", octets)
        if messages != 0:
            self.grant.grant("message", messages)
        self.grant.resume()

    def deliver(
        self, subscription: Subscription, message: Message, redelivered: bool, delivery: Delivery | None
    ) -> None:
        self.receipts.append(self.grant.take(message))
        self.got.append(text(message) + "*" * redelivered)
        if delivery is not None:
            self.deliveries.append(delivery)

    def held_too_long(self, subscription: Subscription | None) -> None:
        raise AssertionError("nobody watches the time")

    def cancelled(self, subscription: Subscription) -> None:
        self.was_cancelled = True

    def allow(self, messages: int | None = None) -> None:
        """Grant so many messages more."""
        self.grant.grant("message", messages)
        self.grant.resume()

    def cancel(self) -> None:
        self.subscription.queue.unsubscribe(self.subscription)

    @property
    def seen(self) -> str:
        """All it was sent, in one word."""
        return "".join(self.got)


def text(message: Message) -> str:
    return message.body.decode()


def publish(queue: Queue, bodies: str, *, publisher: object = None, **properties: Any) -> None:
    """Publish a message for each letter."""
    for body in bodies:
        queue.virtual_host.publish(
            Message("", queue.name, PlainProperties(**properties), body.encode(), publisher=publisher)
        )


def waiting(queue: Queue) -> str:
    """What waits in a queue, in one word."""
    return "".join(text(each.message) for each in queue.ready)
