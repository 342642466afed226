"""Bounded histories of what happened to messages, for inspection: the latest records are kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from fakeamqp.model.message import Message
    from fakeamqp.model.outcome import Outcome

__all__ = ["History", "Publication", "Record"]

_MOST_OCTETS = 64 * 1024 * 1024
"""The most bytes of message bodies that one history keeps, so that it cannot exhaust the memory."""


class Publication(NamedTuple):
    """One publish: its virtual host, its message and its outcome."""

    virtual_host: str
    message: Message
    outcome: Outcome


class Record(Protocol):
    """An entry of a history: an event of one message."""

    @property
    def message(self) -> Message:
        """The message."""


R = TypeVar("R", bound=Record)


class History(Generic[R]):
    """Keeps the latest records; the oldest are removed when there are too many or their bodies too large.

    `count` is the number of all records so far, including removed ones.
    """

    __slots__ = ("_kept", "_octets", "capacity", "count")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.count = 0
        self._kept: deque[R] = deque()
        self._octets = 0

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[R]:
        return iter(self._kept)

    def __reversed__(self) -> Iterator[R]:
        return reversed(self._kept)

    def append(self, record: R) -> None:
        """Add a record, and remove old ones beyond the bounds."""
        self.count += 1
        self._kept.append(record)
        self._octets += len(record.message.body)
        while len(self._kept) > self.capacity or (self._octets > _MOST_OCTETS and len(self._kept) > 1):
            self._octets -= len(self._kept.popleft().message.body)

    def clear(self) -> None:
        """Remove all records and reset the count."""
        self._kept.clear()
        self.count = self._octets = 0
