"""Class channel, as 0-9 and 0-9-1 have it: flow and close. How a channel is opened is each dialect's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fakeamqp.dialects.amqp_0_9_x.replies import ProtocolError

if TYPE_CHECKING:
    from fakeamqp.dialects.amqp_0_9_x.channel_end import ChannelEnd
    from fakeamqp.wire.amqp_0_9_x.method import Method

__all__ = ["close", "close_ok", "flow", "flow_ok"]


class Flow(Protocol):
    """channel.flow and its answer, of either dialect."""

    active: bool


def flow(channel: ChannelEnd, method: Flow) -> None:
    """Stop or resume deliveries on the channel, where the personality does so (channel.flow/*)."""
    if not method.active and not channel.personality.honours_client_flow:
        raise ProtocolError("not-implemented", "active=false")
    channel.send(channel.endpoint.vocabulary.ChannelFlowOk(active=method.active))
    if method.active:
        channel.gate.reopen()
    else:
        channel.gate.shut()


def flow_ok(channel: ChannelEnd, method: Flow) -> None:
    """The client has done as it was told, where the personality tells it (channel.flow/throttling)."""
    if channel.awaited_flow_oks:
        channel.awaited_flow_oks -= 1
    elif not channel.personality.throttles_with_flow:
        raise ProtocolError("command-invalid", "unimplemented method")


def close(channel: ChannelEnd, method: Method) -> None:
    """Close the channel at the client's wish."""
    channel.closed_by_client()


def close_ok(channel: ChannelEnd, method: Method) -> None:
    """The answer to a close that was never sent, since the channel is open."""
    raise ProtocolError("command-invalid", "unimplemented method")
