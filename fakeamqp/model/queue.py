"""A queue: messages in order, subscriptions in turn.

Theory of operation. After every operation one thing holds: no message waits while a subscription could
take it. `enqueue` and `dispatch` keep it so. A message that arrives while somebody is able to take it is
handed over at once (server-model/immediate-handover) and, where no acknowledgement is expected, never
becomes an object of the queue. Everything else becomes a `QueuedMessage` with a position; positions
only grow, and a message that comes back returns to the place its position gives it.

Some messages are not for everybody (no-local, a rejected message in personality `spec`). Only queues
that hold one, or whose subscriptions ask for it, look further than the head.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from fakeamqp.model.delivery import Delivery, resume_credits
from fakeamqp.model.errors import AccessRefused
from fakeamqp.model.queue_options import QueueOptions
from fakeamqp.model.ready import Fifo, PriorityFifo
from fakeamqp.model.rotation import Rotation

if TYPE_CHECKING:
    from fakeamqp.model.binding import Binding
    from fakeamqp.model.message import Message
    from fakeamqp.model.subscription import Subscription
    from fakeamqp.model.timers import Timer
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["DeathReason", "Queue", "QueuedMessage"]

DeathReason = Literal["rejected", "expired", "maxlen", "delivery_limit", "deleted"]

_TIMER_MARGIN = 1e-9


class QueuedMessage:
    """A message in one queue. Unlike the message itself this is the queue's own and changes.

    `returns` counts how often it was delivered and came back unsettled, `avoid` is the group that must not
    have it again.
    """

    __slots__ = ("avoid", "enqueued_at", "expires_at", "message", "position", "redelivered", "returns")

    def __init__(self, message: Message, position: int, expires_at: float | None, enqueued_at: float) -> None:
        self.message = message
        self.position = position
        self.expires_at = expires_at
        self.enqueued_at = enqueued_at
        self.redelivered = False
        self.returns = 0
        self.avoid: object = None


class Queue:
    """One queue of a virtual host. `exclusive_owner` is the connection or session it belongs to, or None."""

    kind: ClassVar[Literal["queue"]] = "queue"

    __slots__ = (
        "_bounded",
        "_expiry_timer",
        "_head_timer",
        "_next_position",
        "_picky",
        "_refuses",
        "_rotation",
        "_ttl",
        "arguments",
        "auto_delete",
        "deleted",
        "durable",
        "exclusive_owner",
        "exclusive_subscription",
        "incoming",
        "name",
        "options",
        "ready",
        "ready_octets",
        "subscriptions",
        "unacked",
        "virtual_host",
    )

    def __init__(
        self,
        virtual_host: VirtualHost,
        name: str,
        *,
        durable: bool = False,
        exclusive_owner: object = None,
        auto_delete: bool = False,
        arguments: Mapping[str, Any] | None = None,
        options: QueueOptions | None = None,
        priorities: int | None = None,
    ) -> None:
        self.virtual_host = virtual_host
        self.name = name
        self.durable = durable
        self.exclusive_owner = exclusive_owner
        self.auto_delete = auto_delete
        self.arguments = dict(arguments or {})
        self.options = options or QueueOptions()
        self.incoming: dict[Binding, None] = {}
        self.subscriptions: dict[Subscription, None] = {}
        self.exclusive_subscription: Subscription | None = None
        self.deleted = False
        self.ready: Fifo | PriorityFifo = PriorityFifo(priorities) if priorities is not None else Fifo()
        self.ready_octets = 0
        self.unacked: dict[Delivery, None] = {}
        self._rotation = Rotation()
        self._next_position = 0
        self._picky = False
        self._ttl = self.options.message_ttl
        limits = (self.options.max_length, self.options.max_length_bytes)
        self._bounded = limits != (None, None)
        self._refuses = self._bounded and self.options.overflow != "drop-head"
        self._head_timer: Timer | None = None
        self._expiry_timer: Timer | None = None
        if self.options.expires is not None:
            self.used()

    def __repr__(self) -> str:
        return f"<Queue {self.name!r} {len(self.ready)} ready, {len(self.unacked)} unacked>"

    # --- arrival -----------------------------------------------------------------------------------

    def enqueue(self, message: Message) -> bool:
        """Hand the message to a subscription that can take it, or store it.

        Returns:
            False where the queue is full and refuses (`x-overflow`: reject-publish and its kin).
        """
        if self._refuses and self._full_with(message):
            if self.options.overflow == "reject-publish-dlx":
                self.virtual_host.dead_letter(self, message, "maxlen")
            return False
        if not self.ready and not self._picky:
            subscription = self._rotation.next_able(len(message.body))
            if subscription is not None:
                if subscription.no_ack:
                    subscription.subscriber.deliver(subscription, message, False, None)
                else:
                    self._hand_over(self._queued(message), subscription)
                return True
        queued = self._queued(message)
        self.ready.append(queued)
        self.ready_octets += len(message.body)
        if self._picky:
            self.dispatch()
        if self._bounded:
            self._drop_overflow()
            self._drop_expired()
        elif queued.expires_at is not None and queued is self.ready.head():
            self._drop_expired()
        return True

    def _queued(self, message: Message) -> QueuedMessage:
        self._next_position = position = self._next_position + 1
        now = self.virtual_host.now()
        expiry = message.expiry
        ttl = self._ttl
        if ttl is not None and (expiry is None or ttl < expiry):
            expiry = ttl
        return QueuedMessage(message, position, None if expiry is None else now + expiry, now)

    def _full_with(self, message: Message) -> bool:
        """Whether one more message would pass the limits; a message above the limit alone is refused too."""
        options = self.options
        if options.max_length is not None and len(self.ready) >= options.max_length:
            return True
        return (
            options.max_length_bytes is not None
            and self.ready_octets + len(message.body) > options.max_length_bytes
        )

    def _drop_overflow(self) -> None:
        """Drop until the limits hold: from the head, as RabbitMQ documents, or what is least urgent.

        Source: server-model/discard-low-priority-first.
        """
        options = self.options
        lowest_first = self.virtual_host.state.personality.discards_low_priority_first
        while self.ready and (
            (options.max_length is not None and len(self.ready) > options.max_length)
            or (options.max_length_bytes is not None and self.ready_octets > options.max_length_bytes)
        ):
            self._die(self._pop(lowest=lowest_first), "maxlen")

    # --- departure ---------------------------------------------------------------------------------

    def dispatch(self) -> None:
        """Send what waits to whoever can take it, until there is nothing or nobody left."""
        if self._picky:
            self._dispatch_picky()
            return
        ready = self.ready
        rotation = self._rotation
        while rotation:
            queued = self._live_head()
            if queued is None:
                break
            subscription = rotation.next_able(len(queued.message.body))
            if subscription is None:
                break
            self._pop()
            self._hand_over(queued, subscription)
        if ready:
            self._watch_head()

    def _dispatch_picky(self) -> None:
        """As `dispatch`, but a message nobody present may have does not hold up those behind it."""
        for queued in list(self.ready):
            if self._expired(queued):
                continue
            for subscription in self._rotation.able(len(queued.message.body)):
                if _suits(subscription, queued):
                    self._take_out(queued)
                    self._rotation.passed(subscription)
                    self._hand_over(queued, subscription)
                    break
        if self._live_head() is not None:
            self._watch_head()

    def could_take(self, message: Message) -> bool:
        """Whether the message would be handed over at once (basic.publish/immediate-*)."""
        if self.ready:
            return False
        return any(True for _ in self._rotation.able(len(message.body)))

    def get(
        self, owner: object, *, no_ack: bool, group: object = None
    ) -> tuple[QueuedMessage, Delivery | None] | None:
        """Take the next message for one client, prefetch notwithstanding (basic.qos/get-unaffected).

        `group` is the channel that asks; what it has rejected it does not get (basic.reject/requeue-01).

        Returns:
            The message, with a delivery to settle unless `no_ack`; None where nothing waits.
        """
        self.used()
        queued = self._live_head()
        if queued is not None and queued.avoid is not None and queued.avoid is group:
            queued = next((each for each in self.ready if each.avoid is not group), None)
        if queued is None:
            return None
        self._take_out(queued)
        delivery = None
        if not no_ack:
            delivery = Delivery(self, queued, None, owner, (), self.virtual_host.now())
            self.unacked[delivery] = None
        if self.ready:
            self._watch_head()
        return queued, delivery

    def purge(self) -> int:
        """Drop all that waits; what clients hold stays (queue.purge/02). Returns how many were dropped."""
        self._drop_expired()
        dropped = self.ready.clear()
        self.ready_octets = 0
        return len(dropped)

    def _hand_over(self, queued: QueuedMessage, subscription: Subscription) -> None:
        message = queued.message
        if subscription.no_ack:
            subscription.subscriber.deliver(subscription, message, queued.redelivered, None)
            return
        credits = subscription.credits
        for credit in credits:
            credit.take(len(message.body))
        delivery = Delivery(self, queued, subscription, subscription.owner, credits, self.virtual_host.now())
        self.unacked[delivery] = None
        subscription.subscriber.deliver(subscription, message, queued.redelivered, delivery)

    def _pop(self, *, lowest: bool = False) -> QueuedMessage:
        queued = self.ready.pop_lowest() if lowest else self.ready.pop()
        self.ready_octets -= len(queued.message.body)
        return queued

    def _take_out(self, queued: QueuedMessage) -> None:
        self.ready.remove(queued)
        self.ready_octets -= len(queued.message.body)

    # --- settlement --------------------------------------------------------------------------------

    def forget(self, delivery: Delivery) -> None:
        """The delivery was accepted."""
        self.unacked.pop(delivery, None)

    def refuse(self, delivery: Delivery) -> None:
        """The delivery was rejected."""
        self.unacked.pop(delivery, None)
        if not self.deleted:
            self._die(delivery.queued, "rejected")

    def take_back(self, deliveries: Iterable[Delivery], *, avoid: object = None) -> None:
        """Put messages back in their old places, marked redelivered. A deleted queue takes nothing back."""
        returned = []
        for delivery in deliveries:
            self.unacked.pop(delivery, None)
            queued = delivery.queued
            queued.avoid = avoid
            if self._comes_back(queued):
                returned.append(queued)
        if self.deleted or not returned:
            return
        if avoid is not None:
            self._picky = True
        self.ready.put_back(returned)
        self.ready_octets += sum(len(queued.message.body) for queued in returned)
        if self._bounded and not self._refuses:
            self._drop_overflow()
        self._drop_expired()

    def redeliver(self, delivery: Delivery) -> bool:
        """Send a released message to the subscription that had it (basic.recover/requeue-false).

        Returns:
            False where that subscription has ended: the message then belongs back in the queue.
        """
        holder = delivery.holder
        if holder is None or not holder.active or self.deleted:
            return False
        self.unacked.pop(delivery, None)
        delivery.settle()
        if self._comes_back(delivery.queued):
            self._hand_over(delivery.queued, holder)
        else:
            resume_credits((delivery,))
        return True

    def _comes_back(self, queued: QueuedMessage) -> bool:
        """Count a return. False where the message has come back too often and dies (basic.deliver/01)."""
        queued.redelivered = True
        queued.returns += 1
        most = self.virtual_host.state.personality.most_deliveries
        if not most or queued.returns < most:
            return True
        if not self.deleted:
            self._die(queued, "delivery_limit")
        return False

    def keep_persistent(self, *, crash: bool = False) -> None:
        """After a restart: only persistent messages are left, those that were unsettled among them.

        After a crash, only those of them whose publisher was told that the broker has them.
        """
        self.take_back(list(self.unacked))
        kept = [queued for queued in self.ready.clear() if queued.message.persistent]
        if crash:
            kept = [queued for queued in kept if queued.message.secured]
        self.ready_octets = sum(len(queued.message.body) for queued in kept)
        if kept:
            self.ready.put_back(kept)
        self._picky = False
        self._watch_head()

    # --- subscriptions -----------------------------------------------------------------------------

    def subscribe(self, subscription: Subscription) -> None:
        """Let a new subscription in; the caller dispatches once the client has been told.

        Raises:
            AccessRefused: exclusive access stands in the way (basic.consume/exclusive-*).
        """
        alone = self.options.single_active_consumer
        if self.exclusive_subscription is not None or (
            subscription.exclusive and (self.subscriptions or alone)
        ):
            subscription.end()
            raise AccessRefused(f"queue '{self.name}' in vhost '{self.virtual_host.name}' in exclusive use")
        if subscription.exclusive:
            self.exclusive_subscription = subscription
        self.subscriptions[subscription] = None
        if not self.options.single_active_consumer or len(self.subscriptions) == 1:
            self._rotation.add(subscription)
        self._picky = self._picky or subscription.no_local
        self.used()

    def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription; its channel settles what it holds (basic.cancel/outstanding-remain)."""
        if subscription not in self.subscriptions:
            return
        del self.subscriptions[subscription]
        subscription.end()
        if self.exclusive_subscription is subscription:
            self.exclusive_subscription = None
        if subscription in self._rotation:
            self._rotation.remove(subscription)
            if self.options.single_active_consumer and self.subscriptions:
                self._rotation.add(max(self.subscriptions, key=lambda each: each.priority))
        self.used()
        if not self.subscriptions and self.auto_delete and not self.deleted:
            self.virtual_host.remove_queue(self)
        elif self.subscriptions:
            self.dispatch()

    def detach_all(self) -> list[Subscription]:
        """End every subscription because the queue goes; they are returned for their clients to be told."""
        ended = list(self.subscriptions)
        self.deleted = True
        for subscription in ended:
            subscription.end()
        self.subscriptions.clear()
        self._rotation = Rotation()
        self.exclusive_subscription = None
        for timer in (self._head_timer, self._expiry_timer):
            if timer is not None:
                timer.cancel()
        return ended

    # --- time --------------------------------------------------------------------------------------

    def used(self) -> None:
        """Count as in use now: `x-expires` begins anew, and rests while there are subscriptions."""
        expires = self.options.expires
        if expires is None:
            return
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()
            self._expiry_timer = None
        if not self.subscriptions and not self.deleted:
            self._expiry_timer = self.virtual_host.call_later(
                expires, self._unused_too_long, f"queue '{self.name}' expires unused"
            )

    def _unused_too_long(self) -> None:
        if not self.deleted and not self.subscriptions:
            self.virtual_host.remove_queue(self)

    def _expired(self, queued: QueuedMessage) -> bool:
        return queued.expires_at is not None and queued.expires_at <= self.virtual_host.now() + _TIMER_MARGIN

    def _live_head(self) -> QueuedMessage | None:
        """The head once expired messages before it are gone (RabbitMQ: classic queues expire at the head)."""
        ready = self.ready
        queued = ready.head()
        while queued is not None and queued.expires_at is not None and self._expired(queued):
            self._die(self._pop(), "expired")
            queued = ready.head()
        return queued

    def _drop_expired(self) -> None:
        if self._live_head() is not None:
            self._watch_head()

    def _watch_head(self) -> None:
        """Have the head dropped when its time comes."""
        head = self.ready.head()
        due = None if head is None else head.expires_at
        timer = self._head_timer
        if timer is not None:
            if timer.due == due:
                return
            timer.cancel()
            self._head_timer = None
        if due is not None:
            self._head_timer = self.virtual_host.call_at(
                due, self._head_is_due, f"queue '{self.name}' expires a message"
            )

    def _head_is_due(self) -> None:
        self._head_timer = None
        self._drop_expired()

    def _die(self, queued: QueuedMessage, reason: DeathReason) -> None:
        self.virtual_host.dead_letter(self, queued.message, reason)


def _suits(subscription: Subscription, queued: QueuedMessage) -> bool:
    """Whether this subscription may have this message (domain.no-local, basic.reject/requeue-01)."""
    if subscription.no_local and queued.message.publisher is subscription.owner:
        return False
    return queued.avoid is None or queued.avoid is not subscription.group
