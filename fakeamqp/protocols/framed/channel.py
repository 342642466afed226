"""The methods of class channel that 0-9 and 0-9-1 share: flow and close. Each protocol opens its channels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fakeamqp.protocols.framed.replies import ProtocolError

if TYPE_CHECKING:
    from fakeamqp.protocols.framed.codec.method import Method
    from fakeamqp.protocols.framed.server_channel import FramedChannel

__all__ = ["close", "close_ok", "flow", "flow_ok"]


class Flow(Protocol):
    """channel.flow and channel.flow-ok of either protocol."""

    active: bool


def flow(channel: FramedChannel, method: Flow) -> None:
    """Stop or resume deliveries on the channel, if the personality supports it (channel.flow/*)."""
    if not method.active and not channel.personality.honours_client_flow:
        raise ProtocolError("not-implemented", "active=false")
    channel.send(channel.connection.vocabulary.ChannelFlowOk(active=method.active))
    if method.active:
        channel.gate.reopen()
    else:
        channel.gate.shut()


def flow_ok(channel: FramedChannel, method: Flow) -> None:
    """Accept the answer to a channel.flow of the broker (channel.flow/throttling)."""
    if channel.awaited_flow_oks:
        channel.awaited_flow_oks -= 1
    elif not channel.personality.throttles_with_flow:
        raise ProtocolError("command-invalid", "unimplemented method")


def close(channel: FramedChannel, method: Method) -> None:
    """Close the channel at the client's request."""
    channel.closed_by_client()


def close_ok(channel: FramedChannel, method: Method) -> None:
    """Refuse channel.close-ok on an open channel, to which the broker has sent no close."""
    raise ProtocolError("command-invalid", "unimplemented method")
