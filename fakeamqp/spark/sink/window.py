"""Which messages on a channel the broker has not answered yet, by number."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["Window"]


class Window:
    """The delivery tags of one channel in confirm mode. Messages are numbered from 1 as they are sent.

    Brokers confirm mostly in order and many at once, so what is settled is nearly always all up to some tag:
    that tag, and the few that were settled ahead of it, are all there is to remember.

    Attributes:
        sent: how many messages were sent, and so the tag of the last one.
        floor: the tag up to which all are settled.
    """

    def __init__(self) -> None:
        self.sent = 0
        self.floor = 0
        self._ahead: set[int] = set()

    @property
    def open(self) -> int:
        """How many messages have no answer yet."""
        return self.sent - self.floor - len(self._ahead)

    def settle(self, tag: int, multiple: bool) -> Sequence[int]:
        """Note an answer of the broker, and return the tags that had none until now.

        Args:
            tag: the delivery tag of the answer.
            multiple: whether it is about all messages up to the tag; tag 0 then means all that were sent.
        """
        if multiple:
            tags: Sequence[int] = range(self.floor + 1, min(tag or self.sent, self.sent) + 1)
        else:
            tags = (tag,) if self.floor < tag <= self.sent else ()
        if self._ahead:
            tags = [each for each in tags if each not in self._ahead]
        if tags and tags[0] == self.floor + 1 and not self._ahead:
            self.floor = tags[-1]
            return tags
        self._ahead.update(tags)
        while self.floor + 1 in self._ahead:
            self.floor += 1
            self._ahead.remove(self.floor)
        return tags
