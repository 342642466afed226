"""Channels of AMQP 0-9 whose connection was lost, kept until the same user resumes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.model.extensions import Extension

if TYPE_CHECKING:
    from fakeamqp.model.virtual_host import VirtualHost
    from fakeamqp.protocols.amqp_0_9.resume import InterruptedChannel

__all__ = ["InterruptedChannels"]

_MAX_CHANNELS = 100


class InterruptedChannels(Extension):
    """The interrupted channels of one virtual host, by user and channel-id.

    The latest hundred are kept, until the broker restarts.
    """

    def __init__(self, virtual_host: VirtualHost) -> None:
        super().__init__(virtual_host)
        self._kept: dict[tuple[str, bytes], InterruptedChannel] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, user: str, channel_id: bytes, channel: InterruptedChannel) -> None:
        """Add a channel."""
        self._kept[user, channel_id] = channel
        if len(self._kept) > _MAX_CHANNELS:
            del self._kept[next(iter(self._kept))]

    def take(self, user: str, channel_id: bytes) -> InterruptedChannel | None:
        """Remove and return a channel; None if it is unknown."""
        return self._kept.pop((user, channel_id), None)

    def restarted(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Remove all channels."""
        self._kept.clear()
