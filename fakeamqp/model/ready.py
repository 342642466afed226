"""The messages of a queue that await delivery, in the order they will be delivered."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.model.queue import QueuedMessage

__all__ = ["Fifo", "PriorityFifo"]


class Fifo:
    """First in, first out; what comes back returns to its old place by its position."""

    __slots__ = ("_items",)

    def __init__(self) -> None:
        self._items: deque[QueuedMessage] = deque()

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[QueuedMessage]:
        return iter(self._items)

    def append(self, queued: QueuedMessage) -> None:
        """Put a new message at the end."""
        self._items.append(queued)

    def head(self) -> QueuedMessage | None:
        """The message delivered next, left in place."""
        return self._items[0] if self._items else None

    def pop(self) -> QueuedMessage:
        """Take the message delivered next."""
        return self._items.popleft()

    def pop_lowest(self) -> QueuedMessage:
        """Take the oldest message of the lowest priority; here all are equal."""
        return self._items.popleft()

    def remove(self, queued: QueuedMessage) -> None:
        """Take out a message from anywhere."""
        self._items.remove(queued)

    def put_back(self, returned: Iterable[QueuedMessage]) -> None:
        """Merge messages in by position. Costs what is returned plus what stands before the last of it."""
        items = self._items
        merged = sorted(returned, key=_position)
        last = merged[-1].position
        while items and items[0].position < last:
            merged.append(items.popleft())
        merged.sort(key=_position)
        items.extendleft(reversed(merged))

    def clear(self) -> list[QueuedMessage]:
        """Take out everything."""
        taken = list(self._items)
        self._items.clear()
        return taken


class PriorityFifo:
    """One `Fifo` per priority level, the highest level first (basic/06, basic/07)."""

    __slots__ = ("_count", "_levels", "_maximum")

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._levels = [Fifo() for _ in range(maximum + 1)]
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[QueuedMessage]:
        for level in reversed(self._levels):
            yield from level

    def _level(self, queued: QueuedMessage) -> Fifo:
        return self._levels[min(queued.message.priority, self._maximum)]

    def append(self, queued: QueuedMessage) -> None:
        """Put a new message at the end of its level."""
        self._level(queued).append(queued)
        self._count += 1

    def head(self) -> QueuedMessage | None:
        """The message delivered next, left in place."""
        for level in reversed(self._levels):
            if level:
                return level.head()
        return None

    def pop(self) -> QueuedMessage:
        """Take the message delivered next."""
        level = next(level for level in reversed(self._levels) if level)
        self._count -= 1
        return level.pop()

    def pop_lowest(self) -> QueuedMessage:
        """Take the oldest message of the lowest level that has any."""
        level = next(level for level in self._levels if level)
        self._count -= 1
        return level.pop()

    def remove(self, queued: QueuedMessage) -> None:
        """Take out a message from anywhere."""
        self._level(queued).remove(queued)
        self._count -= 1

    def put_back(self, returned: Iterable[QueuedMessage]) -> None:
        """Merge messages into their levels by position."""
        by_level: dict[Fifo, list[QueuedMessage]] = {}
        for queued in returned:
            by_level.setdefault(self._level(queued), []).append(queued)
            self._count += 1
        for level, some in by_level.items():
            level.put_back(some)

    def clear(self) -> list[QueuedMessage]:
        """Take out everything."""
        taken = [queued for level in reversed(self._levels) for queued in level.clear()]
        self._count = 0
        return taken


def _position(queued: QueuedMessage) -> int:
    return queued.position
