"""What a branch of a distributed transaction is known by."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Xid"]


class Xid(NamedTuple):
    """A branch's identity (dtx/xid): two of them are the same only if all three parts are.

    `global_id` is common to all branches of one transaction, `branch_id` tells them apart; each has at most
    255 bytes. What they hold is the transaction manager's affair, and `format` says in which shape.
    """

    format: int
    global_id: bytes
    branch_id: bytes

    def __str__(self) -> str:
        return f"{self.format}:{_shown(self.global_id)}:{_shown(self.branch_id)}"


def _shown(identifier: bytes) -> str:
    """As text where it is plain text, otherwise in hexadecimal digits."""
    text = identifier.decode("ascii", "replace")
    return text if text.isprintable() and text.isascii() else identifier.hex()
