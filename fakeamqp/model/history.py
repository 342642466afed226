"""Bounded histories of what happened to messages, for inspection: the latest records are kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from fakeamqp.model.limits.limits import Bounds

if TYPE_CHECKING:
    from fakeamqp.model.limits.memory import Memory
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.outcome import Outcome

__all__ = ["History", "HistoryRecord", "Publication"]


class Publication(NamedTuple):
    """One publish: its virtual host, its message and its outcome."""

    virtual_host: str
    message: Message
    outcome: Outcome


class HistoryRecord(Protocol):
    """An entry of a history: an event of one message."""

    @property
    def message(self) -> Message:
        """The message."""


R = TypeVar("R", bound=HistoryRecord)


class History(Generic[R]):
    """Keeps the latest records; the oldest are removed when there are too many or their messages too large.

    `count` is the number of all records so far, including removed ones.

    Args:
        capacity: the most records that are kept.
        memory: is charged with the messages.
        most_octets: the most bytes of messages, headers included, that are kept beside the latest record.
    """

    __slots__ = ("_kept", "_memory", "_most_octets", "_octets", "capacity", "count")

    def __init__(
        self, capacity: int, memory: Memory | None = None, most_octets: int = Bounds.history_octets
    ) -> None:
        self.capacity: int = capacity
        self.count: int = 0
        self._memory = memory
        self._most_octets = most_octets
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
        message = record.message
        if message.charge is None and self._memory is not None:
            self._memory.hold(message)
        self._octets += len(message.body) + len(message.properties_bytes)
        if len(self._kept) > self.capacity or self._octets > self._most_octets:
            while len(self._kept) > self.capacity:
                self._remove_oldest()
            while self._octets > self._most_octets and len(self._kept) > 1:
                self._remove_oldest()

    def latest(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Of messages that all need a record, those whose records can be kept; the others only count."""
        latest = messages[-self.capacity :]
        self.count += len(messages) - len(latest)
        return latest

    def shrink(self, octets: int) -> None:
        """Remove the oldest records, until the messages of the rest have at most this many bytes."""
        while self._octets > octets and self._kept:
            self._remove_oldest()

    def _remove_oldest(self) -> None:
        message = self._kept.popleft().message
        self._octets -= len(message.body) + len(message.properties_bytes)

    def clear(self) -> None:
        """Remove all records and reset the count."""
        self._kept.clear()
        self.count = self._octets = 0
