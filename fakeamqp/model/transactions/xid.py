"""The identity of a branch of a distributed transaction."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Xid"]


class Xid(NamedTuple):
    """A branch's identity (dtx/xid): two xids are equal only if all three parts are.

    All branches of one transaction have the same `global_id` and different `branch_id`s; each has at most
    255 bytes. The transaction manager defines their content; `format` identifies its format.
    """

    format: int
    global_id: bytes
    branch_id: bytes

    def __str__(self) -> str:
        return f"{self.format}:{_shown(self.global_id)}:{_shown(self.branch_id)}"


def _shown(identifier: bytes) -> str:
    """The identifier as text if it is printable ASCII, otherwise in hexadecimal digits."""
    text = identifier.decode("ascii", "replace")
    return text if text.isprintable() and text.isascii() else identifier.hex()
