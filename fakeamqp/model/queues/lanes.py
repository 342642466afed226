"""The messages that wait in a quorum queue: what came back goes first, and then what is new, by priority.

There are three ways to keep what is new, and a personality has one of them: a single line, two lanes of
which the higher goes first most of the time, or strict levels (RabbitMQ 3.13; 4.0 to 4.2; 4.3).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from fakeamqp.model.queues.queue import QueuedMessage

__all__ = ["Levels", "Line", "NewMessages", "ReturnsFirst", "TwoLanes"]


class NewMessages(Protocol):
    """Messages that have never come back."""

    every_head: bool
    """Whether several messages stand at a head, each of which may be taken for having expired."""

    def __len__(self) -> int:
        """How many there are."""

    def __iter__(self) -> Iterator[QueuedMessage]:
        """All of them, in the order in which `pop` would take them."""

    def append(self, queued: QueuedMessage, priority: int | None) -> None:
        """Put one at the end of what has this priority."""

    def head(self) -> QueuedMessage | None:
        """The one that `pop` would take."""

    def heads(self) -> list[QueuedMessage]:
        """All that may be taken for having expired."""

    def pop(self) -> QueuedMessage:
        """Take the next one."""

    def remove(self, queued: QueuedMessage) -> None:
        """Take one from anywhere, out of turn."""

    def take_while(self, test: Callable[[QueuedMessage], bool]) -> list[QueuedMessage]:
        """Take from each head while what stands there passes a test."""

    def clear(self) -> None:
        """Drop all."""


class Line:
    """First come, first served; priorities mean nothing."""

    __slots__ = ("_items",)

    every_head = False

    def __init__(self) -> None:
        self._items: deque[QueuedMessage] = deque()

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[QueuedMessage]:
        return iter(self._items)

    def append(self, queued: QueuedMessage, _priority: int | None) -> None:
        """See `NewMessages`."""
        self._items.append(queued)

    def head(self) -> QueuedMessage | None:
        """See `NewMessages`."""
        return self._items[0] if self._items else None

    def heads(self) -> list[QueuedMessage]:
        """See `NewMessages`."""
        return [self._items[0]] if self._items else []

    def pop(self) -> QueuedMessage:
        """See `NewMessages`."""
        return self._items.popleft()

    def remove(self, queued: QueuedMessage) -> None:
        """See `NewMessages`."""
        self._items.remove(queued)

    def take_while(self, test: Callable[[QueuedMessage], bool]) -> list[QueuedMessage]:
        """See `NewMessages`."""
        taken = []
        while self._items and test(self._items[0]):
            taken.append(self._items.popleft())
        return taken

    def clear(self) -> None:
        """See `NewMessages`."""
        self._items.clear()


class TwoLanes:
    """Priorities above 4 are high, all others normal.

    High goes first. But every third turn is the normal lane's, unless the head of the high lane has waited
    longer: so neither lane starves. Turns are counted whether both lanes hold something or not.
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
        copy = TwoLanes()
        copy._high.extend(self._high)
        copy._normal.extend(self._normal)
        copy._turn = self._turn
        while copy:
            yield copy.pop()

    def append(self, queued: QueuedMessage, priority: int | None) -> None:
        """See `NewMessages`."""
        lane = self._high if priority is not None and priority > self._HIGHEST_NORMAL else self._normal
        lane.append(queued)

    def _next(self) -> deque[QueuedMessage]:
        """The lane that the next message comes from."""
        high, normal = self._high, self._normal
        if not high:
            return normal
        if normal and self._turn == self._TURNS - 1 and high[0].position > normal[0].position:
            return normal
        return high

    def head(self) -> QueuedMessage | None:
        """See `NewMessages`."""
        lane = self._next()
        return lane[0] if lane else None

    def heads(self) -> list[QueuedMessage]:
        """See `NewMessages`."""
        lane = self._next()
        return [lane[0]] if lane else []

    def pop(self) -> QueuedMessage:
        """See `NewMessages`."""
        queued = self._next().popleft()
        self._turn = (self._turn + 1) % self._TURNS
        return queued

    def remove(self, queued: QueuedMessage) -> None:
        """See `NewMessages`: that is nobody's turn."""
        (self._high if queued in self._high else self._normal).remove(queued)

    def take_while(self, test: Callable[[QueuedMessage], bool]) -> list[QueuedMessage]:
        """See `NewMessages`."""
        taken = []
        while (head := self.head()) is not None and test(head):
            taken.append(self.pop())
        return taken

    def clear(self) -> None:
        """See `NewMessages`: the turns begin anew, too."""
        self._high.clear()
        self._normal.clear()
        self._turn = 0


class Levels:
    """One line for each priority from 0 to 31, the highest first; more counts as 31, none as 4."""

    __slots__ = ("_count", "_levels", "_used")

    every_head = True

    _HIGHEST = 31
    _DEFAULT = 4

    def __init__(self) -> None:
        self._levels: list[deque[QueuedMessage]] = [deque() for _ in range(self._HIGHEST + 1)]
        self._used = 0
        """A bit for each level that holds something: the highest is then found at once."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[QueuedMessage]:
        return chain.from_iterable(reversed(self._levels))

    def append(self, queued: QueuedMessage, priority: int | None) -> None:
        """See `NewMessages`."""
        level = self._DEFAULT if priority is None else min(priority, self._HIGHEST)
        self._levels[level].append(queued)
        self._used |= 1 << level
        self._count += 1

    def head(self) -> QueuedMessage | None:
        """See `NewMessages`."""
        return self._levels[self._used.bit_length() - 1][0] if self._used else None

    def heads(self) -> list[QueuedMessage]:
        """See `NewMessages`."""
        return [level[0] for level in reversed(self._levels) if level]

    def pop(self) -> QueuedMessage:
        """See `NewMessages`."""
        return self._pop(self._used.bit_length() - 1)

    def _pop(self, number: int) -> QueuedMessage:
        level = self._levels[number]
        queued = level.popleft()
        self._count -= 1
        if not level:
            self._used &= ~(1 << number)
        return queued

    def remove(self, queued: QueuedMessage) -> None:
        """See `NewMessages`."""
        number = next(number for number, level in enumerate(self._levels) if queued in level)
        level = self._levels[number]
        level.remove(queued)
        self._count -= 1
        if not level:
            self._used &= ~(1 << number)

    def take_while(self, test: Callable[[QueuedMessage], bool]) -> list[QueuedMessage]:
        """See `NewMessages`."""
        taken = []
        for number in range(self._HIGHEST, -1, -1):
            level = self._levels[number]
            while level and test(level[0]):
                taken.append(self._pop(number))
        return taken

    def clear(self) -> None:
        """See `NewMessages`."""
        for level in self._levels:
            level.clear()
        self._used = self._count = 0


_KINDS: dict[str, Callable[[], NewMessages]] = {"none": Line, "lanes": TwoLanes, "levels": Levels}


class ReturnsFirst:
    """What came back, in the order in which it did; then what is new."""

    __slots__ = ("_new", "_returned")

    def __init__(self, priorities: Literal["none", "lanes", "levels"] = "none") -> None:
        self._new = _KINDS[priorities]()
        self._returned: deque[QueuedMessage] = deque()

    def __len__(self) -> int:
        return len(self._returned) + len(self._new)

    def __iter__(self) -> Iterator[QueuedMessage]:
        return chain(self._returned, self._new)

    def append(self, queued: QueuedMessage) -> None:
        """Put a new message behind all others of its priority."""
        self._new.append(queued, queued.message.properties.priority)

    def append_plain(self, queued: QueuedMessage) -> None:
        """Put a message behind all others as if it had no priority."""
        self._new.append(queued, None)

    def put_back(self, queued: QueuedMessage) -> None:
        """A message came back: it goes before all that is new, and behind what came back before."""
        self._returned.append(queued)

    def head(self) -> QueuedMessage | None:
        """The message delivered next, left in place."""
        return self._returned[0] if self._returned else self._new.head()

    def heads(self) -> list[QueuedMessage]:
        """The messages that are looked at for having expired: those that stand at a head."""
        if not self._returned:
            return self._new.heads()
        return [self._returned[0], *(self._new.heads() if self._new.every_head else ())]

    def pop(self) -> QueuedMessage:
        """Take the message delivered next."""
        return self._returned.popleft() if self._returned else self._new.pop()

    def remove(self, queued: QueuedMessage) -> None:
        """Take a message from anywhere; `pop` may come to another one in its turn."""
        if queued in self._returned:
            self._returned.remove(queued)
        else:
            self._new.remove(queued)

    def take_while(self, test: Callable[[QueuedMessage], bool]) -> list[QueuedMessage]:
        """Take from each of the `heads` while what stands there passes a test."""
        returned = self._returned
        taken = []
        while returned and test(returned[0]):
            taken.append(returned.popleft())
        if not returned or self._new.every_head:
            taken += self._new.take_while(test)
        return taken

    def clear(self) -> list[QueuedMessage]:
        """Take out everything."""
        taken = list(self)
        self._returned.clear()
        self._new.clear()
        return taken
