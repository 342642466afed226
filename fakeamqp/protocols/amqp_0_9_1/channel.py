"""Class channel: flow and close. `Amqp091Connection.begin_channel` opens channels."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.framed import channel

__all__ = ["HANDLERS"]

HANDLERS = {
    m.ChannelFlow: channel.flow,
    m.ChannelFlowOk: channel.flow_ok,
    m.ChannelClose: channel.close,
    m.ChannelCloseOk: channel.close_ok,
}
