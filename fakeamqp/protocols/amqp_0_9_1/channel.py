"""Class channel: flow and close. `Amqp091Connection.begin_channel` opens channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.framed import channel

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9_1.server_channel import Amqp091Channel
    from fakeamqp.protocols.framed.codec.method import Method

__all__ = ["HANDLERS"]

HANDLERS: dict[type[Method], Callable[[Amqp091Channel, Any], None]] = {
    m.ChannelFlow: channel.flow,
    m.ChannelFlowOk: channel.flow_ok,
    m.ChannelClose: channel.close,
    m.ChannelCloseOk: channel.close_ok,
}
