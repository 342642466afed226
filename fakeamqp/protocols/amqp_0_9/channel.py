"""Class channel: flow and close. open and resume are in `opening`; ping, pong and ok in `requests.ping`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.framed import channel

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
    from fakeamqp.protocols.framed.codec.method import Method

__all__ = ["HANDLERS"]

HANDLERS: dict[type[Method], Callable[[Amqp09Channel, Any], None]] = {
    m.ChannelFlow: channel.flow,
    m.ChannelFlowOk: channel.flow_ok,
    m.ChannelClose: channel.close,
    m.ChannelCloseOk: channel.close_ok,
}
