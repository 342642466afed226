"""What stays known of a client: its messages are kept longer than its connection."""

from __future__ import annotations

__all__ = ["Identity", "identity_of"]


class Identity:
    """Tells the publisher of a message from others, without keeping its connection in memory.

    Args:
        name: the name of the connection; None for a queue that dead-letters messages.
    """

    __slots__ = ("__weakref__", "name")

    def __init__(self, name: str | None = None) -> None:
        self.name: str | None = name

    def __repr__(self) -> str:
        return f"<Identity of {self.name}>"


def identity_of(owner: object) -> object:
    """The identity of a connection, or what the model knows as an owner without one."""
    return getattr(owner, "identity", owner)
