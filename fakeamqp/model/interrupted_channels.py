"""Channels of AMQP 0-9 whose connection was lost, kept for who of the same user resumes them."""

from __future__ import annotations

from typing import Generic, TypeVar

__all__ = ["InterruptedChannels"]

_MOST_CHANNELS = 100

C = TypeVar("C")


class InterruptedChannels(Generic[C]):
    """What is left of the channels of one virtual host, by user and channel-id.

    The latest hundred are kept, until the broker restarts.
    """

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[tuple[str, bytes], C] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, user: str, channel_id: bytes, channel: C) -> None:
        """Keep one more."""
        self._kept[user, channel_id] = channel
        if len(self._kept) > _MOST_CHANNELS:
            del self._kept[next(iter(self._kept))]

    def take(self, user: str, channel_id: bytes) -> C | None:
        """Take one out; None where there is none."""
        return self._kept.pop((user, channel_id), None)

    def clear(self) -> None:
        """Forget everything."""
        self._kept.clear()
