"""A message in a quorum queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.model.int64 import Int64
from fakeamqp.model.queues.queue import QueuedMessage

if TYPE_CHECKING:
    from fakeamqp.model.message import Message
    from fakeamqp.model.personality import QuorumChoices

__all__ = ["QuorumMessage"]


class QuorumMessage(QueuedMessage):
    """A message in a quorum queue. `returns` counts all returns, `failures` those that were failures.

    `size` is the number of bytes that limits count.
    """

    __slots__ = ("size",)

    def __init__(self, message: Message, position: int, expires_at: float | None, size: int) -> None:
        super().__init__(message, position, expires_at)
        self.size: int = size
        self.failures: int = message.failures
        self.redelivered: bool = self.failures > 0

    def shown(self, count: int, choices: QuorumChoices, *, ordered: bool) -> Message:
        """The message as a client sees it that gets it now, after this number of returns.

        `ordered` sorts its headers.
        """
        headers = {"x-delivery-count": Int64(count)}
        if choices.shows_acquisitions:
            headers = {"x-acquired-count": Int64(count)}
            if self.failures:
                headers["x-delivery-count"] = Int64(self.failures)
        return self.message.with_properties(self.message.properties.with_headers(headers, ordered=ordered))
