"""The messages that wait in a quorum queue: their order and their limits.

Returned messages go first, and then new ones by priority. There are three ways to order new messages, and a
personality has one of them: a single queue, two priority bands of which the higher goes first most of the
time, or strict levels (RabbitMQ 3.13; 4.0 to 4.2; 4.3).

Above a limit the queue drops from its head, or it blocks publishers: a publisher that finds the queue above a
limit is refused until at most four fifths of the limits are used. The queue remembers this for each
publisher (RabbitMQ: documented).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Literal
from weakref import WeakKeyDictionary

from fakeamqp.model.queues.waiting import joined

if TYPE_CHECKING:
    from fakeamqp.model.arguments.queue_arguments import QueueOptions
    from fakeamqp.model.queues.quorum.queue import QuorumQueue
    from fakeamqp.model.queues.waiting import QueuedMessage

__all__ = ["Overflow", "PriorityLevels", "ReturnsFirst", "SingleQueue", "TwoBands"]


class SingleQueue:
    """New messages: first come, first served; priorities have no effect.

    `every_head` says whether there are several `heads`, each of which is checked for expiry.
    """

    __slots__ = ("_items",)

    every_head: bool = False

    def __init__(self) -> None:
        self._items: deque[QueuedMessage] = deque()

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[QueuedMessage]:
        """All of them, in the order in which `pop` would take them."""
        return iter(self._items)

    def append(self, queued: QueuedMessage, priority: int | None) -> None:
        """Add a message behind all others of this priority."""
        self._items.append(queued)

    def head(self) -> QueuedMessage | None:
        """The message that `pop` would take."""
        return self._items[0] if self._items else None

    def heads(self) -> list[QueuedMessage]:
        """All messages that are checked for expiry."""
        head = self.head()
        return [] if head is None else [head]

    def pop(self) -> QueuedMessage:
        return self._items.popleft()

    def remove(self, queued: QueuedMessage) -> None:
        """Take a message from anywhere, out of order."""
        self._items.remove(queued)

    def take_while(self, test: Callable[[QueuedMessage], bool]) -> list[QueuedMessage]:
        """Take from each head while the message there passes a test."""
        taken = []
        while (head := self.head()) is not None and test(head):
            taken.append(self.pop())
        return taken

    def clear(self) -> deque[QueuedMessage]:
        """Take all messages, in the order in which `pop` would take them."""
        taken, self._items = self._items, deque()
        return taken


class TwoBands(SingleQueue):
    """Priorities above 4 are high, all others normal.

    High goes first. But every third turn is the normal band's, unless the head of the high band has waited
    longer: so neither band starves. Turns are counted even while a band is empty.
    """

    __slots__ = ("_high", "_turn")

    _HIGHEST_NORMAL = 4
    _TURNS = 3

    def __init__(self) -> None:
        super().__init__()
        self._high: deque[QueuedMessage] = deque()
        self._turn = 0

    def __len__(self) -> int:
        return len(self._high) + len(self._items)

    def __iter__(self) -> Iterator[QueuedMessage]:
        copy = TwoBands()
        copy._high.extend(self._high)
        copy._items.extend(self._items)
        copy._turn = self._turn
        while copy:
            yield copy.pop()

    def append(self, queued: QueuedMessage, priority: int | None) -> None:
        high = priority is not None and priority > self._HIGHEST_NORMAL
        (self._high if high else self._items).append(queued)

    def _next(self) -> deque[QueuedMessage]:
        high, normal = self._high, self._items
        if not high:
            return normal
        if normal and self._turn == self._TURNS - 1 and high[0].position > normal[0].position:
            return normal
        return high

    def head(self) -> QueuedMessage | None:
        band = self._next()
        return band[0] if band else None

    def pop(self) -> QueuedMessage:
        queued = self._next().popleft()
        self._turn = (self._turn + 1) % self._TURNS
        return queued

    def remove(self, queued: QueuedMessage) -> None:
        """It counts as no turn."""
        (self._high if queued in self._high else self._items).remove(queued)

    def clear(self) -> deque[QueuedMessage]:
        """The turns restart as well."""
        taken = deque(self)
        self._high.clear()
        self._items.clear()
        self._turn = 0
        return taken


class PriorityLevels(SingleQueue):
    """One level for each priority from 0 to 31, the highest first; more counts as 31, none as 4."""

    __slots__ = ("_count", "_levels", "_used")

    every_head: bool = True

    _HIGHEST = 31
    _DEFAULT = 4

    def __init__(self) -> None:
        self._levels: list[deque[QueuedMessage]] = [deque() for _ in range(self._HIGHEST + 1)]
        self._used = 0
        """A bit for each level that is not empty, which finds the highest at once."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[QueuedMessage]:
        return chain.from_iterable(reversed(self._levels))

    def append(self, queued: QueuedMessage, priority: int | None) -> None:
        level = self._DEFAULT if priority is None else min(priority, self._HIGHEST)
        self._levels[level].append(queued)
        self._used |= 1 << level
        self._count += 1

    def head(self) -> QueuedMessage | None:
        return self._levels[self._used.bit_length() - 1][0] if self._used else None

    def heads(self) -> list[QueuedMessage]:
        return [level[0] for level in reversed(self._levels) if level]

    def pop(self) -> QueuedMessage:
        number = self._used.bit_length() - 1
        queued = self._levels[number].popleft()
        self._left(number)
        return queued

    def remove(self, queued: QueuedMessage) -> None:
        number = next(number for number, level in enumerate(self._levels) if queued in level)
        self._levels[number].remove(queued)
        self._left(number)

    def _left(self, number: int) -> None:
        """A message has left the level with this number."""
        self._count -= 1
        if not self._levels[number]:
            self._used &= ~(1 << number)

    def take_while(self, test: Callable[[QueuedMessage], bool]) -> list[QueuedMessage]:
        taken = []
        for number in range(self._HIGHEST, -1, -1):
            level = self._levels[number]
            while level and test(level[0]):
                taken.append(level.popleft())
                self._left(number)
        return taken

    def clear(self) -> deque[QueuedMessage]:
        taken = joined(reversed(self._levels))
        self._levels = [deque() for _ in self._levels]
        self._used = self._count = 0
        return taken


_KINDS = {"none": SingleQueue, "bands": TwoBands, "levels": PriorityLevels}


class ReturnsFirst:
    """Returned messages, in the order in which they returned; then new ones."""

    __slots__ = ("_new", "_returned")

    def __init__(self, priorities: Literal["none", "bands", "levels"] = "none") -> None:
        self._new = _KINDS[priorities]()
        self._returned: deque[QueuedMessage] = deque()

    def __len__(self) -> int:
        return len(self._returned) + len(self._new)

    def __iter__(self) -> Iterator[QueuedMessage]:
        return chain(self._returned, self._new)

    def append(self, queued: QueuedMessage) -> None:
        """Add a new message behind all others of its priority."""
        self._new.append(queued, queued.message.properties.priority)

    def append_plain(self, queued: QueuedMessage) -> None:
        """Add a message behind all others as if it had no priority."""
        self._new.append(queued, None)

    def put_back(self, queued: QueuedMessage) -> None:
        """Add a returned message: before all new ones, behind earlier returned ones."""
        self._returned.append(queued)

    def head(self) -> QueuedMessage | None:
        return self._returned[0] if self._returned else self._new.head()

    def heads(self) -> list[QueuedMessage]:
        """The messages that are checked for expiry: those at a head."""
        if not self._returned:
            return self._new.heads()
        return [self._returned[0], *(self._new.heads() if self._new.every_head else ())]

    def pop(self) -> QueuedMessage:
        return self._returned.popleft() if self._returned else self._new.pop()

    def remove(self, queued: QueuedMessage) -> None:
        """Take a message from anywhere; this may change the order of the others."""
        (self._returned if queued in self._returned else self._new).remove(queued)

    def take_while(self, test: Callable[[QueuedMessage], bool]) -> list[QueuedMessage]:
        returned = self._returned
        taken = []
        while returned and test(returned[0]):
            taken.append(returned.popleft())
        if not returned or self._new.every_head:
            taken += self._new.take_while(test)
        return taken

    def clear(self) -> deque[QueuedMessage]:
        taken = self._new.clear()
        taken.extendleft(reversed(self._returned))
        self._returned.clear()
        return taken


_SOFT_LIMIT = 0.8
"""Publishers are unblocked when at most this part of a limit is used."""


class _Anybody:
    """Stands for publishers that are not connections."""


_ANYBODY = _Anybody()


class Overflow:
    """The limits of one queue: `bounded` if there are any, `rejects` if it blocks publishers then."""

    __slots__ = ("_blocked", "_max_bytes", "_max_length", "_queue", "bounded", "rejects")

    def __init__(self, queue: QuorumQueue) -> None:
        self._queue = queue
        self.adopt(queue.options)
        self._blocked: WeakKeyDictionary[object, bool] = WeakKeyDictionary()
        """By publisher, whether it is blocked (overflow reject-publish)."""

    def adopt(self, options: QueueOptions) -> None:
        self._max_length = options.max_length
        self._max_bytes = options.max_length_bytes
        self.bounded: bool = self._max_length is not None or self._max_bytes is not None
        self.rejects: bool = self.bounded and options.overflow == "reject-publish"

    def refuses(self, publisher: object) -> bool:
        """Whether this publisher is blocked; a new one is if the queue is above its limits now."""
        refuses = self.would_refuse(publisher)
        return self._blocked.setdefault(_ANYBODY if publisher is None else publisher, refuses)

    def would_refuse(self, publisher: object) -> bool:
        """The answer of `refuses`. Nothing changes."""
        if not self.rejects:
            return False
        blocked = self._blocked.get(_ANYBODY if publisher is None else publisher)
        return self._above(1) if blocked is None else blocked

    def _above(self, part: float) -> bool:
        """Whether more than this part of a limit is used; parked messages count."""
        queue = self._queue
        count, octets = queue.parked.amount()
        count, octets = count + len(queue.ready), octets + queue.ready_bytes
        return (self._max_length is not None and count > int(self._max_length * part)) or (
            self._max_bytes is not None and octets > int(self._max_bytes * part)
        )

    def check(self) -> None:
        """Drop from the head, or block or unblock publishers."""
        if self.rejects:
            if self._above(1):
                for publisher in self._blocked:
                    self._blocked[publisher] = True
                return
            if self._above(_SOFT_LIMIT):
                return
        elif self.bounded:
            queue = self._queue
            while len(queue.ready) and self._above(1):
                queue.parked.die(queue.pop(), "maxlen")
        for publisher in self._blocked:
            self._blocked[publisher] = False
