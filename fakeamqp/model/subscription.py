"""A subscription (0-9-x: consumer): who takes a queue's messages, and on what terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from fakeamqp.model.credit import Gate, Limit
from fakeamqp.model.queues.options import ConsumerOptions

if TYPE_CHECKING:
    from fakeamqp.model.credit import Credit
    from fakeamqp.model.delivery import Delivery
    from fakeamqp.model.message import Message
    from fakeamqp.model.queues import Queue

__all__ = ["Subscriber", "Subscription"]


class Subscriber(Protocol):
    """The protocol's side of a subscription."""

    def deliver(
        self, subscription: Subscription, message: Message, redelivered: bool, delivery: Delivery | None
    ) -> None:
        """Send the message; `delivery` is None where no settlement is expected.

        A subscription that only looks gets a delivery that is not acquired.
        """

    def held_too_long(self, subscription: Subscription | None) -> None:
        """The queue took back what was held too long: by this subscription, or got with no subscription."""

    def cancelled(self, subscription: Subscription) -> None:
        """The queue has gone: the subscription has ended without the client asking."""


class _Choice(Limit):
    """Admits, at any time, what suits a subscription that has not to do with every message."""

    __slots__ = ("_subscription",)

    def __init__(self, subscription: Subscription) -> None:
        super().__init__()
        self._subscription = subscription

    def admits(self, message: Message) -> bool:
        """See the base class."""
        return self._subscription.suits(message)


class Subscription:
    """One consumer of one queue.

    `owner` is the connection or session that exclusive things belong to, `group` the channel: what a
    rejected message must not return to in personality `spec`. `limits` holds everything that may hold
    deliveries back, `credits` the counted ones among them; both empty means no limit. `shares_window` says
    that one of them is shared with other subscriptions (basic.qos with global set). A queue that wants to
    know keeps in `age` as which one the subscription came, and in `patience` for how many seconds it may
    hold a message. Where `acquires` is False it only looks: see `Queue.acquire`. With a `content_class` it
    takes messages of that class, and leaves all others to others.
    """

    __slots__ = (
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
        no_ack: bool = False,
        no_local: bool = False,
        exclusive: bool = False,
        arguments: Mapping[str, Any] | None = None,
        options: ConsumerOptions | None = None,
        shares_window: bool = False,
        limits: tuple[Limit, ...] = (),
        credits: tuple[Credit, ...] = (),
        acquires: bool = True,
        content_class: str | None = None,
    ) -> None:
        self.tag = tag
        self.queue = queue
        self.subscriber = subscriber
        self.owner = owner
        self.group = group
        self.no_ack = no_ack
        self.no_local = no_local
        self.exclusive = exclusive
        self.options = options or ConsumerOptions()
        self.priority = self.options.priority
        self.shares_window = shares_window
        self.arguments = dict(arguments or {})
        self.acquires = acquires
        self.content_class = content_class
        self._choice: tuple[Limit, ...] = (_Choice(self),) if self.picks else ()
        self.limits = limits = (*self._choice, *limits)
        self.credits = credits
        self.active = True
        self.age = 0
        self.patience: float | None = None
        for limit in limits:
            limit.subscriptions[self] = None

    @property
    def paused(self) -> bool:
        """True while some limit holds deliveries back."""
        return not all(limit.open for limit in self.limits)

    @property
    def stopped(self) -> bool:
        """True while deliveries are held back by a gate and not merely for lack of credit."""
        return not all(limit.open for limit in self.limits if isinstance(limit, Gate))

    def suits(self, message: Message) -> bool:
        """Whether it may have the message at all, be it able to take it now or not (domain.no-local)."""
        if self.no_local and message.publisher is self.owner:
            return False
        return self.content_class is None or message.content_class == self.content_class

    @property
    def picks(self) -> bool:
        """Whether there may be messages that do not suit it."""
        return self.no_local or self.content_class is not None

    def depend_on(self, limits: tuple[Limit, ...], credits: tuple[Credit, ...]) -> None:
        """Replace what the subscription depends on (basic.qos/applies-until-changed)."""
        for limit in self.limits:
            limit.subscriptions.pop(self, None)
        limits = (*self._choice, *(limit for limit in limits if limit not in self._choice))
        self.limits = limits
        self.credits = credits
        for limit in limits:
            limit.subscriptions[self] = None

    def end(self) -> None:
        """Forget the limits; called by the queue when the subscription ends."""
        self.active = False
        for limit in self.limits:
            limit.subscriptions.pop(self, None)

    def __repr__(self) -> str:
        return f"<Subscription {self.tag!r} on queue {self.queue.name!r}>"
