"""channel.ping and channel.pong, with which either peer checks that the other responds.

The answer to a ping is channel.ok, and then a pong, which the other peer answers with channel.ok too
(channel.pong/not-a-response). If the ping was a request, so is the pong. If the ping was in a method frame,
so are the pong and its answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.requests.channel_state import Requests
from fakeamqp.protocols.amqp_0_9_1.replies import ProtocolError

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

__all__ = ["HANDLERS"]


class Pongs:
    """The number of pongs in method frames without an answer. See `Amqp09Channel.class_state`."""

    def __init__(self, channel: Amqp09Channel) -> None:
        self.unanswered = 0

    def released(self) -> None:
        """Do nothing when the channel closes."""


def ping(channel: Amqp09Channel, method: m.ChannelPing) -> None:
    """Send channel.ok, and then a pong (channel.ping/*)."""
    requests = channel.class_state(Requests)
    asked = requests.current is not None
    channel.send(m.ChannelOk())
    pong = m.ChannelPong()
    if asked:
        requests.request(m.ChannelPong, pong.encode())
    else:
        channel.class_state(Pongs).unanswered += 1
        channel.send(pong)


def pong(channel: Amqp09Channel, method: m.ChannelPong) -> None:
    """Answer a pong with channel.ok (channel.pong/ok-reply)."""
    channel.send(m.ChannelOk())


def ok(channel: Amqp09Channel, method: m.ChannelOk) -> None:
    """Accept the answer to a pong in a method frame; pongs in requests are answered in response frames.

    Raises:
        ProtocolError: all pongs are answered.
    """
    pongs = channel.class_state(Pongs)
    if channel.class_state(Requests).current is not None or not pongs.unanswered:
        raise ProtocolError("command-invalid", "channel.ok without an unanswered channel.pong")
    pongs.unanswered -= 1


HANDLERS: dict[type[Method], Callable[[Amqp09Channel, Any], None]] = {
    m.ChannelPing: ping,
    m.ChannelPong: pong,
    m.ChannelOk: ok,
}
