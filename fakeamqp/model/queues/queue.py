"""What all queue types share: a name, an owner, subscriptions, options, and how long the queue lives.

How messages are stored and delivered depends on the type: see `classic`, `quorum` and `stream`. All types
keep one invariant: after every operation no message waits while a subscription could take it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from fakeamqp.model.arguments.queue_arguments import ConsumerOptions, QueueOptions, consumer_options
from fakeamqp.model.deliveries.delivery import Delivery
from fakeamqp.model.errors import AccessRefused, PreconditionFailed
from fakeamqp.model.operations import freeing, in_steps
from fakeamqp.model.queues.waiting import MessagesOf, Rotation

if TYPE_CHECKING:
    from collections import deque

    from fakeamqp.model.deliveries.subscription import Subscription
    from fakeamqp.model.exchanges.exchange import Binding
    from fakeamqp.model.history import DropReason
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.personality import Personality
    from fakeamqp.model.policies import Policy
    from fakeamqp.model.queues.waiting import QueuedMessage, Waiting
    from fakeamqp.model.timers import Timer
    from fakeamqp.model.virtual_host import VirtualHost


@dataclass(frozen=True)
class QueueDeclaration:
    """What a declaration says of a queue beside its name.

    Args:
        owner: the connection or session that declares the queue, and to which an exclusive queue belongs.
            None is the broker itself, to which nothing is denied.
        durable: the queue survives a restart; an exclusive queue does so only if it is freeable.
        exclusive: only `owner` may use the queue.
        auto_delete: the queue is deleted with its last consumer.
        arguments: see `fakeamqp.model.arguments`.
        alternate_exchange: names the exchange that gets, unchanged, the messages that clients reject and
            those that the queue holds when it is deleted (queue.declare/alternate-exchange-routing).
        freeable: what happens to an exclusive queue when its owner goes. A freeable queue is deleted only if
            it is auto-delete, and not with its last subscription; otherwise it becomes a shared queue
            (queue.declare/auto-delete-exclusive, exclusive-without-auto-delete). Others are deleted.
        priorities: ten levels of priority, or none, where the arguments ask for no number of levels; None
            leaves that to the personality. A queue with such levels drops the least urgent message when it is
            too long. Only classic queues heed it.
    """

    owner: object = None
    durable: bool = False
    exclusive: bool = False
    auto_delete: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)
    alternate_exchange: str | None = None
    freeable: bool = False
    priorities: bool | None = None

    @property
    def is_durable(self) -> bool:
        """Whether the queue will be durable: it is not if it is deleted with its owner."""
        return self.durable and (not self.exclusive or self.freeable)

    @property
    def exclusive_owner(self) -> object:
        """The owner of the queue if it is exclusive, else None."""
        return self.owner if self.exclusive else None

    @property
    def is_lasting(self) -> bool:
        """Whether it is durable, shared and not deleted by itself, as queues of replicated types must be."""
        return self.durable and not self.exclusive and not self.auto_delete


DeathReason = Literal["rejected", "expired", "maxlen", "delivery_limit", "deleted"]

UNUSED_TOO_LONG = "the queue expired unused"
NOT_TAKEN_BACK = "the queue was deleted before the message came back"
NOT_SECURED = "the broker crashed before the publisher was told that it has the message"


def not_persistent(crash: bool) -> tuple[DropReason, str]:
    """Why a crash or a restart drops a message that is not persistent: the reason, and a text."""
    how = "crashed" if crash else "restarted"
    return "crash" if crash else "restart", f"the broker {how}, and the message is not persistent"


class Queue:
    """One queue of a virtual host, as its `QueueDeclaration` says.

    `exclusive_owner` is the connection or session that it belongs to, or None. `declared` holds the options
    that the arguments ask for; `options` holds those in force, which include what `policy` and
    `operator_policy` set. `acknowledgement_timeout` is how many seconds a client may hold a delivery before
    its channel is closed.
    """

    kind: ClassVar[Literal["queue"]] = "queue"
    type_name: ClassVar[str]
    replicated: ClassVar[bool] = False
    """Whether RabbitMQ keeps copies on many nodes: such queues are durable, shared and named by clients."""
    keeps_delivered: ClassVar[bool] = False
    """Whether messages stay in the ready list while clients hold them."""
    shares_windows: ClassVar[bool] = True
    """Whether shared windows limit the consumers (basic.qos with global set)."""
    fails_commits: ClassVar[bool] = True
    """Whether a refused message fails its transaction."""
    inherits_credit: ClassVar[bool] = False
    """Whether the deliveries that a consumer takes over from a cancelled one count for its credit."""
    default_prefetch: ClassVar[int] = 0
    """How many messages a consumer without a prefetch may hold; 0 means any number."""
    refuses_returns: bool = False
    """Whether clients can neither reject nor return deliveries."""
    reports_consumers: ClassVar[bool] = True
    """Whether declare-ok says how many consumers there are; otherwise it says 0."""

    __slots__ = (
        "__weakref__",
        "_expiry_timer",
        "acknowledgement_timeout",
        "alternate_exchange",
        "arguments",
        "auto_delete",
        "declared",
        "deleted",
        "durable",
        "exclusive_owner",
        "exclusive_subscription",
        "freeable",
        "incoming",
        "name",
        "operator_policy",
        "options",
        "policy",
        "priorities",
        "rotation",
        "subscriptions",
        "successors",
        "unacked",
        "virtual_host",
        "watchers",
    )

    def __init__(
        self,
        virtual_host: VirtualHost,
        name: str,
        declaration: QueueDeclaration | None = None,
        options: QueueOptions | None = None,
    ) -> None:
        declaration = declaration or QueueDeclaration()
        self.virtual_host: VirtualHost = virtual_host
        self.watchers: dict[object, Callable[[], None]] = {}
        """Publishers that are told when the queue is deleted."""
        self.name: str = name
        self.durable: bool = declaration.is_durable
        self.exclusive_owner: object = declaration.exclusive_owner
        self.auto_delete: bool = declaration.auto_delete
        self.arguments: dict[str, Any] = dict(declaration.arguments)
        self.declared: QueueOptions = options or QueueOptions()
        self.options: QueueOptions = self.declared
        self.alternate_exchange: str | None = declaration.alternate_exchange
        self.freeable: bool = declaration.freeable
        self.priorities: bool | None = declaration.priorities
        self.policy: Policy | None = None
        self.operator_policy: Policy | None = None
        self.acknowledgement_timeout = self._acknowledgement_timeout()
        self.incoming: dict[Binding, None] = {}
        self.subscriptions: dict[Subscription, None] = {}
        self.exclusive_subscription: Subscription | None = None
        self.unacked: dict[Delivery, None] = {}
        self.deleted: bool = False
        self.rotation: Rotation = Rotation()
        self.successors: Rotation | None = None
        """The subscriptions that wait to be the single active one, the next one first."""
        self._expiry_timer: Timer | None = None
        self._prepare()
        self.used()

    def _prepare(self) -> None:
        """Create the state of this queue type; the state that all types share is ready."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} {len(self.ready)} ready, {len(self.unacked)} unacked>"

    @property
    def place(self) -> str:
        return f"queue '{self.name}' in vhost '{self.virtual_host.name}'"

    # --- declaration --------------------------------------------------------------------------------

    @classmethod
    def check_declaration(cls, name: str, virtual_host: str, declaration: QueueDeclaration) -> None:
        """PreconditionFailed for flags that this type does not support; a generated name is empty here."""
        for wrong, flag in (
            (declaration.auto_delete, "auto-delete"),
            (declaration.exclusive, "exclusive-owner"),
            (not declaration.durable, "non-durable"),
        ):
            if cls.replicated and wrong:
                raise PreconditionFailed(
                    f"invalid property '{flag}' for queue '{name}' in vhost '{virtual_host}'"
                )

    @classmethod
    def check_arguments(
        cls, name: str, virtual_host: str, arguments: Mapping[str, Any], personality: Personality
    ) -> None:
        """PreconditionFailed for an illegal argument that is reported after wrong flags."""

    def check_deletion(self, *, if_unused: bool, if_empty: bool) -> int:
        """The message count for the reply; PreconditionFailed if a condition of the deletion is not met."""
        if if_unused and self.subscriptions:
            raise PreconditionFailed(f"{self.place} in use")
        if if_empty and len(self.ready):
            raise PreconditionFailed(f"{self.place} not empty")
        return len(self.ready)

    def next_offset(self, subscription: Subscription) -> int | None:
        """The offset at which a subscription reads on; None in queues without offsets."""
        return None

    def count_for(self, subscription: Subscription) -> int:
        """How many messages there are for a subscription to read."""
        return len(self.ready)

    # --- implemented by each type -------------------------------------------------------------------

    @property
    def ready(self) -> Waiting:
        """The messages that wait, in the order of delivery."""
        raise NotImplementedError

    @property
    def parked_count(self) -> int:
        """How many messages are parked: they wait for a retry, or are held as dead letters."""
        return 0

    def parked_messages(self) -> list[Message]:
        """The parked messages: those for a retry, soonest first, then dead letters."""
        return []

    def enqueue(self, message: Message, dead_letter: bool = False) -> bool:
        """Hand the message to a subscription that can take it, or store it. Returns False where the queue is
        full and refuses (`x-overflow`: reject-publish, reject-publish-dlx).
        """
        raise NotImplementedError

    def would_refuse(self, message: Message) -> bool:
        """Whether `enqueue` would refuse the message now. Nothing changes."""
        return False

    def has_room(self, messages: Sequence[Message]) -> bool:
        """Whether `enqueue` would accept all of these now, one after the other. Nothing changes."""
        return not any(self.would_refuse(message) for message in messages)

    def next_taker(self, message: Message) -> Subscription | None:
        """The subscription to which `enqueue` would hand the message at once, or None. Nothing changes."""
        return None

    def could_take(self, message: Message) -> bool:
        """Whether the message would be handed over at once (basic.publish/immediate-*)."""
        return self.next_taker(message) is not None

    def dispatch(self) -> None:
        """Deliver until no message waits or no subscription can take one."""

    def get(
        self, owner: object, *, no_ack: bool, group: object = None, content_class: str | None = None
    ) -> tuple[QueuedMessage, Delivery | None] | None:
        """Take the next message for one client, whatever its prefetch (basic.qos/get-unaffected).

        The channel `group` does not get messages that it has rejected (basic.reject/requeue-01). With a
        `content_class` it gets the next message of that class. With `no_ack` there is no delivery to settle.
        """
        raise NotImplementedError

    def as_delivered(self, queued: QueuedMessage, *, asked: bool = False) -> Message:
        """The message as a client sees it that gets it now; `asked` by basic.get."""
        return queued.message

    def acquire(self, delivery: Delivery) -> bool:
        """Take a message out of the queue for the client that it was shown to. Returns False where it is no
        longer available: taken, expired, dropped, settled, or acquired already
        (message.acquire/exclusive-winner, message.acquire/not-on-gone).
        """
        return False

    def hand_over(self, queued: QueuedMessage, subscription: Subscription) -> None:
        """Deliver a message that does not wait any more."""
        message = queued.message
        if subscription.no_ack:
            subscription.subscriber.deliver(subscription, message, queued.redelivered, None)
            return
        credits = subscription.credits
        for credit in credits:
            credit.take(message)
        delivery = Delivery(self, queued, subscription, subscription.owner, credits, self.virtual_host.now())
        self.unacked[delivery] = None
        subscription.subscriber.deliver(subscription, message, queued.redelivered, delivery)

    def show(self, queued: QueuedMessage, subscription: Subscription) -> None:
        """Show a message to a browsing subscription; it stays where it is."""
        delivery = None
        if not subscription.no_ack:
            credits = subscription.credits
            for credit in credits:
                credit.take(queued.message)
            now = self.virtual_host.now()
            delivery = Delivery(self, queued, subscription, subscription.owner, credits, now, acquired=False)
        subscription.subscriber.deliver(subscription, queued.message, queued.redelivered, delivery)

    def purge(self) -> int:
        """Drop all messages that wait; those that clients hold stay (queue.purge/02). Returns how many."""
        raise NotImplementedError

    def forget(self, delivery: Delivery) -> None:
        """The delivery was accepted."""
        self.unacked.pop(delivery, None)

    def reject(self, delivery: Delivery) -> None:
        """The delivery was rejected."""

    def in_order_of_rejection(self, deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
        """The order in which messages die that were rejected together."""
        return deliveries

    def taking_back(
        self, deliveries: Sequence[Delivery], *, avoid: object = None, redelivered: bool = True
    ) -> Iterator[None]:
        """Put messages back in their old places, in steps. A deleted queue accepts none.

        The group `avoid`, if any, does not get them again. `redelivered` says whether they are marked so; a
        mark is never taken away.
        """
        raise NotImplementedError

    def redeliver(self, delivery: Delivery) -> bool:
        """Send a released message to the subscription that had it (basic.recover/requeue-false). If that is
        impossible, the caller returns the message to the queue.
        """
        return False

    def clear(self) -> list[Message]:
        """Take out all messages that wait, because the queue is deleted."""
        raise NotImplementedError

    def abandon(self) -> list[Message]:
        """Take out all messages, also those that clients hold, because the queue is deleted; oldest first.

        From now on settling such a delivery has no effect on its message.
        """
        return [*(delivery.queued.message for delivery in self._taken_away()), *self.clear()]

    def _taken_away(self) -> list[Delivery]:
        """End the deliveries that clients hold, except those that prepared branches will settle."""
        in_doubt = self.virtual_host.branches.in_doubt
        held = [delivery for delivery in self.unacked if delivery not in in_doubt]
        for delivery in held:
            del self.unacked[delivery]
            delivery.acquired = False
        return held

    def _too_late(self, returned: Sequence[QueuedMessage], reason: Literal["deleted", "rejected"]) -> None:
        """These come back to the queue after it was deleted, or were rejected after that."""
        if self.alternate_exchange is None:
            self._dropped(returned, reason, NOT_TAKEN_BACK)
            return
        for queued in returned:
            self.virtual_host.dead_letters.passed_on(self, queued.message, reason)

    def drop_all(self, reason: DropReason, detail: str) -> None:
        """Drop all messages that wait or are parked: the queue has been deleted. Clients keep theirs."""

    def _drop(self, lost: list[Any] | deque[Any], reason: DropReason, detail: str) -> int:
        """Report queued messages that were taken out, and free them, in steps. Returns how many."""
        count = len(lost)
        reporting = self.virtual_host.message_outcomes.dropping(MessagesOf(lost), self.name, reason, detail)
        self.virtual_host.state.operations.run(chain(reporting, freeing(lost)))
        return count

    def _dropped(self, lost: Sequence[QueuedMessage], reason: DropReason, detail: str) -> None:
        self.virtual_host.message_outcomes.dropped_all(MessagesOf(lost), self.name, reason, detail)

    def keep_persistent(self, *, crash: bool = False) -> None:
        """Keep the persistent messages after a restart, unsettled ones too; after a crash, confirmed ones."""

    def keep_in_doubt(self, *, crash: bool = False) -> list[Delivery]:
        """Keep persistent deliveries that prepared branches will settle, after a restart.

        Returns the other deliveries, whose messages return to the queue.
        """
        in_doubt = self.virtual_host.branches.in_doubt
        others = []
        for delivery in list(self.unacked):
            if delivery not in in_doubt:
                others.append(delivery)
                continue
            delivery.holder = delivery.owner = None  # The client has gone with its session.
            delivery.credits = ()
            if not self.replicated and not delivery.queued.message.persistent:
                del self.unacked[delivery]
                delivery.settle("lost")
                self._dropped((delivery.queued,), *not_persistent(crash))
        return others

    def restarted(self) -> None:
        """Called once all queues are back after a restart."""

    def apply(self, options: QueueOptions) -> None:
        """Put other options in force, because other policies match."""
        self.options = options
        self.acknowledgement_timeout = self._acknowledgement_timeout()
        self.used()

    def _acknowledgement_timeout(self) -> float | None:
        return self.consumer_timeout() if self.virtual_host.state.personality.channels_time_out else None

    def consumer_timeout(self) -> float | None:
        """How many seconds a consumer that asks for no other timeout may hold a delivery; None for ever."""
        asked = self.options.consumer_timeout
        return (self.virtual_host.state.personality.consumer_timeout or None) if asked is None else asked

    # --- subscriptions ------------------------------------------------------------------------------

    def consumer_options(self, arguments: Mapping[str, Any]) -> ConsumerOptions:
        """Read the arguments of `basic.consume`; PreconditionFailed for illegal ones, or of other types."""
        personality = self.virtual_host.state.personality
        return consumer_options(self.type_name, self.name, self.virtual_host.name, arguments, personality)

    def check_subscription(self, subscription: Subscription) -> None:
        """AccessRefused if a subscription conflicts with exclusive access (basic.consume/exclusive-*)."""
        alone = self.options.single_active_consumer
        if self.exclusive_subscription is not None or (
            subscription.exclusive and (self.subscriptions or alone)
        ):
            raise AccessRefused(f"{self.place} in exclusive use")

    def subscribe(self, subscription: Subscription) -> None:
        """Check and add a subscription; the caller dispatches once it has replied to the client."""
        try:
            self.check_subscription(subscription)
        except BaseException:
            subscription.end()
            raise
        if subscription.exclusive and not self.replicated:
            self.exclusive_subscription = subscription
        self.subscriptions[subscription] = None
        self._enter(subscription)
        self.used()

    def _enter(self, subscription: Subscription) -> None:
        """Add a subscription to the rotation, or to those that wait to be active."""
        if not self.options.single_active_consumer or not self.rotation:
            self.rotation.add(subscription)
        else:
            self.successors = self.successors or Rotation()
            self.successors.add(subscription)

    def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription; its channel settles its deliveries (basic.cancel/outstanding-remain)."""
        if subscription not in self.subscriptions:
            return
        del self.subscriptions[subscription]
        subscription.end()
        if self.exclusive_subscription is subscription:
            self.exclusive_subscription = None
        self._leave(subscription)
        self.used()
        lasts = self.freeable and self.exclusive_owner is not None
        if not self.subscriptions and self.auto_delete and not self.deleted and not lasts:
            self.unused("the queue was auto-delete, and its last consumer has gone")
        elif self.subscriptions:
            self.dispatch()

    def granted(self, subscription: Subscription) -> None:
        """A subscription without a grant has got one, which may change its turn."""

    def withdraw(self, subscription: Subscription) -> None:
        """A subscription gets nothing any more; `unsubscribe` follows."""

    def unused(self, why: str) -> None:
        """Delete an auto-delete queue after its last consumer, or an exclusive one after its owner."""
        self.virtual_host.queues.remove(self, why)

    def cancel_all(self) -> int:
        """End every subscription and notify the clients, as if the queue was deleted; they keep deliveries.

        Returns how many subscriptions there were.
        """
        # The latest first, so that no waiting subscription becomes the active one.
        ended = list(reversed(self.subscriptions))
        self.virtual_host.state.operations.run(in_steps(ended, self._cancel))
        return len(ended)

    def _cancel(self, subscriptions: Sequence[Subscription]) -> None:
        for subscription in subscriptions:
            if subscription in self.subscriptions:  # Its client may have ended it between two steps.
                subscription.subscriber.cancelled(subscription)
                self.unsubscribe(subscription)

    def _leave(self, subscription: Subscription) -> None:
        """Remove a subscription from the rotation, or from those that wait to be active."""
        if subscription not in self.rotation:
            if self.successors is not None:
                self.successors.remove(subscription)
            return
        self.rotation.remove(subscription)
        if self.successors:
            successor = next(iter(self.successors))
            self.successors.remove(successor)
            self.rotation.add(successor)

    @property
    def single_active(self) -> Subscription | None:
        """The single active subscription; None if the queue is not of that kind, or none is active."""
        if not self.options.single_active_consumer:
            return None
        return next((each for each in self.subscriptions if each in self.rotation), None)

    @property
    def consumer_count(self) -> int:
        """The consumer count of declare-ok."""
        return len(self.subscriptions)

    def detach_all(self) -> list[Subscription]:
        """End every subscription because the queue is deleted. Returns them; the caller notifies clients."""
        ended = list(self.subscriptions)
        self.deleted = True
        for subscription in ended:
            subscription.end()
        self.subscriptions.clear()
        self.rotation = Rotation()
        self.successors = None
        self.exclusive_subscription = None
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()
        return ended

    # --- time ---------------------------------------------------------------------------------------

    def asked_for(self) -> None:
        """The queue was declared again, or passively."""
        self.used()

    def used(self) -> None:
        """Restart the idle expiry (`x-expires`), which is paused while there are subscriptions."""
        expires = self.options.expires
        self._expire_unused_at(None if expires is None else self.virtual_host.now() + expires)

    def _expire_unused_at(self, instant: float | None) -> None:
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()
            self._expiry_timer = None
        if instant is not None and not self.subscriptions and not self.deleted:
            self._expiry_timer = self.virtual_host.call_at(
                instant, self._unused_too_long, f"q '{self.name}' expires unused"
            )

    def _unused_too_long(self) -> None:
        if not self.deleted and not self.subscriptions:
            self.virtual_host.queues.remove(self, UNUSED_TOO_LONG)


def expires_messages(queue: str, count: int) -> str:
    """The label of a timer that expires this number of messages."""
    return f"q '{queue}' expires {count} message{'' if count == 1 else 's'}"
