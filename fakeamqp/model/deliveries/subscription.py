"""A subscription (0-9-x: consumer): what takes a queue's messages, and on which terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from fakeamqp.model.arguments.queue_arguments import ConsumerOptions
from fakeamqp.model.deliveries.credit import Gate, Limit
from fakeamqp.model.messages.message import identity_of

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.credit import Credit
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.queues import Queue

__all__ = ["ConsumerTerms", "DeliveryLimits", "LimitListener", "Subscriber", "Subscription"]


class Subscriber(Protocol):
    """The protocol's side of a subscription."""

    def deliver(
        self, subscription: Subscription, message: Message, redelivered: bool, delivery: Delivery | None
    ) -> None:
        """Send the message; `delivery` is None where no settlement is expected.

        A browsing subscription gets a delivery that is not acquired.
        """

    def held_too_long(self, subscription: Subscription | None) -> None:
        """The queue took back messages that were held too long.

        `subscription` held them; None: the client got them with no subscription.
        """

    def cancelled(self, subscription: Subscription) -> None:
        """The queue has been deleted: the subscription has ended without the client asking."""


class LimitListener(Protocol):
    """Decides whose turn it is in a queue, and so has to know of changed limits."""

    def wake(self, subscription: Subscription) -> None:
        """A subscription that takes no turns may have credit again: a limit was opened, or has changed."""


@dataclass(frozen=True)
class ConsumerTerms:
    """What a client asks for when it subscribes.

    Args:
        no_ack: messages need no settlement.
        no_local: messages published by the subscription's owner are not delivered.
        exclusive: no other subscription may use the queue.
        arguments: as the client sent them.
        options: what the arguments ask for.
        acquires: False: the subscription browses, which leaves messages in the queue; see `Queue.acquire`.
        content_class: only messages of this class are delivered; None: those of every class.
    """

    no_ack: bool = False
    no_local: bool = False
    exclusive: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)
    options: ConsumerOptions = field(default_factory=ConsumerOptions)
    acquires: bool = True
    content_class: str | None = None


@dataclass(frozen=True)
class DeliveryLimits:
    """What may hold a subscription's deliveries back; empty means nothing does.

    Args:
        limits: all of it.
        credits: the limits among them that count what the subscription holds.
        shared: whether one of them is shared with other subscriptions (basic.qos with global set).
    """

    limits: tuple[Limit, ...] = ()
    credits: tuple[Credit, ...] = ()
    shared: bool = False


_UNLIMITED = DeliveryLimits()


class _Choice(Limit):
    """Admits, at any time, the messages that suit a subscription which does not take every message."""

    measures = True

    __slots__ = ("_subscription",)

    def __init__(self, subscription: Subscription) -> None:
        super().__init__()
        self._subscription = subscription

    def admits(self, message: Message) -> bool:
        return self._subscription.suits(message)


class Subscription:
    """One consumer of one queue.

    `owner` is the connection or session that exclusive queues belong to, `group` the channel: a rejected
    message must not return to it in personality `spec`. A queue may keep in `age` the subscription's number
    in the order of arrival, and in `patience` for how many seconds it may hold a message. `resting` is
    what has to know of changed limits while it takes no turns.
    """

    __slots__ = (
        "__weakref__",
        "_choice",
        "acquires",
        "active",
        "age",
        "arguments",
        "content_class",
        "credits",
        "exclusive",
        "group",
        "limits",
        "no_ack",
        "no_local",
        "options",
        "owner",
        "patience",
        "priority",
        "queue",
        "resting",
        "shares_window",
        "subscriber",
        "tag",
    )

    def __init__(
        self,
        tag: str,
        queue: Queue,
        subscriber: Subscriber,
        *,
        owner: object,
        group: object,
        terms: ConsumerTerms | None = None,
        limits: DeliveryLimits = _UNLIMITED,
    ) -> None:
        terms = terms or ConsumerTerms()
        self.tag: str = tag
        self.queue: Queue = queue
        self.subscriber: Subscriber = subscriber
        self.owner: object = owner
        self.group: object = group
        self.no_ack: bool = terms.no_ack
        self.no_local: bool = terms.no_local
        self.exclusive: bool = terms.exclusive
        self.options: ConsumerOptions = terms.options
        self.priority: int = terms.options.priority
        self.arguments: dict[str, Any] = dict(terms.arguments)
        self.acquires: bool = terms.acquires
        self.content_class: str | None = terms.content_class
        self._choice: tuple[Limit, ...] = (_Choice(self),) if self.picks else ()
        self.limits: tuple[Limit, ...] = ()
        self.resting: LimitListener | None = None
        self.shares_window: bool = limits.shared
        self.depend_on(limits.limits, limits.credits)
        self.active: bool = True
        self.age: int = 0
        self.patience: float | None = None

    def admits(self, message: Message) -> bool:
        return all(limit.admits(message) for limit in self.limits)

    @property
    def paused(self) -> bool:
        """True while any limit holds deliveries back."""
        return not all(limit.open for limit in self.limits)

    @property
    def stopped(self) -> bool:
        """True while deliveries are held back by a gate and not merely for lack of credit."""
        return not all(limit.open for limit in self.limits if isinstance(limit, Gate))

    def suits(self, message: Message) -> bool:
        """Whether the message may be delivered to it at all, now or later (domain.no-local)."""
        if self.no_local and message.publisher is identity_of(self.owner):
            return False
        return self.content_class is None or message.content_class == self.content_class

    @property
    def picks(self) -> bool:
        return self.no_local or self.content_class is not None

    def depend_on(self, limits: tuple[Limit, ...], credits: tuple[Credit, ...]) -> None:
        """Replace what the subscription depends on (basic.qos/applies-until-changed)."""
        for limit in self.limits:
            limit.subscriptions.pop(self, None)
        choice = self._choice
        self.limits = (*choice, *(limit for limit in limits if limit not in choice))
        self.credits: tuple[Credit, ...] = credits
        for limit in self.limits:
            limit.subscriptions[self] = None
        if self.resting is not None:
            self.resting.wake(self)

    def end(self) -> None:
        self.active = False
        self.resting = None
        for limit in self.limits:
            limit.subscriptions.pop(self, None)

    def __repr__(self) -> str:
        return f"<Subscription {self.tag!r} on queue {self.queue.name!r}>"
