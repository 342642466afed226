"""Class channel: flow and close. open and resume are in `opening`; ping, pong and ok in `requests.ping`."""

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
