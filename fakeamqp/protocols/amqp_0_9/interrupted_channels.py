"""Channels of AMQP 0-9 whose connection was lost, kept for who of the same user resumes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.model.extensions import Extension

if TYPE_CHECKING:
    from fakeamqp.model.virtual_host import VirtualHost
    from fakeamqp.protocols.amqp_0_9.resume import Interrupted

__all__ = ["InterruptedChannels"]

_MAX_CHANNELS = 100


class InterruptedChannels(Extension):
    """What is left of the channels of one virtual host, by user and channel-id.

    The latest hundred are kept, until the broker restarts.
    """

    def __init__(self, virtual_host: VirtualHost) -> None:
        super().__init__(virtual_host)
        self._kept: dict[tuple[str, bytes], Interrupted] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, user: str, channel_id: bytes, channel: Interrupted) -> None:
        """Keep one more."""
        self._kept[user, channel_id] = channel
        if len(self._kept) > _MAX_CHANNELS:
            del self._kept[next(iter(self._kept))]

    def take(self, user: str, channel_id: bytes) -> Interrupted | None:
        """Take one out; None where there is none."""
        return self._kept.pop((user, channel_id), None)

    def restarted(self) -> None:
        """See `Extension`."""
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._kept.clear()
