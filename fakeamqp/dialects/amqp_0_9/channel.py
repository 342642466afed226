"""Class channel: flow and close. Opening and resuming is in `opening`, ping, pong and ok in `requests`."""

from __future__ import annotations

from fakeamqp.dialects.amqp_0_9_x import channel
from fakeamqp.wire.amqp_0_9 import methods as m

__all__ = ["HANDLERS"]

HANDLERS = {
    m.ChannelFlow: channel.flow,
    m.ChannelFlowOk: channel.flow_ok,
    m.ChannelClose: channel.close,
    m.ChannelCloseOk: channel.close_ok,
}
