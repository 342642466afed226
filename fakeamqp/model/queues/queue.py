"""What all queue types share: a name, an owner, subscriptions, options, and how long the queue lives.

What a queue keeps and to whom it gives it is its type's: see `classic`, `quorum` and `stream`. Each of them
keeps one promise: after every operation no message waits while a subscription could take it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from fakeamqp.model.delivery import Delivery
from fakeamqp.model.errors import AccessRefused, PreconditionFailed
from fakeamqp.model.queues.options import ConsumerOptions, QueueOptions, consumer_options
from fakeamqp.model.queues.rotation import Rotation

if TYPE_CHECKING:
    from weakref import ref

    from fakeamqp.model.binding import Binding
    from fakeamqp.model.ends import DropReason
    from fakeamqp.model.message import Message
    from fakeamqp.model.personality import Personality
    from fakeamqp.model.policies import Policy
    from fakeamqp.model.queues.ready import Waiting
    from fakeamqp.model.subscription import Subscription
    from fakeamqp.model.timers import Timer
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["DeathReason", "Queue", "QueuedMessage", "expires_messages"]

DeathReason = Literal["rejected", "expired", "maxlen", "delivery_limit", "deleted"]

UNUSED_TOO_LONG = "the queue expired unused"
NOT_TAKEN_BACK = "the queue was deleted before the message came back"
NOT_PERSISTENT = "the broker {how}, and the message is not persistent"
NOT_SECURED = "the broker crashed before the publisher was told that it has the message"


class QueuedMessage:
    """A message in one queue. Unlike the message itself this is the queue's own and changes.

    `returns` counts how often it was delivered and came back unsettled. `avoid` refers to the group that must
    not have it again, and does not keep that alive.
    """

    __slots__ = ("avoid", "enqueued_at", "expires_at", "message", "position", "redelivered", "returns")

    def __init__(self, message: Message, position: int, expires_at: float | None, enqueued_at: float) -> None:
        self.message = message
        self.position = position
        self.expires_at = expires_at
        self.enqueued_at = enqueued_at
        self.redelivered = False
        self.returns = 0
        self.avoid: ref[object] | None = None

    def avoids(self, group: object) -> bool:
        """Whether this group must not have it again."""
        return self.avoid is not None and group is not None and self.avoid() is group

    @property
    def offset(self) -> int | None:
        """Its place in a stream; None in other queues."""
        return None


class Queue:
    """One queue of a virtual host. `exclusive_owner` is the connection or session it belongs to, or None.

    `acknowledgement_timeout` is how many seconds a client may hold a delivery before its channel is closed.
    `declared` is what the arguments of its declaration ask for, `options` what is in force: the same, or
    that and what `policy` and `operator_policy` say.

    `alternate_exchange` names the exchange that gets, as they are, the messages that clients reject and those
    that are there when the queue is deleted, or is None (queue.declare/alternate-exchange-routing).
    `freeable` says what becomes of a queue whose exclusive owner has gone. It goes as well; but one that is
    freeable only if it is auto-delete, and not with its last subscription, and otherwise it is there for all
    (queue.declare/auto-delete-exclusive, exclusive-without-auto-delete).
    `priorities` asks for ten levels of priority or for none where nothing else does; None leaves that to the
    personality. With it, a queue that is too long drops what is least urgent. Only classic queues heed it.
    """

    kind: ClassVar[Literal["queue"]] = "queue"
    type_name: ClassVar[str]
    replicated: ClassVar[bool] = False
    """Whether RabbitMQ keeps copies on many nodes: such queues are durable, for all, and named by clients."""
    keeps_delivered: ClassVar[bool] = False
    """Whether messages stay among those that wait while clients hold them."""
    shares_windows: ClassVar[bool] = True
    """Whether consumers depend on windows that they share with others (basic.qos with global set)."""
    fails_commits: ClassVar[bool] = True
    """Whether a message that the queue refuses fails the transaction it is part of."""
    default_prefetch: ClassVar[int] = 0
    """How many messages a consumer may hold that asked for no limit; 0 means any number."""
    reports_consumers: ClassVar[bool] = True
    """Whether declare-ok says how many consumers there are; otherwise it says 0."""

    __slots__ = (
        "__weakref__",
        "_expiry_timer",
        "_rotation",
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
        alternate_exchange: str | None = None,
        freeable: bool = False,
        priorities: bool | None = None,
    ) -> None:
        self.virtual_host = virtual_host
        self.name = name
        self.durable = durable
        self.exclusive_owner = exclusive_owner
        self.auto_delete = auto_delete
        self.arguments = dict(arguments or {})
        self.options = self.declared = options or QueueOptions()
        self.alternate_exchange = alternate_exchange
        self.freeable = freeable
        self.priorities = priorities
        self.policy: Policy | None = None
        self.operator_policy: Policy | None = None
        self.acknowledgement_timeout = self._acknowledgement_timeout()
        self.incoming: dict[Binding, None] = {}
        self.subscriptions: dict[Subscription, None] = {}
        self.exclusive_subscription: Subscription | None = None
        self.unacked: dict[Delivery, None] = {}
        self.deleted = False
        self._rotation = Rotation()
        self._expiry_timer: Timer | None = None
        self._prepare()
        self.used()

    def _prepare(self) -> None:
        """Make what this type keeps its messages and its consumers in; all that queues share is there."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} {len(self.ready)} ready, {len(self.unacked)} unacked>"

    # --- declaration --------------------------------------------------------------------------------

    @classmethod
    def check_declaration(
        cls, name: str, virtual_host: str, *, durable: bool, exclusive: bool, auto_delete: bool
    ) -> None:
        """Can a queue of this type have these flags? `name` is empty where the broker is to find one.

        Raises:
            PreconditionFailed: it cannot.
        """
        for wrong, flag in (
            (auto_delete, "auto-delete"),
            (exclusive, "exclusive-owner"),
            (not durable, "non-durable"),
        ):
            if cls.replicated and wrong:
                raise PreconditionFailed(
                    f"invalid property '{flag}' for queue '{name}' in vhost '{virtual_host}'"
                )

    @classmethod
    def check_arguments(
        cls, name: str, virtual_host: str, arguments: Mapping[str, Any], personality: Personality
    ) -> None:
        """What is wrong with arguments, but only matters once the flags are right.

        Raises:
            PreconditionFailed: something is.
        """

    def check_deletion(self, *, if_unused: bool, if_empty: bool) -> int:
        """May the queue be deleted on these conditions?

        Returns:
            How many messages the client is told it held.

        Raises:
            PreconditionFailed: no.
        """
        where = f"queue '{self.name}' in vhost '{self.virtual_host.name}'"
        if if_unused and self.subscriptions:
            raise PreconditionFailed(f"{where} in use")
        if if_empty and len(self.ready):
            raise PreconditionFailed(f"{where} not empty")
        return len(self.ready)

    def next_offset(self, subscription: Subscription) -> int | None:
        """Where in the queue a subscription will read on, if it has such a place."""
        return None

    # --- what each type does its own way ------------------------------------------------------------

    @property
    def ready(self) -> Waiting:
        """The messages that wait, in the order they will be delivered."""
        raise NotImplementedError

    @property
    def set_aside(self) -> int:
        """How many messages it keeps that nobody can be sent now: for a retry, or as dead letters."""
        return 0

    def aside(self) -> list[Message]:
        """The messages that are set aside: those for a retry, soonest first, then dead letters."""
        return []

    def enqueue(self, message: Message) -> bool:
        """Hand the message to a subscription that can take it, or store it.

        Returns:
            False where the queue is full and refuses (`x-overflow`: reject-publish and its kin).
        """
        raise NotImplementedError

    def bury(self, message: Message) -> bool:
        """Take a dead letter. Returns False where the queue is full and refuses it."""
        return self.enqueue(message)

    def would_refuse(self, message: Message) -> bool:
        """Whether `enqueue` would refuse the message now. Nothing changes."""
        return False

    def has_room(self, messages: Sequence[Message]) -> bool:
        """Whether `enqueue` would take all of these now, one after the other. Nothing changes."""
        return not any(self.would_refuse(message) for message in messages)

    def next_taker(self, message: Message) -> Subscription | None:
        """To whom `enqueue` would hand the message over at once, if to anybody. Nothing changes."""
        return None

    def could_take(self, message: Message) -> bool:
        """Whether the message would be handed over at once (basic.publish/immediate-*)."""
        raise NotImplementedError

    def dispatch(self) -> None:
        """Send what waits to whoever can take it, until there is nothing or nobody left."""
        raise NotImplementedError

    def get(
        self, owner: object, *, no_ack: bool, group: object = None, content_class: str | None = None
    ) -> tuple[QueuedMessage, Delivery | None] | None:
        """Take the next message for one client, prefetch notwithstanding (basic.qos/get-unaffected).

        `group` is the channel that asks; what it has rejected it does not get (basic.reject/requeue-01). With
        a `content_class` it gets the next message of that class.

        Returns:
            The message, with a delivery to settle unless `no_ack`; None where nothing waits.
        """
        raise NotImplementedError

    def as_delivered(self, queued: QueuedMessage) -> Message:
        """The message as whoever gets it now will see it."""
        return queued.message

    def acquire(self, delivery: Delivery) -> bool:
        """Take a message that was only shown out of what waits, for whom it was shown to.

        Returns:
            False where it is not there to be had: taken, expired, dropped, settled, or acquired already
            (message.acquire/exclusive-winner, message.acquire/not-on-gone).
        """
        return False

    def _let_see(self, queued: QueuedMessage, subscription: Subscription) -> None:
        """Show a message to a subscription that only looks; it stays where it is."""
        delivery = None
        if not subscription.no_ack:
            credits = subscription.credits
            for credit in credits:
                credit.take(queued.message)
            now = self.virtual_host.now()
            delivery = Delivery(self, queued, subscription, subscription.owner, credits, now, acquired=False)
        subscription.subscriber.deliver(subscription, queued.message, queued.redelivered, delivery)

    def purge(self) -> int:
        """Drop all that waits; what clients hold stays (queue.purge/02). Returns how many were dropped."""
        raise NotImplementedError

    def forget(self, delivery: Delivery) -> None:
        """The delivery was accepted."""
        raise NotImplementedError

    def refuse(self, delivery: Delivery) -> None:
        """The delivery was rejected."""
        raise NotImplementedError

    def take_back(
        self, deliveries: Iterable[Delivery], *, avoid: object = None, redelivered: bool = True
    ) -> None:
        """Put messages back in their old places. A deleted queue takes nothing back.

        `redelivered` says whether they are marked so; a mark is never taken away.
        """
        raise NotImplementedError

    def redeliver(self, delivery: Delivery) -> bool:
        """Send a released message to the subscription that had it (basic.recover/requeue-false).

        Returns:
            False where that cannot be: the message then belongs back in the queue.
        """
        return False

    def clear(self) -> list[Message]:
        """Take out all that waits, because the queue is deleted."""
        raise NotImplementedError

    def abandon(self) -> list[Message]:
        """Take out all that waits and all that clients hold, because the queue is deleted; oldest first.

        Whatever clients do with what they hold does nothing to it from now on.
        """
        return [*(delivery.queued.message for delivery in self._taken_away()), *self.clear()]

    def _taken_away(self) -> list[Delivery]:
        """What clients held, and do no longer; only what prepared branches will settle stays with them."""
        in_doubt = self.virtual_host.branches.in_doubt
        held = [delivery for delivery in self.unacked if delivery not in in_doubt]
        for delivery in held:
            del self.unacked[delivery]
            delivery.acquired = False
        return held

    def _too_late(self, returned: Iterable[QueuedMessage], reason: Literal["deleted", "rejected"]) -> None:
        """These come back to the queue after it was deleted, or were rejected after that."""
        if self.alternate_exchange is None:
            self._dropped(returned, reason, NOT_TAKEN_BACK)
            return
        for queued in returned:
            self.virtual_host.dead_letters.passed_on(self, queued.message, reason)

    def drop_all(self, reason: DropReason, detail: str) -> None:
        """Drop all that waits and is set aside: the queue has been deleted. Clients keep what they hold."""
        self.virtual_host.ends.dropped_all(self.clear(), self.name, reason, detail)

    def _dropped(self, lost: Iterable[QueuedMessage], reason: DropReason, detail: str) -> None:
        """These are gone."""
        self.virtual_host.ends.dropped_all((each.message for each in lost), self.name, reason, detail)

    def keep_persistent(self, *, crash: bool = False) -> None:
        """After a restart: only persistent messages are left, those that were unsettled among them.

        After a crash, only those of them whose publisher was told that the broker has them.
        """
        raise NotImplementedError

    def keep_in_doubt(self, *, crash: bool = False) -> list[Delivery]:
        """After a restart: what prepared branches will settle stays away, if it is persistent.

        Returns:
            The other deliveries, whose messages come back.
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
                how = "crashed" if crash else "restarted"
                self._dropped(
                    (delivery.queued,), "crash" if crash else "restart", NOT_PERSISTENT.format(how=how)
                )
        return others

    def restarted(self) -> None:
        """All queues are back after a restart."""

    # --- options ------------------------------------------------------------------------------------

    def apply(self, options: QueueOptions) -> None:
        """Put other options into force: a policy has come, changed or gone."""
        self.options = options
        self.acknowledgement_timeout = self._acknowledgement_timeout()
        self.used()

    def _acknowledgement_timeout(self) -> float | None:
        personality = self.virtual_host.state.personality
        if not personality.channels_time_out:
            return None
        asked = self.options.consumer_timeout
        return (personality.consumer_timeout or None) if asked is None else asked

    # --- subscriptions ------------------------------------------------------------------------------

    def consumer_options(self, arguments: Mapping[str, Any]) -> ConsumerOptions:
        """Read the arguments of `basic.consume`.

        Raises:
            PreconditionFailed: one has an illegal value, or belongs to other queue types.
        """
        personality = self.virtual_host.state.personality
        return consumer_options(self.type_name, self.name, self.virtual_host.name, arguments, personality)

    def check_subscription(self, subscription: Subscription) -> None:
        """May this subscription come in?

        Raises:
            AccessRefused: exclusive access stands in the way (basic.consume/exclusive-*).
        """
        alone = self.options.single_active_consumer
        if self.exclusive_subscription is not None or (
            subscription.exclusive and (self.subscriptions or alone)
        ):
            raise AccessRefused(f"queue '{self.name}' in vhost '{self.virtual_host.name}' in exclusive use")

    def subscribe(self, subscription: Subscription) -> None:
        """Let a new subscription in; the caller dispatches once the client has been told.

        Raises:
            AccessRefused: exclusive access stands in the way (basic.consume/exclusive-*).
        """
        try:
            self.check_subscription(subscription)
        except BaseException:
            subscription.end()
            raise
        if subscription.exclusive:
            self.exclusive_subscription = subscription
        self.subscriptions[subscription] = None
        self._enter(subscription)
        self.used()

    def _enter(self, subscription: Subscription) -> None:
        """Let a new subscription take its turns, or wait."""
        if not self.options.single_active_consumer or not self._rotation:
            self._rotation.add(subscription)

    def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription; its channel settles what it holds (basic.cancel/outstanding-remain)."""
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

    def unused(self, why: str) -> None:
        """The last consumer of an auto-delete queue has gone, or the owner of an exclusive one: it goes."""
        self.virtual_host.remove_queue(self, why)

    def cancel_all(self) -> int:
        """End every subscription, as if the queue had gone; their clients are told, and keep what they hold.

        Returns:
            How many there were.
        """
        ended = list(self.subscriptions)
        # The latest first, so that those that wait for their turn do not get it.
        for subscription in reversed(ended):
            subscription.subscriber.cancelled(subscription)
            self.unsubscribe(subscription)
        return len(ended)

    def _leave(self, subscription: Subscription) -> None:
        """A subscription takes no turns any more."""
        if subscription in self._rotation:
            self._rotation.remove(subscription)
            waiting = [each for each in self.subscriptions if each.acquires]
            if self.options.single_active_consumer and waiting:
                self._rotation.add(max(waiting, key=lambda each: each.priority))

    @property
    def consumer_count(self) -> int:
        """How many consumers declare-ok tells of."""
        return len(self.subscriptions)

    def detach_all(self) -> list[Subscription]:
        """End every subscription because the queue goes; they are returned for their clients to be told."""
        ended = list(self.subscriptions)
        self.deleted = True
        for subscription in ended:
            subscription.end()
        self.subscriptions.clear()
        self._rotation = Rotation()
        self.exclusive_subscription = None
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()
        return ended

    # --- time ---------------------------------------------------------------------------------------

    def asked_for(self) -> None:
        """The queue was declared again, be it passively."""
        self.used()

    def used(self) -> None:
        """Count as in use now: `x-expires` begins anew, and rests while there are subscriptions."""
        expires = self.options.expires
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()
            self._expiry_timer = None
        if expires is not None and not self.subscriptions and not self.deleted:
            self._expiry_timer = self.virtual_host.call_later(
                expires, self._unused_too_long, f"q '{self.name}' expires unused"
            )

    def _unused_too_long(self) -> None:
        if not self.deleted and not self.subscriptions:
            self.virtual_host.remove_queue(self, UNUSED_TOO_LONG)


def expires_messages(queue: str, count: int) -> str:
    """What a queue's timer says that is set for so many messages."""
    return f"q '{queue}' expires {count} message{'' if count == 1 else 's'}"
