"""Contents that were staged and not published yet, and that nobody is staging just now.

Staging is sending a content ahead, under an identifier of the sender's choice, to name it later; a sender
that is broken off goes on where it was (file.open/identifier). What is under way belongs to the session, or
the channel, that stages it. What that leaves behind is kept here, for whoever of the same user asks next.
"""

from __future__ import annotations

__all__ = ["Leftovers", "Staged"]

_MOST_CONTENTS = 100
_MOST_OCTETS = 256 * 1024 * 1024


class Staged:
    """A content on its way: `octets` are those of its first `size` that have come, `header` describes it."""

    __slots__ = ("header", "identifier", "octets", "size")

    def __init__(self, identifier: str, size: int) -> None:
        self.identifier = identifier
        self.size = size
        self.octets = bytearray()
        self.header: bytes | None = None

    @property
    def complete(self) -> bool:
        """Whether all of it is there, the description included."""
        return self.header is not None and len(self.octets) == self.size

    def __repr__(self) -> str:
        return f"<Staged {self.identifier!r} {len(self.octets)} of {self.size} octets>"


class Leftovers:
    """What ended sessions have left behind, by user and identifier (file.open-ok/staged-size-staging).

    The latest hundred of at most 256 MiB together are kept, until the broker restarts.
    """

    __slots__ = ("_kept", "_octets")

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], Staged] = {}
        self._octets = 0

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, user: str, staged: Staged) -> None:
        """Keep this, in place of what there is under the same identifier."""
        self.take(user, staged.identifier)
        self._kept[user, staged.identifier] = staged
        self._octets += len(staged.octets)
        while self._kept and (len(self._kept) > _MOST_CONTENTS or self._octets > _MOST_OCTETS):
            self.take(*next(iter(self._kept)))

    def take(self, user: str, identifier: str) -> Staged | None:
        """Take out what there is; None where there is nothing."""
        staged = self._kept.pop((user, identifier), None)
        if staged is not None:
            self._octets -= len(staged.octets)
        return staged

    def clear(self) -> None:
        """Forget everything."""
        self._kept.clear()
        self._octets = 0
