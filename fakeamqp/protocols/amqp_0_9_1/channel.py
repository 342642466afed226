"""Class channel: flow and close. `Amqp091Connection.begin_channel` opens channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.replies import ProtocolError

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9_1.base_channel import BaseChannel
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method


def flow(channel: BaseChannel, method: m.ChannelFlow) -> None:
    """Stop or resume deliveries on the channel, if the personality supports it (channel.flow/*)."""
    if not method.active and not channel.personality.honours_client_flow:
        raise ProtocolError("not-implemented", "active=false")
    channel.send(m.ChannelFlowOk(active=method.active))
    if method.active:
        channel.gate.reopen()
    else:
        channel.gate.shut()


def flow_ok(channel: BaseChannel, method: m.ChannelFlowOk) -> None:
    """Accept the answer to a channel.flow of the broker (channel.flow/throttling)."""
    if channel.awaited_flow_oks:
        channel.awaited_flow_oks -= 1
    elif not channel.personality.throttles_with_flow:
        raise ProtocolError("command-invalid", "unimplemented method")


def close(channel: BaseChannel, method: Method) -> None:
    """Close the channel at the client's request."""
    channel.closed_by_client()


def close_ok(channel: BaseChannel, method: Method) -> None:
    """Refuse channel.close-ok on an open channel, to which the broker has sent no close."""
    raise ProtocolError("command-invalid", "unimplemented method")
