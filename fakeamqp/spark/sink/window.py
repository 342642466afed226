"""The unconfirmed messages of a channel."""

from __future__ import annotations

from collections.abc import Sequence


class ConfirmWindow:
    """The delivery tags of one channel in confirm mode. The first message has the tag 1.

    Brokers confirm mostly in order, and many messages at once. So the object stores the tag up to which all
    messages are settled, and the few settled tags above it.

    Attributes:
        sent: the number of published messages, which is the tag of the last one.
        floor: the tag up to which all messages are settled.
    """

    def __init__(self) -> None:
        self.sent = 0
        self.floor: int = 0
        self._ahead: set[int] = set()

    @property
    def open(self) -> int:
        """The number of unconfirmed messages."""
        return self.sent - self.floor - len(self._ahead)

    def is_settled(self, tag: int) -> bool:
        """Whether the broker has settled a message."""
        return tag <= self.floor or tag in self._ahead

    def settle(self, tag: int, multiple: bool) -> Sequence[int]:
        """Handle basic.ack or basic.nack of the broker, and return the tags that it settles.

        Args:
            tag: its delivery tag.
            multiple: whether it settles all messages up to the tag; tag 0 then means all published messages.
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
