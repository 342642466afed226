"""A classic queue with the extensions of Apache's brokers, which arguments of queue.declare ask for (0-10).

Numbers in the arguments may come as text. Beyond limits and priority levels, which a `ClassicQueue` has as
well, there are four extensions:

- A last value queue keeps only the latest of the waiting messages with the same value in a header. The latest
  is at the end, so that browsers see each new value.
- With message groups, messages with the same value in a header go to one subscription at a time: the
  subscription that holds an unsettled one gets the next.
- Messages can be numbered in a header, so that receivers notice messages that a ring has dropped.
- Messages published over the connection that the queue is exclusive to can be kept out of it.

Source: the documentation of Apache's C++ broker; details by the test suite of its clients.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, Any, Literal

from fakeamqp.model.errors import InvalidArgument
from fakeamqp.model.operations import carry_out
from fakeamqp.model.queues.classic import ClassicQueue
from fakeamqp.model.queues.waiting import PriorityFifo

if TYPE_CHECKING:
    from fakeamqp.model.arguments.queue_arguments import QueueOptions
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.deliveries.subscription import Subscription
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.personality import Personality
    from fakeamqp.model.queues.waiting import Fifo, QueuedMessage

_MEDIUM = 4
"""The priority of messages without one (0-10: message.delivery-priority)."""


class FairShareFifo(PriorityFifo):
    """Priority levels around the middle of the priorities, the highest first.

    With `shares`, a level that has delivered its share pauses until all lower levels have delivered theirs or
    are empty. A share of 0 never pauses.
    """

    __slots__ = ("_had", "_shares")

    def __init__(self, levels: int, shares: tuple[int, ...] = ()) -> None:
        super().__init__(levels - 1)
        self._shares = shares
        self._had = [0] * levels
        """How many messages each level has delivered in this round."""

    def number(self, queued: QueuedMessage) -> int:
        """A message without a priority counts as one of medium priority."""
        priority = queued.message.properties.priority
        lowest = 5 - ceil(len(self._levels) / 2)
        number = (_MEDIUM if priority is None else priority) - lowest
        return min(max(number, 0), self._maximum)

    def _next(self) -> int:
        """The level that the next message comes from; there must be one."""
        filled = [number for number in range(self._maximum, -1, -1) if self._levels[number]]
        if self._shares:
            for number in filled:
                if not self._shares[number] or self._had[number] < self._shares[number]:
                    return number
        return filled[0]

    def head(self) -> QueuedMessage | None:
        return self._levels[self._next()].head() if self._used else None

    def pop(self) -> QueuedMessage:
        number = self._next()
        if self._shares:
            if self._shares[number] and self._had[number] >= self._shares[number]:
                self._had = [0] * len(self._had)  # All levels have delivered their shares: a new round.
            self._had[number] += 1
        return self._pop(number)


_MOST_LEVELS = 10

_MAX_COUNT = "qpid.max_count"
_MAX_SIZE = "qpid.max_size"
_POLICY = "qpid.policy_type"
_LEVELS = ("x-qpid-priorities", "qpid.priorities")
_FAIRSHARE = ("x-qpid-fairshare", "qpid.fairshare")
_LAST_VALUE_KEY = "qpid.last_value_queue_key"
_GROUP_KEY = "qpid.group_header_key"
_SHARED_GROUP = "qpid.shared_msg_group"
_SEQUENCE_KEY = "qpid.queue_msg_sequence"
_DELAY = "qpid.auto_delete_timeout"
_NO_LOCAL = "no-local"

_NAMES = frozenset((_MAX_COUNT, _MAX_SIZE, _POLICY, *_LEVELS, _LAST_VALUE_KEY, _GROUP_KEY, _SEQUENCE_KEY))
_NAMES |= {_DELAY, _NO_LOCAL}
_POLICIES = ("reject", "ring", "ring_strict")


class QpidOptions:
    """What the arguments of queue.declare ask for; None means not asked for.

    Counts are in messages, sizes in bytes, times in seconds. `levels` is the number of priority levels,
    `shares` how many messages in a row each level may deliver, from the lowest level upwards, 0 for any
    number. The three keys are names of headers: of messages with the same `last_value_key` the queue keeps
    the latest; messages with the same `group_key` have one consumer at a time; the broker writes the
    message's number to `sequence_key`.

    Raises:
        InvalidArgument: an argument has an illegal value.
    """

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        levels = _either(arguments, _LEVELS)
        if levels is not None:
            levels = min(max(levels, 1), _MOST_LEVELS)
        self.max_count: int | None = _number(arguments, _MAX_COUNT) or None
        self.max_size: int | None = _number(arguments, _MAX_SIZE) or None
        self.policy: Literal["reject", "ring"] = _policy(arguments)
        self.levels: int | None = levels
        self.shares: tuple[int, ...] = () if levels is None else _shares(arguments, levels)
        self.last_value_key: str | None = _text(arguments, _LAST_VALUE_KEY)
        shares_groups = _truth(arguments, _SHARED_GROUP)
        self.group_key: str | None = _text(arguments, _GROUP_KEY) if shares_groups else None
        self.sequence_key: str | None = _text(arguments, _SEQUENCE_KEY)
        self.auto_delete_delay: int | None = _number(arguments, _DELAY) or None
        self.no_local: bool = _truth(arguments, _NO_LOCAL)


def are_asked_for(arguments: Mapping[str, Any]) -> bool:
    """Whether the arguments contain any of these."""
    return not _NAMES.isdisjoint(arguments)


def _number(arguments: Mapping[str, Any], name: str) -> int | None:
    """An integer from 0 upwards, or a text that spells one."""
    value = arguments.get(name)
    if value is None:
        return None
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if type(value) is not int or value < 0:
        raise InvalidArgument(f"argument '{name}' is not an integer from 0 upwards: {value!r}")
    return value


def _either(arguments: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    """A number under any of several names."""
    return next((_number(arguments, name) for name in names if name in arguments), None)


def _shares(arguments: Mapping[str, Any], levels: int) -> tuple[int, ...]:
    """The share of each level: its own, or the common one."""
    common = _either(arguments, _FAIRSHARE) or 0
    own = (_either(arguments, tuple(f"{name}-{each}" for name in _FAIRSHARE)) for each in range(levels))
    shares = tuple(common if share is None else share for share in own)
    return shares if any(shares) else ()


def _policy(arguments: Mapping[str, Any]) -> Literal["reject", "ring"]:
    value = arguments.get(_POLICY, "reject")
    if value not in _POLICIES:
        raise InvalidArgument(f"argument '{_POLICY}' is {value!r}, not one of {', '.join(_POLICIES)}")
    return "reject" if value == "reject" else "ring"


def _text(arguments: Mapping[str, Any], name: str) -> str | None:
    value = arguments.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidArgument(f"argument '{name}' is not a string: {value!r}")
    return value or None


def _truth(arguments: Mapping[str, Any], name: str) -> bool:
    """A boolean, a number, or the word for one of them."""
    value = arguments.get(name, False)
    return value.lower() not in ("", "0", "false", "no") if isinstance(value, str) else bool(value)


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
        QpidOptions(arguments)

    def _prepare(self) -> None:
        asked = QpidOptions(self.arguments)
        self.asked: QpidOptions = asked
        if asked.max_count is not None or asked.max_size is not None:
            self.declared: QueueOptions = replace(
                self.options,
                max_length=asked.max_count,
                max_length_bytes=asked.max_size,
                overflow="drop-head" if asked.policy == "ring" else "reject-publish",
            )
            self.options: QueueOptions = self.declared
        self._groups: dict[Any, _Group] = {}
        self._numbered = 0
        super()._prepare()
        self._select_groups()

    def empty_ready(self) -> Fifo | PriorityFifo:
        asked = self.asked
        return super().empty_ready() if asked.levels is None else FairShareFifo(asked.levels, asked.shares)

    @property
    def _drops_lowest(self) -> bool:
        return self.asked.levels is not None or super()._drops_lowest

    def _select_groups(self) -> None:
        if self.asked.group_key is not None:
            self._select()

    # --- arrival -----------------------------------------------------------------------------------

    def enqueue(self, message: Message, dead_letter: bool = False) -> bool:
        """A message that is kept out is dropped, which is not a refusal."""
        asked = self.asked
        if asked.no_local and self._is_local(message):
            detail = "it was published over the connection that the queue is exclusive to (no-local)"
            self.virtual_host.message_outcomes.dropped(message, self.name, "local", detail)
            return True
        if (key := asked.last_value_key) is not None:
            value = message.headers.get(key)
            last = next((each for each in self.ready if each.message.headers.get(key) == value), None)
            if last is not None:
                self._replaced(last)
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

    def _replaced(self, queued: QueuedMessage) -> None:
        self.take_out(queued)
        self._dropped((queued,), "replaced", "a newer message with the same value has come")

    # --- groups ------------------------------------------------------------------------------------

    def _group_of(self, queued: QueuedMessage) -> Any:
        value = queued.message.headers.get(self.asked.group_key or "")
        return value if isinstance(value, str | bytes | int) else _NO_GROUP

    def suits(self, subscription: Subscription, queued: QueuedMessage) -> bool:
        """A message does not suit if another subscription holds its group."""
        if not super().suits(subscription, queued):
            return False
        if self.asked.group_key is None:
            return True
        group = self._groups.get(self._group_of(queued))
        return group is None or group.holder is subscription

    def hand_over(self, queued: QueuedMessage, subscription: Subscription) -> None:
        """The message's group goes to the subscription."""
        if not subscription.no_ack:
            self._taken(queued, subscription)
        super().hand_over(queued, subscription)

    def acquire(self, delivery: Delivery) -> bool:
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
        super().forget(delivery)
        self._ended(delivery)

    def reject(self, delivery: Delivery) -> None:
        super().reject(delivery)
        self._ended(delivery)

    def _ended(self, delivery: Delivery) -> None:
        self._let_go(delivery)
        if self.selects and not self.deleted:
            self.dispatch()

    def taking_back(
        self, deliveries: Sequence[Delivery], *, avoid: object = None, redelivered: bool = True
    ) -> Iterator[None]:
        """A single step. A message that a newer value has replaced does not return."""
        for delivery in deliveries:
            self._let_go(delivery)
        carry_out(super().taking_back(deliveries, avoid=avoid, redelivered=redelivered))
        if self.asked.last_value_key is not None and not self.deleted:
            self._drop_older_values(self.asked.last_value_key)
        return iter(())

    def _drop_older_values(self, key: str) -> None:
        latest: dict[str, QueuedMessage] = {}
        for queued in sorted(self.ready, key=lambda each: each.position):
            value = repr(queued.message.headers.get(key))
            if value in latest:
                self._replaced(latest[value])
            latest[value] = queued

    def keep_persistent(self, *, crash: bool = False) -> None:
        super().keep_persistent(crash=crash)
        self._select_groups()

    def unused(self, why: str) -> None:
        """The deletion may be delayed."""
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
