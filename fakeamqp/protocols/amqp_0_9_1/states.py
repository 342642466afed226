"""The states of a connection and of a channel, as tables.

A connection has those of `base.connection_states`, with update-secret while it is open.

A channel is open from the answer to channel.open on. The peer that sends close discards everything but close
and close-ok until the answer arrives (channel.close/stability). The peer that receives close answers, and the
channel is closed. An event without an entry in a state is illegal, and the state does not change.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from fakeamqp.protocols.base import connection_states
from fakeamqp.protocols.base.connection_states import ConnectionState

if TYPE_CHECKING:
    from fakeamqp.protocols.base.connection_states import ConnectionTransitions


class ChannelState(Enum):
    """The state of a channel."""

    OPEN = auto()
    CLOSING = auto()
    """channel.close has been sent; close-ok is expected."""
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

CONNECTION_TRANSITIONS: ConnectionTransitions = {
    **connection_states.CONNECTION_TRANSITIONS,
    ConnectionState.OPEN: {
        **connection_states.CONNECTION_TRANSITIONS[ConnectionState.OPEN],
        "connection.update-secret": ConnectionState.OPEN,
    },
}
