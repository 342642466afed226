"""channel.resume: a channel whose connection was lost goes on, on another connection of the same user.

What comes back is what the client had set up: its current queue, windows and flow, whether it is transactional,
its consumers, and what the rooms of the classes keep. What it held has gone back to the queues, an open
transaction is undone, and access tickets have ended, as with every channel that ends. A channel that was closed,
or whose connection was, is not interrupted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

__all__ = ["Interrupted", "Resumable", "keep", "restore"]

if TYPE_CHECKING:
    pass


@runtime_checkable
class Resumable(Protocol):
    """A room of a channel that has something to keep where that is interrupted."""

    def interrupted(self) -> object | None:
        """What to keep, or None for nothing; called before the channel is released."""

    def resumed(self, kept: Any) -> None:
        """Go on with what was kept, in the room of the channel that was resumed."""
