"""A subscription (0-9-x: consumer): what takes a queue's messages, on which terms, and within which limits.

A `Credit` counts unsettled messages and octets: the prefetch of AMQP 0-9-x, for one consumer or shared by a
channel or a connection. Deliveries take from it, and settlement refills it. A subscription may depend on
several credits, and takes a message only while all of them admit it (basic.qos/prefetch-both).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias

from fakeamqp.model.arguments.queue_arguments import ConsumerOptions
from fakeamqp.model.errors import IllegalState
from fakeamqp.model.messages.message import identity_of

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.queues.quorum.consumers import ServiceQueue, SingleActive
    from fakeamqp.model.queues.waiting import Rotation
    from fakeamqp.model.timers import Timer, Timers

UNLIMITED = 0xFFFFFFFF
"""The value of a grant that means no limit (message.flow/infinite)."""

Receipt: TypeAlias = "tuple[int, int]"
"""What a transfer took from a `Grant`: the grant's era then, and the bytes."""


class Limit:
    """A limit that subscriptions depend on: while `open` is False they take no messages."""

    measures: ClassVar[bool] = False
    """Whether `admits` depends on the message, too."""

    __slots__ = ("open", "subscriptions")

    def __init__(self) -> None:
        self.open: bool = True
        self.subscriptions: dict[Subscription, None] = {}

    def admits(self, message: Message) -> bool:
        return self.open

    def _opened(self) -> None:
        """Tell dependent subscriptions that a limit was opened or has changed."""
        for subscription in self.subscriptions:
            if subscription.resting is not None:
                subscription.resting.wake(subscription)

    def resume(self) -> None:
        """Dispatch the queues of dependent subscriptions while the limit is open.

        A dispatched subscription moves to the end, so that one long queue does not starve the others
        (channels/no-starvation).
        """
        for subscription in list(self.subscriptions):
            if not self.open:
                break
            if subscription in self.subscriptions:  # Deliveries to the others did not end it.
                del self.subscriptions[subscription]
                self.subscriptions[subscription] = None
                subscription.queue.dispatch()


class Gate(Limit):
    """A limit that is opened and shut explicitly, for paused channels and full connections."""

    __slots__ = ()

    def shut(self) -> None:
        self.open = False

    def reopen(self) -> None:
        """Resume deliveries, beginning with the waiting messages."""
        if not self.open:
            self.open: bool = True
            self._opened()
            self.resume()


class Credit(Limit):
    """A window of messages and bytes; 0 means that the window does not limit (basic.qos/count-zero)."""

    measures = True

    __slots__ = ("byte_limit", "message_limit", "messages", "occupied", "octets")

    def __init__(self, message_limit: int = 0, byte_limit: int = 0) -> None:
        super().__init__()
        self.occupied: int = 0
        self.message_limit: int = message_limit
        self.byte_limit: int = byte_limit
        self.messages: int = 0
        self.octets: int = 0

    def admits(self, message: Message) -> bool:
        """Without outstanding messages any size fits (basic.qos/prefetch-size-01)."""
        if not self.open:
            return False
        return not self.byte_limit or not self.messages or self.octets + len(message.body) <= self.byte_limit

    @property
    def limits(self) -> bool:
        return bool(self.message_limit or self.byte_limit)

    def take(self, message: Message) -> None:
        self.messages += 1
        self.octets += len(message.body)
        self._update()

    def refill(self, message: Message) -> bool:
        """Count a message as settled. True if the credit has a limit, so that a queue may wait for it."""
        self.messages -= 1
        self.octets -= len(message.body)
        self._update()
        return self.limits

    def resume(self) -> None:
        """Several queues take turns, a message each (RabbitMQ: measured on 4.0.5)."""
        limit = self.message_limit
        if not limit or len({each.queue for each in self.subscriptions}) < 2:
            super().resume()
            return
        for subscription in self._in_turn():
            self.message_limit = min(limit, self.messages + 1)
            try:
                subscription.queue.dispatch()
            finally:
                self.message_limit = limit
                self._update()

    def _in_turn(self) -> Iterator[Subscription]:
        """The subscriptions, again and again, while the window is open and any of them gets messages."""
        before = None
        while self.open and self.messages != before:
            before = self.messages
            for subscription in list(self.subscriptions):
                if self.open and subscription in self.subscriptions:
                    del self.subscriptions[subscription]
                    self.subscriptions[subscription] = None
                    yield subscription

    def resize(self, message_limit: int, byte_limit: int, *, occupied: int | None = None) -> None:
        """Set new limits, which apply to outstanding messages at once.

        `occupied` places are taken by messages that return none, until there is no limit; None: as before.
        """
        if occupied is None:
            occupied = self.occupied if message_limit or byte_limit else 0
        self.messages += occupied - self.occupied
        self.occupied = occupied
        self.message_limit = message_limit
        self.byte_limit = byte_limit
        self._update()
        self._opened()

    def _update(self) -> None:
        full_of_messages = self.message_limit and self.messages >= self.message_limit
        full_of_bytes = self.byte_limit and self.messages and self.octets >= self.byte_limit
        if full_of_messages or full_of_bytes:
            self.open = False
        elif not self.open:
            self.open: bool = True
            self._opened()

    def __repr__(self) -> str:
        return f"<Credit {self.messages} of {self.message_limit or 'unlimited'} messages outstanding>"


class InheritedCredit(Credit):
    """The credit of a consumer that takes over deliveries: `messages` of them, as far as they fit.

    Settling those that did not fit returns nothing that the client does not have (RabbitMQ: measured).
    """

    __slots__ = ()

    def __init__(self, message_limit: int, byte_limit: int, messages: int) -> None:
        super().__init__(message_limit, byte_limit)
        self.messages: int = min(messages, message_limit)
        self._update()

    def refill(self, message: Message) -> bool:
        super().refill(message)
        self.messages = max(self.messages, 0)
        self.octets: int = max(self.octets, 0)
        self._update()
        return self.limits


class Grant(Limit):
    """Credit by explicit grants, in messages and in bytes (0-10).

    Both balances begin at 0, and both must allow a message (message.set-flow-mode/both-needed); a message
    that costs more bytes than the balance waits (message.set-flow-mode/no-partial). `messages` and `octets`
    are the balances, None where there is no limit. `measure` returns the cost of a message in bytes, by
    default those of its body (message.set-flow-mode/byte-accounting).

    The sender of a message calls `take`, and keeps the receipt until the client has completed the transfer.
    In window mode `give_back` then returns what the receipt says (message.set-flow-mode/window-mode). `stop`
    begins a new era, which invalidates earlier receipts: so a window never grows beyond the grants since
    then.

    A grant is one of a subscription's `limits`, not one of its `credits`: queues do not take from it. After
    `grant` and `give_back` the caller calls `resume`, after `stop` it does not.
    """

    measures = True

    __slots__ = (
        "_bytes_of_measured",
        "_era",
        "_measure",
        "_measured",
        "_starving",
        "messages",
        "octets",
        "window",
    )

    def __init__(
        self, measure: Callable[[Message], int] = lambda message: len(message.body), *, window: bool = True
    ) -> None:
        super().__init__()
        self.open: bool = False
        self.messages: int | None = 0
        self.octets: int | None = 0
        self.window: bool = window
        self._measure = measure
        self._measured: Message | None = None
        self._bytes_of_measured = 0
        self._era = 0
        self._starving: dict[object, None] = {}
        """The reasons for which the grant admits nothing, whatever its balances."""

    def admits(self, message: Message) -> bool:
        if not self.open:
            return False
        octets = self.octets
        return octets is None or self._cost(message) <= octets

    def _cost(self, message: Message) -> int:
        """The bytes of a message, cached between `admits` and `take`."""
        if self._measured is not message:
            self._measured = message
            self._bytes_of_measured = self._measure(message)
        return self._bytes_of_measured

    def grant(self, unit: Literal["message", "byte"], value: int | None = None) -> None:
        """Add to a balance (message.flow/adds); None and `UNLIMITED` lift the limit until `stop`.

        A balance never wraps, and never becomes unlimited by addition.
        """
        if unit == "message":
            self.messages = _sum(self.messages, value)
        else:
            self.octets = _sum(self.octets, value)
        self._update()

    def set_messages(self, count: int) -> None:
        """Replace what is left of the messages, without a limit of bytes (the credit of a link in 1.0)."""
        self.messages = count
        self.octets = None
        self._update()

    def take(self, message: Message, octets: int | None = None) -> Receipt:
        """Take the cost of a sent message. No balance goes below 0; an unlimited one stays so.

        `octets` is the exact cost, if the caller knows it better than `measure`. Returns the receipt for
        `give_back`.
        """
        if self.messages:
            self.messages -= 1
        taken = 0
        if self.octets:
            taken = min(self._cost(message) if octets is None else octets, self.octets)
            self.octets -= taken
        self._measured = None
        self._update()
        return self._era, taken

    @property
    def gives_back(self) -> bool:
        """Whether completed transfers change the balances."""
        return self.window and (self.messages is not None or self.octets is not None)

    def give_back(self, receipt: Receipt) -> bool:
        """The client has completed a transfer (message.set-flow-mode/only-completion-refills).

        Returns True if more may be sent than before, so that a queue may wait for it.
        """
        era, octets = receipt
        if era != self._era or not self.window or (self.messages is None and self.octets is None):
            return False
        if self.messages is not None:
            self.messages += 1
        if self.octets is not None:
            self.octets += octets
        self._update()
        return True

    def stop(self) -> None:
        """Set both balances to 0 (message.stop/zero-credit); outstanding transfers return nothing later.

        A flush does the same after the queue was dispatched (message.flush/exhausts).
        """
        self.messages = self.octets = 0
        self._era += 1
        self.open = False

    def set_mode(self, window: bool, *, strict: bool = True) -> None:
        """Choose whether completed transfers return what they took (message.set-flow-mode/mode-switching)."""
        if strict and (self.messages != 0 or self.octets != 0):
            raise IllegalState("the flow mode can only be set while there is no credit left")
        if window != self.window:
            self.window = window
            self._era += 1

    def starve(self, reason: object, starved: bool) -> None:
        """Suspend the grant for a reason, or no longer; then the caller calls `resume`."""
        if starved:
            self._starving[reason] = None
        else:
            self._starving.pop(reason, None)
        self._update()

    def _update(self) -> None:
        was_open = self.open
        self.open = self.messages != 0 and self.octets != 0 and not self._starving
        if self.open and not was_open:
            self._opened()

    def __repr__(self) -> str:
        left = " and ".join(
            f"{'unlimited' if balance is None else balance} {unit}"
            for balance, unit in ((self.messages, "messages"), (self.octets, "bytes"))
        )
        return f"<Grant of {left}>"


def _sum(balance: int | None, value: int | None) -> int | None:
    if balance is None or value is None or value >= UNLIMITED:
        return None
    return min(balance + value, UNLIMITED - 1)


class Rate(Limit):
    """Limits the bytes of message bodies that are sent per second (stream.qos/consume-rate).

    A message is sent whole. The next one is sent after the time that this one takes at the rate; so the first
    message is sent at once, and the instants are deterministic. The sender of a message calls `take`; queues
    do not.
    """

    __slots__ = ("_label", "_timer", "_timers", "bytes_per_second")

    def __init__(self, timers: Timers, label: str) -> None:
        super().__init__()
        self.bytes_per_second: int = 0
        """0 means no limit."""
        self._timers = timers
        self._label = label
        self._timer: Timer | None = None

    def set(self, bytes_per_second: int) -> None:
        """Set a new rate; consumers that wait need not wait any more. The caller calls `resume`."""
        self.bytes_per_second = bytes_per_second
        self.stop()

    def take(self, message: Message) -> None:
        """A message is sent: block until the time that it takes at the rate is over."""
        if self.bytes_per_second and message.body:
            self.stop()
            due = self._timers.clock.now() + len(message.body) / self.bytes_per_second
            self._timer = self._timers.call_at(due, self._go_on, self._label)
            self.open = False

    def _go_on(self) -> None:
        self.stop()
        self.resume()

    def stop(self) -> None:
        if not self.open:
            self.open: bool = True
            self._opened()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Window:
    """The prefetch window of class file or stream, for one channel or session, or for a whole connection."""

    __slots__ = ("credit", "rate")

    def __init__(self, timers: Timers, class_name: str) -> None:
        self.credit: Credit = Credit()
        self.rate: Rate = Rate(timers, f"{class_name} consumers continue at the requested rate")

    def resize(self, *, count: int, size: int, rate: int = 0) -> None:
        """Set new limits, 0 for none; unsettled deliveries count. The caller calls `resume`."""
        self.credit.resize(count, size)
        self.rate.set(rate)

    def take(self, message: Message) -> None:
        self.credit.take(message)
        self.rate.take(message)

    def resume(self) -> None:
        self.credit.resume()
        self.rate.resume()


class Subscriber(Protocol):
    """The protocol's side of a subscription."""

    def deliver(
        self, subscription: Subscription, message: Message, redelivered: bool, delivery: Delivery | None
    ) -> None:
        """Send the message. The delivery is None without settlement, and not acquired for a browser."""

    def held_too_long(self, subscription: Subscription | None) -> None:
        """The queue took back messages that `subscription` held too long; None for those of gets."""

    def cancelled(self, subscription: Subscription) -> None:
        """The queue has been deleted: the subscription has ended without the client asking."""


@dataclass(frozen=True)
class ConsumerTerms:
    """What a client asks for when it subscribes.

    With `no_local` messages published by the subscription's owner are not delivered, with a `content_class`
    only those of this class are. A stream delivers only messages that `passes` is true for. If it does not
    acquire, it browses: messages stay in the queue (`Queue.acquire`).
    """

    no_ack: bool = False
    no_local: bool = False
    exclusive: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)
    options: ConsumerOptions = field(default_factory=ConsumerOptions)
    acquires: bool = True
    content_class: str | None = None
    passes: Callable[[Message], bool] | None = None


@dataclass(frozen=True)
class DeliveryLimits:
    """The `limits` of a subscription's deliveries, and the `credits` among them that count what it holds.

    `shared` says that others share one of them (basic.qos with global set).
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
    what has to know of changed limits while it takes no turns. A quorum queue with a single active consumer
    calls `on_activity` once it has become active, or is active no more.
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
        "on_activity",
        "options",
        "owner",
        "passes",
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
        self.passes: Callable[[Message], bool] | None = terms.passes
        self._choice: tuple[Limit, ...] = (_Choice(self),) if self.picks else ()
        self.limits: tuple[Limit, ...] = ()
        self.resting: Rotation | ServiceQueue | SingleActive | None = None
        self.shares_window: bool = limits.shared
        self.depend_on(limits.limits, limits.credits)
        self.active: bool = True
        self.age: int = 0
        self.patience: float | None = None
        self.on_activity: Callable[[], None] | None = None

    def admits(self, message: Message) -> bool:
        return all(limit.admits(message) for limit in self.limits)

    @property
    def paused(self) -> bool:
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
