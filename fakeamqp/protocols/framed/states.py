"""The states of a channel, as a table.

A channel is open from the answer to channel.open on. Whoever sends close discards everything but close and
close-ok until the answer comes (channel.close/stability); whoever receives it answers and is done. What a
state has no entry for is an illegal event, and the state stays as it was.
"""

from __future__ import annotations

from enum import Enum, auto

__all__ = ["CHANNEL_TRANSITIONS", "ChannelState"]


class ChannelState(Enum):
    """Where a channel is in its life."""

    OPEN = auto()
    CLOSING = auto()
    """channel.close has been sent, close-ok is due."""
    CLOSED = auto()


CHANNEL_TRANSITIONS: dict[ChannelState, dict[str, ChannelState]] = {
    ChannelState.OPEN: {
        "METHOD": ChannelState.OPEN,
        "channel.close": ChannelState.CLOSED,
        "CLOSE": ChannelState.CLOSING,
        "LOST": ChannelState.CLOSED,
    },
    ChannelState.CLOSING: {
        "channel.close": ChannelState.CLOSING,
        "channel.close-ok": ChannelState.CLOSED,
        "LOST": ChannelState.CLOSED,
    },
    ChannelState.CLOSED: {
        "channel.open": ChannelState.OPEN,
    },
}
