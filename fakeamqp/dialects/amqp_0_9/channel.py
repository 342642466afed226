"""Class channel: flow and close. Opening and resuming is in `opening`; ping, pong and ok are with the requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.dialects.amqp_0_9_x.replies import ProtocolError
from fakeamqp.wire.amqp_0_9 import methods as m

if TYPE_CHECKING:
    from fakeamqp.dialects.amqp_0_9.channel_end import ChannelEnd

__all__ = ["HANDLERS"]


def flow(channel: ChannelEnd, method: m.ChannelFlow) -> None:
    """Stop or resume deliveries on the channel (channel.flow/*)."""
    channel.send(m.ChannelFlowOk(active=method.active))
    if method.active:
        channel.gate.reopen()
    else:
        channel.gate.shut()


def flow_ok(channel: ChannelEnd, method: m.ChannelFlowOk) -> None:
    """The client has done as it was told, where it was told something (channel.flow/throttling)."""
    if channel.awaited_flow_oks:
        channel.awaited_flow_oks -= 1
    elif not channel.personality.throttles_with_flow:
        raise ProtocolError("command-invalid", "channel.flow-ok answers nothing")


def close(channel: ChannelEnd, method: m.ChannelClose) -> None:
    """Close the channel at the client's wish."""
    channel.closed_by_client()


def close_ok(channel: ChannelEnd, method: m.ChannelCloseOk) -> None:
    """The answer to a close that was never sent, since the channel is open."""
    raise ProtocolError("command-invalid", "channel.close-ok answers nothing")


HANDLERS = {
    m.ChannelFlow: flow,
    m.ChannelFlowOk: flow_ok,
    m.ChannelClose: close,
    m.ChannelCloseOk: close_ok,
}
