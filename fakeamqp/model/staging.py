"""Contents on their way by staging.

Staging is sending a content ahead, under an identifier of the sender's choice, to name it later; a sender
that is broken off goes on where it was (file.open/identifier). What is under way belongs to the session, or
the channel, that stages it; what that leaves behind is `VirtualHost.staged`.
"""

from __future__ import annotations

from fakeamqp.model.interrupted import Interrupted

__all__ = ["Staged"]


class Staged(Interrupted):
    """A content: `octets` are those of its first `size` that have come, `header` describes it."""

    __slots__ = ("identifier", "size")

    def __init__(self, identifier: str, size: int) -> None:
        super().__init__(None, bytearray())
        self.identifier = identifier
        self.size = size

    @property
    def complete(self) -> bool:
        """Whether all of it is there, the description included."""
        return self.header is not None and len(self.octets) == self.size

    def __repr__(self) -> str:
        return f"<Staged {self.identifier!r} {len(self.octets)} of {self.size} octets>"
