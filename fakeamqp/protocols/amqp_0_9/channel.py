"""Class channel: flow and close. Opening and resuming is in `opening`, ping, pong and ok in `requests`."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.framed import channel

__all__ = ["HANDLERS"]

HANDLERS = {
    m.ChannelFlow: channel.flow,
    m.ChannelFlowOk: channel.flow_ok,
    m.ChannelClose: channel.close,
    m.ChannelCloseOk: channel.close_ok,
}
