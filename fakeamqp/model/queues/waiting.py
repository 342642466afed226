"""What waits in a queue: messages in the order of delivery, and subscriptions in the order of their turns.

Browsing subscriptions have the messages that each has still to see.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush, merge
from itertools import chain, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol, overload

from fakeamqp.model.timers import Deadline

if TYPE_CHECKING:
    from weakref import ref

    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.deliveries.subscription import Subscription
    from fakeamqp.model.memory import Charge
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.queues.classic import ClassicQueue

_position = attrgetter("position")


class QueuedMessage:
    """A message in one queue. Unlike the message itself it belongs to the queue, and changes.

    `returns` counts how often it was delivered and came back unsettled. `avoid` is a weak reference to the
    group that must not get it again. `failures` counts its failed deliveries; a classic queue sets it with
    the first one only. `charge` is set where the message has other places (`Memory.hold_queued`).
    """

    __slots__ = ("avoid", "charge", "expires_at", "failures", "message", "position", "redelivered", "returns")
    failures: int
    charge: Charge

    def __init__(self, message: Message, position: int, expires_at: float | None) -> None:
        self.message: Message = message
        self.position: int = position
        self.expires_at: float | None = expires_at
        self.redelivered: bool = False
        self.returns: int = 0
        self.avoid: ref[object] | None = None

    def avoids(self, group: object) -> bool:
        return self.avoid is not None and group is not None and self.avoid() is group

    @property
    def offset(self) -> int | None:
        """The offset in a stream; None in other queues."""
        return None


class MessagesOf(Sequence["Message"]):
    """The messages of queued messages, without a list: that of a million takes 80 milliseconds (measured)."""

    __slots__ = ("_queued",)

    def __init__(self, queued: Sequence[QueuedMessage]) -> None:
        self._queued = queued

    def __len__(self) -> int:
        return len(self._queued)

    def __iter__(self) -> Iterator[Message]:
        return (each.message for each in self._queued)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if not isinstance(index, slice):
            return self._queued[index].message
        start, stop, step = index.indices(len(self))
        if stop != len(self) or step != 1:
            return list(self)[index]
        latest = [each.message for each in islice(reversed(self._queued), stop - start)]
        latest.reverse()
        return latest


class Waiting(Protocol):
    """The public view of the messages that wait in a queue."""

    def __len__(self) -> int:
        """How many there are."""

    def __iter__(self) -> Iterator[QueuedMessage]:
        """All of them, in the order of delivery."""


def joined(parts: Iterable[deque[QueuedMessage]]) -> deque[QueuedMessage]:
    """The messages of all parts, in one of the deques. If only one has messages, nothing is copied."""
    taken: deque[QueuedMessage] = deque()
    for part in parts:
        if taken:
            taken.extend(part)
        else:
            taken = part
    return taken


class Fifo:
    """First in, first out; a returned message takes its old place, which its position gives.

    New messages wait in a deque, returned ones in a heap ordered by position. The next message is the head
    with the lower position.
    """

    __slots__ = ("_items", "_returned")

    def __init__(self) -> None:
        self._items: deque[QueuedMessage] = deque()
        self._returned: list[tuple[int, QueuedMessage]] = []

    def __len__(self) -> int:
        return len(self._items) + len(self._returned)

    def __bool__(self) -> bool:
        return bool(self._items or self._returned)

    def __iter__(self) -> Iterator[QueuedMessage]:
        if not self._returned:
            return iter(self._items)
        return merge((queued for _, queued in sorted(self._returned)), self._items, key=_position)

    def append(self, queued: QueuedMessage) -> None:
        self._items.append(queued)

    def returning(self) -> deque[QueuedMessage]:
        """What messages are gathered in before all of them return at one moment."""
        return deque()

    def head(self) -> QueuedMessage | None:
        """The message delivered next, left in place."""
        if self._returned and self._returned_is_next():
            return self._returned[0][1]
        return self._items[0] if self._items else None

    def pop(self) -> QueuedMessage:
        """Take the message delivered next."""
        if self._returned and self._returned_is_next():
            return heappop(self._returned)[1]
        return self._items.popleft()

    def _returned_is_next(self) -> bool:
        return not self._items or self._returned[0][0] < self._items[0].position

    def pop_lowest(self) -> QueuedMessage:
        """Take the oldest message of the lowest priority; here all priorities are equal."""
        return self.pop()

    def remove(self, queued: QueuedMessage) -> None:
        """Take out a message from anywhere; the one delivered next costs no more than `pop`."""
        entry = (queued.position, queued)
        if queued is self.head():
            self.pop()
        elif entry in self._returned:
            self._returned.remove(entry)
            heapify(self._returned)
        else:
            self._items.remove(queued)

    def put_back(self, returned: Iterable[QueuedMessage]) -> None:
        """Insert messages at their positions; each costs the logarithm of how many have returned."""
        for queued in returned:
            heappush(self._returned, (queued.position, queued))

    def put_in_front(self, returned: deque[QueuedMessage]) -> bool:
        """Insert messages, in the order of their positions; False if some that wait stand before them.

        The deque is taken over. The cost is that of copying the references to the fewer messages.
        """
        items = self._items
        if self._returned or (items and items[0].position < returned[-1].position):
            return False
        if len(items) <= len(returned):
            returned.extend(items)
            self._items = returned
        else:
            items.extendleft(reversed(returned))
        return True

    def clear(self) -> deque[QueuedMessage]:
        """Take out everything. A million messages that have not returned are not copied."""
        taken = deque(self) if self._returned else self._items
        self._items = deque()
        self._returned.clear()
        return taken


class ByLevel:
    """Messages that return to a `PriorityFifo`, by the numbers of their levels."""

    __slots__ = ("_levels", "_number", "_unordered")

    def __init__(self, number: Callable[[QueuedMessage], int]) -> None:
        self._number = number
        self._levels: dict[int, deque[QueuedMessage]] = {}
        self._unordered: set[int] = set()

    def __len__(self) -> int:
        return sum(map(len, self._levels.values()))

    def __iter__(self) -> Iterator[QueuedMessage]:
        return chain.from_iterable(self._levels.values())

    def append(self, queued: QueuedMessage) -> None:
        number = self._number(queued)
        level = self._levels.get(number)
        if level is None:
            self._levels[number] = deque((queued,))
            return
        if level[-1].position > queued.position:
            self._unordered.add(number)
        level.append(queued)

    def in_order(self) -> Iterator[tuple[int, deque[QueuedMessage]]]:
        """The number of each level, and its messages in the order of their positions."""
        for number, level in self._levels.items():
            ordered = number not in self._unordered
            yield number, level if ordered else deque(sorted(level, key=_position))


class PriorityFifo:
    """One `Fifo` per priority level, the highest level first; used like one (basic/06, basic/07)."""

    __slots__ = ("_count", "_levels", "_maximum", "_used")

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._levels = [Fifo() for _ in range(maximum + 1)]
        self._count = 0
        self._used = 0
        """A bit for each level that is not empty, which finds the highest and the lowest at once."""

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[QueuedMessage]:
        for level in reversed(self._levels):
            yield from level

    def number(self, queued: QueuedMessage) -> int:
        """The number of the message's level; a higher one is more urgent."""
        priority = queued.message.priority
        return priority if priority < self._maximum else self._maximum

    def append(self, queued: QueuedMessage) -> None:
        number = self.number(queued)
        self._levels[number].append(queued)
        self._used |= 1 << number
        self._count += 1

    def head(self) -> QueuedMessage | None:
        return self._levels[self._used.bit_length() - 1].head() if self._used else None

    def pop(self) -> QueuedMessage:
        return self._pop(self._used.bit_length() - 1)

    def pop_lowest(self) -> QueuedMessage:
        return self._pop((self._used & -self._used).bit_length() - 1)

    def _pop(self, number: int) -> QueuedMessage:
        level = self._levels[number]
        queued = level.pop()
        self._count -= 1
        if not level:
            self._used &= ~(1 << number)
        return queued

    def remove(self, queued: QueuedMessage) -> None:
        number = self.number(queued)
        self._levels[number].remove(queued)
        self._count -= 1
        if not self._levels[number]:
            self._used &= ~(1 << number)

    def returning(self) -> ByLevel:
        return ByLevel(self.number)

    def put_back(self, returned: Iterable[QueuedMessage]) -> None:
        """Merge messages into their levels by position. Those that `returning` has gathered cost little."""
        if not isinstance(returned, ByLevel):
            gathered = self.returning()
            for queued in returned:
                gathered.append(queued)
            returned = gathered
        for number, entered in returned.in_order():
            level = self._levels[number]
            self._count += len(entered)
            self._used |= 1 << number
            if not level.put_in_front(entered):
                level.put_back(entered)

    def clear(self) -> deque[QueuedMessage]:
        taken = joined(level.clear() for level in reversed(self._levels))
        self._count = self._used = 0
        return taken


class IndexedFifo:
    """A `Fifo` or `PriorityFifo`, used like it, with an index of its messages for fast membership tests."""

    __slots__ = ("_waiting", "plain")

    def __init__(self, plain: Fifo | PriorityFifo) -> None:
        self.plain: Fifo | PriorityFifo = plain
        self._waiting = dict.fromkeys(plain)

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[QueuedMessage]:
        return iter(self.plain)

    def __contains__(self, queued: QueuedMessage) -> bool:
        return queued in self._waiting

    def append(self, queued: QueuedMessage) -> None:
        self._waiting[queued] = None
        self.plain.append(queued)

    def head(self) -> QueuedMessage | None:
        return self.plain.head()

    def pop(self) -> QueuedMessage:
        queued = self.plain.pop()
        del self._waiting[queued]
        return queued

    def pop_lowest(self) -> QueuedMessage:
        queued = self.plain.pop_lowest()
        del self._waiting[queued]
        return queued

    def remove(self, queued: QueuedMessage) -> None:
        self.plain.remove(queued)
        del self._waiting[queued]

    def returning(self) -> deque[QueuedMessage] | ByLevel:
        return self.plain.returning()

    def put_back(self, returned: Iterable[QueuedMessage]) -> None:
        entered = tuple(returned)
        self._waiting.update(dict.fromkeys(entered))
        self.plain.put_back(entered)

    def clear(self) -> deque[QueuedMessage]:
        self._waiting.clear()
        return self.plain.clear()


class _Group:
    """The subscriptions of one priority: those that take turns, the next one first, and those that rest.

    An `OrderedDict` takes its first key, moves a key to the end and deletes one in constant time.
    """

    __slots__ = ("resting", "turns")

    def __init__(self) -> None:
        self.turns: OrderedDict[Subscription, None] = OrderedDict()
        self.resting: dict[Subscription, int] = {}
        """The subscriptions that left the rotation; the numbers ascend in that order."""


class Rotation:
    """Higher priorities go first; equals take turns as they subscribed (server-model/round-robin).

    A subscription without credit on its turn leaves the rotation. It rejoins as the last of its equals once
    it has credit again (RabbitMQ: measured). Limits tell when that can be (`wake`), so that those who rest
    cost nothing.
    """

    __slots__ = ("_groups", "_rests", "_woken")

    def __init__(self) -> None:
        self._groups: dict[int, _Group] = {}
        """By priority, the highest first; none is without members."""
        self._rests = 0
        """How often a subscription has left the rotation."""
        self._woken: dict[Subscription, None] = {}
        """The resting subscriptions of which a limit has changed."""

    def __len__(self) -> int:
        return sum(len(group.turns) + len(group.resting) for group in self._groups.values())

    def __bool__(self) -> bool:
        return bool(self._groups)

    def __iter__(self) -> Iterator[Subscription]:
        for group in self._groups.values():
            yield from group.turns
            yield from group.resting

    def __contains__(self, subscription: Subscription) -> bool:
        group = self._groups.get(subscription.priority)
        return group is not None and (subscription in group.turns or subscription in group.resting)

    def add(self, subscription: Subscription) -> None:
        group = self._groups.get(subscription.priority)
        if group is None:
            group = self._groups[subscription.priority] = _Group()
            self._groups = dict(sorted(self._groups.items(), reverse=True))
        group.turns[subscription] = None

    def remove(self, subscription: Subscription) -> None:
        group = self._groups[subscription.priority]
        if subscription in group.resting:
            self._wake_up(group, subscription)
        else:
            del group.turns[subscription]
        if not group.turns and not group.resting:
            del self._groups[subscription.priority]

    def wake(self, subscription: Subscription) -> None:
        self._woken[subscription] = None

    def _wake_up(self, group: _Group, subscription: Subscription) -> None:
        self._woken.pop(subscription, None)
        if subscription.resting is self:
            subscription.resting = None
        del group.resting[subscription]

    def rejoin(self) -> None:
        """Return resting subscriptions with credit to the rotation, in the order in which they left."""
        if not self._woken:
            return
        woken = [each for each in self._woken if not each.paused]
        if len(woken) > 1:
            woken.sort(key=lambda each: self._groups[each.priority].resting[each])
        self._woken.clear()
        for subscription in woken:
            group = self._groups[subscription.priority]
            self._wake_up(group, subscription)
            group.turns[subscription] = None

    def next_able(self, message: Message) -> Subscription | None:
        """The next subscription that can take a message now; it moves to the end of its group."""
        if self._woken:
            self.rejoin()
        for group in self._groups.values():
            turns = group.turns
            for subscription in turns:
                for limit in subscription.limits:
                    # A call for each limit that is open or shut would take longer than all of these.
                    if not limit.open or (limit.measures and not limit.admits(message)):
                        break
                else:
                    if len(turns) > 1:
                        turns.move_to_end(subscription)
                    return subscription
                found = self._next_behind_first(group, message)
                if found is not None:
                    return found
                break
        return None

    def _next_behind_first(self, group: _Group, message: Message) -> Subscription | None:
        """The choice of `next_able` in a group of which the first cannot take the message.

        Those that are passed over leave the rotation, or have had their turn if they only cannot take this
        message.
        """
        chosen: Subscription | None = None
        passed: list[Subscription] = []
        without_credit: list[Subscription] = []
        for subscription in group.turns:
            for limit in subscription.limits:
                if not limit.admits(message):
                    (passed if limit.open else without_credit).append(subscription)
                    break
            else:
                chosen = subscription
                break
        for subscription in without_credit:
            del group.turns[subscription]
            self._rests = group.resting[subscription] = self._rests + 1
            subscription.resting = self
        if chosen is not None:
            for subscription in (*passed, chosen):
                group.turns.move_to_end(subscription)
        return chosen

    def first_able(self, message: Message) -> Subscription | None:
        """The choice of `next_able` after a `dispatch`; the rotation does not move."""
        turns = chain.from_iterable(group.turns for group in self._groups.values())
        return next((each for each in turns if each.admits(message)), None)

    def able(self, message: Message) -> Iterator[Subscription]:
        """All subscriptions that can take a message now, in order; the rotation does not move."""
        self.rejoin()
        for group in self._groups.values():
            for subscription in list(group.turns):
                if subscription.admits(message):
                    yield subscription

    def passed(self, subscription: Subscription) -> None:
        """Move a subscription chosen from `able` to the end of its group."""
        self._groups[subscription.priority].turns.move_to_end(subscription)


_SHORT = 64
"""Lists up to this length are not swept."""


class Browsing:
    """The browsing subscriptions of one classic queue. While it exists, the queue's ready list is watched.

    Each browser has its own list of the messages ahead of it, in the queue's order: what waits or is held by
    a client when the subscription begins, and then each new message. The browser is shown a message once, if
    the message waits when its turn comes; messages that have gone by then, or that a client holds, are
    skipped for good. So a message that comes back to the queue is shown to the browsers that had not reached
    its place, to no other, and to none twice (the documents leave that open).

    Messages that leave the queue stay in these lists, because removing them would cost each consumer for each
    browser. They are swept out when a list is twice as long as necessary: that costs a constant for each
    message.

    Browsers are shown a new message before a consumer takes it, as far as their credit allows. So while there
    are browsers every message is stored first.
    """

    __slots__ = ("_browsers", "_queue", "_ready")

    def __init__(self, queue: ClassicQueue) -> None:
        assert not isinstance(queue.ready, IndexedFifo)
        self._queue = queue
        self._ready = queue.ready = IndexedFifo(queue.ready)
        self._browsers: dict[Subscription, _Browser] = {}

    def __bool__(self) -> bool:
        return bool(self._browsers)

    def __contains__(self, subscription: Subscription) -> bool:
        return subscription in self._browsers

    def begin(self, subscription: Subscription) -> None:
        queue = self._queue
        held = (delivery.queued for delivery in queue.unacked)
        browser = _Browser(subscription, queue.empty_ready(), self._ready, held)
        self._browsers[subscription] = browser
        browser.deadline = Deadline(queue.virtual_host.state.timers, lambda: self._show(browser))

    def end(self, subscription: Subscription) -> None:
        self._browsers.pop(subscription).deadline.stop()

    def end_all(self) -> None:
        """Remove all browsers, and have the queue's ready list watched no longer."""
        for subscription in list(self._browsers):
            self.end(subscription)
        self._queue.ready = self._ready.plain

    def show_new(self, queued: QueuedMessage) -> None:
        for browser in list(self._browsers.values()):
            browser.add(queued, self._ready, self._queue.unacked)
            self._show(browser)

    def show_all(self) -> None:
        """Show all browsers what is ahead of them: a message may have gone that exceeded their credit."""
        for browser in list(self._browsers.values()):
            self._show(browser)

    def _show(self, browser: _Browser) -> None:
        queue = self._queue
        subscription = browser.subscription
        while subscription.active and not subscription.paused:
            queued = browser.next(queue.waits)
            if queued is None:
                return
            if not subscription.admits(queued.message):
                if queued.expires_at is not None:
                    label = f"browser '{subscription.tag}' continues in q '{queue.name}'"
                    browser.deadline.set(queued.expires_at, label)
                return
            browser.passed()
            queue.show(queued, subscription)


class _Browser:
    """One browsing subscription.

    `deadline` is set for the expiry of the message ahead if the browser has no credit for it. `ahead` is an
    empty list of the kind that the queue has; `waiting` and `held` are the messages that go into it.
    """

    __slots__ = ("_ahead", "_longest", "deadline", "subscription")
    deadline: Deadline

    def __init__(
        self,
        subscription: Subscription,
        ahead: Fifo | PriorityFifo,
        waiting: Iterable[QueuedMessage],
        held: Iterable[QueuedMessage],
    ) -> None:
        self.subscription = subscription
        self._ahead = ahead
        for queued in waiting:
            ahead.append(queued)
        ahead.put_back(held)
        self._longest = max(_SHORT, 2 * len(ahead))

    def add(self, queued: QueuedMessage, waiting: IndexedFifo, unacked: Iterable[Delivery]) -> None:
        ahead = self._ahead
        ahead.append(queued)
        if len(ahead) > self._longest:
            held = {delivery.queued for delivery in unacked}
            for each in ahead.clear():  # In order: so they can go in again as if they were new.
                if each in waiting or each in held:
                    ahead.append(each)
            self._longest = max(_SHORT, 2 * len(ahead))

    def next(self, waits: Callable[[QueuedMessage], bool]) -> QueuedMessage | None:
        """The next message that waits and suits the subscription; all others are skipped."""
        subscription = self.subscription
        while (queued := self._ahead.head()) is not None:
            if waits(queued) and subscription.suits(queued.message):
                return queued
            self._ahead.pop()
        return None

    def passed(self) -> None:
        self._ahead.pop()
