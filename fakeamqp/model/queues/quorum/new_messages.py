"""The messages that wait in a quorum queue: returned messages first, and then new ones by priority.

There are three ways to order new messages, and a personality has one of them: a single queue, two priority
bands of which the higher goes first most of the time, or strict levels (RabbitMQ 3.13; 4.0 to 4.2; 4.3).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Literal, Protocol

from fakeamqp.model.queues.waiting import joined

if TYPE_CHECKING:
    from fakeamqp.model.queues.waiting import QueuedMessage

__all__ = ["NewMessages", "PriorityLevels", "ReturnsFirst", "SingleQueue", "TwoBands"]


class NewMessages(Protocol):
    """Messages that have never returned."""

    every_head: bool
    """Whether there are several heads, each of which is checked for expiry."""

    def __len__(self) -> int:
        """How many there are."""

    def __iter__(self) -> Iterator[QueuedMessage]:
        """All of them, in the order in which `pop` would take them."""

    def append(self, queued: QueuedMessage, priority: int | None) -> None:
        """Add a message behind all others of this priority."""

    def head(self) -> QueuedMessage | None:
        """The message that `pop` would take."""

    def heads(self) -> list[QueuedMessage]:
        """All messages that are checked for expiry."""

    def pop(self) -> QueuedMessage:
        """Take the next message."""

    def remove(self, queued: QueuedMessage) -> None:
        """Take a message from anywhere, out of order."""

    def take_while(self, test: Callable[[QueuedMessage], bool]) -> list[QueuedMessage]:
        """Take from each head while the message there passes a test."""

    def clear(self) -> deque[QueuedMessage]:
        """Take all messages, in the order in which `pop` would take them."""


class SingleQueue:
    """First come, first served; priorities have no effect."""

    __slots__ = ("_items",)

    every_head = False

    def __init__(self) -> None:
        self._items: deque[QueuedMessage] = deque()

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[QueuedMessage]:
        return iter(self._items)

    def append(self, queued: QueuedMessage, _priority: int | None) -> None:
        self._items.append(queued)

    def head(self) -> QueuedMessage | None:
        return self._items[0] if self._items else None

    def heads(self) -> list[QueuedMessage]:
        return [self._items[0]] if self._items else []

    def pop(self) -> QueuedMessage:
        return self._items.popleft()

    def remove(self, queued: QueuedMessage) -> None:
        self._items.remove(queued)

    def take_while(self, test: Callable[[QueuedMessage], bool]) -> list[QueuedMessage]:
        taken = []
        while self._items and test(self._items[0]):
            taken.append(self._items.popleft())
        return taken

    def clear(self) -> deque[QueuedMessage]:
        taken, self._items = self._items, deque()
        return taken


class TwoBands:
    """Priorities above 4 are high, all others normal.

    High goes first. But every third turn is the normal band's, unless the head of the high band has waited
    longer: so neither band starves. Turns are counted even while a band is empty.
    """

    __slots__ = ("_high", "_normal", "_turn")

    every_head = False

    _HIGHEST_NORMAL = 4
    _TURNS = 3

    def __init__(self) -> None:
        self._high: deque[QueuedMessage] = deque()
        self._normal: deque[QueuedMessage] = deque()
        self._turn = 0

    def __len__(self) -> int:
        return len(self._high) + len(self._normal)

    def __iter__(self) -> Iterator[QueuedMessage]:
        copy = TwoBands()
        copy._high.extend(self._high)
        copy._normal.extend(self._normal)
        copy._turn = self._turn
        while copy:
            yield copy.pop()

    def append(self, queued: QueuedMessage, priority: int | None) -> None:
        band = self._high if priority is not None and priority > self._HIGHEST_NORMAL else self._normal
        band.append(queued)

    def _next(self) -> deque[QueuedMessage]:
        """The band that the next message comes from."""
        high, normal = self._high, self._normal
        if not high:
            return normal
        if normal and self._turn == self._TURNS - 1 and high[0].position > normal[0].position:
            return normal
        return high

    def head(self) -> QueuedMessage | None:
        band = self._next()
        return band[0] if band else None

    def heads(self) -> list[QueuedMessage]:
        band = self._next()
        return [band[0]] if band else []

    def pop(self) -> QueuedMessage:
        queued = self._next().popleft()
        self._turn = (self._turn + 1) % self._TURNS
        return queued

    def remove(self, queued: QueuedMessage) -> None:
        """It counts as no turn."""
        (self._high if queued in self._high else self._normal).remove(queued)

    def take_while(self, test: Callable[[QueuedMessage], bool]) -> list[QueuedMessage]:
        taken = []
        while (head := self.head()) is not None and test(head):
            taken.append(self.pop())
        return taken

    def clear(self) -> deque[QueuedMessage]:
        """The turns restart as well."""
        taken = deque(self)
        self._high.clear()
        self._normal.clear()
        self._turn = 0
        return taken


class PriorityLevels:
    """One level for each priority from 0 to 31, the highest first; more counts as 31, none as 4."""

    __slots__ = ("_count", "_levels", "_used")

    every_head = True

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
        return self._pop(self._used.bit_length() - 1)

    def _pop(self, number: int) -> QueuedMessage:
        level = self._levels[number]
        queued = level.popleft()
        self._count -= 1
        if not level:
            self._used &= ~(1 << number)
        return queued

    def remove(self, queued: QueuedMessage) -> None:
        number = next(number for number, level in enumerate(self._levels) if queued in level)
        level = self._levels[number]
        level.remove(queued)
        self._count -= 1
        if not level:
            self._used &= ~(1 << number)

    def take_while(self, test: Callable[[QueuedMessage], bool]) -> list[QueuedMessage]:
        taken = []
        for number in range(self._HIGHEST, -1, -1):
            level = self._levels[number]
            while level and test(level[0]):
                taken.append(self._pop(number))
        return taken

    def clear(self) -> deque[QueuedMessage]:
        taken = joined(reversed(self._levels))
        self._levels = [deque() for _ in self._levels]
        self._used = self._count = 0
        return taken


_KINDS: dict[str, Callable[[], NewMessages]] = {
    "none": SingleQueue,
    "bands": TwoBands,
    "levels": PriorityLevels,
}


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
        """The message delivered next, left in place."""
        return self._returned[0] if self._returned else self._new.head()

    def heads(self) -> list[QueuedMessage]:
        """The messages that are checked for expiry: those at a head."""
        if not self._returned:
            return self._new.heads()
        return [self._returned[0], *(self._new.heads() if self._new.every_head else ())]

    def pop(self) -> QueuedMessage:
        """Take the message delivered next."""
        return self._returned.popleft() if self._returned else self._new.pop()

    def remove(self, queued: QueuedMessage) -> None:
        """Take a message from anywhere; this may change the order of the others."""
        if queued in self._returned:
            self._returned.remove(queued)
        else:
            self._new.remove(queued)

    def take_while(self, test: Callable[[QueuedMessage], bool]) -> list[QueuedMessage]:
        """Take from each of the `heads` while the message there passes a test."""
        returned = self._returned
        taken = []
        while returned and test(returned[0]):
            taken.append(returned.popleft())
        if not returned or self._new.every_head:
            taken += self._new.take_while(test)
        return taken

    def clear(self) -> deque[QueuedMessage]:
        """Take out all messages."""
        taken = self._new.clear()
        taken.extendleft(reversed(self._returned))
        self._returned.clear()
        return taken
