"""A classic queue with what Apache's brokers add to AMQP 0-10 by arguments of queue.declare.

What the arguments are is in `qpid_arguments`. Beyond limits and levels of priority, which a `ClassicQueue`
has as well, there are four things:

- A last value queue keeps of all messages with the same value in a header only the latest, as long as they
  wait. The latest is at the end, so that those who only look see each new value.
- With message groups, the messages that have the same value in a header go to one subscription at a time:
  whoever has taken one and has not settled it gets the next.
- Messages may be numbered in a header, so that receivers see that a ring has dropped some.
- What was published over the connection that the queue is exclusive to may be kept out of it.

Source: the documentation of Apache's C++ broker; details by the test suite of its clients.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fakeamqp.model.queues.classic import ClassicQueue
from fakeamqp.model.queues.fair_levels import FairLevels
from fakeamqp.model.queues.qpid_arguments import qpid_options

if TYPE_CHECKING:
    from fakeamqp.model.delivery import Delivery
    from fakeamqp.model.message import Message
    from fakeamqp.model.personality import Personality
    from fakeamqp.model.queues.queue import QueuedMessage
    from fakeamqp.model.queues.ready import Fifo, PriorityFifo
    from fakeamqp.model.subscription import Subscription

__all__ = ["QpidQueue"]

_NO_GROUP = "qpid.no-group"
"""What messages without the header belong to."""


class _Group:
    """The messages that go to one subscription at a time: who has some, and how many are not settled."""

    __slots__ = ("holder", "unsettled")

    def __init__(self, holder: Subscription | None) -> None:
        self.holder = holder
        self.unsettled = 0


class QpidQueue(ClassicQueue):
    """See the module. `asked` is what the arguments ask for."""

    __slots__ = ("_groups", "_numbered", "asked")

    @classmethod
    def check_arguments(
        cls, name: str, virtual_host: str, arguments: Mapping[str, Any], personality: Personality
    ) -> None:
        """See the base class.

        Raises:
            InvalidArgument: an argument has a value that means nothing.
        """
        super().check_arguments(name, virtual_host, arguments, personality)
        qpid_options(arguments)

    def _prepare(self) -> None:
        """See the base class."""
        self.asked = asked = qpid_options(self.arguments)
        if asked.max_count is not None or asked.max_size is not None:
            self.options = self.declared = replace(
                self.options,
                max_length=asked.max_count,
                max_length_bytes=asked.max_size,
                overflow="drop-head" if asked.policy == "ring" else "reject-publish",
            )
        self._groups: dict[Any, _Group] = {}
        self._numbered = 0
        super()._prepare()
        self._look_closer()

    def _empty(self) -> Fifo | PriorityFifo:
        """See the base class."""
        asked = self.asked
        return super()._empty() if asked.levels is None else FairLevels(asked.levels, asked.shares)

    @property
    def _drops_lowest(self) -> bool:
        """See the base class."""
        return self.asked.levels is not None or super()._drops_lowest

    def _look_closer(self) -> None:
        """With groups, not every message is for everybody."""
        if self.asked.group_key is not None:
            self._picky = True
            self._plain = False

    # --- arrival -----------------------------------------------------------------------------------

    def enqueue(self, message: Message) -> bool:
        """See the base class; what is kept out is dropped, which is no refusal."""
        asked = self.asked
        if asked.no_local and self._is_local(message):
            detail = "it was published over the connection that the queue is exclusive to (no-local)"
            self.virtual_host.ends.dropped(message, self.name, "local", detail)
            return True
        if asked.last_value_key is not None:
            self._drop_last_value(message, asked.last_value_key)
        if asked.sequence_key is not None and not self.would_refuse(message):
            self._numbered += 1
            numbered = message.properties.with_headers({asked.sequence_key: self._numbered})
            message = message.with_properties(numbered)
        return super().enqueue(message)

    def _is_local(self, message: Message) -> bool:
        """Whether it came over the connection of the owner, or of the exclusive subscription."""
        owner = self.exclusive_owner
        if owner is None and self.exclusive_subscription is not None:
            owner = self.exclusive_subscription.owner
        return owner is not None and _connection(message.publisher) == _connection(owner)

    def _drop_last_value(self, message: Message, key: str) -> None:
        """A newer message with this value has come."""
        value = message.headers.get(key)
        last = next((each for each in self.ready if each.message.headers.get(key) == value), None)
        if last is not None:
            self._replaced(last)

    def _replaced(self, queued: QueuedMessage) -> None:
        self._take_out(queued)
        self._dropped((queued,), "replaced", "a newer message with the same value has come")

    # --- groups ------------------------------------------------------------------------------------

    def _group_of(self, queued: QueuedMessage) -> Any:
        value = queued.message.headers.get(self.asked.group_key or "")
        return value if isinstance(value, str | bytes | int) else _NO_GROUP

    def _suits(self, subscription: Subscription, queued: QueuedMessage) -> bool:
        """See the base class: a message of a group that another subscription has does not."""
        if not super()._suits(subscription, queued):
            return False
        if self.asked.group_key is None:
            return True
        group = self._groups.get(self._group_of(queued))
        return group is None or group.holder is subscription

    def _hand_over(self, queued: QueuedMessage, subscription: Subscription) -> None:
        if not subscription.no_ack:
            self._taken(queued, subscription)
        super()._hand_over(queued, subscription)

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
        """A delivery has ended: with the last of its group, others may have what is left."""
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
        if self._picky and not self.deleted:
            self.dispatch()

    def refuse(self, delivery: Delivery) -> None:
        """See the base class."""
        super().refuse(delivery)
        self._let_go(delivery)
        if self._picky and not self.deleted:
            self.dispatch()

    def take_back(
        self, deliveries: Iterable[Delivery], *, avoid: object = None, redelivered: bool = True
    ) -> None:
        """See the base class; what a newer value has replaced meanwhile does not come back."""
        returned = list(deliveries)
        for delivery in returned:
            self._let_go(delivery)
        super().take_back(returned, avoid=avoid, redelivered=redelivered)
        if self.asked.last_value_key is not None and not self.deleted:
            self._drop_older_values(self.asked.last_value_key)

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
        self._look_closer()

    # --- the end -----------------------------------------------------------------------------------

    def unused(self, why: str) -> None:
        """See the base class: it may last for some time."""
        delay = self.asked.auto_delete_delay
        if delay is None:
            super().unused(why)
            return
        self.exclusive_owner = None
        self.virtual_host.call_later(
            delay, lambda: self._go(why), f"auto-delete q '{self.name}' is deleted if nobody uses it"
        )

    def _go(self, why: str) -> None:
        if not self.subscriptions and self.exclusive_owner is None:
            super().unused(why)


def _connection(owner: object) -> object:
    """The name of the connection that a session is or was on."""
    return getattr(owner, "name", owner)
