"""The messages of a queue that await delivery, in the order they will be delivered."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush, merge
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fakeamqp.model.queues.queue import QueuedMessage

__all__ = ["ByLevel", "Fifo", "IndexedFifo", "PriorityFifo", "Waiting", "joined"]

_position = attrgetter("position")


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
        """Put a new message at the end."""
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
        """Insert messages, in the order of their positions, before all others. The deque is taken over.

        Its cost is that of copying the references to the fewer messages.

        Returns:
            False if some messages that wait stand before them; nothing has changed then.
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
        """Add a message."""
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
    """One `Fifo` per priority level, the highest level first (basic/06, basic/07)."""

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
        """Put a new message at the end of its level."""
        number = self.number(queued)
        self._levels[number].append(queued)
        self._used |= 1 << number
        self._count += 1

    def head(self) -> QueuedMessage | None:
        """The message delivered next, left in place."""
        return self._levels[self._used.bit_length() - 1].head() if self._used else None

    def pop(self) -> QueuedMessage:
        """Take the message delivered next."""
        return self._pop(self._used.bit_length() - 1)

    def pop_lowest(self) -> QueuedMessage:
        """Take the oldest message of the lowest level that has any."""
        return self._pop((self._used & -self._used).bit_length() - 1)

    def _pop(self, number: int) -> QueuedMessage:
        level = self._levels[number]
        queued = level.pop()
        self._count -= 1
        if not level:
            self._used &= ~(1 << number)
        return queued

    def remove(self, queued: QueuedMessage) -> None:
        """Take out a message from anywhere."""
        number = self.number(queued)
        level = self._levels[number]
        level.remove(queued)
        self._count -= 1
        if not level:
            self._used &= ~(1 << number)

    def returning(self) -> ByLevel:
        """What messages are gathered in before all of them return at one moment."""
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
        """Take out everything."""
        taken = joined(level.clear() for level in reversed(self._levels))
        self._count = self._used = 0
        return taken


class IndexedFifo:
    """A ready list with an index of its messages, for fast membership tests."""

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
        """Put a new message at the end."""
        self._waiting[queued] = None
        self.plain.append(queued)

    def head(self) -> QueuedMessage | None:
        """The message delivered next, left in place."""
        return self.plain.head()

    def pop(self) -> QueuedMessage:
        """Take the message delivered next."""
        queued = self.plain.pop()
        del self._waiting[queued]
        return queued

    def pop_lowest(self) -> QueuedMessage:
        """Take the oldest message of the lowest priority."""
        queued = self.plain.pop_lowest()
        del self._waiting[queued]
        return queued

    def remove(self, queued: QueuedMessage) -> None:
        """Take out a message from anywhere."""
        self.plain.remove(queued)
        del self._waiting[queued]

    def returning(self) -> deque[QueuedMessage] | ByLevel:
        """What messages are gathered in before all of them return at one moment."""
        return self.plain.returning()

    def put_back(self, returned: Iterable[QueuedMessage]) -> None:
        """Insert messages at their old places."""
        entered = tuple(returned)
        self._waiting.update(dict.fromkeys(entered))
        self.plain.put_back(entered)

    def clear(self) -> deque[QueuedMessage]:
        """Take out everything."""
        self._waiting.clear()
        return self.plain.clear()
