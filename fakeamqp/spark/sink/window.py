"""The unconfirmed messages of a channel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


class ConfirmWindow(dict[int, T]):
    """The messages of a channel in confirm mode that the broker has not confirmed, by their delivery tags."""

    def __init__(self) -> None:
        super().__init__()
        self._sent = 0
        self._floor = 0  # The last tag that settled all messages up to it.

    def add(self, messages: Sequence[T]) -> None:
        """Add messages that are published now. The first message of a channel has the tag 1."""
        first = self._sent + 1
        self._sent += len(messages)
        self.update(zip(range(first, self._sent + 1), messages, strict=True))

    def settle(self, tag: int, multiple: bool) -> Sequence[T]:
        """Handle basic.ack or basic.nack of the broker, and return the messages that it settles.

        Args:
            tag: its delivery tag.
            multiple: whether it settles all messages up to the tag; tag 0 then means all published messages.
        """
        tags: Iterable[int] = (tag,)
        if multiple:
            last = min(tag or self._sent, self._sent)
            tags = range(self._floor + 1, last + 1)
            self._floor = last
        return [self.pop(each) for each in tags if each in self]
