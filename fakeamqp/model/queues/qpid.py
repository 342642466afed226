"""A classic queue with the extensions of Apache's brokers, which arguments of queue.declare ask for (0-10).

`qpid_arguments` reads the arguments. Beyond limits and priority levels, which a `ClassicQueue` has as well,
there are four extensions:

- A last value queue keeps only the latest of the waiting messages with the same value in a header. The latest
  is at the end, so that browsers see each new value.
- With message groups, messages with the same value in a header go to one subscription at a time: the
  subscription that holds an unsettled one gets the next.
- Messages can be numbered in a header, so that receivers notice messages that a ring has dropped.
- Messages published over the connection that the queue is exclusive to can be kept out of it.

Source: the documentation of Apache's C++ broker; details by the test suite of its clients.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fakeamqp.model.queues.classic import ClassicQueue
from fakeamqp.model.queues.fair_share import FairShareFifo
from fakeamqp.model.queues.qpid_arguments import qpid_options
from fakeamqp.model.queues.queue import Queue

if TYPE_CHECKING:
    from fakeamqp.model.arguments.queue_arguments import QueueOptions
    from fakeamqp.model.delivery import Delivery
    from fakeamqp.model.message import Message
    from fakeamqp.model.personality import Personality
    from fakeamqp.model.queues.qpid_arguments import QpidOptions
    from fakeamqp.model.queues.queue import QueuedMessage
    from fakeamqp.model.queues.ready import Fifo, PriorityFifo
    from fakeamqp.model.subscription import Subscription

__all__ = ["QpidQueue"]

_NO_GROUP = "qpid.no-group"
"""The group of messages without the header."""


class _Group:
    """A message group: the subscription that holds messages of it, and how many are unsettled."""

    __slots__ = ("holder", "unsettled")

    def __init__(self, holder: Subscription | None) -> None:
        self.holder = holder
        self.unsettled = 0


class QpidQueue(ClassicQueue):
    """See the module. `asked` holds the arguments."""

    __slots__ = ("_groups", "_numbered", "asked")

    @classmethod
    def check_arguments(
        cls, name: str, virtual_host: str, arguments: Mapping[str, Any], personality: Personality
    ) -> None:
        """See the base class.

        Raises:
            InvalidArgument: an argument has an illegal value.
        """
        super().check_arguments(name, virtual_host, arguments, personality)
        qpid_options(arguments)

    def _prepare(self) -> None:
        """See the base class."""
        asked = qpid_options(self.arguments)
        self.asked: QpidOptions = asked
        if asked.max_count is not None or asked.max_size is not None:
            self.declared: QueueOptions
            self.options: QueueOptions
            self.options = self.declared = replace(
                self.options,
                max_length=asked.max_count,
                max_length_bytes=asked.max_size,
                overflow="drop-head" if asked.policy == "ring" else "reject-publish",
            )
        self._groups: dict[Any, _Group] = {}
        self._numbered = 0
        super()._prepare()
        self._select_groups()

    def empty_ready(self) -> Fifo | PriorityFifo:
        """See the base class."""
        asked = self.asked
        return super().empty_ready() if asked.levels is None else FairShareFifo(asked.levels, asked.shares)

    @property
    def _drops_lowest(self) -> bool:
        """See the base class."""
        return self.asked.levels is not None or super()._drops_lowest

    def _select_groups(self) -> None:
        """With groups, messages do not suit every subscription."""
        if self.asked.group_key is not None:
            self._select()

    # --- arrival -----------------------------------------------------------------------------------

    def enqueue(self, message: Message) -> bool:
        """See the base class; a message that is kept out is dropped, which is not a refusal."""
        asked = self.asked
        if asked.no_local and self._is_local(message):
            detail = "it was published over the connection that the queue is exclusive to (no-local)"
            self.virtual_host.message_outcomes.dropped(message, self.name, "local", detail)
            return True
        if asked.last_value_key is not None:
            self._drop_last_value(message, asked.last_value_key)
        if asked.sequence_key is not None and not self.would_refuse(message):
            self._numbered += 1
            numbered = message.properties.with_headers({asked.sequence_key: self._numbered})
            message = message.with_properties(numbered)
        return super().enqueue(message)

    def _is_local(self, message: Message) -> bool:
        """Whether a message came over the connection of the owner, or of the exclusive subscription."""
        owner = self.exclusive_owner
        if owner is None and self.exclusive_subscription is not None:
            owner = self.exclusive_subscription.owner
        return owner is not None and _connection(message.publisher) == _connection(owner)

    def _drop_last_value(self, message: Message, key: str) -> None:
        """Drop the older message with the same value."""
        value = message.headers.get(key)
        last = next((each for each in self.ready if each.message.headers.get(key) == value), None)
        if last is not None:
            self._replaced(last)

    def _replaced(self, queued: QueuedMessage) -> None:
        self.take_out(queued)
        self._dropped((queued,), "replaced", "a newer message with the same value has come")

    # --- groups ------------------------------------------------------------------------------------

    def _group_of(self, queued: QueuedMessage) -> Any:
        value = queued.message.headers.get(self.asked.group_key or "")
        return value if isinstance(value, str | bytes | int) else _NO_GROUP

    def suits(self, subscription: Subscription, queued: QueuedMessage) -> bool:
        """See the base class: a message does not suit if another subscription holds its group."""
        if not super().suits(subscription, queued):
            return False
        if self.asked.group_key is None:
            return True
        group = self._groups.get(self._group_of(queued))
        return group is None or group.holder is subscription

    def hand_over(self, queued: QueuedMessage, subscription: Subscription) -> None:
        """See the base class: the message's group goes to the subscription."""
        if not subscription.no_ack:
            self._taken(queued, subscription)
        super().hand_over(queued, subscription)

    def acquire(self, delivery: Delivery) -> bool:
        """See the base class."""
        acquired = super().acquire(delivery)
        if acquired:
            self._taken(delivery.queued, delivery.holder)
        return acquired

    def _taken(self, queued: QueuedMessage, holder: Subscription | None) -> None:
        if self.asked.group_key is not None:
            self._groups.setdefault(self._group_of(queued), _Group(holder)).unsettled += 1

    def _let_go(self, delivery: Delivery) -> None:
        """A delivery has ended: the last of its group frees the group for other subscriptions."""
        name = None if self.asked.group_key is None else self._group_of(delivery.queued)
        group = self._groups.get(name)
        if group is not None:
            group.unsettled -= 1
            if not group.unsettled:
                del self._groups[name]

    def forget(self, delivery: Delivery) -> None:
        """See the base class."""
        super().forget(delivery)
        self._let_go(delivery)
        if self._selection is not None and not self.deleted:
            self.dispatch()

    def refuse(self, delivery: Delivery) -> None:
        """See the base class."""
        super().refuse(delivery)
        self._let_go(delivery)
        if self._selection is not None and not self.deleted:
            self.dispatch()

    def take_back(
        self, deliveries: Iterable[Delivery], *, avoid: object = None, redelivered: bool = True
    ) -> None:
        """See the base class; a message that a newer value has replaced does not return."""
        returned = list(deliveries)
        for delivery in returned:
            self._let_go(delivery)
        super().take_back(returned, avoid=avoid, redelivered=redelivered)
        if self.asked.last_value_key is not None and not self.deleted:
            self._drop_older_values(self.asked.last_value_key)

    def taking_back(
        self, deliveries: Sequence[Delivery], *, avoid: object = None, redelivered: bool = True
    ) -> Iterator[None]:
        """See the base class: a single step."""
        return Queue.taking_back(self, deliveries, avoid=avoid, redelivered=redelivered)

    def _drop_older_values(self, key: str) -> None:
        latest: dict[str, QueuedMessage] = {}
        for queued in sorted(self.ready, key=lambda each: each.position):
            older = latest.get(repr(queued.message.headers.get(key)))
            latest[repr(queued.message.headers.get(key))] = queued
            if older is not None:
                self._replaced(older)

    def keep_persistent(self, *, crash: bool = False) -> None:
        """See the base class."""
        super().keep_persistent(crash=crash)
        self._select_groups()

    # --- deletion ----------------------------------------------------------------------------------

    def unused(self, why: str) -> None:
        """See the base class: the deletion may be delayed."""
        delay = self.asked.auto_delete_delay
        if delay is None:
            super().unused(why)
            return
        self.exclusive_owner: object = None
        self.virtual_host.call_later(
            delay, lambda: self._go(why), f"auto-delete q '{self.name}' is deleted if it is unused"
        )

    def _go(self, why: str) -> None:
        if not self.subscriptions and self.exclusive_owner is None:
            super().unused(why)


def _connection(owner: object) -> object:
    """The name of the connection that a session is or was on."""
    return getattr(owner, "name", owner)
